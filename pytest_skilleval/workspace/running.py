"""One command from its start to the proof that its process tree is dead."""

from __future__ import annotations

import json
import os
import select
import time
from typing import TYPE_CHECKING, Any

from pytest_skilleval.redaction import Redactor

from .launch import LaunchError, fs_bytes, launch, open_input
from .output import CHUNK, Output, open_output
from .processes import GroupTree, descends
from .quota import Quota

if TYPE_CHECKING:
    from .supervisor import Link

KILL_SECONDS = 4.0
"""How long a tree may take to die before it is reported as unproven (a process stuck in the kernel)."""
_DRAIN_SECONDS = 0.5  # for what dead processes left in the pipes


class Running:
    """Runs one order of the worker.

    Args:
        order: The fields of a `Command`, as sent.
        home: Where the quota looks.
        tree: Owner of all the trial's processes.
        link: The line to the worker, heard while the command runs.
    """

    def __init__(self, order: dict[str, Any], home: bytes, tree: GroupTree, link: Link) -> None:
        self._order = order
        self._tree = tree
        self._link = link
        self._quota = Quota(home, order["disk_limit"], order["file_limit"])
        self._stop = [(int(number), float(grace)) for number, grace in order["stop"]]
        self._reason = "exited"
        self._message = ""
        self._status_text = b""
        self._pipes: dict[int, Output | None] = {}

    def run(self) -> dict[str, object]:
        """Start the command, watch it to its end, kill what it left, and return the fields of an `Ended`."""
        outputs = self._outputs()
        if isinstance(outputs, str):
            return self._answer(None, None, time.monotonic(), outputs)
        started = time.monotonic()
        try:
            pid = self._start(outputs)
        except (LaunchError, OSError) as error:
            self._close()
            return self._answer(None, outputs, started, str(error))
        self._tree.adopt(pid)
        self._watch(outputs, started + self._order["timeout"])
        ended = time.monotonic()
        killed, dead = self._tree.kill(ended + KILL_SECONDS, uncounted=self._sandbox_init())
        self._drain()
        self._close()
        if self._reason == "exited" and (over := self._quota.exceeded()):
            self._reason, self._message = "quota", f"the command left {over}"
        failure = self._sandbox_failure()
        answer = self._answer(self._tree.status, outputs, started, failure, ended)
        answer["killed"] = killed
        answer["tree"] = "dead" if dead else "unproven"
        return answer

    def _outputs(self) -> tuple[Output, Output] | str:
        order = self._order
        redactor = Redactor(order["secrets"])
        limits = {"limit": order["output_limit"], "line_limit": order["line_limit"]}
        markers = tuple(fs_bytes(marker) for marker in order["result_markers"])
        try:
            stdout = open_output(fs_bytes(order["stdout"]))
        except OSError as error:
            return f"the file for its output cannot be made: {error}"
        try:
            stderr = open_output(fs_bytes(order["stderr"]))
        except OSError as error:
            os.close(stdout)
            return f"the file for its errors cannot be made: {error}"
        return (
            Output(stdout, redactor, **limits, markers=markers, json_lines=order["json_lines"]),
            Output(stderr, redactor, **limits),
        )

    def _start(self, outputs: tuple[Output, Output]) -> int:
        path = self._order["stdin"]
        given = [open_input(None if path is None else fs_bytes(path))]
        try:
            for output in (*outputs, None):
                if output is None and not self._order["sandboxed"]:
                    break
                reading, writing = os.pipe()
                os.set_blocking(reading, False)
                self._pipes[reading] = output
                given.append(writing)
            stdin, stdout, stderr, status = (*given, -1)[:4]
            return launch(self._order, stdin, stdout, stderr, status)
        finally:
            for descriptor in given:
                os.close(descriptor)

    def _watch(self, outputs: tuple[Output, Output], wall: float) -> None:
        """Return when the command has ended, or when it is time to kill it."""
        while self._tree.status is None:
            now = time.monotonic()
            if self._link.has_message():
                self._link.take()  # while a command runs it can only be `cancel`
                self._reason, self._message = "cancelled", "cancelled by its worker"
                return
            until = [wall]
            if self._reason == "exited":
                if self._must_die(outputs, now):
                    return
                until.append(self._quota.due)
                if outputs[0].result_at is not None:
                    until.append(outputs[0].result_at + self._order["linger"])
            if now >= wall:
                if self._reason == "exited":
                    self._reason = "timeout"
                    self._message = f"still running after {self._order['timeout']:g} s"
                if not self._stop:
                    return
                number, grace = self._stop.pop(0)
                self._signal(number)
                wall = now + grace
                continue
            self._wait(max(min(until) - now, 0.0))

    def _must_die(self, outputs: tuple[Output, Output], now: float) -> bool:
        """Tell whether the command is to be killed at once, and note why."""
        result = outputs[0].result_at
        if result is not None and now >= result + self._order["linger"]:
            self._reason, self._message = "lingered", "killed after result"
        elif failure := outputs[0].failure or outputs[1].failure:
            self._reason, self._message = "quota", f"killed as its output could not be written: {failure}"
        elif now >= self._quota.due and (over := self._quota.exceeded()):
            self._reason, self._message = "quota", f"killed with {over}"
        return self._reason != "exited"

    def _wait(self, seconds: float) -> None:
        poll = select.poll()
        for descriptor in (*self._pipes, *self._link.descriptors()):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(seconds * 1000 + 1):
            if descriptor in self._pipes:
                self._read(descriptor)
            else:
                self._link.hear(descriptor)
        self._tree.reap()

    def _read(self, descriptor: int) -> bool:
        """Take a chunk from a pipe; False when there is none now."""
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        output = self._pipes[descriptor]
        if not chunk:
            del self._pipes[descriptor]
            os.close(descriptor)
        elif output is not None:
            output.feed(chunk)
        else:
            self._status_text = (self._status_text + chunk)[:CHUNK]
        return bool(chunk)

    def _signal(self, number: int) -> None:
        if not self._order["sandboxed"]:
            self._tree.signal_group(number)
            return
        # The outer bubblewrap would die of the signal and take the agent with it before it could finish. The inner
        # one leads the agent's group and, as the init of its namespace, does not feel it.
        inner = self._sandbox_init()
        if inner is not None and descends(inner, os.getpid()):
            self._tree.signal_group(number, inner)

    def _sandbox_init(self) -> int | None:
        """Return the init of the sandbox's namespace, as bubblewrap reports it."""
        inner = self._status().get("child-pid")
        return inner if isinstance(inner, int) else None

    def _status(self) -> dict[str, object]:
        merged: dict[str, object] = {}
        for line in self._status_text.splitlines():
            try:
                merged.update(json.loads(line))
            except ValueError:
                continue
        return merged

    def _sandbox_failure(self) -> str:
        """Return why the sandbox did not get as far as the command: it reports an exit code only for one that ran."""
        status = self._tree.status
        if not self._order["sandboxed"] or self._reason != "exited" or status is None or not os.WIFEXITED(status):
            return ""
        if "exit-code" in self._status():
            return ""
        return "bubblewrap could not start the command; its message is in the error stream"

    def _drain(self) -> None:
        """Read what is left in the pipes; whoever may still hold one is not waited for."""
        until = time.monotonic() + _DRAIN_SECONDS
        while self._pipes and time.monotonic() < until:
            poll = select.poll()
            for descriptor in self._pipes:
                poll.register(descriptor, select.POLLIN)
            for descriptor, _ in poll.poll((until - time.monotonic()) * 1000 + 1):
                self._read(descriptor)

    def _close(self) -> None:
        for descriptor in self._pipes:
            os.close(descriptor)
        self._pipes.clear()

    def _answer(
        self,
        status: int | None,
        outputs: tuple[Output, Output] | None,
        started: float,
        failure: str,
        ended: float | None = None,
    ) -> dict[str, object]:
        ended = time.monotonic() if ended is None else ended
        empty = {"bytes_total": 0, "bytes_kept": 0, "truncated": False, "sha256": _EMPTY, "cut_lines": 0}
        last = max((output.last_byte_at or 0.0 for output in outputs), default=0.0) if outputs else 0.0
        ran = status is not None and not failure
        return {
            "exit_status": os.WEXITSTATUS(status) if ran and status is not None and os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if ran and status is not None and os.WIFSIGNALED(status) else None,
            "reason": "spawn_failed" if failure else self._reason,
            "message": failure or self._message,
            "duration": ended - started,
            "cpu": self._tree.usage.cpu if ran else None,
            "stdout": outputs[0].finish() if outputs else empty,
            "stderr": outputs[1].finish() if outputs else empty,
            "killed": 0,
            "tree": self._tree.proof,
            "last_output_age": ended - last if last else None,
            "max_rss": self._tree.usage.max_rss if ran else None,
        }


_EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of nothing
