"""What killed runs left behind: homes whose lease nobody holds, and the processes that belong to them."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

from .lease import SUFFIX, check_home, is_same_file, remove_tree, try_lock, unlink_if_there
from .processes import kill_if, parent

_SUFFIX = SUFFIX.encode()
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TELLING = (b"HOME=", b"TMPDIR=", b"SKILLEVAL_HOME=")
_KILL_SECONDS = 2.0
_HANDOVER = 1.0  # the kernel closes a dead holder's socket before it drops its lock


class Swept(NamedTuple):
    """What a sweep found."""

    homes: int
    """Abandoned homes that are gone now."""
    processes: int
    """Processes of theirs that were killed."""
    owned: int
    """Homes that have a living owner and were left alone."""
    problems: tuple[str, ...]
    """What could not be removed, a line each."""


def sweep(base: Path) -> Swept:
    """Clear up after killed runs: every `<base>/*.lease` and `<base>/*/*.lease` that can be locked has no owner.

    Costs one look into a folder when there is nothing. A home without a lease is never touched.
    """
    try:
        top = os.open(base, _FOLDER)
    except OSError:
        return Swept(0, 0, 0, ())
    try:
        if os.fstat(top).st_uid != os.getuid():
            return Swept(0, 0, 0, (f"{base} belongs to another user; nothing in it was touched",))
        total = _sweep_folder(top, os.fsencode(os.path.realpath(base)))
        for name in _folders(top):
            total = _sum(total, _sweep_run(top, name, os.path.realpath(os.fsencode(base))))
        return total
    finally:
        os.close(top)


def reclaim(home: Path, base: Path) -> Swept:
    """Clear up one home whose supervisor was killed; one that still has an owner is left to it.

    Raises:
        NotOursError: The home is not strictly below the base.
    """
    check_home(home, base)
    try:
        folder = os.open(home.parent, _FOLDER)
    except OSError:
        return Swept(0, 0, 0, ())
    try:
        until = time.monotonic() + _HANDOVER
        while True:
            name = os.fsencode(home.name + SUFFIX)
            swept = _sweep_leases(folder, os.path.realpath(os.fsencode(home.parent)), [name])
            if not swept.owned or time.monotonic() > until:
                return swept
            time.sleep(0.01)
    finally:
        os.close(folder)


def _folders(top: int) -> list[bytes]:
    """Return the folders that may hold leases: not those that are homes themselves."""
    with os.scandir(top) as entries:
        found = {os.fsencode(entry.name): entry.is_dir(follow_symlinks=False) for entry in entries}
    return sorted(name for name, is_folder in found.items() if is_folder and name + _SUFFIX not in found)


def _sweep_run(top: int, name: bytes, base: bytes) -> Swept:
    try:
        folder = os.open(name, _FOLDER, dir_fd=top)
    except OSError:
        return Swept(0, 0, 0, ())
    try:
        swept = _sweep_folder(folder, os.path.join(base, name))  # noqa: PTH118 - bytes
    finally:
        os.close(folder)
    _remove_if_empty(name, top)
    return swept


def _sweep_folder(folder: int, path: bytes) -> Swept:
    with os.scandir(folder) as entries:
        leases = sorted(name for entry in entries if (name := os.fsencode(entry.name)).endswith(_SUFFIX))
    return _sweep_leases(folder, path, leases) if leases else Swept(0, 0, 0, ())


def _sweep_leases(folder: int, path: bytes, leases: list[bytes]) -> Swept:
    taken: list[tuple[bytes, int]] = []
    owned = 0
    try:
        for lease in leases:
            descriptor = _take(lease, folder)
            if descriptor is None:
                owned += 1
            elif descriptor >= 0:
                taken.append((lease, descriptor))
        if not taken:
            return Swept(0, 0, owned, ())
        homes = [os.path.join(path, lease.removesuffix(_SUFFIX)) for lease, _ in taken]  # noqa: PTH118 - bytes
        processes = kill_all_of(homes)
        problems: list[str] = []
        gone = 0
        for lease, _ in taken:
            left = remove_tree(folder, lease.removesuffix(_SUFFIX))
            problems += left
            if not left:
                unlink_if_there(lease, folder)
                gone += 1
        return Swept(gone, processes, owned, tuple(problems))
    finally:
        for _, descriptor in taken:
            os.close(descriptor)


def _take(lease: bytes, folder: int) -> int | None:
    """Lock a lease: its descriptor, or None when it has an owner, or -1 when it is gone or is no lease of ours."""
    try:
        descriptor = os.open(lease, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return -1
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and lease != _SUFFIX:
        if not try_lock(descriptor):
            os.close(descriptor)
            return None
        if is_same_file(descriptor, lease, folder):
            return descriptor
    os.close(descriptor)
    return -1


def kill_all_of(homes: list[bytes]) -> int:
    """Kill every process that provably belongs to one of these homes (Linux); return how many."""
    if not Path("/proc/self/environ").exists():
        return 0
    spared = _ancestors()
    killed: set[int] = set()
    until = time.monotonic() + _KILL_SECONDS
    while True:
        found = [
            int(name)
            for name in os.listdir("/proc")  # noqa: PTH208 - a Path for each entry is slow
            if name.isdigit() and int(name) not in spared and belongs(int(name), homes)
        ]
        if not found or time.monotonic() > until:
            return len(killed)
        killed |= {pid for pid in found if kill_if(pid, lambda pid: belongs(pid, homes))}
        time.sleep(0.002)


def belongs(pid: int, homes: list[bytes]) -> bool:
    """Tell whether a living process was started for one of these homes.

    Proof is its environment: HOME, TMPDIR or SKILLEVAL_HOME lies there. A working folder in the home is proof only for
    a process without a terminal: somebody who looks around in an abandoned home in a shell is not part of it.
    """
    try:
        if Path(f"/proc/{pid}").stat().st_uid != os.getuid() or parent(pid) is None:
            return False
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if any(_inside(entry.partition(b"=")[2], homes) for entry in variables if entry.startswith(_TELLING)):
            return True
        return _has_no_terminal(pid) and _inside(os.fsencode(Path(f"/proc/{pid}/cwd").readlink()), homes)
    except OSError:
        return False


def _inside(path: bytes, homes: list[bytes]) -> bool:
    return any(path == home or path.startswith(home + b"/") for home in homes)


def _has_no_terminal(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[4] == b"0"


def _ancestors() -> set[int]:
    found = {os.getpid()}
    above = os.getppid()
    while above > 0 and above not in found:
        found.add(above)
        above = parent(above) or 0
    return found


def _remove_if_empty(name: bytes, top: int) -> None:
    try:
        os.rmdir(name, dir_fd=top)
    except OSError:
        return  # a neighbour is at work in it


def _sum(one: Swept, other: Swept) -> Swept:
    return Swept(
        one.homes + other.homes,
        one.processes + other.processes,
        one.owned + other.owned,
        one.problems + other.problems,
    )
