"""A skill's folder: what of it is installed, its digest, and a copy that takes nothing from outside."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pytest_skilleval.errors import SkillMistake
from pytest_skilleval.frozen import canonical_json, digest_text

__all__ = ["Entry", "copy_entries", "digest_of", "is_left_out", "skill_entries"]

MAX_FILES = 5_000
MAX_BYTES = 100 * 1024 * 1024
"""What one skill may hold; real ones hold a few files and less than a megabyte."""
MAX_DEPTH = 30

_LEFT_OUT = frozenset(
    {
        ".DS_Store",
        ".git",
        ".hg",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".skilleval",
        ".svn",
        ".venv",
        "__pycache__",
        "node_modules",
    }
)
_LEFT_OUT_AT_TOP = frozenset({"evals", "evaluations"})
"""They hold the questions and the expected answers."""


class Entry(NamedTuple):
    """A file or link of a skill."""

    path: str
    """Relative, with `/`."""
    mode: str
    """`-` a file, `x` an executable one, `l` a link."""
    content: str
    """SHA-256 of a file's bytes; for a link, what it leads to, relative to its own folder."""


def is_left_out(path: str) -> bool:
    """Whether a path is never installed with a skill."""
    parts = path.split("/")
    return parts[0] in _LEFT_OUT_AT_TOP or path.endswith(".pyc") or not _LEFT_OUT.isdisjoint(parts)


def skill_entries(folder: Path) -> list[Entry]:
    """Return what is installed of a skill, sorted by path.

    Raises:
        SkillMistake: A link leaves the folder, leads nowhere or in a circle; a device, pipe or socket; a file with
            another name outside (a hard link); too many files or bytes. Nothing outside has been read then.
    """
    top = folder.resolve()
    found = sorted(_walk(top, ""), key=lambda item: item[0])
    if len(found) > MAX_FILES:
        raise SkillMistake(f"{folder}: holds more than {MAX_FILES:,} files; a skill holds a few")
    total = sum(about.st_size for _, about in found)
    if total > MAX_BYTES:
        raise SkillMistake(f"{folder}: holds {total / 2**20:.0f} MiB; at most {MAX_BYTES // 2**20} MiB are installed")
    names_here: dict[tuple[int, int], int] = {}
    for _, about in found:
        names_here[about.st_dev, about.st_ino] = names_here.get((about.st_dev, about.st_ino), 0) + 1
    links: dict[str, str] = {}
    entries = []
    for path, about in found:
        if stat.S_ISLNK(about.st_mode):
            links[path] = _link_target(folder, top, path)
            here = PurePosixPath(path).parent.as_posix()
            entries.append(Entry(path, "l", os.path.relpath(links[path], here)))
        elif not stat.S_ISREG(about.st_mode):
            raise SkillMistake(f"{folder / path}: is neither a file nor a folder (a pipe, socket or device); remove it")
        elif about.st_nlink > names_here[about.st_dev, about.st_ino]:
            raise SkillMistake(
                f"{folder / path}: has a second name outside of the skill (a hard link); put a copy there"
            )
        else:
            content = hashlib.sha256(_read_beneath(top, path)).hexdigest()
            entries.append(Entry(path, "x" if about.st_mode & stat.S_IXUSR else "-", content))
    _refuse_circles(folder, links)
    return entries


def digest_of(entries: list[Entry]) -> str:
    """Return the SHA-256 over paths, executable bits and bytes, 64 hex digits."""
    return digest_text(canonical_json([list(entry) for entry in entries]))


def copy_entries(folder: Path, entries: list[Entry], target: Path) -> None:
    """Copy a skill into a folder that does not exist yet.

    Bytes are copied, never names followed; links are made anew and lead to the copy. Executable bits stay, setuid,
    setgid and sticky bits do not, whatever the umask.

    Raises:
        SkillMistake: A file is no longer what the entries say.
    """
    top = folder.resolve()
    target.mkdir(parents=True, mode=0o755)
    for path, mode, content in entries:
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if mode == "l":
            copy.symlink_to(content)
            continue
        data = _read_beneath(top, path)
        if hashlib.sha256(data).hexdigest() != content:
            raise SkillMistake(f"{folder / path}: changed while the run was on; run again with the skill left alone")
        copy.write_bytes(data)
        copy.chmod(0o755 if mode == "x" else 0o644)


def _walk(top: Path, below: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and lstat of everything that is no folder; links are never followed."""
    if below.count("/") > MAX_DEPTH:
        raise SkillMistake(f"{top / below}: is nested deeper than {MAX_DEPTH} folders")
    with os.scandir(top / below) as scan:
        entries = list(scan)
    for entry in entries:
        path = f"{below}{entry.name}"
        if is_left_out(path):
            continue
        if entry.name.encode("utf-8", "replace").decode() != entry.name:
            raise SkillMistake(f"{str(top / path)!a}: is not named in UTF-8; rename it")
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(top, f"{path}/")
        else:
            yield path, entry.stat(follow_symlinks=False)


def _link_target(folder: Path, top: Path, path: str) -> str:
    """Return what a link leads to in the end, relative to the skill's folder."""
    link = top / path
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        inside = Path(os.path.abspath(link.parent / link.readlink())).is_relative_to(top)  # noqa: PTH100 - links stay
        where = "nowhere or in a circle" if inside else "out of the skill's folder"
        raise SkillMistake(f"{folder / path}: is a link that leads {where}; remove it or put a copy there") from None
    if not target.is_relative_to(top):
        raise SkillMistake(f"{folder / path}: is a link that leads out of the skill's folder; put a copy there")
    relative = target.relative_to(top).as_posix()
    if relative != "." and is_left_out(relative):
        raise SkillMistake(f"{folder / path}: is a link to {relative}, which is never installed; put a copy there")
    return relative


def _refuse_circles(folder: Path, links: dict[str, str]) -> None:
    """Refuse folders that hold themselves through links: who follows them never ends."""
    # What a link leads to is never a link itself: it has been followed to its end.
    leads_to = {
        link: {other for other in links if target == "." or other.startswith(f"{target}/")}
        for link, target in links.items()
    }
    while ready := {link for link, onward in leads_to.items() if not onward & leads_to.keys()}:
        for link in ready:
            del leads_to[link]
    if leads_to:
        link = min(leads_to)
        raise SkillMistake(f"{folder / link}: is a link to {links[link]!r} that leads in a circle; remove it")


def _read_beneath(top: Path, path: str) -> bytes:
    """Return the bytes of a regular file below a folder; a name that became a link meanwhile is refused."""
    *folders, name = path.split("/")
    handle = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folders:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        # A pipe that took the file's place would otherwise be waited for.
        inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handle)
    except OSError as exc:
        raise SkillMistake(f"{top / path}: cannot be read: {exc.strerror}") from None
    finally:
        os.close(handle)
    with os.fdopen(inner, "rb") as file:
        if not stat.S_ISREG(os.fstat(inner).st_mode):
            raise SkillMistake(f"{top / path}: is no longer a file")
        return file.read(MAX_BYTES + 1)
