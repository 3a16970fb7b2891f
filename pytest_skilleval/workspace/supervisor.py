"""The process that owns one trial's process tree: runs its commands, proves the tree dead, removes the home.

The worker's side is `spawn.py` and `trial_lease.py`; what is asked and answered is `command.py`.

    worker                                supervisor (forked by the worker's fork server)
    1. lease                          ->  locks <home>.lease, becomes sub-reaper, answers "ready"
    2. run, one command at a time     ->  starts it in a session of its own, reads its output,
                                          stops it at the wall, kills what it left, answers "ended"
       cancel, at any time            ->  kills at once, answers "ended"
    3. release                        ->  kills, removes the home and the lease, answers "released"
    4. lease, of the next home        ->  as 1, when it has proven the tree dead and the home gone; else it has exited
    *. end of file, or its worker's death, at any moment: kill, remove the home and the lease, exit

Messages are JSON objects, one a line; paths, arguments and variables are file system bytes read as latin-1, so that
neither side's locale matters. Signals meant for pytest (INT, TERM, HUP) are ignored here: only the socket counts.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from typing import Any, NoReturn

from .launch import fs_bytes
from .lease import Lease
from .output import CHUNK
from .processes import GroupTree, process_tree
from .running import KILL_SECONDS, Running


class WorkerLostError(Exception):
    """The worker closed its end or died."""


class Link:
    """The line to the worker, and all else that may wake a supervisor.

    Args:
        line: The socket to the worker.
        worker: A process descriptor of the worker, or -1 where there is none. The socket alone would not tell of its
            death while a process that it forked keeps a copy.
        wake: A pipe that becomes readable when a child ends.
    """

    def __init__(self, line: socket.socket, worker: int, wake: int) -> None:
        self._line = line
        self._worker = worker
        self._wake = wake
        self._inbox = b""

    def descriptors(self) -> list[int]:
        """Return what to wait for."""
        return [one for one in (self._line.fileno(), self._wake, self._worker) if one >= 0]

    def hear(self, descriptor: int) -> None:
        """Take in what made a descriptor ready.

        Raises:
            WorkerLostError: Nobody is left to obey.
        """
        if descriptor == self._worker:
            raise WorkerLostError
        if descriptor == self._wake:
            os.read(self._wake, CHUNK)
            return
        data = self._line.recv(CHUNK)
        if not data:
            raise WorkerLostError
        self._inbox += data

    def has_message(self) -> bool:
        """Tell whether an order is there."""
        return b"\n" in self._inbox

    def take(self) -> dict[str, Any]:
        """Return the next order."""
        line, _, self._inbox = self._inbox.partition(b"\n")
        order: dict[str, Any] = json.loads(line)
        return order

    def send(self, message: dict[str, object]) -> None:
        """Answer the worker."""
        self._line.sendall(json.dumps(message).encode() + b"\n")


def stand_by(control: socket.socket, worker: int, *, portable: bool) -> NoReturn:
    """Be a supervisor, from the fork to the exit: wait for a trial, serve it.

    Args:
        control: Socket on which the fork server sends the trial: its home, and the socket of its worker.
        worker: A process descriptor of the worker, or -1.
        portable: Do without the sub-reaper.
    """
    line = None
    try:
        tree = process_tree(portable=portable)
        wake = _wake_at_child_end()
        request, descriptors, _, _ = socket.recv_fds(control, CHUNK, 1)
        control.close()
        if descriptors:
            # As received it would outlive exec, and so reach the agent.
            os.set_inheritable(descriptors[0], False)  # noqa: FBT003 - positional only
            line = socket.socket(fileno=descriptors[0])
            supervise(Link(line, worker, wake), tree, fs_bytes(json.loads(request)["home"]))
    except BaseException as error:  # noqa: BLE001 - a forked process must not return into the fork server's loop
        if line is not None:
            _last_words(line, error)
        os._exit(1)
    os._exit(0)


def supervise(link: Link, tree: GroupTree, home: bytes) -> None:
    """Serve one trial after the other until the worker is gone.

    A supervisor that has proven its trial's tree dead and its home gone is as good as new; a fresh one costs a fork.
    """
    following: bytes | None = home
    while following is not None:
        following = _serve(link, tree, following)


def _serve(link: Link, tree: GroupTree, home: bytes) -> bytes | None:
    """Serve one trial until it is released; return the home of the next one, or None when there is none."""
    lease = Lease(home)
    clean = False
    try:
        link.send({"ready": os.getpid()})
        while True:
            order = _next_order(link, tree)
            if "run" in order:
                link.send({"ended": Running(order["run"], home, tree, link).run()})
            elif "release" in order:
                killed, dead = tree.kill(time.monotonic() + KILL_SECONDS)
                problems = lease.close(remove_home=order["release"]["remove"])
                link.send({"released": {"killed": killed, "dead": dead, "problems": problems}})
                clean = dead and not problems
                break
    except (WorkerLostError, ConnectionError):
        tree.kill(time.monotonic() + KILL_SECONDS)
        lease.close(remove_home=True)
        return None
    except BaseException:
        tree.kill(time.monotonic() + KILL_SECONDS)  # a defect of ours must not leave an agent at work
        raise
    try:
        return fs_bytes(_next_order(link, tree)["lease"]) if clean else None
    except (WorkerLostError, ConnectionError):
        return None


def _next_order(link: Link, tree: GroupTree) -> dict[str, Any]:
    """Wait for an order, and take in children that end meanwhile."""
    while not link.has_message():
        poll = select.poll()
        for descriptor in link.descriptors():
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll():
            link.hear(descriptor)
        tree.reap()
    return link.take()


def _wake_at_child_end() -> int:
    """Return a pipe that becomes readable when a child ends, so that waiting for it and for output is one call."""
    reading, writing = os.pipe()
    for descriptor in (reading, writing):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _last_words(line: socket.socket, error: BaseException) -> None:
    import traceback  # noqa: PLC0415 - not needed unless something broke

    text = f"{error}" if isinstance(error, OSError) else "".join(traceback.format_exception(error))
    try:
        line.sendall(json.dumps({"broken": text}).encode() + b"\n")
    except OSError:
        return
