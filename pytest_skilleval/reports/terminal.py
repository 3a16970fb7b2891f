"""The closing table on the terminal: plain lines with their colours, for any writer and any width."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.against import comparison_lines
from pytest_skilleval.reports.headline import lift_word, simulated
from pytest_skilleval.reports.line import Line
from pytest_skilleval.reports.plain import plain_line
from pytest_skilleval.reports.tokens import token_notes, token_warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_skilleval.results import LaneSummary, Lift, Report, RunInfo

__all__ = ["closing_lines", "resume_command"]

WIDE = 10_000
"""Where nobody says how wide the terminal is, nothing is left out."""
SHOWN = 10
"""Red gates, and groups that cost more tokens, that are named; the reports name all."""


def closing_lines(
    report: Report, paths: Mapping[str, str], *, quiet: bool = False, width: int = WIDE
) -> Iterator[Line]:
    """Yield what a person reads at the end of a run: table, what the skill changes, noise, verdict, gate, next command.

    Args:
        report: The judged run.
        paths: Report format to path, as the person would type it.
        quiet: Under `-q`: the table, the verdict and the gate only.
        width: Columns of the terminal; the table drops what does not fit, the least telling first.
    """
    run = report.run
    who = run.provider.id + (f" {run.provider.model}" if run.provider.model else "")
    if run.provider.simulated:
        yield Line(simulated(run.provider), "yellow")
    else:
        yield Line(f"provider {who} {run.provider.version or ''}".rstrip())
    yield from (Line(text) for text in _table(report.lanes, width))
    if not quiet:
        yield from _insights(report)
    if report.comparison is not None:
        yield from comparison_lines(report.comparison)
    yield from _troubles(report)
    yield from _tokens(report, quiet=quiet)
    if not quiet:
        yield from (Line(f"report: {path}") for path in paths.values())
        yield from _next(report, paths)


# --------------------------------------------------------------------------------------------------------- the table


class _Column(NamedTuple):
    head: str
    text: Callable[[LaneSummary], str]
    left: bool = False
    rank: int = 0
    """The higher, the earlier it is dropped; 0 always stays."""


_COLUMNS = (
    _Column("lane", lambda row: row.lane, left=True, rank=4),
    _Column("condition", lambda row: row.condition + (" *" if row.control else ""), left=True),
    _Column("n", lambda row: str(row.n), rank=1),
    _Column("pass rate", lambda row: numbers.percent(row.pass_rate.rate)),
    _Column("95% interval", lambda row: numbers.ci(row.pass_rate.ci, share=True), left=True),
    _Column("mean score", lambda row: numbers.score(row.score.mean), rank=2),
    _Column("95% interval", lambda row: numbers.ci(row.score.ci), left=True, rank=3),
    _Column("errors", lambda row: str(row.errors), rank=5),
    _Column("missing", lambda row: str(row.missing), rank=6),
    _Column("unjudged", lambda row: str(row.unjudged), rank=7),
)


def _table(lanes: Sequence[LaneSummary], width: int) -> Iterator[str]:
    """Yield the table's lines; columns of errors are dropped only when there are none, the lane only when it is one."""
    telling = {
        "errors": any(row.errors for row in lanes),
        "missing": any(row.missing for row in lanes),
        "unjudged": True,
        "lane": len({row.lane for row in lanes}) > 1,
    }
    columns = [column for column in _COLUMNS if column.head != "unjudged" or any(row.unjudged for row in lanes)]
    while True:
        lines = [[column.head for column in columns], *([column.text(row) for column in columns] for row in lanes)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        spare = [column for column in columns if column.rank and not telling.get(column.head)]
        if sum(widths) + 2 * (len(widths) - 1) <= width or not spare:
            break
        columns.remove(max(spare, key=lambda column: column.rank))
    lines.insert(1, ["-" * size for size in widths])
    for line in lines:
        cells = (
            text.ljust(size) if column.left else text.rjust(size)
            for text, size, column in zip(line, widths, columns, strict=True)
        )
        yield "  ".join(cells).rstrip()
    if any(row.control for row in lanes):
        yield "* control; intervals are for cases like these (clustered by case)"


# ------------------------------------------------------------------------------------------------- what it means


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
    if report.judge is not None:
        yield Line(_judge(report.judge))
    noise = report.noise
    if noise.flip_rate is not None:
        yield Line(
            f"noise: two trials of the same case disagree in {numbers.percent(noise.flip_rate)} "
            f"{numbers.ci(noise.ci, share=True)} of pairs ({numbers.count(noise.cases, 'group')})"
        )
    elif report.run.counts["passed"] + report.run.counts["failed"]:
        yield Line("noise: unknown with one trial for each group; --trials 5 measures it")


def _judge(judge: Mapping[str, Any]) -> str:
    who = judge["provider"] + (f" {judge['model']}" if judge["model"] else "")
    note = " (simulated, nobody was asked)" if judge["simulated"] else ""
    text = f"judge: {who}{note} decided {numbers.count(judge['statements'], 'statement')}"
    same = judge["agreement"]
    if same["rate"] is None:
        return text + "; --skilleval-judge-repeats 3 would show how well it agrees with itself"
    return f"{text}; two answers agree in {numbers.percent(same['rate'])} {numbers.ci(same['ci'], share=True)} of pairs"


def _rates(routing: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, word in (("recall", "recall"), ("false_trigger_rate", "false triggers"), ("precision", "precision")):
        value = routing[key]
        if isinstance(value, dict):
            yield word, value


def _lifts(lifts: Iterable[Lift]) -> Iterator[Line]:
    for lift in lifts:
        if lift.of != "pass_rate" or lift.metric in ("regression_rate", "unlock_rate"):
            continue
        what = f"{lift.lane}: {lift_word(lift.metric)}"
        if lift.value is None:
            yield Line(f"{what}: {lift.note or 'not estimable'}")
            continue
        number = f"{numbers.points(lift.value)} {numbers.ci(lift.ci, signed=True)}".rstrip()
        yield Line(f"{what}: {number} ({numbers.count(lift.cases, 'case')})")


def _troubles(report: Report) -> Iterator[Line]:
    run, reasons = report.run, report.gate.reasons
    if run.status != "finished":
        yield Line(f"run {run.status}: {'; '.join(run.reasons[:3])}", "red")
    elif run.reasons:
        yield Line("; ".join(run.reasons[:3]), "yellow")
    for note in run.notes:
        yield Line(f"note: {note}", "yellow")
    for reason in reasons[:SHOWN]:
        yield Line(f"gate: {reason}", "red")
    if len(reasons) > SHOWN:
        yield Line(f"gate: and {len(reasons) - SHOWN} more", "red")


def _tokens(report: Report, *, quiet: bool) -> Iterator[Line]:
    warnings = token_warnings(report)
    yield from (Line(f"tokens: {text}", "yellow") for text in warnings[:SHOWN])
    if len(warnings) > SHOWN:
        yield Line(f"tokens: and {len(warnings) - SHOWN} more", "yellow")
    if not quiet:
        yield from (Line(f"tokens: {text}") for text in token_notes(report))


def _next(report: Report, paths: Mapping[str, str]) -> Iterator[Line]:
    """Yield the next command to type."""
    run, comparison = report.run, report.comparison
    if run.status == "interrupted":
        yield Line(f"next: {resume_command(run)}  (runs only what is missing)")
    elif run.status == "invalid":
        yield Line(f"next: see the errors, then {resume_command(run)}  (errors run again)")
    elif comparison is not None:
        verdict = comparison.get("overall", {}).get("verdict")
        if verdict == "improved":
            yield Line(f"next: skilleval bless {run.id} main  (then --compare-baseline main)")
        elif verdict == "inconclusive":
            yield Line(f"next: skilleval plan {run.id} --detect 0.05  (what would see a change that small)")
        elif verdict == "regressed" and "html" in paths:
            yield Line(f"next: open {paths['html']}  (each trial stands beside its baseline's)")
    elif run.trials > 1:
        yield Line(f"next: change the skill, then pytest --trials {run.trials} --compare-baseline {run.id}")
    else:
        yield Line("next: pytest --trials 5  (one trial for each case says little: two identical runs disagree)")


def resume_command(run: RunInfo) -> str:
    """Return the command that resumes a run, with its options, but for a budget that may be spent."""
    # The first word of a run that a command has made is `skilleval`: it has no options of pytest.
    words = [] if run.argv[:1] == ("skilleval",) else list(_lasting(run.argv))
    return plain_line(shlex.join(["pytest", *words, f"--skilleval-resume={run.id}"]))


def _lasting(argv: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that hold for a resumed session too."""
    passing = ("--skilleval-resume", "--skilleval-budget")
    for before, word in zip(("", *argv), argv, strict=False):
        value = before in passing and not word.startswith("-")
        if not value and word.partition("=")[0] not in passing:
            yield word
