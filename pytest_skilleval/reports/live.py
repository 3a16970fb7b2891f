"""A run as it goes on, on a terminal: one line that stays at the bottom, or lines that stay where they are."""

from __future__ import annotations

import contextlib
import io
import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.closing import shown
from pytest_skilleval.reports.plain import plain_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

__all__ = ["LiveLine", "Moment", "progress_line"]


class Moment(NamedTuple):
    """What a run has come to so far."""

    planned: int
    passed: int = 0
    missed: int = 0
    failed: int = 0
    """Failed trials that are red."""
    errors: int = 0
    not_run: int = 0
    running: int = 0
    waits: Sequence[tuple[int, str, float | None]] = ()
    """Trials that wait, for what, and how many seconds they have or will."""
    tokens: int | None = None
    """None: unknown of every trial so far."""
    cost_usd: float | None = None
    left_s: float | None = None
    """Seconds until the end, a guess."""

    @property
    def done(self) -> int:
        """Trials that are home."""
        return self.passed + self.missed + self.failed + self.errors + self.not_run


def progress_line(moment: Moment) -> str:
    """Write a moment as one line, the most telling first: a narrow terminal cuts its end."""
    counts = [f"{moment.passed} passed"]
    named = (
        (moment.missed, "missed"),
        (moment.failed, "failed"),
        (moment.errors, "errors"),
        (moment.not_run, "not run"),
    )
    counts += [f"{number} {word}" for number, word in named if number]
    parts = [f"{moment.done}/{moment.planned} trials", ", ".join(counts), f"{moment.running} running"]
    for number, what, seconds in moment.waits:
        parts.append(f"{number} waiting for {what}" + ("" if seconds is None else f" ({numbers.seconds(seconds)})"))
    spent = [f"{numbers.tokens(moment.tokens)} tokens"] if moment.tokens is not None else []
    spent += [numbers.money(moment.cost_usd)] if moment.cost_usd is not None else []
    if spent:
        parts.append(", ".join(spent))
    if moment.left_s is not None:
        parts.append(f"about {numbers.seconds(moment.left_s)} left")
    return f"skilleval: {'; '.join(parts)}"


class LiveLine:
    """Writes to the terminal from another thread, below and between what pytest writes.

    pytest captures the terminal's own descriptor while a test runs in this process, so the line goes to a copy of it.
    What pytest writes erases the line first; the next `show` puts it back.

    Args:
        terminal: pytest's.
    """

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal
        self._writer = terminal.config.get_terminal_writer()
        self._lock = threading.RLock()
        self._drawn: int | None = None
        """Width of pytest's unfinished line above the drawn one."""
        self._copy: int | None = None
        self._write = self._writer.write

    def start(self) -> None:
        """Take part in what is written."""
        with contextlib.suppress(OSError, AttributeError, io.UnsupportedOperation):
            self._copy = os.dup(self._file().fileno())
        self._writer.write = self._cleared  # type: ignore[method-assign] # the one sink of all that pytest writes

    def stop(self) -> None:
        """Leave the terminal to pytest."""
        with self._lock:
            self._erase()
            self._writer.write = self._write  # type: ignore[method-assign] # as it was
            if self._copy is not None:
                os.close(self._copy)
                self._copy = None

    def show(self, text: str) -> None:
        """Show a line at the bottom in place of the one before."""
        with self._lock:
            self._erase()
            self._writer.flush()
            above = self._writer.width_of_current_line
            line = plain_line(self._fit(text), limit=max(20, self._writer.fullwidth - 1)).replace("…", "~")
            self._put(("\n" if above else "") + line)
            self._drawn = above

    def say(self, text: str) -> None:
        """Write a line that stays."""
        with self._lock:
            self._erase()
            self._writer.flush()
            above = self._writer.width_of_current_line
            self._put(("\n" if above else "") + self._fit(text) + "\n")
            self._writer._current_line = ""  # noqa: SLF001 - the line that pytest had begun is finished
            self._terminal.currentfspath = None

    def _cleared(self, msg: str, *, flush: bool = False, **markup: bool) -> None:
        with self._lock:
            self._erase()
            self._write(msg, flush=flush, **markup)

    def _erase(self) -> None:
        if self._drawn is None:
            return
        # Back up to where pytest's own line ends.
        back = f"\x1b[1A\x1b[{self._drawn + 1}G" if self._drawn else ""
        self._drawn = None
        self._put(f"\r\x1b[K{back}")

    def _put(self, text: str) -> None:
        if self._copy is None:
            self._writer.write_raw(text, flush=True)
            return
        data = text.encode("ascii", "replace") if not self._encoding().startswith("utf") else text.encode()
        while data:
            data = data[os.write(self._copy, data) :]

    def _fit(self, text: str) -> str:
        return shown(text, self._encoding())

    def _encoding(self) -> str:
        return (getattr(self._file(), "encoding", None) or "ascii").lower()

    def _file(self) -> io.TextIOBase:
        file: io.TextIOBase = self._writer._file  # type: ignore[assignment] # noqa: SLF001 - nothing public says where it writes
        return file
