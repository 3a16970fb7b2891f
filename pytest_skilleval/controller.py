"""Gather, judge once, report, and set the exit status."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_skilleval import comparison, store, tokens, verdicts
from pytest_skilleval.caps import Caps, caps_of
from pytest_skilleval.journal import read_plan
from pytest_skilleval.records import Outcome
from pytest_skilleval.reports.writing import beside, write_reports, write_step_summary
from pytest_skilleval.scheduler import SCHEDULER, CapScheduler, Work, recorded_durations, works

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_skilleval.comparison import Baseline
    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import ProviderInfo
    from pytest_skilleval.results import Report
    from pytest_skilleval.tokens import Snapshot

__all__ = ["Controller", "make_scheduler", "open_baseline", "open_controller"]

OK, TESTS_FAILED, INTERRUPTED, NO_TESTS = 0, 1, 2, 5


def open_baseline(settings: Settings, provider: ProviderInfo) -> Baseline | None:
    """Read the baseline and check it, before the first agent starts; None when none is asked for.

    Raises:
        BaselineMistake: It cannot be found, read or compared with.
    """
    if settings.compare_baseline is None:
        return None
    path = store.find_run(settings.output, settings.compare_baseline, settings.rootpath)
    if path.is_file():
        found = comparison.accept(store.read_report(path), path.read_bytes(), provider, settings)
        return found._replace(path=str(path))
    gathered = store.gather(path)
    report = verdicts.judge(gathered.plan, gathered.entries, settings, finished=store.now())
    return comparison.accept(report, b"", provider, settings)._replace(path=str(path))


def open_controller(
    settings: Settings, run: str, token: str, baseline: Baseline | None, snapshot: Snapshot | None = None
) -> Controller | None:
    """Return the controller of this session's run, or None when the session had no evals."""
    folder = settings.output / run
    try:
        plan = read_plan(folder)
    except FileNotFoundError:
        return None
    return Controller(settings, folder, baseline, snapshot) if plan.token == token else None


def make_scheduler(config: pytest.Config, count: int, settings: Settings, folder: Path, *, paid: bool) -> CapScheduler:
    """Return the scheduler of a run; its plan is read when all workers have collected.

    Args:
        config: Pytest's.
        count: Workers that xdist starts.
        settings: What the user asked for.
        folder: The run folder.
        paid: Whether the provider costs money or quota.
    """

    def known() -> dict[str, Work]:
        try:
            plan = read_plan(folder)
        except FileNotFoundError:
            return {}  # nothing but ordinary tests
        return works(plan, store.read_durations(settings.output, plan.provider.id))

    limits = caps_of(settings.caps, settings.provider, paid=paid)
    scheduler = CapScheduler(config, count, Caps(limits, store.CapLog(folder).add), known)
    config.pluginmanager.register(scheduler, SCHEDULER)
    return scheduler


class Controller:
    """Judges one run, once.

    Args:
        settings: What the user asked for.
        folder: The run folder.
        baseline: What to compare with, as it was before the first agent.
        snapshot: The saved tokens, as they were before the first agent.
    """

    def __init__(
        self, settings: Settings, folder: Path, baseline: Baseline | None = None, snapshot: Snapshot | None = None
    ) -> None:
        self.settings = settings
        self.baseline = baseline
        self.snapshot = snapshot
        self.folder = folder
        self.report: Report | None = None
        self.paths: dict[str, str] = {}
        self.problems: list[str] = []

    def judge(self) -> Report:
        """Read the journal back and judge it; the first answer stands."""
        if self.report is None:
            gathered = store.gather(self.folder)
            report = verdicts.judge(
                gathered.plan,
                gathered.entries,
                self.settings,
                finished=store.now(),
                strangers=gathered.strangers,
                caps=gathered.caps,
                compare=None if self.baseline is None else comparison.comparer(self.baseline, self.settings),
            )
            if (mode := self.settings.tokens) is not None:
                found = tokens.examine(report, self.snapshot, mode, self.settings.tokens_threshold)
                report = report.model_copy(update={"tokens": found})
            self.report = report
        return self.report

    def publish(self) -> None:
        """Write every report that was asked for; one that cannot be written is said, and the others are tried."""
        report = self.judge()
        other = None if self.baseline is None else beside(self.baseline.report, self.settings.output)
        written = write_reports(self.settings.reports, report, self.folder, other)
        self.paths = {name: self._typed(path) for name, path in written.paths.items()}
        self.problems += written.problems
        self.problems += write_step_summary(report, os.environ.get("GITHUB_STEP_SUMMARY"))
        store.point_latest(self.settings.output, report.run.id)
        self._save_tokens(report)
        rows = report.timing["trials"]
        ran = {trial.key for trial in report.trials if trial.outcome in (Outcome.PASSED, Outcome.FAILED)}
        durations = recorded_durations(
            (key, row["duration_s"] - row["waited_s"]) for key, row in rows.items() if key in ran
        )
        store.write_durations(self.settings.output, report.run.provider.id, durations)

    def _save_tokens(self, report: Report) -> None:
        """Save what the groups cost, after a finished run that is to do so."""
        if self.settings.tokens != "update" or report.run.status != "finished":
            return
        try:
            snapshot = tokens.updated(self.snapshot, tokens.rows_of(report).rows)
            tokens.write_snapshot(self.settings.rootpath, snapshot)
        except OSError as error:
            self.problems.append(f"{self.settings.rootpath / tokens.FILE}: {error.strerror or error}")

    def announce(self, config: pytest.Config) -> None:
        """Tell other plugins that the run is judged; one that fails is said, and the run stays as it is."""
        try:
            config.hook.pytest_skilleval_report_finished(config=config, report=self.judge(), paths=self.paths)
        except Exception as error:  # noqa: BLE001 - whatever another plugin raises
            self.problems.append(f"pytest_skilleval_report_finished: {type(error).__name__}: {error}")

    def gate_reports(self) -> Iterator[pytest.TestReport]:
        """Yield a failed test report for each red gate, so that terminal, JUnit XML, IDEs and annotations show it."""
        report = self.judge()
        files = {":".join(trial.id.group): trial.nodeid.partition("::")[0] for trial in read_plan(self.folder).trials}
        for name, reason in verdicts.red_gates(report, self.settings):
            nodeid = f"skilleval-gate::{name}"
            place = files.get(name, "skilleval-gate")
            for when, outcome in (("setup", "passed"), ("call", "failed"), ("teardown", "passed")):
                yield pytest.TestReport(
                    nodeid=nodeid,
                    location=(place, None, name),
                    keywords={"skilleval_gate": 1},
                    outcome=outcome,  # type: ignore[arg-type] # a literal, spelt in the tuple above
                    longrepr=reason if outcome == "failed" else None,
                    when=when,  # type: ignore[arg-type] # the same
                )

    def exit_status(self, status: int, *, red: int) -> int:
        """Return the session's exit status.

        Args:
            status: What pytest would return.
            red: Failed reports that are no missed trials.
        """
        report = self.judge()
        if status == NO_TESTS and self.settings.resume is not None:
            status = OK  # a finished run was resumed: there was nothing left to do
        if status not in (OK, TESTS_FAILED):
            return status
        if red or self.problems:
            return TESTS_FAILED
        if report.run.counts["missing"]:
            return INTERRUPTED
        return OK if report.gate.passed else TESTS_FAILED

    def _typed(self, path: Path) -> str:
        """Return a path as a person would type it."""
        here = Path(os.path.relpath(path))
        return str(path) if here.parts[:1] == ("..",) else str(here)
