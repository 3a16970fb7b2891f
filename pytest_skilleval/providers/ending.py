"""How a command ended, where its stream says nothing: killed, timed out, never started."""

from __future__ import annotations

from pathlib import Path

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.records import TrialError

from .base import ProcessOutput

__all__ = ["ended_badly", "tail"]

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
        return TrialError(error_class=ErrorClass.NO_RESULT, message=f"ended by a signal{because}")
    return None
