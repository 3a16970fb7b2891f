"""`skilleval compare`: two finished runs, and whether the second is better."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from pytest_skilleval import comparison
from pytest_skilleval.errors import BaselineMistake
from pytest_skilleval.records import Outcome, TrialRecord
from pytest_skilleval.reports.against import comparison_lines
from pytest_skilleval.results import Report, TrialLine
from pytest_skilleval.summaries import Group, Trials

from .answer import FINE, NOT_GOOD, Answer
from .counterpart import digest_of
from .place import add_output, place_of
from .reference import MEANING, open_run

__all__ = ["add_arguments", "run", "trials_of"]

EXAMPLES = """\
examples:
  skilleval compare main latest
  skilleval compare 20261130T004211Z-3f9c latest --json | jq -r .overall.verdict

exit status: 0 improved or inconclusive, 1 something regressed, 4 not comparable
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("base", metavar="BASE", help=f"the baseline: {MEANING}")
    parser.add_argument("cand", metavar="CAND", help="the run to judge, named the same way")
    parser.add_argument(
        "--method",
        choices=("exact", "paired-bootstrap"),
        help="rule of the verdict (default: that of CAND)",
    )
    parser.add_argument(
        "--allow-incomparable",
        action="store_true",
        help="compare although provider, model, effort or method differ, or a run is incomplete; the verdict says so",
    )
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Compare two runs."""
    place = place_of(arguments)
    base, cand = open_run(place, arguments.base), open_run(place, arguments.cand)
    method = arguments.method or cand.report.run.method
    reasons = _hindrances(base.report, cand.report, arguments.method)
    if reasons and not arguments.allow_incomparable:
        raise BaselineMistake(
            f"not comparable: {'; '.join(reasons)}; choose another baseline, or add --allow-incomparable"
        )
    found = comparison.compare(
        comparison.Baseline(base.report, digest_of(base.path), tuple(reasons)),
        trials_of(cand.report),
        cand.report.groups,
        status=cand.report.run.status,
        run=cand.report.run.id,
        method=method,
        seed=cand.report.run.seed,
        thresholds=cand.thresholds,
    )
    if not found["comparable"]:
        raise BaselineMistake(f"not comparable: {'; '.join(found['reasons'])}")
    verdicts = [found["overall"]["verdict"], *(row["verdict"] for row in found["groups"])]
    lines = [line.text for line in comparison_lines(found)]
    return Answer(found, lines, status=NOT_GOOD if "regressed" in verdicts else FINE)


def _hindrances(base: Report, cand: Report, method: str | None) -> list[str]:
    """Return why the two cannot be compared; a method that is asked for is that of both."""
    judge = (cand.judge or {}).get("name")
    method = base.run.method if method else cand.run.method
    reasons = comparison.hindrances(base, cand.run.provider, method, judge)
    if cand.run.status == "interrupted":
        reasons.append(f"the candidate is interrupted: {'; '.join(cand.run.reasons[:2])}")
    return reasons


def trials_of(report: Report) -> Trials:
    """Return what a report holds of each group's trials."""
    groups: Trials = {
        (row.lane, row.case, row.condition): Group((), (), row.errors, row.missing) for row in report.groups
    }
    for line in report.trials:
        key = (line.lane, line.case, line.condition)
        # The older side of a comparison within the run is no group of its own.
        if key in groups and line.outcome in (Outcome.PASSED, Outcome.FAILED):
            groups[key] = groups[key]._replace(measured=(*groups[key].measured, _record(report, line)))
    return groups


def _record(report: Report, line: TrialLine) -> TrialRecord:
    return TrialRecord(
        run=report.run.id,
        lane=line.lane,
        case=line.case,
        condition=line.condition,
        trial=line.trial,
        outcome=line.outcome,
        score=line.score,
        provider=report.run.provider,
    )
