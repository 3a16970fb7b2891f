"""How a command ended, where its stream says nothing: killed, timed out, never started, over its budget."""

from __future__ import annotations

from pathlib import Path

from pytest_skilleval.casespec import Budget
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.records import Transcript, TrialError

from .base import ProcessOutput

__all__ = ["ended_badly", "over_budget", "tail"]

TAIL_BYTES = 2000


def tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """Return the end of a text file in one line, "" when it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            data = file.read(limit)
    except OSError:
        return ""
    return " ".join(data.decode("utf-8", "replace").split())


def ended_badly(output: ProcessOutput, timeout: float) -> TrialError | None:
    """Return why a command cannot have done its work, or None when it ended by itself.

    A status other than 0 is no fault here: what it means depends on who was asked.

    Args:
        output: What the command left.
        timeout: The case's wall-clock budget, seconds.
    """
    said = output.message or tail(output.stderr)
    because = f": {said}" if said else ""
    match output.reason:
        case "timeout":
            return TrialError(error_class=ErrorClass.TIMEOUT, message=f"still working after {timeout:g} s{because}")
        case "quota":
            return TrialError(error_class=ErrorClass.DISK, message=f"stopped at a file or disk limit{because}")
        case "spawn_failed":
            return TrialError(error_class=ErrorClass.SPAWN, message=f"could not be started{because}")
        case "cancelled":
            return TrialError(error_class=ErrorClass.NO_RESULT, message=f"stopped because the run was stopped{because}")
    if output.exit_status is None and output.reason != "lingered":
        what = "ended by a signal" if output.signal is None else f"killed by signal {output.signal}"
        return TrialError(error_class=ErrorClass.NO_RESULT, message=f"{what}{because}")
    return None


def over_budget(transcript: Transcript, budget: Budget) -> TrialError | None:
    """Return which limit of the case was passed, or None; a number that the agent does not tell passes none.

    Tokens are those that are paid in full: input that came from no cache, and output.
    """
    tokens = transcript.tokens
    new = None
    if tokens is not None and tokens.input is not None and tokens.output is not None:
        new = tokens.input - (tokens.cached or 0) + tokens.output
    for name, spent, limit in (
        ("steps", transcript.turns, budget.steps),
        ("tokens", new, budget.tokens),
        ("cost_usd", transcript.cost_usd, budget.cost_usd),
    ):
        if spent is not None and limit is not None and spent > limit:
            return TrialError(
                error_class=ErrorClass.MAX_TURNS, message=f"budget.{name} is {limit:g}, spent were {spent:g}"
            )
    return None
