"""An isolated home: where one trial lives, and the environment made from an allow-list.

The layout of one trial, below a folder of the system's temp directory that only the user can enter:

    <temp>/skilleval-<uid>/<run>/<digest>.lease   held by the trial's supervisor; a lease without owner is swept
    <temp>/skilleval-<uid>/<run>/<digest>/
        home/      HOME, XDG_*, the agents' config homes
        tmp/       TMPDIR; a sibling of home, since codex refuses a home below its TMPDIR
        work/      the working directory, its own git repository
        scratch/   prompts, configs and streams; the agent is not pointed at it

No part of a path names the case or the condition: the agent must not learn them.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.variables import HOME_VARIABLES

from .spawn import Spawner
from .sweep import kill_all_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ALLOWED", "Home", "home_base", "home_root", "lend_home", "make_home", "own_base"]

ALLOWED = (
    "PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "TERM", "USER", "LOGNAME", "SHELL",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip
"""Names that pass from the user's environment; all others stay out (a provider adds what it needs)."""

_GIT_HEAD = "ref: refs/heads/main\n"
_GIT_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
_GIT_USER = (
    "[user]\n\tname = Agent\n\temail = agent@example.invalid\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n"
)


@dataclass(frozen=True)
class Home:
    """The folders of one trial, and its environment."""

    root: Path
    home: Path
    tmp: Path
    work: Path
    scratch: Path
    env: Mapping[str, str]

    def install_git(self) -> None:
        """Make the working directory a git repository of its own.

        Agents look for instructions upwards until a repository's root, so this fences them in. The four entries that
        git asks of a repository are written by hand: `git init` costs as much as the rest of a trial's preparation.
        """
        git = f"{self.work}/.git"
        for folder in (git, f"{git}/objects", f"{git}/refs"):
            os.mkdir(folder)  # noqa: PTH102 - see make_home
        _write(f"{git}/HEAD", _GIT_HEAD)
        _write(f"{git}/config", _GIT_CONFIG)


def home_base(outside: Path) -> Path:
    """Return the per-user folder for homes, outside the given tree.

    Raises:
        OptionMistake: Every temp directory lies inside that tree, or the folder belongs to somebody else.
    """
    fallbacks = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]  # noqa: S108 - only a name; made 0700 below
    tree = outside.resolve()
    for temp in fallbacks:
        if temp.is_dir() and not temp.resolve().is_relative_to(tree):
            return temp.resolve() / f"skilleval-{os.getuid()}"
    raise OptionMistake(
        f"TMPDIR={tempfile.gettempdir()}: lies inside {tree}; agents would see the project. Set TMPDIR outside it"
    )


def home_root(base: Path, run: str, name: str) -> Path:
    """Return where a trial's home goes, whether or not it is there."""
    return base / run / name


def make_home(base: Path, run: str, name: str, environ: Mapping[str, str]) -> Home:
    """Make the folders of one trial.

    Args:
        base: From `home_base`.
        run: The run's id.
        name: The trial's digest.
        environ: The user's environment.

    Raises:
        OptionMistake: The base belongs to somebody else.
        OSError: A folder cannot be made, or is there already.
    """
    # Plain strings: this runs once a trial, and path objects cost more than the system calls.
    root = f"{base}/{run}/{name}"
    try:
        os.mkdir(root, mode=0o700)  # noqa: PTH102
    except FileNotFoundError:
        own_base(base)
        (base / run).mkdir(mode=0o700, exist_ok=True)
        os.mkdir(root, mode=0o700)  # noqa: PTH102
    home, tmp, work, scratch = (f"{root}/{part}" for part in ("home", "tmp", "work", "scratch"))
    for folder in (home, tmp, work, scratch):
        os.mkdir(folder)  # noqa: PTH102
    _write(f"{home}/.gitconfig", _GIT_USER)
    return Home(
        root=Path(root),
        home=Path(home),
        tmp=Path(tmp),
        work=Path(work),
        scratch=Path(scratch),
        env=_environment(root, home, tmp, environ),
    )


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


@contextmanager
def lend_home(outside: Path, name: str, environ: Mapping[str, str]) -> Iterator[Home]:
    """Lend an isolated home to a test that is no trial; processes that it leaves in there are killed.

    Args:
        outside: The tree that the home must not lie in.
        name: Distinguishes the homes of one process.
        environ: The user's environment.
    """
    base = home_base(outside)
    run = f"fixture-{os.getpid()}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]
    own_base(base)
    with Spawner() as spawner, spawner.lease(home_root(base, run, digest), base):
        home = make_home(base, run, digest, environ)
        home.install_git()
        try:
            yield home
        finally:
            # The test started its processes itself, so that no supervisor owns them.
            kill_all_of([os.fsencode(home.root)])
    for folder in (base / run, base):
        with suppress(OSError):
            folder.rmdir()


def own_base(base: Path) -> None:
    """Make the folder for homes where it is missing.

    Raises:
        OptionMistake: It belongs to somebody else: what lies in it could be exchanged.
    """
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat()
    if status.st_uid != os.getuid() or base.is_symlink():
        raise OptionMistake(f"{base}: belongs to another user or is a link; remove it or set TMPDIR elsewhere")


def _environment(root: str, path: str, tmp: str, environ: Mapping[str, str]) -> dict[str, str]:
    env = {name: environ[name] for name in ALLOWED if name in environ}
    env.setdefault("PATH", os.defpath)
    env.setdefault("LANG", "C.UTF-8")
    return env | {name: value.format(root=root, home=path, tmp=tmp) for name, value in HOME_VARIABLES.items()}
