"""One trial's hold on its home and its processes, as the worker has it: commands go in, endings come out."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from pytest_skilleval.errors import SkillevalError

from .command import Command, Ended, Stream
from .sweep import reclaim

PATIENCE = 30.0
"""Seconds beyond all that a supervisor may take by its order, before it counts as lost."""

_TICK = 0.25
_SILENCE = "it ended without a word"


class SupervisionError(SkillevalError):
    """The processes that watch over trials could not be started, or broke."""


class NoWordError(SupervisionError):
    """A supervisor ended before it could say anything."""


class TrialLease:
    """One trial's hold on its home and its process tree; `Spawner.lease` makes it.

    While it is held a supervisor stands by. If this process dies, at whatever point, the supervisor kills all that the
    trial started and removes the home.
    """

    def __init__(
        self, home: Path, base: Path, line: socket.socket, give_back: Callable[[socket.socket], None] | None = None
    ) -> None:
        self.home = home
        self.keep = False
        """Set to leave the home in place at the end of the block, for somebody to look at."""
        self.problems: tuple[str, ...] = ()
        """What could not be removed or proven dead at the end, a line each; the next run's sweep tries again."""
        self._base = base
        self._line = line
        self._give_back = give_back
        self._inbox = b""
        self._lost = False
        self._last_words = ""
        try:
            ready = self._wait("ready", PATIENCE)
        except BaseException:
            line.close()
            raise
        if ready is None:
            self._line.close()
            kind = SupervisionError if self._last_words else NoWordError
            raise kind(f"no supervisor for {self.home}: {self._last_words or _SILENCE}")
        self.supervisor: int = ready["ready"]
        """Process id of the supervisor."""
        # Opened while it answers, so that it can be killed later without hitting a process that took its number.
        self._handle = os.pidfd_open(self.supervisor) if hasattr(os, "pidfd_open") else -1

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
        patience = command.timeout + sum(grace for _, grace in command.stop) + PATIENCE
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
            released = self._wait("released", PATIENCE * 4)
            if released is None:
                self._take_over()
            else:
                self.problems = tuple(released["problems"])
                if released["dead"] and not self.problems and not self._inbox and self._give_back is not None:
                    # A supervisor without a trial serves the next one: a fresh one costs a fork.
                    self._give_back(self._line.dup())
        except OSError:
            self._take_over()
        finally:
            self._line.close()  # whatever happened here: the supervisor sees this and clears up
            self._let_go()

    def _cancel(self) -> None:
        try:
            self._send({"cancel": {}})
            self._wait("ended", PATIENCE)
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
        """Do what the supervisor did not: kill it if it hangs, and what it watched over, and remove the home."""
        self._lost = True
        self._line.close()
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        self._let_go()
        self.problems = reclaim(self.home, self._base).problems

    def _let_go(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _send(self, message: dict[str, object]) -> None:
        self._line.settimeout(PATIENCE)
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
            if not _readable(self._line, min(left, _TICK) if on_tick else left):
                if on_tick:
                    on_tick()
                continue
            data = self._line.recv(1 << 16)
            if not data:
                return None
            self._inbox += data


def _readable(line: socket.socket, seconds: float) -> bool:
    poll = select.poll()  # select() cannot take descriptors above 1023
    poll.register(line, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _kind(command: Command) -> Literal["bubblewrap", "none"]:
    return "none" if command.sandbox is None else "bubblewrap"


def _order(command: Command, home: Path) -> dict[str, object]:
    argv = command.argv
    if command.sandbox is not None:
        argv = command.sandbox.wrap(argv, cwd=command.cwd, home=home, env=command.env)
    return {
        "argv": [wire(word) for word in argv],
        "cwd": wire(command.cwd),
        "env": {wire(name): wire(value) for name, value in command.env.items()},
        "stdin": None if command.stdin is None else wire(command.stdin),
        "stdout": wire(command.stdout),
        "stderr": wire(command.stderr),
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


def wire(text: str | Path) -> str:
    """Return file system bytes as latin-1 text, which any locale on the other side reads the same."""
    if isinstance(text, str) and text.isascii():
        return text
    return os.fsencode(text).decode("latin-1")
