"""A report arranged for a page: groups with their trials, the map of cases, errors by class, the baseline beside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_skilleval.frozen import digest_text
from pytest_skilleval.records import Outcome
from pytest_skilleval.reports.trialfiles import TrialFiles, read_trial
from pytest_skilleval.reports.versus import GroupChange, Versus
from pytest_skilleval.results import GroupSummary, LaneSummary, Lift, Report, TrialLine

__all__ = ["ErrorKind", "GroupView", "HeatRow", "LaneView", "TrialView", "error_kinds", "group_views", "lane_views"]

GroupKey = tuple[str, str, str]


class TrialView(NamedTuple):
    """One trial, and the baseline's trial of the same number to read beside it."""

    line: TrialLine
    files: TrialFiles
    seconds: float | None
    base: TrialLine | None
    base_files: TrialFiles


class GroupView(NamedTuple):
    """One case under one condition."""

    row: GroupSummary
    id: str
    """Its anchor: a digest, never text from a case."""
    lines: tuple[TrialLine, ...]
    change: GroupChange | None
    base: GroupSummary | None
    base_lines: tuple[TrialLine, ...]

    @property
    def outcomes(self) -> str:
        """The outcomes that occur, for filtering: such as `failed passed`."""
        return " ".join(sorted({line.outcome.value for line in self.lines}))

    @property
    def page(self) -> str:
        """The file that holds the trials of its case, where a report is too large for one page."""
        return f"report-trials/c{digest_text(f'{self.row.lane}:{self.row.case}')[:12]}.html"

    def trials(self, folder: Path | None, base_folder: Path | None, timing: Mapping[str, Any]) -> Iterator[TrialView]:
        """Yield its trials with what the run folders hold of them."""
        others = {line.trial: line for line in self.base_lines}
        for line in self.lines:
            base = others.get(line.trial)
            seconds = timing.get(line.key, {}).get("duration_s")
            base_files = TrialFiles("") if base is None else read_trial(base_folder, base)
            yield TrialView(line, read_trial(folder, line), seconds, base, base_files)


class HeatRow(NamedTuple):
    """One case in the map of a lane."""

    case: str
    category: str
    cells: tuple[GroupView | None, ...]
    """One a condition, in the lane's order."""


class LaneView(NamedTuple):
    """One lane: its conditions, lifts and cases."""

    name: str
    rows: tuple[LaneSummary, ...]
    lifts: tuple[Lift, ...]
    conditions: tuple[str, ...]
    heat: tuple[HeatRow, ...]
    reading: str


class ErrorKind(NamedTuple):
    """All errors of one class."""

    name: str
    trials: tuple[TrialLine, ...]


def group_id(key: GroupKey) -> str:
    """Return a group's anchor and file name."""
    return "g" + digest_text(":".join(key))[:12]


def group_views(report: Report, baseline: Report | None, versus: Versus | None) -> tuple[GroupView, ...]:
    """Gather each group of a report, in its order."""
    lines = _lines(report)
    base_lines = {} if baseline is None else _lines(baseline)
    base_rows = {} if baseline is None else {_key(row): row for row in baseline.groups}
    changes = {} if versus is None else {row.key: row for row in versus.groups}
    return tuple(
        GroupView(
            row, group_id(key), tuple(lines[key]), changes.get(key), base_rows.get(key), tuple(base_lines.get(key, ()))
        )
        for row in report.groups
        for key in (_key(row),)
    )


def _key(row: GroupSummary | TrialLine) -> GroupKey:
    return (row.lane, row.case, row.condition)


def _lines(report: Report) -> dict[GroupKey, list[TrialLine]]:
    gathered: dict[GroupKey, list[TrialLine]] = defaultdict(list)
    for line in report.trials:
        gathered[_key(line)].append(line)
    return gathered


def lane_views(report: Report, groups: tuple[GroupView, ...]) -> tuple[LaneView, ...]:
    """Arrange groups by lane, case and condition."""
    readings = {reading.lane: reading.text for reading in report.readings}
    views = []
    for lane in dict.fromkeys(group.row.lane for group in groups):
        own = [group for group in groups if group.row.lane == lane]
        present = {group.row.condition for group in own}
        conditions = [name for name in report.run.conditions if name in present]
        conditions += sorted(present - set(conditions))
        cells = {(group.row.case, group.row.condition): group for group in own}
        heat = tuple(
            HeatRow(case, category, tuple(cells.get((case, condition)) for condition in conditions))
            for case, category in {group.row.case: group.row.category for group in own}.items()
        )
        rows = tuple(row for row in report.lanes if row.lane == lane)
        lifts = tuple(lift for lift in report.lift if lift.lane == lane)
        views.append(LaneView(lane, rows, lifts, tuple(conditions), heat, readings.get(lane, "")))
    return tuple(views)


def error_kinds(report: Report) -> tuple[ErrorKind, ...]:
    """Gather errors by class, the most frequent first."""
    kinds: dict[str, list[TrialLine]] = defaultdict(list)
    for line in report.trials:
        if line.outcome is Outcome.ERROR:
            kinds[line.error.error_class.value if line.error else "unknown"].append(line)
    return tuple(
        ErrorKind(name, tuple(lines))
        for name, lines in sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0]))
    )
