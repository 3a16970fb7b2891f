"""The run as it happens, one JSON object a line: run, lane, case and trial, start and finish.

A consumer may read the file while it grows: each event is one whole line, written at once. Workers write nothing here;
the controller's process writes what pytest tells it, so that lines of parallel trials never interleave.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.errors import OptionMistake

if TYPE_CHECKING:
    from pytest_skilleval.records import Plan, PlannedTrial
    from pytest_skilleval.results import Report

__all__ = ["EventStream"]

SCHEMA = "skilleval-event/1"


class EventStream:
    """Writes events; registered as a pytest plugin in the process that sees all trials.

    Args:
        path: Where events go; a file of an earlier run is replaced.
        folder: The run folder, where the plan lies once the first trial starts.

    Raises:
        OptionMistake: The file cannot be written; said before the first agent starts.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder
        self.problem = ""
        self._plan: Plan | None = None
        self._trials: dict[str, PlannedTrial] = {}
        self._started: set[str] = set()
        self._outcomes: dict[str, str] = {}
        self._left: Counter[tuple[str, ...]] = Counter()
        self._open: dict[tuple[str, ...], Counter[str]] = {}
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise OptionMistake(
                f"--skilleval-report=jsonl={path}: {error.strerror or error}; name another file"
            ) from None

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A trial starts, in whatever process."""
        trial = self._planned(nodeid)
        if trial is None or nodeid in self._started:
            return
        self._started.add(nodeid)
        for scope in _scopes(trial):
            if scope not in self._open:
                self._open[scope] = Counter()
                self._write(_word(scope, "started"), **_named(scope), planned=self._left[scope])
        self._write("trial_started", **_identity(trial))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A trial's record is on disk, or its test has ended without one."""
        trial = self._planned(report.nodeid)
        text = getattr(report, "skilleval", None)
        if (
            trial is None
            or report.nodeid in self._outcomes
            or (text is None and report.when == "setup" and report.passed)
        ):
            return
        if text is None and report.when == "call":
            return  # a Python case may still be settled
        short: dict[str, Any] = (
            json.loads(text) if text else {"outcome": "missing", "error": "worker_died" if report.failed else None}
        )
        self._outcomes[report.nodeid] = short["outcome"]
        facts = {key: short.get(key) for key in ("outcome", "seconds", "tokens", "cost_usd", "error")}
        self._write("trial_finished", **_identity(trial), **facts)
        for scope in reversed(_scopes(trial)):
            self._open.setdefault(scope, Counter())[short["outcome"]] += 1
            self._left[scope] -= 1
            if not self._left[scope]:
                self._finish(scope)

    def pytest_skilleval_report_finished(self, report: Report) -> None:
        """The run is judged: what is still open ends here, and then the run."""
        for scope in sorted(self._open, key=len, reverse=True):
            self._finish(scope)
        if self._plan is not None:
            run = report.run
            self._write("run_finished", status=run.status, counts=run.counts, gate=report.gate.passed)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """A stream that broke off is no success."""
        yield
        if self.problem and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why the stream broke off."""
        if self.problem:
            terminalreporter.write_line(self.problem, red=True)

    def pytest_unconfigure(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _planned(self, nodeid: str) -> PlannedTrial | None:
        """Return the planned trial of a test; None for ordinary tests and gates."""
        if self._plan is None:
            if not (self.folder / "plan.json").exists():
                return None
            self._begin()
        return self._trials.get(nodeid)

    def _begin(self) -> None:
        from pytest_skilleval.journal import read_plan  # noqa: PLC0415 - a session without evals never needs it

        self._plan = plan = read_plan(self.folder)
        self._trials = {trial.nodeid: trial for trial in plan.trials}
        for trial in plan.trials:
            self._left.update(_scopes(trial))
        provider = plan.provider
        self._write(
            "run_started",
            planned=len(plan.trials),
            trials=plan.trials_each,
            provider={"id": provider.id, "model": provider.model, "simulated": provider.simulated},
            folder=str(self.folder),
        )

    def _finish(self, scope: tuple[str, ...]) -> None:
        counts = self._open.pop(scope, None)
        if counts is not None:
            self._write(_word(scope, "finished"), **_named(scope), counts=dict(sorted(counts.items())))

    def _write(self, event: str, **facts: Any) -> None:
        if self._file < 0 or self.problem:
            return
        now = datetime.now(UTC)
        run = self._plan.run if self._plan is not None else None
        line = {
            "schema": SCHEMA,
            "event": event,
            "time": f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z",
            "run": run,
            **facts,
        }
        data = json.dumps(line, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror or error}: events after this one are not written"


def _scopes(trial: PlannedTrial) -> tuple[tuple[str, ...], ...]:
    """Return what a trial lies in, the widest first."""
    return (trial.lane,), (trial.lane, trial.case)


def _word(scope: tuple[str, ...], what: str) -> str:
    return f"{('lane', 'case')[len(scope) - 1]}_{what}"


def _named(scope: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(("lane", "case"), scope, strict=False))


def _identity(trial: PlannedTrial) -> dict[str, Any]:
    return {
        "key": trial.id.key,
        "lane": trial.lane,
        "case": trial.case,
        "condition": trial.condition,
        "trial": trial.trial,
    }
