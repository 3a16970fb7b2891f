"""The error table: what each class of error does to its trial and to its provider, and how long to wait before a retry.

This table is the one that the docs print. A row is changed by `[tool.skilleval.errors.CLASS]`, one key at a time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from pytest_skilleval.errors import ErrorClass, OptionMistake
from pytest_skilleval.frozen import Frozen
from pytest_skilleval.records import TrialError

__all__ = ["TABLE", "ErrorOutcome", "Policy", "Retry", "error_table", "policy", "read_retry"]

ErrorOutcome = Literal["error", "failed", "grade"]


class Policy(Frozen):
    """What one class of error does."""

    retry: bool = False
    """Whether the trial is asked again, in a fresh place."""
    outcome: ErrorOutcome = "error"
    """`error`: could not be measured, outside every rate; `failed`: the agent did badly; `grade`: its checks decide."""
    stops_provider: bool = False
    """Whether the provider's remaining trials are not run: they would only burn money or hours."""


_AGAIN = Policy(retry=True)
_STOP = Policy(stops_provider=True)
_FAILED = Policy(outcome="failed")
_ERROR = Policy()

TABLE: dict[ErrorClass, Policy] = {
    ErrorClass.RATE_LIMIT: _AGAIN,
    ErrorClass.OVERLOADED: _AGAIN,
    ErrorClass.SERVER_ERROR: _AGAIN,
    ErrorClass.NETWORK: _AGAIN,
    ErrorClass.AUTH: _STOP,
    ErrorClass.QUOTA: _STOP,
    ErrorClass.MODEL_NOT_FOUND: _STOP,
    ErrorClass.BAD_REQUEST: _STOP,
    ErrorClass.SPAWN: _STOP,
    ErrorClass.CONTEXT_TOO_LONG: _FAILED,
    ErrorClass.REFUSAL: _FAILED,
    ErrorClass.MAX_TURNS: _FAILED,
    ErrorClass.TIMEOUT: _FAILED,
    ErrorClass.NO_RESULT: _ERROR,
    ErrorClass.SETUP: _ERROR,
    ErrorClass.CHECK: _ERROR,
    ErrorClass.TAMPERED: _ERROR,
    ErrorClass.CONTAMINATED: _ERROR,
    ErrorClass.DISK: _ERROR,
    ErrorClass.RECORD: _ERROR,
    ErrorClass.WORKER_DIED: _ERROR,
    ErrorClass.REPLAY: _ERROR,
    ErrorClass.INTERNAL: _ERROR,
}
"""Every class. A case's `on_timeout` goes before the row of `timeout`."""


class Retry(Frozen):
    """How long and how often a retryable error is waited out.

    The agents retry by themselves and are told to do so little: this is the one long retry, never stacked on another.
    """

    limit: Annotated[int, Field(ge=0, le=20)] = 3
    """Retries after the first try."""
    first: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """Seconds before the first retry; doubled for each further one."""
    longest: Annotated[float, Field(ge=0, le=86400)] = 120.0
    """Seconds that one wait may take; a provider that asks for more is not waited for."""

    def wait(self, retries: int, error: TrialError, draw: random.Random) -> float | None:
        """Return the seconds to wait before the next try, or None when there is none.

        A wait is drawn from the upper half of its exponential step, so that trials that were refused together do not
        come back together; it is never shorter than the provider asked for.

        Args:
            retries: Retries that this trial has had.
            error: What went wrong.
            draw: Where the jitter comes from.
        """
        if retries >= self.limit or (error.retry_after or 0.0) > self.longest:
            return None
        step = min(self.longest, self.first * 2.0**retries)
        return max(error.retry_after or 0.0, step * draw.uniform(0.5, 1.0))


def read_retry(table: Mapping[str, object]) -> Retry:
    """Return the waits with the user's changes.

    Args:
        table: `[tool.skilleval.retry]`: `limit`, `first`, `longest`.

    Raises:
        OptionMistake: A key or value that is not allowed.
    """
    try:
        return Retry.model_validate(dict(table))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        allowed = ", ".join(Retry.model_fields)
        raise OptionMistake(f"tool.skilleval.retry.{key}: {first['msg']}; allowed keys: {allowed}") from None


def policy(error_class: ErrorClass, table: Mapping[ErrorClass, Policy] = TABLE) -> Policy:
    """Return what an error of that class does.

    Args:
        error_class: The class.
        table: The rows, with the user's changes.
    """
    return table[error_class]


def error_table(overrides: Mapping[str, object]) -> dict[ErrorClass, Policy]:
    """Return the table with the user's changes.

    Args:
        overrides: `[tool.skilleval.errors]`: class to the keys that change, as in `refusal = {outcome = "error"}`.

    Raises:
        OptionMistake: A class, key or value that does not exist.
    """
    table = dict(TABLE)
    for name, change in overrides.items():
        where = f"tool.skilleval.errors.{name}"
        if name not in {found.value for found in ErrorClass}:
            raise OptionMistake(f"{where}: no such class; allowed: {', '.join(found.value for found in TABLE)}")
        if not isinstance(change, Mapping):
            raise OptionMistake(f"{where}: {change!r} is no table; write {{retry = true}}")
        found = ErrorClass(name)
        try:
            table[found] = Policy.model_validate({**table[found].model_dump(), **change}, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise OptionMistake(
                f"{where}.{key}: {first['msg']}; allowed: retry = true|false, outcome = error|failed|grade, "
                "stops_provider = true|false"
            ) from None
    return table
