"""The process tree of one command: who is in it, how it is stopped, and the proof that it is gone."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Usage:
    """What the reaped processes have used: CPU seconds, and the peak bytes of the largest of them."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.max_rss = 0


class GroupTree:
    """Where there is no sub-reaper (macOS, BSD): the command's process group, and no proof that this is all."""

    proof = "unproven"

    def __init__(self) -> None:
        self.usage = Usage()
        self.leader: int | None = None
        self.status: int | None = None
        """Wait status of the leader once it has ended."""

    def adopt(self, leader: int) -> None:
        """Watch over a new command: the leader of a session of its own."""
        self.leader, self.status, self.usage = leader, None, Usage()

    def reap(self) -> None:
        """Take in all children that have ended."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self.usage.cpu += used.ru_utime + used.ru_stime
            scale = 1 if sys.platform == "darwin" else 1024
            self.usage.max_rss = max(self.usage.max_rss, used.ru_maxrss * scale)
            if pid == self.leader:
                self.status = status

    def members(self) -> list[int]:
        """Return the processes that are known to be left, besides the leader's group."""
        return []

    def signal_group(self, number: int, group: int | None = None) -> None:
        """Signal the command's group, as a terminal would, while its leader is not yet reaped."""
        if self.leader is not None and self.status is None:
            try:
                os.killpg(group or self.leader, number)
            except (ProcessLookupError, PermissionError):
                return

    def kill_all_but(self, spared: set[int], deadline: float) -> None:
        """Kill the children that a dead process left to this one; nothing where they are not handed over."""

    def kill(self, deadline: float, *, uncounted: int | None = None) -> tuple[int, bool]:  # noqa: ARG002 - see LinuxTree
        """Kill what is left; return how many processes that were, and whether none is left for certain.

        Args:
            deadline: When to give up, by the monotonic clock.
            uncounted: A process that ends by itself by now.
        """
        if self.leader is None:
            return 0, False
        # A group id is not given away while the group has members; if it has none, nothing can be hit, but for a
        # process that took the id in the microseconds since the leader was reaped. Later it may be anybody's: so once.
        killed = 0
        try:
            os.killpg(self.leader, signal.SIGKILL)
            killed = 1
        except (ProcessLookupError, PermissionError):
            pass
        while self.status is None and time.monotonic() < deadline:
            self.reap()
            time.sleep(0.002)
        self.leader = None
        return killed, False


class LinuxTree(GroupTree):
    """All descendants: orphans come to the supervisor, as it is their sub-reaper."""

    proof = "dead"

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        if _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")

    def members(self) -> list[int]:
        """Return all living descendants, parents before their children."""
        return descendants(self._pid)

    def kill_all_but(self, spared: set[int], deadline: float) -> None:
        """Kill the children that a dead process left to this one, and all below them."""
        while time.monotonic() < deadline and (strays := set(children(self._pid)) - spared):
            for pid in [*strays, *(inner for stray in strays for inner in descendants(stray))]:
                kill_if(pid, lambda pid: descends(pid, self._pid))
            time.sleep(0.001)
            for pid in strays:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    continue

    def kill(self, deadline: float, *, uncounted: int | None = None) -> tuple[int, bool]:
        """Kill until the kernel says that there is no child: without a child a sub-reaper has no descendant at all."""
        found: set[int] = set()
        while True:
            self.reap()
            if not _has_children():
                return len(found), True
            if time.monotonic() > deadline:
                return len(found), False
            before = len(found)
            members = self.members()
            # Counted before the first is killed: with the init of a namespace the kernel kills all that are in it.
            found |= {pid for pid in members if pid != uncounted and parent(pid) is not None}
            for pid in members:
                kill_if(pid, lambda pid: descends(pid, self._pid))
            if len(found) == before:
                time.sleep(0.001)  # all are signalled; the kernel takes them down


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def process_tree(*, portable: bool = False) -> GroupTree:
    """Return the strongest tree this system has."""
    if portable or not sys.platform.startswith("linux"):
        return GroupTree()
    return LinuxTree()


def descendants(root: int) -> list[int]:
    """Return the living descendants of a process, parents before their children (Linux)."""
    found: list[int] = []
    pending = [root]
    while pending:
        for pid in children(pending.pop(0)):
            found.append(pid)
            pending.append(pid)
    return found


def children(pid: int) -> list[int]:
    """Return the children of a process, of all its threads (Linux)."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - a Path for each entry is slow
    except OSError:
        return found
    for thread in threads:
        try:
            text = Path(f"/proc/{pid}/task/{thread}/children").read_bytes()
        except OSError:
            continue
        found += [int(word) for word in text.split()]
    return found


def parent(pid: int) -> int | None:
    """Return the parent of a living process; None for a dead one and for one that is gone (Linux)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[1])


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def kill_if(pid: int, ours: Callable[[int], bool]) -> bool:
    """Kill a process if `ours` says so; its descriptor is opened before the question, so that no other can be hit.

    Without process descriptors (Linux before 5.3) the answer may be older than the signal by microseconds.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        if error.errno != errno.ENOSYS or not ours(pid):
            return False
        os.kill(pid, signal.SIGKILL)
        return True
    try:
        if ours(pid):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            return True
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return False


def descends(pid: int, root: int) -> bool:
    """Tell whether a living process has `root` in its line of parents (Linux)."""
    above = parent(pid)
    while above is not None and above > 1 and above != root:
        above = parent(above)
    return above == root
