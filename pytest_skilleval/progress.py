"""Progress of a run while it goes on: a live line on a terminal, else a line every 30 seconds, also while it waits."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval import store
from pytest_skilleval.journal import Journal, read_plan
from pytest_skilleval.pauses import read_waits, session_folder
from pytest_skilleval.reports.live import LiveLine, Moment, progress_line
from pytest_skilleval.reports.log import log_lines
from pytest_skilleval.scheduler import SCHEDULER, Work, works
from pytest_skilleval.tally import REPORT_KEY

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_skilleval.model import TrialId
    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import Plan

__all__ = ["Progress"]

TICK = 0.5
"""Seconds between two pictures of the live line."""
EVERY = 30.0
"""Seconds between two lines where there is no terminal."""


class Progress:
    """Shows how far a run is; a pytest plugin of the process that sees all trials.

    A thread writes, and only while trials run: the main thread waits for workers, or runs a trial itself.

    Args:
        config: Of the session.
        folder: The run folder.
        settings: What the user asked for.
    """

    def __init__(self, config: pytest.Config, folder: Path, settings: Settings) -> None:
        self._config = config
        self._folder = folder
        self._settings = settings
        self._terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._verbosity = config.get_verbosity()
        self._plan: Plan | None = None
        self._works: dict[str, Work] = {}
        self._ids: dict[str, TrialId] = {}
        self._planned = 0
        self._running: dict[str, float] = {}
        self._home: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._tokens: int | None = None
        self._cost: float | None = None
        self._began = 0.0
        self._done_s = 0.0
        self._left_s = 0.0
        self._full_since: dict[str, float] = {}
        self._line: LiveLine | None = None
        self._live = False
        self._end = threading.Event()
        self._paused = threading.Event()
        self._thread: threading.Thread | None = None

    # ----------------------------------------------------------------------------------------- what pytest tells

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A trial starts, in whatever process."""
        if self._plan is None:
            self._begin()
        if nodeid in self._works and nodeid not in self._home:
            self._running[nodeid] = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A trial is home: count it, and show its log."""
        text = getattr(report, REPORT_KEY, None)
        if self._plan is None or report.nodeid not in self._works:
            return
        if text is not None and report.nodeid not in self._home:
            self._count(report.nodeid, json.loads(text))
            if self._verbosity > 0 and self._terminal is not None:
                self._show_log(report.nodeid)
        if text is not None or report.when == "teardown" or report.failed:
            self._running.pop(report.nodeid, None)

    def pytest_enter_pdb(self) -> None:
        """A person types now."""
        self._paused.set()

    def pytest_leave_pdb(self) -> None:
        """The person is done."""
        self._paused.clear()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Any:
        """Stop with the last trial, however the loop ends."""
        try:
            return (yield)
        finally:
            self.stop()

    def pytest_unconfigure(self) -> None:
        """Leave no thread behind."""
        self.stop()

    # ------------------------------------------------------------------------------------------------- the run

    def _begin(self) -> None:
        try:
            plan = read_plan(self._folder)
        except FileNotFoundError:
            return  # so far only ordinary tests
        todo = None if plan.todo is None else set(plan.todo)
        known = works(plan, store.read_durations(self._settings.output, plan.provider.id))
        self._works = {
            trial.nodeid: known[trial.nodeid] for trial in plan.trials if todo is None or trial.id.key in todo
        }
        self._plan = plan
        self._ids = {trial.nodeid: trial.id for trial in plan.trials}
        self._planned = len(self._works)
        self._left_s = sum(work.seconds for work in self._works.values())
        self._began = time.monotonic()
        if self._terminal is None or self._verbosity < 0:
            return
        self._live = bool(self._terminal.isatty) and os.environ.get("TERM") != "dumb" and not self._prints()
        self._line = LiveLine(self._terminal)
        self._line.start()
        self._thread = threading.Thread(target=self._tick, name="skilleval-progress", daemon=True)
        self._thread.start()

    def _prints(self) -> bool:
        """Tell whether trials of this process print on the terminal themselves, which would tear a live line."""
        return self._config.getoption("capture", "fd") == "no" and not self._config.pluginmanager.hasplugin("dsession")

    def _count(self, nodeid: str, short: dict[str, Any]) -> None:
        self._home.add(nodeid)
        outcome = short["outcome"]
        self._counts["missed" if short["missed"] else outcome] += 1
        if short["tokens"] is not None:
            self._tokens = (self._tokens or 0) + short["tokens"]
        if short["cost_usd"] is not None:
            self._cost = (self._cost or 0.0) + short["cost_usd"]
        seconds = self._works[nodeid].seconds
        self._left_s -= seconds
        if outcome in ("passed", "failed", "error"):
            self._done_s += seconds

    def _show_log(self, nodeid: str) -> None:
        assert self._plan is not None  # noqa: S101 - the caller has looked
        record = Journal(self._folder, self._plan.run).read(self._ids[nodeid]).record
        if record is None:
            return  # on another machine
        for line in log_lines(record, self._folder):
            self._terminal.write_line(line)

    def moment(self) -> Moment:
        """Return what the run has come to."""
        counts = self._counts
        known = ("passed", "missed", "failed", "error")
        return Moment(
            planned=self._planned,
            passed=counts["passed"],
            missed=counts["missed"],
            failed=counts["failed"],
            errors=counts["error"],
            not_run=sum(number for word, number in counts.items() if word not in known),
            running=len(self._running),
            waits=self._waits(),
            tokens=self._tokens,
            cost_usd=self._cost,
            left_s=self._guess(),
        )

    def _waits(self) -> list[tuple[int, str, float | None]]:
        """Return what trials wait for: a cap although a worker is free (since when), a provider (how long still)."""
        scheduler: Any = self._config.pluginmanager.get_plugin(SCHEDULER)
        held: dict[str, int] = scheduler.held_back() if scheduler is not None else {}
        now = time.monotonic()
        self._full_since = {name: self._full_since.get(name, now) for name in held}
        waits: list[tuple[int, str, float | None]] = [
            (number, f"{name}={scheduler.caps.limits.get(name, '?')}", now - self._full_since[name])
            for name, number in held.items()
        ]
        assert self._plan is not None  # noqa: S101 - nothing is shown before there is a plan
        return [*waits, *read_waits(session_folder(self._folder, self._plan.token))]

    def _guess(self) -> float | None:
        """Return the seconds that are left if the rest goes as what is done did; None before anything is done."""
        if not self._done_s:
            return None
        return (time.monotonic() - self._began) * max(0.0, self._left_s) / self._done_s

    # ------------------------------------------------------------------------------------------------ the thread

    def _tick(self) -> None:
        assert self._line is not None  # noqa: S101 - it is there before the thread is
        while not self._end.wait(TICK if self._live else EVERY):
            if self._paused.is_set():
                continue
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # a closed terminal, a set that grew
                text = progress_line(self.moment())
                self._line.show(text) if self._live else self._line.say(text)

    def stop(self) -> None:
        """End the thread and give the terminal back; may be called twice."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._line is not None:
            with contextlib.suppress(OSError, ValueError):
                self._line.stop()
            self._line = None
