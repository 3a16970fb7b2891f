"""Bubblewrap around a command: a read-only system, a private home, its own processes; or none, and then it says so."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pytest_skilleval.errors import SkillevalError

Mode = Literal["auto", "require", "off"]

_TMP_BYTES = 512 << 20
_ALWAYS_HIDDEN = ("/tmp", "/var/tmp", "/home", "/root", "/run", "/mnt", "/media", "/srv")  # noqa: S108 - hidden, not used
# Root may write these without any capability, so that an agent run by root could have the kernel start a program of
# its own outside (kernel.core_pattern).
_KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/scsi", "/proc/acpi", "/proc/fs")
_PROBE_SECONDS = 10.0


class SandboxUnavailable(SkillevalError):
    """`require` was asked for and bubblewrap does not work here."""


@dataclass(frozen=True, kw_only=True)
class SandboxPlan:
    """What one command may see: the system read-only, its home and working folder, and what is named here.

    Folders of temporary files and of users (`/tmp`, `/home`, `/root`, `/run`, the user's home) are empty inside, but
    for programs that lie there: the interpreter, the folders of PATH, the command itself. The network is kept, since
    agents need their provider; so what listens on it, or on an abstract Unix socket, can be reached.
    """

    program: Path
    """The bubblewrap that works here."""
    writable: tuple[Path, ...] = ()
    """Folders shown read-write at the same path, besides the home and the working folder."""
    readable: tuple[Path, ...] = ()
    """Files and folders shown read-only although they lie in something hidden."""
    hidden: tuple[Path, ...] = ()
    """Folders that are empty inside: the project, with its checkers and expected answers."""
    user_namespace: bool = False
    """Use one: everybody but root must, and root where mounting is not allowed to it."""
    tmp_limit: int | None = None
    """Bytes that fit into each of the empty folders; None where bubblewrap cannot say (before 0.7)."""

    def wrap(self, argv: tuple[str, ...], *, cwd: Path, home: Path, env: Mapping[str, str]) -> tuple[str, ...]:
        """Return the command line that runs `argv` inside.

        The environment is not in it: bubblewrap hands on what it is given itself, and arguments can be read by all.
        """
        hidden = _hidden_folders(self.hidden)
        line = [
            str(self.program),
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--die-with-parent",
            "--new-session",
        ]
        if self.user_namespace:
            line.append("--unshare-user")
        line += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for setting in _KERNEL_SETTINGS:
            line += ["--ro-bind-try", setting, setting]
        for folder in hidden:
            line += ["--size", str(self.tmp_limit)] if self.tmp_limit is not None else []
            line += ["--tmpfs", str(folder)]
        for path in _outermost(_programs(argv, env, hidden) | _needed(self.readable, hidden) | _resolver(hidden)):
            line += ["--ro-bind-try", str(path), str(path)]
        for path in _outermost({home, cwd, *self.writable}):
            line += ["--bind", str(path), str(path)]
        for folder in hidden:
            line += ["--remount-ro", str(folder)] if folder.name != "tmp" else []
        return (*line, "--chdir", str(cwd), "--", *argv)


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """What isolation there is on this machine."""

    kind: Literal["bubblewrap", "none"]
    reason: str
    """Why there is none; empty with bubblewrap."""
    version: str
    """Of bubblewrap; empty without."""
    bare: SandboxPlan | None
    """The plan that was tried, which shows nothing of a user's but the command; None where there is no sandbox."""

    def plan(
        self, *, writable: Iterable[Path] = (), readable: Iterable[Path] = (), hidden: Iterable[Path] = ()
    ) -> SandboxPlan | None:
        """Return the plan for a command, or None where there is no sandbox."""
        if self.bare is None:
            return None
        return replace(self.bare, writable=tuple(writable), readable=tuple(readable), hidden=tuple(hidden))


def detect(mode: Mode) -> Sandbox:
    """Find out whether commands can be sandboxed, by sandboxing one; done once in a process for each bubblewrap.

    Args:
        mode: `auto` takes what there is, `require` insists, `off` does not look.

    Raises:
        SandboxUnavailable: `require`, and it does not work; the message has the reason and the ways out.
    """
    if mode == "off":
        return Sandbox(kind="none", reason="switched off", version="", bare=None)
    found = _probe(shutil.which("bwrap"))
    if mode == "require" and found.kind == "none":
        raise SandboxUnavailable(
            f"the sandbox is required but {found.reason}; install bubblewrap, allow user namespaces, "
            "or run with the sandbox set to auto or off"
        )
    return found


@functools.cache
def _probe(program: str | None) -> Sandbox:
    if not sys.platform.startswith("linux"):
        return _none(f"bubblewrap does not exist on {sys.platform}")
    if program is None:
        return _none("bubblewrap (bwrap) is not in PATH")
    path = Path(program).absolute()
    try:
        version = _told([str(path), "--version"])
        limit = _TMP_BYTES if "--size" in _told([str(path), "--help"]) else None
        namespaces = (False, True) if os.getuid() == 0 else (True,)
        plans = [SandboxPlan(program=path, user_namespace=own, tmp_limit=limit) for own in namespaces]
        working = _first_that_works(plans)
    except (OSError, subprocess.SubprocessError) as error:
        return _none(f"bubblewrap ({path}) does not work: {_reason(error)}")
    return Sandbox(kind="bubblewrap", reason="", version=(version.split() or ["unknown"])[-1], bare=working)


def _first_that_works(plans: list[SandboxPlan]) -> SandboxPlan:
    with tempfile.TemporaryDirectory(prefix="skilleval-probe-") as folder:
        home = Path(folder).resolve()
        for plan in plans[:-1]:
            with contextlib.suppress(subprocess.CalledProcessError):
                _told([*plan.wrap(("true",), cwd=home, home=home, env=os.environ)])
                return plan
        _told([*plans[-1].wrap(("true",), cwd=home, home=home, env=os.environ)])
        return plans[-1]


def _none(reason: str) -> Sandbox:
    return Sandbox(kind="none", reason=reason, version="", bare=None)


def _told(line: list[str]) -> str:
    done = subprocess.run(
        line, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=True, cwd="/"
    )
    return done.stdout.decode(errors="replace").strip()


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = error.stderr.decode(errors="replace").strip()
        return f"exit status {error.returncode}" + (f", {said}" if said else "")
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer within {_PROBE_SECONDS:g} s"
    return str(error)


def _hidden_folders(more: tuple[Path, ...]) -> list[Path]:
    """Return the folders to hide, none inside another."""
    users = [Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)]
    asked = [*map(Path, _ALWAYS_HIDDEN), *users, Path(tempfile.gettempdir()), *more]
    return _outermost({path.resolve() for path in asked if path.is_dir()} - {Path("/")})


def _outermost(paths: set[Path]) -> list[Path]:
    """Return the paths that lie in none of the others."""
    found: list[Path] = []
    for path in sorted(paths, key=lambda path: path.parts):
        if not _inside(path, found):
            found.append(path)
    return found


def _inside(path: Path, hidden: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in hidden)


def _needed(paths: Iterable[Path], hidden: list[Path]) -> set[Path]:
    """Return those paths, and what they point at, that would be hidden, and are not a hidden folder as a whole."""
    both = {variant for path in paths for variant in (path.absolute(), path.resolve())}
    return {path for path in both if _inside(path, hidden) and path not in hidden and path.exists()}


def _programs(argv: tuple[str, ...], env: Mapping[str, str], hidden: list[Path]) -> set[Path]:
    """Return what must stay readable so that the command, the programs of its PATH and their interpreters run."""
    path = env.get("PATH", "")
    folders = [Path(part) for part in path.split(":") if part.startswith("/")]
    paths: set[Path] = set()
    for folder in folders:
        if _inside(folder.resolve(), hidden) or _inside(folder, hidden):
            paths |= {folder, *_prefix(folder), *_interpreters(folder)}
    command = shutil.which(argv[0], path=path) if "/" not in argv[0] else argv[0]
    if command is not None:
        paths |= {Path(command), *_installation(Path(command).resolve())}
    return _needed(paths, hidden)


def _prefix(folder: Path) -> list[Path]:
    """Return the installation that a `bin` folder belongs to: a virtual environment, or a version of a runtime."""
    above = folder.parent
    if folder.name == "bin" and ((above / "pyvenv.cfg").is_file() or (above / "lib").is_dir()):
        private = {Path.home(), Path.home() / ".local"}
        return [] if above in private or above.resolve() in private else [above]
    return []


def _interpreters(folder: Path) -> list[Path]:
    """Return the installations behind the links of a virtual environment's `bin`."""
    found: list[Path] = []
    for name in ("python", "python3", "node"):
        link = folder / name
        if link.is_symlink() and link.exists():
            found += _installation(link.resolve())
    return found


def _installation(program: Path) -> list[Path]:
    """Return what a program needs beside itself: its prefix, or the modules it is one of; at least its file."""
    for above in program.parents:
        if above.name == "node_modules":
            return [above]
    return [program, *_prefix(program.parent)]


def _resolver(hidden: list[Path]) -> set[Path]:
    """Return the folder behind /etc/resolv.conf: without it there are no host names inside."""
    target = Path("/etc/resolv.conf").resolve()
    return {target.parent} if _inside(target, hidden) and target.parent not in hidden else set()
