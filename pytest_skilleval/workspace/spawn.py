"""The worker's side: one fork server, and a lease for each trial through which its commands are run."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

import pytest_skilleval
from pytest_skilleval.errors import SkillevalError

from .command import Command, Ended, Stream
from .lease import check_home
from .sweep import reclaim

_TICK = 0.25
_PATIENCE = 30.0  # beyond all that a supervisor may take by its order, before it counts as lost
_START = 30.0
_SILENCE = "it ended without a word"
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


class SupervisionError(SkillevalError):
    """The processes that watch over trials could not be started, or broke."""


class _NoWordError(SupervisionError):
    """A supervisor ended before it could say anything."""


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
        self._owner = os.getpid()

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
        try:
            return TrialLease(home, base, self._request(home))
        except _NoWordError:
            # Somebody killed the fork server, or the supervisor it had ready: once more with new ones.
            return TrialLease(home, base, self._request(home))

    def close(self) -> None:
        """Let the fork server go, and wait until its last supervisor has ended."""
        with self._lock:
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
        request = json.dumps({"home": _wire(home)}).encode()
        with theirs, self._lock:
            try:
                socket.send_fds(self._connected(), [request], [theirs.fileno()])
            except OSError:
                self._drop()
                socket.send_fds(self._connected(), [request], [theirs.fileno()])
        return ours

    def _connected(self) -> socket.socket:
        if self._owner == os.getpid() and self._server is not None and self._server.poll() is not None:
            self._drop()
        if self._line is None or self._owner != os.getpid():
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
        if self._line is not None:
            self._line.close()
        if self._server is not None and self._owner == os.getpid():
            try:
                self._server.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        self._server = self._line = None


class TrialLease:
    """One trial's hold on its home and its process tree; `Spawner.lease` makes it.

    While it is held a supervisor stands by. If this process dies, at whatever point, the supervisor kills all that the
    trial started and removes the home.
    """

    def __init__(self, home: Path, base: Path, line: socket.socket) -> None:
        self.home = home
        self.keep = False
        """Set to leave the home in place at the end of the block, for somebody to look at."""
        self._base = base
        self._line = line
        self._inbox = b""
        self._lost = False
        self._last_words = ""
        ready = self._wait("ready", _PATIENCE)
        if ready is None:
            self._line.close()
            kind = SupervisionError if self._last_words else _NoWordError
            raise kind(f"no supervisor for {self.home}: {self._last_words or _SILENCE}")
        self.supervisor: int = ready["ready"]
        """Process id of the supervisor."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, command: Command, on_tick: Callable[[], None] | None = None) -> Ended:
        """Run a command to its end; by then its process tree is dead.

        Args:
            command: What to run.
            on_tick: Called four times a second meanwhile. What it raises cancels the command and comes out here.
        """
        if self._lost:
            return self._lost_command(command, 0.0)
        started = time.monotonic()
        patience = command.timeout + sum(grace for _, grace in command.stop) + _PATIENCE
        try:
            self._send({"run": _order(command, self.home)})
            answer = self._wait("ended", patience, on_tick)
        except OSError:
            answer = None
        except BaseException:
            self._cancel()
            raise
        if answer is None:
            return self._lost_command(command, time.monotonic() - started)
        stdout, stderr = Stream(**answer.pop("stdout")), Stream(**answer.pop("stderr"))
        return Ended(stdout=stdout, stderr=stderr, sandbox=_kind(command), **answer)

    def close(self) -> None:
        """Kill what still runs, remove the home (see `keep`) and give the lease back; may be called twice."""
        try:
            if self._lost or self._line.fileno() < 0:
                return
            self._send({"release": {"remove": not self.keep}})
            if self._wait("released", _PATIENCE * 4) is None:
                self._take_over()
        except OSError:
            self._take_over()
        finally:
            self._line.close()  # whatever happened here: the supervisor sees this and clears up

    def _cancel(self) -> None:
        try:
            self._send({"cancel": {}})
            self._wait("ended", _PATIENCE)
        except OSError:
            return

    def _lost_command(self, command: Command, duration: float) -> Ended:
        """Answer for a supervisor that was killed: end what it watched over, as far as that can be found."""
        if not self._lost:
            self._take_over()
        nothing = Stream(bytes_total=0, bytes_kept=0, truncated=True, sha256="", cut_lines=0)
        return Ended(
            exit_status=None,
            signal=None,
            reason="cancelled",
            message=f"the supervisor of this trial is gone: {self._last_words or _SILENCE}",
            duration=duration,
            cpu=None,
            stdout=nothing,
            stderr=nothing,
            killed=0,
            tree="unproven",
            last_output_age=None,
            sandbox=_kind(command),
            max_rss=None,
        )

    def _take_over(self) -> None:
        self._lost = True
        self._line.close()
        reclaim(self.home, self._base)

    def _send(self, message: dict[str, object]) -> None:
        self._line.settimeout(_PATIENCE)
        self._line.sendall(json.dumps(message).encode() + b"\n")

    def _wait(self, key: str, seconds: float, on_tick: Callable[[], None] | None = None) -> dict[str, Any] | None:
        """Wait for an answer; None when none will come."""
        until = time.monotonic() + seconds
        while True:
            line, newline, rest = self._inbox.partition(b"\n")
            if newline:
                self._inbox = rest
                message = json.loads(line)
                if "broken" in message:
                    self._last_words = str(message["broken"]).strip()
                    return None
                if key in message:
                    return dict(message[key]) if isinstance(message[key], dict) else {key: message[key]}
                continue  # an answer to something that was cancelled
            left = until - time.monotonic()
            if left <= 0:
                self._last_words = f"it has not answered for {seconds:g} s"
                return None
            if not select.select([self._line], [], [], min(left, _TICK) if on_tick else left)[0]:
                if on_tick:
                    on_tick()
                continue
            data = self._line.recv(1 << 16)
            if not data:
                return None
            self._inbox += data


def _kind(command: Command) -> Literal["bubblewrap", "none"]:
    return "none" if command.sandbox is None else "bubblewrap"


def _order(command: Command, home: Path) -> dict[str, object]:
    argv = command.argv
    if command.sandbox is not None:
        argv = command.sandbox.wrap(argv, cwd=command.cwd, home=home, env=command.env)
    return {
        "argv": [_wire(word) for word in argv],
        "cwd": _wire(command.cwd),
        "env": {_wire(name): _wire(value) for name, value in command.env.items()},
        "stdin": None if command.stdin is None else _wire(command.stdin),
        "stdout": _wire(command.stdout),
        "stderr": _wire(command.stderr),
        "timeout": command.timeout,
        "stop": [[int(number), grace] for number, grace in command.stop],
        "output_limit": command.output_limit,
        "line_limit": command.line_limit,
        "json_lines": command.json_lines,
        "secrets": list(command.secrets),
        "result_markers": [marker.decode("latin-1") for marker in command.result_markers],
        "linger": command.linger,
        "limits": asdict(command.limits),
        "disk_limit": command.disk_limit,
        "file_limit": command.file_limit,
        "sandboxed": command.sandbox is not None,
    }


def _wire(text: str | Path) -> str:
    return os.fsencode(text).decode("latin-1")
