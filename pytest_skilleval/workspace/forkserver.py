"""The small process of each worker that forks a supervisor for each trial: no interpreter start, no thread, no lock.

    worker                                fork server (a fresh interpreter, started at the first trial)
    1. starts it                      ->  imports what a supervisor needs, forks a spare one, answers "ready"
    2. a home and one end of a socket ->  hands both to the spare, which serves that socket and has nothing else in
                                          common with this process; forks the next spare while the trial runs
    3. closes its end, or dies        ->  waits for its supervisors, exits

Of a supervisor that was killed it inherits the orphans, and kills them.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time

from .launch import settle_signals
from .processes import process_tree
from .supervisor import stand_by

_ORPHAN_SECONDS = 2.0


def main(control: int, worker: int, *, portable: bool) -> None:
    """Serve until the worker is gone.

    Args:
        control: Descriptor of the socket to the worker.
        worker: A process descriptor of the worker, or -1.
        portable: Do without what only Linux has.
    """
    settle_signals()
    os.umask(0o077)
    for descriptor in (control, worker):
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - positional only
    line = socket.socket(fileno=control)
    ForkServer(line, worker, portable=portable).serve()


class ForkServer:
    """Forks supervisors, and takes in those that end."""

    def __init__(self, line: socket.socket, worker: int, *, portable: bool) -> None:
        self._line = line
        self._worker = worker
        self._portable = portable
        self._supervisors: set[int] = set()
        self._tree = process_tree(portable=portable)
        self._wake, wake_write = os.pipe()
        for descriptor in (self._wake, wake_write):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        gc.freeze()  # the collector would touch, and so copy, every shared page in each child
        gc.disable()
        self._spare = self._fork()
        line.sendall(b"ready\n")
        _silence_stderr()

    def serve(self) -> None:
        """Obey until the worker is gone and the last supervisor has ended."""
        listening = True
        while listening or self._supervisors:
            poll = select.poll()
            poll.register(self._wake, select.POLLIN)
            if listening:
                poll.register(self._line, select.POLLIN)
                if self._worker >= 0:
                    poll.register(self._worker, select.POLLIN)
            for descriptor, _ in poll.poll():
                if descriptor == self._wake:
                    os.read(self._wake, 4096)
                    self._take_in()
                elif listening and (descriptor == self._worker or not self._obey()):
                    listening = False
                    self._spare.close()

    def _obey(self) -> bool:
        """Pass a trial on to the spare supervisor; False when the worker has closed its end."""
        request, descriptors, _, _ = socket.recv_fds(self._line, 1 << 16, 1)
        if not request or not descriptors:
            return False
        try:
            socket.send_fds(self._spare, [request], descriptors)
        except OSError:  # somebody killed the spare
            self._spare.close()
            self._spare = self._fork()
            socket.send_fds(self._spare, [request], descriptors)
        os.close(descriptors[0])
        self._spare.close()
        self._spare = self._fork()
        return True

    def _fork(self) -> socket.socket:
        """Fork a supervisor that waits for its trial; return the socket to tell it."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._line.close()
            signal.set_wakeup_fd(-1)
            os.setsid()
            stand_by(theirs, self._worker, portable=self._portable)
        theirs.close()
        self._supervisors.add(pid)
        return ours

    def _take_in(self) -> None:
        """Reap supervisors; when one was killed, kill the orphans it left."""
        bad = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            bad = bad or (pid in self._supervisors and status != 0)
            self._supervisors.discard(pid)
        if bad:
            self._tree.kill_all_but(self._supervisors, time.monotonic() + _ORPHAN_SECONDS)


def _silence_stderr() -> None:
    """Let go of the pipe that would have told why the start failed."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, sys.__stderr__.fileno() if sys.__stderr__ else 2)
    os.close(nothing)
