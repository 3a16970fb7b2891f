"""A finished workspace, read without following it out: no links that leave, no devices, no pipes, bounded size."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .patterns import one_line

__all__ = ["FILE_BYTES", "Folder", "Refused"]

FILE_BYTES = 64 * 1024 * 1024
"""A file beyond this size is not read."""
WALK_FILES = 200_000
"""Names that a search looks at."""


class Refused(Exception):
    """A path that is not there or must not be read; its text is the check's reason."""


@dataclass(frozen=True)
class Folder:
    """A folder and all that lies in it."""

    root: Path

    def find(self, pattern: str) -> str:
        """Return the relative path that a pattern names; of several, the first in sorted order.

        Raises:
            Refused: Nothing is there, or the path leaves the folder.
        """
        for name in self.matches(pattern):
            return name
        raise Refused(f"{pattern} is not there")

    def matches(self, pattern: str) -> list[str]:
        """Return the relative paths that a pattern names, sorted; a plain path gives itself when it is there.

        A `*` pattern takes no folder, and looks into `.git` only when it says so.

        Raises:
            Refused: The pattern could leave the folder.
        """
        parts = Path(pattern).parts
        if Path(pattern).is_absolute() or ".." in parts or not parts or "\0" in pattern:
            raise Refused(f"{one_line(pattern)} leaves its folder")
        if os.path.lexists(self.root / pattern):
            return [Path(pattern).as_posix()]
        if not any(sign in pattern for sign in "*?["):
            return []
        return sorted(self._glob(pattern, git=".git" in parts))

    def _glob(self, pattern: str, *, git: bool) -> Iterator[str]:
        for count, path in enumerate(self.root.glob(pattern)):
            if count >= WALK_FILES:
                raise Refused(f"{pattern} names more than {WALK_FILES} paths")
            relative = path.relative_to(self.root)
            if (git or ".git" not in relative.parts) and not path.is_dir():
                yield relative.as_posix()

    def read(self, name: str, limit: int = FILE_BYTES) -> bytes:
        """Return the bytes of a file below the folder.

        Raises:
            Refused: It is not there, is no ordinary file, leaves the folder, or is larger than `limit` bytes.
        """
        descriptor = self._open(name)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Refused(f"{name} is {_kind(status.st_mode)}, not a file")
            if status.st_size > limit:
                raise Refused(f"{name} has {status.st_size} bytes; at most {limit} are read")
            return file.read(limit)

    def text(self, name: str) -> str:
        """Return a file as text: UTF-8 with or without its mark, line ends as in Unix, bad bytes replaced.

        Raises:
            Refused: As `read`.
        """
        return self.read(name).decode("utf-8-sig", "replace").replace("\r\n", "\n")

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file as 64 hex digits.

        Raises:
            Refused: As `read`.
        """
        return hashlib.sha256(self.read(name)).hexdigest()

    def _open(self, name: str) -> int:
        """Open a file part by part below its real place, so that no part can be a link when it is opened."""
        try:
            root = self.root.resolve(strict=True)
            real = (root / name).resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as problem:
            text = "is not there" if isinstance(problem, FileNotFoundError) else "cannot be resolved"
            raise Refused(f"{name} {text}") from None
        if not real.is_relative_to(root) or real == root:
            raise Refused(f"{name} is a link that leaves its folder")
        at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            parts = real.relative_to(root).parts
            for part in parts[:-1]:
                deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = deeper
            mode = os.stat(parts[-1], dir_fd=at, follow_symlinks=False).st_mode
            if not stat.S_ISREG(mode):
                raise Refused(f"{name} is {_kind(mode)}, not a file")
            # O_NONBLOCK: a pipe put here since the last line would hold the trial for ever.
            return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        except OSError as problem:
            raise Refused(f"{name} cannot be opened: {problem.strerror}") from None
        finally:
            os.close(at)


def _kind(mode: int) -> str:
    for test, word in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return word
    return "something else"
