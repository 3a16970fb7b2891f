"""The small process of each worker that forks a supervisor for each trial: no interpreter start, no thread, no lock.

    worker                                fork server (a fresh interpreter, started at the first trial)
    1. starts it                      ->  imports what a supervisor needs, answers "ready"
    2. a home and one end of a socket ->  forks; the child serves that socket and has nothing else in common with it
    3. closes its end, or dies        ->  waits for its supervisors, exits

Of a supervisor that was killed it inherits the orphans, and kills them.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import time
import traceback

from .processes import process_tree
from .supervisor import supervise

_ORPHAN_SECONDS = 2.0


def main(control: int, worker: int, *, portable: bool) -> None:
    """Serve until the worker is gone.

    Args:
        control: Descriptor of the socket to the worker.
        worker: A process descriptor of the worker, or -1.
        portable: Do without what only Linux has.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o077)
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
                elif descriptor == self._worker or not self._obey():
                    listening = False

    def _obey(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._line, 1 << 16, 1)
        if not data or not descriptors:
            return False
        home = json.loads(data)["home"]
        link = socket.socket(fileno=descriptors[0])
        pid = os.fork()
        if pid == 0:
            self._be_supervisor(link, home)
        self._supervisors.add(pid)
        link.close()
        return True

    def _be_supervisor(self, link: socket.socket, home: str) -> None:
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            self._line.close()
            supervise(link, self._worker, home, portable=self._portable)
        except BaseException:  # noqa: BLE001 - must not return into the fork server's loop
            text = traceback.format_exc()
            try:
                link.sendall(json.dumps({"broken": text}).encode() + b"\n")
            except OSError:
                os._exit(1)
        os._exit(0)

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
