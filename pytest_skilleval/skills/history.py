"""Older versions of a skill: from a folder, a git revision, or the commit before."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_skilleval.errors import SkillMistake
from pytest_skilleval.frozen import digest_text
from pytest_skilleval.model import Skill

from .folder import MAX_BYTES, MAX_FILES, is_left_out
from .skillfile import is_skill_folder, load_skill

__all__ = ["skill_at", "stale_skill"]

GIT_TIMEOUT = 60.0
"""Seconds for one command."""
MAX_COMMITS = 200
"""How far back a version that differs is looked for."""
_SAFE = (
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.quotePath=false"),
    # A partial clone would fetch what it lacks, by a command that its configuration names.
    *("-c", "protocol.allow=never"),
    # Only objects are read, so a checkout that another user owns (as in a CI container) does no harm.
    *("-c", "safe.directory=*"),
)


class _Blob(NamedTuple):
    mode: str
    sha: str
    path: str


def stale_skill(ref: str | None, name: str, current: Skill | None, *, target: Path, root: Path) -> Skill | None:
    """Return the stale version of a skill.

    Args:
        ref: A folder (the skill itself or a folder of skills; relative to root), `git:REV`, or None for the newest
            commit in which the skill differs from what lies on disk now.
        name: The skill's name.
        current: The skill as it is now; for `git:REV` and None, its folder says where in the repository to look.
        target: A folder for what comes out of git.
        root: What a relative folder starts from.

    Returns:
        The skill, or None where there is no older version (no git, no such commit).

    Raises:
        SkillMistake: A folder or revision that was asked for is not there or is no valid skill.
    """
    if ref is None:
        return _previous(current, target) if current is not None else None
    if not ref.startswith("git:"):
        folder = root / ref
        if folder.is_dir() and not is_skill_folder(folder):
            folder /= name
        if not is_skill_folder(folder):
            raise SkillMistake(f"{root / ref}: holds no skill {name!r}; name a folder with SKILL.md, or git:REV")
        return load_skill(folder)
    if current is None:
        raise SkillMistake(f"{ref}: no skill {name!r} lies on disk, so its place in the repository is not known")
    return skill_at(ref.removeprefix("git:"), current, target=target)


def skill_at(revision: str, skill: Skill, *, target: Path) -> Skill:
    """Return a skill as it was in a revision of the repository that holds its folder.

    Args:
        revision: Anything that names a commit.
        skill: The skill as it is now.
        target: A folder for the files; one folder for each commit and skill is made in it.

    Raises:
        SkillMistake: No git, no repository, no such revision, or the skill was not in it or was not valid.
    """
    ref = f"git:{revision}"
    if not revision or revision.startswith("-") or "\0" in revision:
        raise SkillMistake(f"{ref}: is no revision; write git:HEAD~1, git:v1.2 or git:<commit>")
    commit = _git(skill.path, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if commit is None:
        raise SkillMistake(f"{ref}: git knows no such commit in {skill.path}; `git log` lists them")
    blobs = _blobs(skill.path, commit.decode().strip())
    if not blobs:
        raise SkillMistake(f"{ref}: the skill {skill.name!r} was not in {skill.path} then; choose another revision")
    try:
        return load_skill(_write(skill, blobs, _place(target, commit.decode(), skill)))
    except SkillMistake as exc:
        raise SkillMistake(f"{ref}: {exc}") from None


def _previous(skill: Skill, target: Path) -> Skill | None:
    """Return the newest committed version that installs something else than what lies on disk."""
    if not _may_have_history(os.path.realpath(skill.path)):
        return None  # a thousand skills would cost a thousand processes
    history = _git(skill.path, "log", f"--max-count={MAX_COMMITS}", "--format=%H", "--", ".")
    seen: set[tuple[_Blob, ...]] = set()
    for commit in (history or b"").decode().split():
        blobs = _blobs(skill.path, commit)
        if not blobs or tuple(blobs) in seen:
            continue
        seen.add(tuple(blobs))
        place = _place(target, commit, skill)
        used = place.exists()  # by a revision that was asked for
        with contextlib.suppress(SkillMistake):
            # A commit in which the skill was broken is no version that anyone ran.
            older = load_skill(_write(skill, blobs, place))
            if older.digest != skill.digest:
                return older
        if not used:
            shutil.rmtree(place, ignore_errors=True)
    return None


def _place(target: Path, commit: str, skill: Skill) -> Path:
    """Return where a version is written: skills that were committed together must not share a folder."""
    return target / f"{commit[:12]}-{digest_text(str(skill.path))[:12]}"


def _blobs(folder: Path, commit: str) -> list[_Blob]:
    """Return what a commit holds below a folder and would be installed."""
    prefix = _git(folder, "rev-parse", "--show-prefix")
    if prefix is None:
        return []
    place = os.fsdecode(prefix.rstrip(b"\n"))
    listing = _git(folder, "ls-tree", "-r", "-z", "--full-tree", f"{commit}:{place}" if place else commit) or b""
    blobs = []
    for line in listing.split(b"\0"):
        about, _, name = line.partition(b"\t")
        mode, kind, sha = [*about.decode().split(), "", "", ""][:3]
        path = os.fsdecode(name)
        if kind == "blob" and not is_left_out(path):
            blobs.append(_Blob(mode, sha, path))
    return blobs


def _write(skill: Skill, blobs: list[_Blob], target: Path) -> Path:
    """Write blobs as files; links are written too and judged when the skill is loaded."""
    target = target.resolve()
    folder = target / skill.path.name
    if folder.exists():
        return folder
    if len(blobs) > MAX_FILES:
        raise SkillMistake(f"{skill.path}: held more than {MAX_FILES:,} files")
    # Written aside and renamed: a worker beside this one may want the same version.
    aside = target.with_name(f"{target.name}.{os.getpid()}") / skill.path.name
    for blob, data in zip(blobs, _contents(skill.path, blobs), strict=True):
        file = aside / blob.path
        # Git refuses such names in its index; a hand-made tree may hold them.
        if ".." in blob.path.split("/") or blob.path.startswith("/") or file.parent.resolve() != file.parent:
            raise SkillMistake(f"{skill.path}: a commit holds the path {blob.path!r}, which leads out of the skill")
        file.parent.mkdir(parents=True, exist_ok=True)
        if blob.mode == "120000":
            file.symlink_to(os.fsdecode(data))
        else:
            file.write_bytes(data)
            file.chmod(0o755 if blob.mode == "100755" else 0o644)
    try:
        aside.parent.rename(target)
    except OSError:
        shutil.rmtree(aside.parent, ignore_errors=True)
    return folder


def _contents(folder: Path, blobs: list[_Blob]) -> Iterator[bytes]:
    """Yield the bytes of each blob, as they were committed: no filter, no line-end conversion."""
    out = _git(folder, "cat-file", "--batch", stdin="".join(f"{blob.sha}\n" for blob in blobs).encode()) or b""
    if len(out) > MAX_BYTES:
        raise SkillMistake(f"{folder}: an older version holds more than {MAX_BYTES // 2**20} MiB")
    at = 0
    for blob in blobs:
        end = out.find(b"\n", at)
        parts = out[at:end].split()
        if end < 0 or len(parts) != 3:
            raise SkillMistake(f"{folder}: git does not give {blob.path!r} of an older version; is the clone complete?")
        size = int(parts[2])
        yield out[end + 1 : end + 1 + size]
        at = end + 1 + size + 1


@functools.lru_cache(maxsize=4096)
def _may_have_history(folder: str) -> bool:
    """Tell whether a folder may lie in a repository: a `.git` above it."""
    if os.path.lexists(f"{folder}/.git"):
        return True
    above = os.path.dirname(folder)  # noqa: PTH120 - strings are the cache's keys
    return above != folder and _may_have_history(above)


def _git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """Return what git prints, or None where it fails or is not there.

    It runs without the user's and the system's configuration, hooks and GIT_* variables: what it prints depends on the
    repository alone.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
    try:
        done = subprocess.run(
            ["git", "--no-pager", *_SAFE, "-C", str(folder.resolve()), *arguments],
            input=stdin,
            capture_output=True,
            env=environment,
            timeout=GIT_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
