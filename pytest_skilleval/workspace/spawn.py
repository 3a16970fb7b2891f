"""The worker's fork server: started at the first trial, replaced when it was killed, asked for a lease by each."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

import pytest_skilleval

from .lease import check_home
from .trial_lease import PATIENCE, NoWordError, SupervisionError, TrialLease, wire

_START = 30.0
# No site-packages, no user folder, no .pth files: the interpreter sees the standard library, and for one import us.
_BOOT = """
import sys
root, control, worker, mode = sys.argv[1:]
sys.path.append(root)
from pytest_skilleval.workspace.forkserver import main
sys.path.remove(root)
main(int(control), int(worker), portable=mode == "portable")
"""
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # some interpreters do not start without


class Spawner:
    """Starts supervised commands. One for each worker; its fork server starts with the first lease.

    Args:
        portable: Do without the sub-reaper, as on macOS.
    """

    def __init__(self, *, portable: bool = False) -> None:
        self._portable = portable
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._idle: socket.socket | None = None
        self._owner = os.getpid()
        self._foreign: object = None

    def lease(self, home: Path, base: Path) -> TrialLease:
        """Return the held lease of a home.

        Make the home afterwards, not before: from here on it is removed whatever happens to this process.

        Args:
            home: Absolute path; folders above it are made where they are missing, for this user alone.
            base: The folder all homes lie in, strictly above.

        Raises:
            NotOursError: The home is not strictly below the base, or is something that must not be removed.
            SupervisionError: No supervisor could be started, or another trial holds this home.
        """
        check_home(home, base)
        if (line := self._resting()) is not None:
            try:
                line.sendall(json.dumps({"lease": wire(home)}).encode() + b"\n")
                return TrialLease(home, base, line, self._rest)
            except (OSError, NoWordError):
                line.close()  # somebody killed it meanwhile
        try:
            return TrialLease(home, base, self._request(home), self._rest)
        except NoWordError:
            # Somebody killed the fork server, or the supervisor it had ready: once more with new ones.
            return TrialLease(home, base, self._request(home), self._rest)

    def _rest(self, line: socket.socket) -> None:
        """Keep the line to a supervisor that has no trial, for the next one."""
        with self._lock:
            if self._idle is None and self._owner == os.getpid():
                self._idle = line
                return
        line.close()

    def _resting(self) -> socket.socket | None:
        """Return the line to a supervisor that has no trial, or None; in a forked process it is not ours."""
        with self._lock:
            line, self._idle = self._idle, None
        if line is not None and self._owner != os.getpid():
            line.close()
            return None
        return line

    def close(self) -> None:
        """Let the fork server go, and wait until its last supervisor has ended."""
        with self._lock:
            if self._owner == os.getpid():
                self._drop()

    @property
    def server(self) -> int | None:
        """Process id of the fork server, once it runs."""
        return None if self._server is None else self._server.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, home: Path) -> socket.socket:
        """Have a supervisor serve a home; return the line to it."""
        ours, theirs = socket.socketpair()
        request = json.dumps({"home": wire(home)}).encode()
        with theirs, self._lock:
            try:
                socket.send_fds(self._connected(), [request], [theirs.fileno()])
            except OSError:
                self._drop()
                socket.send_fds(self._connected(), [request], [theirs.fileno()])
        return ours

    def _connected(self) -> socket.socket:
        if self._owner != os.getpid():
            # We are in a process that the worker forked: its fork server is not ours to use or to wait for.
            self._foreign, self._server, self._line = (self._server, self._line), None, None
        if self._server is not None and self._server.poll() is not None:
            self._drop()
        if self._line is None:
            self._start()
        assert self._line is not None  # noqa: S101 - set by _start
        return self._line

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        root = Path(pytest_skilleval.__file__).parent.parent
        worker = os.pidfd_open(os.getpid()) if hasattr(os, "pidfd_open") else -1
        passed = [theirs.fileno(), *([worker] if worker >= 0 else [])]
        mode = "portable" if self._portable else "full"
        try:
            server = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT, str(root), str(theirs.fileno()), str(worker), mode],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                cwd="/",
                pass_fds=passed,
                start_new_session=True,
            )
        finally:
            theirs.close()
            if worker >= 0:
                os.close(worker)
        ours.settimeout(_START)
        try:
            answer = ours.recv(16)
        except TimeoutError:
            answer = b""
        assert server.stderr is not None  # noqa: S101 - asked for above
        if answer != b"ready\n":
            server.kill()
            ours.close()
            said = server.stderr.read().decode(errors="replace").strip()
            server.stderr.close()
            server.wait()
            raise SupervisionError(
                f"the fork server of this worker did not start ({sys.executable}): {said or 'no word'}"
            )
        server.stderr.close()
        self._server, self._line, self._owner = server, ours, os.getpid()

    def _drop(self) -> None:
        if self._idle is not None:
            self._idle.close()
            self._idle = None
        if self._line is not None:
            self._line.close()
        if self._server is not None:
            try:
                self._server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        self._server = self._line = None
