"""The closing table on the terminal: plain lines with their colours, for any writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.against import comparison_lines
from pytest_skilleval.reports.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_skilleval.records import LaneSummary, Lift, Report

__all__ = ["closing_lines"]

_LIFT_WORDS = {
    "realised": "realised lift (self-load - none)",
    "oracle": "oracle lift (preloaded - none)",
    "routing_gap": "routing gap (preloaded - self-load)",
    "stale_harm": "stale harm (none - stale)",
    "regression_rate": "cases that got worse",
    "unlock_rate": "cases that got better",
    "routing_efficiency": "routing efficiency (realised / oracle)",
}


def closing_lines(report: Report, paths: dict[str, str], *, quiet: bool = False) -> Iterator[Line]:
    """Yield what a person reads at the end of a run.

    Args:
        report: The judged run.
        paths: Report format to path, as the person would type it.
        quiet: Under `-q`: the table and the gate only.
    """
    run = report.run
    who = run.provider.id + (f" {run.provider.model}" if run.provider.model else "")
    if run.provider.simulated:
        yield Line(f"{who}: simulated, no agent was run", "yellow")
    else:
        yield Line(f"provider {who} {run.provider.version or ''}".rstrip())
    yield from (Line(text) for text in _table(report.lanes))
    if not quiet:
        yield from _insights(report)
    if report.comparison is not None:
        yield from comparison_lines(report.comparison)
    if run.status != "finished":
        yield Line(f"run {run.status}: {'; '.join(run.reasons[:3])}", "red")
    elif run.reasons:
        yield Line("; ".join(run.reasons[:3]), "yellow")
    for note in run.notes:
        yield Line(f"note: {note}", "yellow")
    for reason in report.gate.reasons[:10]:
        yield Line(f"gate: {reason}", "red")
    if not quiet:
        yield from _paths(report, paths)


def _table(lanes: Sequence[LaneSummary]) -> Iterator[str]:
    head = ("lane", "condition", "n", "pass rate", "95% interval", "mean score", "95% interval", "errors", "missing")
    rows = [
        (
            row.lane,
            row.condition + (" *" if row.control else ""),
            str(row.n),
            numbers.percent(row.pass_rate.rate),
            numbers.ci(row.pass_rate.ci, share=True),
            numbers.score(row.score.mean),
            numbers.ci(row.score.ci),
            str(row.errors),
            str(row.missing),
        )
        for row in lanes
    ]
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    left = {0, 1, 4, 6}
    for line in (head, tuple("-" * width for width in widths), *rows):
        cells = (
            text.ljust(width) if place in left else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
    if any(row.control for row in lanes):
        yield "* control; intervals are for cases like these (clustered by case)"


def _insights(report: Report) -> Iterator[Line]:
    yield from _lifts(report.lift)
    for reading in report.readings:
        yield Line(f"{reading.lane}: {reading.text}")
    if report.routing is not None:
        parts = [
            f"{name} {numbers.percent(rate['rate'])} {numbers.ci(rate['ci'], share=True)} (n={rate['n']})"
            for name, rate in _rates(report.routing)
        ]
        yield Line("routing: " + ", ".join(parts))
        if report.routing["control"] != "fired":
            yield Line(f"routing: {report.routing['control']}", "yellow")
    noise = report.noise
    if noise.flip_rate is not None:
        yield Line(
            f"noise: two trials of the same case disagree in {numbers.percent(noise.flip_rate)} "
            f"{numbers.ci(noise.ci, share=True)} of pairs ({numbers.count(noise.cases, 'group')})"
        )
    elif report.run.counts["passed"] + report.run.counts["failed"]:
        yield Line("noise: unknown with one trial for each group; --trials 5 measures it")


def _rates(routing: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, word in (("recall", "recall"), ("false_trigger_rate", "false triggers"), ("precision", "precision")):
        value = routing[key]
        if isinstance(value, dict):
            yield word, value


def _lifts(lifts: Iterable[Lift]) -> Iterator[Line]:
    for lift in lifts:
        if lift.of != "pass_rate" or lift.metric in ("regression_rate", "unlock_rate"):
            continue
        word = _LIFT_WORDS.get(lift.metric, lift.metric)
        if lift.value is None:
            yield Line(f"{lift.lane}: {word}: {lift.note or 'not estimable'}")
            continue
        yield Line(
            f"{lift.lane}: {word}: {numbers.points(lift.value)} {numbers.ci(lift.ci, signed=True)} ({numbers.count(lift.cases, 'case')})"
        )


def _paths(report: Report, paths: dict[str, str]) -> Iterator[Line]:
    for path in paths.values():
        yield Line(f"report: {path}")
    folder = report.run.id
    if report.run.status == "interrupted":
        yield Line(f"next: pytest --skilleval-resume={folder}  (runs only what is missing)")
    elif report.comparison is None and report.run.trials > 1:
        yield Line(f"next: change the skill, then pytest --trials {report.run.trials} --compare-baseline {folder}")
    elif report.comparison is None:
        yield Line("next: pytest --trials 5  (one trial for each case says little: two identical runs disagree)")
