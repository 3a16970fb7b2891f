"""One trial's log under `-v`: whole, when the trial ends, each line led by the work item's key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.plain import plain_line
from pytest_skilleval.reports.trialfiles import read_trial

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_skilleval.records import TrialRecord
    from pytest_skilleval.reports.trialfiles import Step

__all__ = ["log_lines"]

LINES = 400
"""A longer log is cut, and the rest is named."""
_WIDTH = 2000


def log_lines(record: TrialRecord, run_folder: Path) -> list[str]:
    """Return a trial's log.

    Args:
        record: What it came to.
        run_folder: Where its transcript and error stream lie.
    """
    lines = list(_lines(record, run_folder))
    if len(lines) > LINES:
        left = numbers.count(len(lines) - LINES, "more line")
        lines[LINES:] = [f"... {left} in {run_folder / 'trials' / record.id.folder}"]
    return [f"{record.id.key} | {plain_line(line, limit=_WIDTH)}".rstrip() for line in lines]


def _lines(record: TrialRecord, run_folder: Path) -> Iterator[str]:
    files = read_trial(run_folder, record)
    for step in files.steps:
        yield from _step(step)
    yield from (f"stderr: {line}" for line in files.stderr.splitlines())
    yield from (f"earlier {line}" for line in record.attempts)
    for check in record.checks:
        word = {True: "ok", False: "MISSED", None: "undecided"}[check.passed]
        yield f"check {check.id} ({check.kind}): {word}{f': {check.reason}' if check.reason else ''}"
    if record.error is not None:
        yield f"error {record.error.error_class.value}: {record.error.message}"
    facts = [record.outcome.value, numbers.seconds(record.timing.duration_s)]
    if record.score is not None and record.score.total is not None:
        facts.append(f"score {numbers.score(record.score.total)}")
    if record.tokens is not None:
        facts.append(f"{numbers.tokens((record.tokens.input or 0) + (record.tokens.output or 0))} tokens")
    if record.cost_usd is not None:
        facts.append(numbers.money(record.cost_usd))
    yield ", ".join(facts) + (f": {record.reason}" if record.reason else "")


def _step(step: Step) -> Iterator[str]:
    head = f"{step.kind} {step.name}".rstrip()
    if step.kind == "tool":
        yield f"{head} ({step.status}): {step.text}"
        yield from (f"  {line}" for line in step.output.splitlines())
        return
    first, *rest = step.text.splitlines() or [""]
    yield f"{head}: {first}"
    yield from (f"  {line}" for line in rest)
