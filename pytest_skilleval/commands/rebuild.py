"""`skilleval rebuild`: a run judged anew from its journal alone; a finished run gets the bytes it had."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pytest_skilleval import comparison, store, verdicts
from pytest_skilleval.errors import BaselineMistake
from pytest_skilleval.journal import is_held
from pytest_skilleval.records import Outcome
from pytest_skilleval.reports.terminal import resume_command
from pytest_skilleval.reports.writing import beside, write_reports
from pytest_skilleval.results import Report, RunInfo
from pytest_skilleval.store import Gathered

from .answer import FINE, INCOMPLETE, NOT_GOOD, Answer
from .counterpart import counterpart, digest_of, named_in
from .place import Place, add_output, place_of
from .reference import Opened, open_run, run_folder, settings_of

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval rebuild latest     after a crash: report.json, report.md and report.html of what there is

exit status: 0 complete, 1 a report could not be written, 2 planned trials are missing
"""
FORMATS = ("json", "md", "html")
_NAMED = 10
"""Missing trials that are named to people."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run id, a run folder or `latest`")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--baseline", metavar="REF", help="compare with this run (default: its own baseline)")
    other.add_argument("--no-baseline", action="store_true", help="compare with nothing")
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Judge a run anew."""
    place = place_of(arguments)
    # The link `latest` is made with a report, so that after a crash it still points at an older run.
    runs = store.run_ids(place.output) if arguments.run == "latest" else []
    folder = run_folder(place, runs[0] if runs else arguments.run)
    gathered = store.gather(folder)
    before = _report_before(folder)
    baseline = _baseline(place, arguments, gathered, before)
    report = _judge(place, gathered, before, baseline)
    other = None if baseline is None else beside(baseline.report, place.output)
    written = write_reports(FORMATS, report, folder, other)
    missing = [line.key for line in report.trials if line.outcome is Outcome.MISSING]
    value = {
        "run": report.run.id,
        "status": report.run.status,
        "reasons": list(report.run.reasons),
        "counts": report.run.counts,
        "missing": missing,
        "reports": {name: str(path) for name, path in written.paths.items()},
        "problems": written.problems,
    }
    lines = [
        f"{report.run.id}: {report.run.status}, " + ", ".join(f"{n} {word}" for word, n in report.run.counts.items())
    ]
    lines += [f"report: {path}" for path in written.paths.values()]
    notes = [f"{report.run.id} is still running: what comes later is not in its reports"] if is_held(folder) else []
    notes += [*report.run.reasons, *_missing_lines(report.run, missing), *written.problems]
    return Answer(value, lines, INCOMPLETE if missing else NOT_GOOD if written.problems else FINE, notes)


def _missing_lines(run: RunInfo, missing: Sequence[str]) -> Iterator[str]:
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        yield f"missing: {', '.join(missing[:_NAMED])}{more}"
        yield f"next: {resume_command(run)}  (runs only what is missing)"


def _judge(place: Place, gathered: Gathered, before: Report | None, baseline: Opened | None) -> Report:
    plan = gathered.plan
    settings = settings_of(plan, place)
    compare = None
    if baseline is not None:
        reasons = comparison.hindrances(baseline.report, plan.provider, plan.method, plan.judging.judge)
        digest = digest_of(baseline.path)
        compare = comparison.comparer(comparison.Baseline(baseline.report, digest, tuple(reasons)), settings)
    report = verdicts.judge(
        plan,
        gathered.entries,
        settings,
        finished=_finished(gathered, before),
        strangers=gathered.strangers,
        caps=gathered.caps,
        compare=compare,
    )
    # What tokens were held against is no part of the journal: the file may have been updated since.
    return report if before is None else report.model_copy(update={"tokens": before.tokens})


def _report_before(folder: Path) -> Report | None:
    try:
        return store.read_report(folder / "report.json")
    except BaselineMistake:
        return None


def _finished(gathered: Gathered, before: Report | None) -> str:
    """Return when the run ended: as it said itself, else when its newest record was made."""
    if before is not None:
        return before.run.finished
    timings = [entry.record.timing for entry in gathered.entries.values() if entry.record is not None]
    if not timings:
        return gathered.plan.started
    newest = max(timing.started + timing.duration_s for timing in timings)
    return f"{datetime.fromtimestamp(newest, UTC):%Y-%m-%dT%H:%M:%SZ}"


# --------------------------------------------------------------------------------------------------- the baseline


def _baseline(place: Place, arguments: Namespace, gathered: Gathered, before: Report | None) -> Opened | None:
    """Return what the run is compared with: what is asked for, else the very report that it was run with.

    Raises:
        BaselineMistake: That report is gone or has changed.
    """
    if arguments.no_baseline:
        return None
    if arguments.baseline is not None:
        return open_run(place, arguments.baseline)
    wanted = named_in(before) or gathered.plan.judging.baseline
    if wanted is None:
        return None
    if (found := counterpart(place, wanted)) is not None:
        return found
    raise BaselineMistake(
        f"the baseline {wanted.path} is gone or has changed since; give it with --baseline REF, "
        "or leave the comparison out with --no-baseline"
    )
