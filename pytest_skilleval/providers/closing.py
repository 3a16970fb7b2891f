"""The end of a recorded stream: what its terminal event, the process and the case's budget say together."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.frozen import Frozen
from pytest_skilleval.records import TrialError

from .base import Answer, Ask, ProcessOutput
from .draft import Draft
from .ending import ended_badly, over_budget, tail
from .faults import class_of, looks_like_limit, retry_after_in
from .stream import Stream

__all__ = ["Found", "close", "spoken_error"]

_BAD_FLAG = re.compile(
    r"unexpected argument|unknown (?:option|argument|field|variant)|invalid (?:value|option|choice)|missing field"
    r"|config\.toml|toml parse error|cannot be used with root|unrecognized|usage:",
    re.IGNORECASE,
)
_UNTOLD = (ErrorClass.SERVER_ERROR, ErrorClass.NO_RESULT)


class Found(Frozen):
    """What a stream said about how it ended."""

    good: bool = False
    """Whether the terminal event is there and good."""
    error: TrialError | None = None
    """What the terminal event says went wrong."""
    waiting: TrialError | None = None
    """What the agent was still retrying when the stream ended."""


def close(
    ask: Ask,
    output: ProcessOutput,
    stream: Stream,
    draft: Draft,
    found: Found,
    *,
    exit_codes: Mapping[int, ErrorClass] | None = None,
) -> Answer:
    """Return the answer: the terminal event decides, never the exit status alone.

    Args:
        ask: What was asked.
        output: What the command left.
        stream: Its events, read to the end.
        draft: What they told.
        found: How they ended.
        exit_codes: What the agent's exit statuses mean, where it has such a table and its words do not tell.
    """
    error = _error(ask, output, stream, draft, found)
    known = (exit_codes or {}).get(output.exit_status or 0)
    if error is not None and known is not None and error.error_class in _UNTOLD and output.reason == "exited":
        error = error.model_copy(update={"error_class": known})
    if error is not None:
        draft.final_text = ""  # an error's text is no answer
    transcript = draft.transcript(finished=error is None, unparsed=stream.unparsed)
    return Answer(transcript, error or over_budget(transcript, ask.budget))


def _error(ask: Ask, output: ProcessOutput, stream: Stream, draft: Draft, found: Found) -> TrialError | None:
    stopped = ended_badly(output, ask.budget.timeout)
    if stopped is not None and stopped.error_class is ErrorClass.DISK:
        return stopped
    if found.good:
        if looks_like_limit(draft.final_text):
            return spoken_error(draft.final_text)
        return draft.ran_away()
    if stopped is not None and stopped.error_class is ErrorClass.TIMEOUT and found.waiting is not None:
        # It was not the agent that used the time up: it waited for a provider that refused.
        return found.waiting
    # An agent that is stopped says so in its terminal event: why it was stopped is the better answer.
    if stopped is not None and (found.error is None or found.error.error_class is ErrorClass.NO_RESULT):
        return stopped
    return found.error or _silent(output, stream, found)


def _silent(output: ProcessOutput, stream: Stream, found: Found) -> TrialError:
    """Return what an end without a terminal event means."""
    said = tail(output.stderr)
    if stream.events == 0 and output.exit_status in (1, 2) and _BAD_FLAG.search(said):
        return TrialError(error_class=ErrorClass.BAD_REQUEST, message=said[-500:])
    if found.waiting is not None:
        return found.waiting
    status = "a signal" if output.exit_status is None else f"exit status {output.exit_status}"
    because = f": {said[-500:]}" if said else ""
    return TrialError(
        error_class=ErrorClass.NO_RESULT,
        message=f"ended with {status} after {stream.events} events, none of them final{because}",
    )


def spoken_error(text: str, status: int | None = None, default: ErrorClass = ErrorClass.SERVER_ERROR) -> TrialError:
    """Return an error from its own words.

    Args:
        text: What it says.
        status: Its HTTP status, where the stream has it.
        default: Its class when neither tells.
    """
    return TrialError(
        error_class=class_of(text, status) or default,
        message=" ".join(text.split())[:500] or f"HTTP status {status}",
        retry_after=retry_after_in(text),
    )
