"""`skilleval lifts`: what a skill changes for each of several providers, side by side and pooled over their cases."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pytest_skilleval import summaries
from pytest_skilleval.errors import BaselineMistake
from pytest_skilleval.options import LANES
from pytest_skilleval.records import ProviderInfo
from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.headline import simulated
from pytest_skilleval.results import Lift, Report
from pytest_skilleval.stats import lifts as lift_numbers

from .answer import Answer, table
from .compare import trials_of
from .place import add_output, place_of
from .reference import judged

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval lifts 20261130T004211Z-3f9c 20261130T010503Z-77aa
  skilleval lifts claude/report.json codex/report.json --json

realised: self-load against none. oracle: preloaded against none. routing_gap: preloaded against self-load.
stale_harm: none against stale. Each provider's numbers are those of its own report.
pooled: each case under each provider is a unit, clustered by case; the interval is for cases like these under these
providers. A case that one of them did not measure, or that is not the same in all reports, is not pooled.
"""
OF = ("pass_rate", "score")


class _Column(NamedTuple):
    name: str
    report: Report
    groups: summaries.Trials


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "reports",
        metavar="REPORT",
        nargs="+",
        help="a run with a report.json, one for each provider: a run id, a run folder, a report.json or `latest`",
    )
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Put the lifts side by side, and pool them."""
    place = place_of(arguments)
    reports = [judged(place, reference, "skilleval lifts").report for reference in arguments.reports]
    columns = [_Column(_name(report.run.provider), report, trials_of(report)) for report in reports]
    twice = [name for name, times in Counter(column.name for column in columns).items() if times > 1]
    if twice:
        raise BaselineMistake(
            f"{twice[0]} is in more than one report; give one for each provider: `skilleval merge` makes one of several"
        )
    changed = _changed(reports)
    pooled = [] if len(columns) == 1 else list(_pooled(columns, changed))
    notes = list(_notes(reports, changed))
    value = {
        "providers": [
            {"name": one.name, "run": one.report.run.id, "lift": [row.model_dump() for row in _shown(one.report.lift)]}
            for one in columns
        ],
        "pooled": pooled,
        "notes": notes,
    }
    return Answer(value, [*_lines(columns, pooled), *(f"note: {note}" for note in notes)])


def _name(provider: ProviderInfo) -> str:
    return " ".join(word for word in (provider.id, provider.model, provider.effort) if word)


def _shown(rows: Iterable[Lift]) -> list[Lift]:
    return [row for row in rows if row.metric in summaries.PAIRS]


def _changed(reports: Sequence[Report]) -> set[tuple[str, str]]:
    """Return lane and name of the cases whose text, or whose skill under a condition, differs between reports."""
    seen: dict[tuple[str, str, str], set[tuple[str, str | None]]] = {}
    for row in (row for report in reports for row in report.groups):
        seen.setdefault((row.lane, row.case, row.condition), set()).add((row.fingerprint, row.skill_digest))
    return {(lane, case) for (lane, case, _), versions in seen.items() if len(versions) > 1}


def _pooled(columns: Sequence[_Column], changed: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield each lift over the cases that all providers measured.

    A case counts with its mean over providers: with as many providers for each case, the mean and the t interval over
    cases are those of all units with standard errors clustered by case.
    """
    for lane in LANES:
        for of in OF:
            for metric in summaries.PAIRS:
                found = [summaries.paired(column.groups, lane, metric, of) for column in columns]
                cases = sorted(set.intersection(*map(set, found)) - {case for in_, case in changed if in_ == lane})
                if not any(found):
                    continue
                sides = [[sum(one[case][side] for one in found) / len(found) for case in cases] for side in (0, 1)]
                number = lift_numbers.lift(*sides)
                units = len(cases) * len(columns)
                yield {"lane": lane, "metric": metric, "of": of, **number, "units": units}


def _notes(reports: Sequence[Report], changed: set[tuple[str, str]]) -> Iterator[str]:
    for run in (report.run for report in reports):
        if said := simulated(run.provider):
            yield said
        if run.status != "finished":
            yield f"run {run.id} is {run.status}: {'; '.join(run.reasons[:2])}"
    if changed:
        names = ", ".join(sorted(f"{lane}:{case}" for lane, case in changed)[:5])
        yield f"{numbers.count(len(changed), 'case')} not pooled, for the text or the skill differs: {names}"


def _lines(columns: Sequence[_Column], pooled: Sequence[dict[str, Any]]) -> list[str]:
    by_name = {column.name: _cells(row.model_dump() for row in _shown(column.report.lift)) for column in columns}
    if pooled:
        by_name["pooled"] = _cells(pooled)
    keys = [(lane, metric, of) for lane in LANES for of in OF for metric in summaries.PAIRS]
    keys = [key for key in keys if any(key in cells for cells in by_name.values())]
    if not keys:
        return ["no lift: no case was measured under two of none, self-load, preloaded and stale"]
    rows = [[*key, *(cells.get(key, "-") for cells in by_name.values())] for key in keys]
    return table(("lane", "lift", "of", *by_name), rows)


def _cells(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str], str]:
    return {
        (row["lane"], row["metric"], row["of"]): f"{numbers.points(row['value'])} {numbers.ci(row['ci'], signed=True)}"
        f" ({numbers.count(row['cases'], 'case')})".replace("  ", " ")
        for row in rows
    }
