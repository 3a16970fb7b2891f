"""What a provider's status codes and error sentences mean: one class for each."""

from __future__ import annotations

import re

from pytest_skilleval.errors import ErrorClass

__all__ = ["class_of", "looks_like_limit", "retry_after_in", "status_in"]

_STATUS: dict[int, ErrorClass] = {
    400: ErrorClass.BAD_REQUEST,
    401: ErrorClass.AUTH,
    402: ErrorClass.QUOTA,
    403: ErrorClass.AUTH,
    404: ErrorClass.MODEL_NOT_FOUND,
    408: ErrorClass.NETWORK,
    413: ErrorClass.CONTEXT_TOO_LONG,
    422: ErrorClass.BAD_REQUEST,
    429: ErrorClass.RATE_LIMIT,
    503: ErrorClass.OVERLOADED,
    529: ErrorClass.OVERLOADED,
}

# The first that is found decides, so the order matters: "rate limit ... (not your usage limit)" is no spent quota,
# and "stream disconnected before completion: Overloaded" is no broken cable.
_SENTENCES: tuple[tuple[ErrorClass, tuple[str, ...]], ...] = (
    (ErrorClass.OVERLOADED, ("temporarily limiting requests", "not your usage limit")),
    (
        ErrorClass.QUOTA,
        (
            "credit balance",
            "insufficient[_ ]quota",
            "quota exceeded",
            "exceeded your (?:current |monthly )?quota",
            "(?:session|weekly|monthly|hour|spend|usage|opus|sonnet) limit",
            "hit your limit",
            "limit reached.{0,30}resets",
            "out of (?:extra )?usage",
            "usage credits",
            "billing[_ ](?:error|hard)",
            "payment required",
        ),
    ),
    (
        ErrorClass.CONTEXT_TOO_LONG,
        (
            "(?:prompt|input|conversation) (?:is )?too long",
            "prompt_too_long",
            "max_output_tokens",
            "context[_ ](?:length|window)",
            "maximum context",
        ),
    ),
    (ErrorClass.RATE_LIMIT, ("rate[ _-]?limit", "too many requests", "resource[_ ]exhausted")),
    (ErrorClass.OVERLOADED, ("overloaded", "at capacity", "high demand", "service unavailable")),
    (
        ErrorClass.AUTH,
        (
            "invalid (?:x-)?api[- _]key",
            "authentication",
            "unauthenticated",
            "unauthori[sz]ed",
            "not logged in",
            "run /login",
            "forbidden",
            "missing environment variable",
            "permission denied",
            "account[_ ]on[_ ]hold",
            "disabled .{0,40}access",
        ),
    ),
    (ErrorClass.MODEL_NOT_FOUND, ("model[_ ]not[_ ]found", r"model\b.{0,80}not (?:found|exist|supported)")),
    (ErrorClass.REFUSAL, ("safeguards flagged", "content[_ ]filter", "usage policy", "refusal", "refused to answer")),
    (
        ErrorClass.NETWORK,
        (
            "stream disconnected",
            "connection",
            "connect to",
            "network",
            "socket",
            "econn",
            "etimedout",
            "timed out",
            "lookup address",
            "terminated",
            "fetch failed",
        ),
    ),
    (ErrorClass.SERVER_ERROR, ("internal server error", "server[ _]error")),
)
_COMPILED = tuple((found, re.compile("|".join(patterns), re.IGNORECASE)) for found, patterns in _SENTENCES)

# What agents answer, as text, when a plan's limit is spent: the whole answer is such a sentence. A sentence that only
# mentions limits is an answer.
_LIMIT = re.compile(
    r"(?:claude (?:ai )?)?usage limit reached\b|you['\u2019]ve (?:hit|reached) your\b.{0,40}\blimit\b"
    r"|(?:5-hour|session|weekly|monthly|opus|sonnet)[\w ]* limit reached\b|you['\u2019]re out of (?:extra )?usage\b"
    r"|credit balance is too low|api error: |quota exceeded\b|rate limit reached\b",
    re.IGNORECASE,
)
_LIMIT_LENGTH = 400

_STATUS_IN_TEXT = re.compile(r"\b(?:status(?:code)?|error|code)\"?:? *\(?([45]\d\d)\b", re.IGNORECASE)
_AFTER = re.compile(
    r"(?:retry|try again)[ -](?:after|in):? *(\d{1,6}(?:\.\d+)?) *(ms|s|sec|seconds?|m|min|minutes?)?\b", re.IGNORECASE
)
_UNITS = {"ms": 0.001, "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0}


def status_in(text: str) -> int | None:
    """Return the HTTP status that an error sentence names, or None."""
    found = _STATUS_IN_TEXT.search(text)
    return int(found[1]) if found else None


def retry_after_in(text: str) -> float | None:
    """Return the seconds that an error sentence asks to wait, or None."""
    found = _AFTER.search(text)
    return float(found[1]) * _UNITS.get((found[2] or "s").lower(), 1.0) if found else None


def class_of(text: str, status: int | None = None) -> ErrorClass | None:
    """Return what an error is, by its words first and its status second; None when neither says.

    Words come first because one status has several meanings: a 429 may be a spent plan, a 400 a prompt that is too
    long.

    Args:
        text: The error's message.
        status: Its HTTP status, where the stream has it; else one named in the text is used.
    """
    status = status_in(text) if status is None else status
    said = next((found for found, pattern in _COMPILED if pattern.search(text)), None)
    if said in (ErrorClass.QUOTA, ErrorClass.CONTEXT_TOO_LONG, ErrorClass.REFUSAL):
        return said
    if status is None:
        return said
    if status in _STATUS:
        return _STATUS[status]
    return ErrorClass.SERVER_ERROR if status >= 500 else said


def looks_like_limit(answer: str) -> bool:
    """Return whether an answer is nothing but an agent's own sentence that a limit is spent."""
    return len(answer) <= _LIMIT_LENGTH and _LIMIT.match(answer.strip()) is not None
