"""A trial's record as pytest sees it: what its test raises, and what its report says and shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_skilleval.options import SETTINGS
from pytest_skilleval.records import Outcome, TrialRecord
from pytest_skilleval.trial import TrialErrored, TrialFailed

if TYPE_CHECKING:
    from pytest_skilleval.options import Settings
    from pytest_skilleval.trial import Trial

__all__ = ["RECORD", "Idle", "attach", "settle", "spare"]

RECORD: pytest.StashKey[TrialRecord] = pytest.StashKey()
REPORT_KEY = "skilleval"


class Idle(pytest.Item):
    """What a worker waits on between two trials (see scheduler); it never runs."""

    def runtest(self) -> None:
        """Do nothing."""


def spare(item: pytest.Item, trial: Trial) -> None:
    """Leave a trial out that is not to start, with the reason in its record.

    Raises:
        pytest.skip.Exception: It is left out.
    """
    reason = trial.bench.halts.reason(trial.id, trial.bench.journal)
    if reason is not None:
        item.stash[RECORD] = trial.leave_out(*reason)
        pytest.skip(reason[1])


def settle(item: pytest.Item, trial: Trial, error: BaseException | None) -> None:
    """Write the trial's record, then raise what its outcome means.

    Raises:
        TrialFailed: A data case's agent did badly.
        TrialErrored: The trial could not be measured.
        BaseException: What a Python case raised.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit) or type(error).__name__ == "Exit":
        assert error is not None  # noqa: S101 - for the type checker
        raise error  # an interrupted trial has no outcome: it is missing, and runs again on resume
    record = item.stash[RECORD] = trial.settle(error)
    item.config.hook.pytest_skilleval_trial_finished(config=item.config, record=record)
    if error is not None and not trial.case.python:
        raise TrialErrored(f"{record.id.key}: {record.reason}") from error
    if error is not None:
        raise error
    if record.outcome is Outcome.FAILED:
        raise TrialFailed(_failure_text(record))
    if record.outcome is Outcome.ERROR:
        kind = record.error.error_class.value if record.error else "internal"
        raise TrialErrored(f"{record.id.key}: error: {kind}: {record.reason}")


def _failure_text(record: TrialRecord) -> str:
    lines = [f"{record.id.key}: {record.reason}"]
    lines += [f"  {check.id} ({check.kind}): {check.reason}" for check in record.checks if check.passed is False]
    if record.score is not None:
        parts = (f"{part.id} {part.value:.2f}" for part in record.score.components if part.value is not None)
        lines.append(f"  score {record.score.total:.3f}: {', '.join(parts)}")
    return "\n".join(lines)


def attach(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put a short copy of the record on the report of the call phase."""
    record = item.stash.get(RECORD, None)
    if record is None or call.when != "call":
        return
    short = {
        "key": record.id.key,
        "outcome": record.outcome.value,
        "control": record.control,
        "seconds": round(record.timing.duration_s, 3),
        "tokens": _total(record),
        "cost_usd": record.cost_usd,
        "error": record.error.error_class.value if record.error else None,
        "missed": is_missed(record, item.config.stash[SETTINGS]),
    }
    text = json.dumps(short, ensure_ascii=True)
    setattr(report, REPORT_KEY, text)
    report.user_properties.append((REPORT_KEY, text))


def is_missed(record: TrialRecord, settings: Settings) -> bool:
    """Tell whether a failed trial is shown as missed: in a control, and where many trials are a measurement."""
    if record.outcome is not Outcome.FAILED:
        return False
    if record.control:
        return True
    return not (settings.gate == "trials" or (settings.gate == "auto" and settings.trials == 1))


def _total(record: TrialRecord) -> int | None:
    tokens = record.tokens
    if tokens is None or (tokens.input is None and tokens.output is None):
        return None
    return (tokens.input or 0) + (tokens.output or 0)
