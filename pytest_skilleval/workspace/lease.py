"""The lease of a trial's home: a locked file beside it says that the home is ours, and that it has an owner."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pytest_skilleval.errors import SkillevalError

SUFFIX = ".lease"


class NotOursError(SkillevalError):
    """A path that must not be removed."""


def check_home(home: Path, base: Path) -> None:
    """Refuse a home that is not strictly below its base, or that holds what other people need.

    Raises:
        NotOursError: With the path and the reason.
    """
    import tempfile  # noqa: PLC0415 - heavy, and only workers ask

    if not home.is_absolute() or not base.is_absolute():
        raise NotOursError(f"the home {home} and its base {base} must be absolute paths")
    real_base = _real(os.fspath(base), _current_folder())
    if real_base == "/":
        raise NotOursError("the base of temporary homes is the root folder; give a folder of its own")
    parent = os.fspath(home.parent)
    real = os.path.join(_real(parent, _current_folder()), home.name)  # noqa: PTH118 - the last part is not followed
    if home.name in {"", ".", ".."} or not real.startswith(real_base + "/"):
        raise NotOursError(f"the home {home} is not below the base {base}")
    here = _current_folder()
    for name, precious in (
        ("the folder for temporary files", tempfile.gettempdir()),
        ("the user's home", os.path.expanduser("~")),  # noqa: PTH111 - realpath takes both
        ("the current folder", here),
    ):
        if (_real(precious, here) + "/").startswith(real + "/"):
            raise NotOursError(f"the home {home} is or contains {name} ({precious})")


@functools.lru_cache(maxsize=64)
def _real(path: str, _here: str) -> str:
    return os.path.realpath(path)


def _current_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - realpath takes both
    except FileNotFoundError:  # it was removed under us, so nobody needs it
        return "/"


class Lease:
    """A held lease: an exclusive lock that the kernel drops when the holder dies, however it dies.

    Args:
        home: Absolute path of the home; need not exist yet. Its parent is made if it is not there.
    """

    def __init__(self, home: bytes) -> None:
        folder, self.name = os.path.split(home)
        self._lease = self.name + SUFFIX.encode()
        while True:
            self.parent = _open_own_folder(folder)
            try:
                self._file = self._lock()
            except FileNotFoundError:
                # Between two trials the folder is empty, and a neighbour's sweep removes empty folders: once more.
                os.close(self.parent)
                continue
            except BaseException:
                os.close(self.parent)
                raise
            return

    def _lock(self) -> int:
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._lease, flags, 0o600, dir_fd=self.parent)
            if not try_lock(descriptor):
                os.close(descriptor)
                raise OSError(errno.EBUSY, "another trial holds the lease of this home", self._lease)
            if is_same_file(descriptor, self._lease, self.parent):
                return descriptor
            os.close(descriptor)  # a sweep took it for abandoned before it was locked

    def close(self, *, remove_home: bool) -> list[str]:
        """Remove the home if asked to, then the lease, then the parent if that was the last of it.

        Returns:
            What could not be removed, a line each.
        """
        problems: list[str] = []
        if remove_home:
            problems = remove_tree(self.parent, self.name)
        if not problems:
            # With the home still there the lease stays too, unlocked: the next run's sweep tries again.
            unlink_if_there(self._lease, self.parent)
        os.close(self._file)
        os.close(self.parent)
        return problems


def try_lock(descriptor: int) -> bool:
    """Lock a lease file; False when somebody holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_same_file(descriptor: int, name: bytes, folder: int) -> bool:
    """Tell whether the open file is still the one under this name."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def unlink_if_there(name: bytes, folder: int) -> None:
    """Unlink a file that may be gone already."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _open_own_folder(folder: bytes) -> int:
    descriptor = _open_folder(folder)
    if os.fstat(descriptor).st_uid != os.getuid():
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "the folder for homes belongs to another user", os.fsdecode(folder))
    return descriptor


def _open_folder(folder: bytes) -> int:
    while True:
        try:
            return os.open(folder, _FOLDER)
        except FileNotFoundError:
            # A neighbour may remove an empty folder at any moment, also one above: then once more.
            with contextlib.suppress(FileNotFoundError):
                os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - bytes


def remove_tree(parent: int, name: bytes) -> list[str]:
    """Remove a file or folder `name` of the open folder `parent`, whatever is in it; links are never followed.

    Folders are moved up beside their parent before they are emptied, so that a chain of any depth needs no stack and
    no more than three descriptors. Write-protected folders are opened up first.

    Returns:
        What could not be removed, a line each, at most ten.
    """
    problems: list[str] = []
    try:
        top = _open_writable(parent, name)
    except FileNotFoundError:
        return []
    except OSError:
        return _unlink(parent, name)
    token = os.urandom(8).hex()  # so that nothing in the home can have such a name already
    names = (f".{token}-{number}".encode() for number in itertools.count())
    pending = _empty(top, top, names, problems)
    while pending and len(problems) < 10:
        folder = pending.pop()
        try:
            inner = _open_writable(top, folder)
        except OSError as error:
            problems.append(_line(folder, error))
            continue
        pending += _empty(inner, top, names, problems)
        os.close(inner)
        try:
            os.rmdir(folder, dir_fd=top)
        except OSError as error:
            problems.append(_line(folder, error))
    os.close(top)
    if not problems:
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            problems.append(_line(name, error))
    return problems


def _empty(folder: int, top: int, names: Iterator[bytes], problems: list[str]) -> list[bytes]:
    """Unlink the files of a folder and move its folders up to `top`; return the names these have there."""
    moved: list[bytes] = []
    with os.scandir(folder) as entries:
        found = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            problems += _unlink(folder, name)
            continue
        if folder == top:
            moved.append(name)
            continue
        try:
            above = next(names)
            _open_up(folder, name)
            os.rename(name, above, src_dir_fd=folder, dst_dir_fd=top)
            moved.append(above)
        except OSError as error:
            problems.append(_line(name, error))
    return moved


def _unlink(folder: int, name: bytes) -> list[str]:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [_line(name, error)]
    return []


def _open_writable(parent: int, name: bytes) -> int:
    _open_up(parent, name)
    return os.open(name, _FOLDER, dir_fd=parent)


def _open_up(parent: int, name: bytes) -> None:
    """Give the owner all rights on a folder; moving one needs the right to write its `..`."""
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=parent)


def _line(name: bytes, error: OSError) -> str:
    return f"{os.fsdecode(name)}: {error.strerror or error}"
