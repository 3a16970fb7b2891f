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

# What agents answer, as text, when a plan's limit is spent: the whole answer is one such sentence, with at most known
# words behind it. A sentence that only begins like one, or mentions limits, is an answer.
_API_ERROR = (
    r"request rejected \([45]\d\d\)|(?:[45]\d\d )?(?:overloaded|internal server error|service unavailable|bad gateway"
    r"|too many requests|forbidden|unauthorized|terminated|connection error|connection dropped \(\w+\)"
    r"|request timed out)|[\w .-]{1,40}['\u2019]s safeguards flagged this message.*|[45]\d\d \{.*\}"
    r"|quota exceeded|rate limit reached"
)
_SAID = (
    r"(?:claude (?:ai )?)?usage limit reached",
    r"you['\u2019]ve (?:hit|reached) your (?:[\w'\u2019-]+ ){0,3}limit(?: for [\w. -]{1,20})?",
    r"(?:5-hour|session|weekly|monthly|opus|sonnet)[\w ]{0,20} limit reached|5-hour limit reached",
    r"you['\u2019]re out of (?:extra )?usage(?: credits)?",
    r"(?:your )?credit balance is too low(?: to access the anthropic api)?",
    r"quota exceeded(?: for [\w'\u2019 -]{0,20}metric.{1,200})?",
    r"rate limit reached(?: for [\w.-]{1,40} (?:in organization|\(for limit).{1,250})?",
    rf"api error: (?:{_API_ERROR})",
)
_TIME = r"(?:[\w:,+/ ]|\.(?=\d)|\([\w/+ -]{1,30}\)){1,40}"
_BEHIND = (
    r"\d{9,13}",  # when it is over, in seconds since the epoch
    rf"(?:your limit (?:will )?)?resets? {_TIME}",
    rf"(?:please )?(?:wait and )?(?:try again|retry)(?: later| (?:in|at|after|on) {_TIME})?",
    r"(?:please )?check your plan and billing details",
    r"(?:run )?/[a-z-]{3,20} to [\w ]{1,60}",
    r"this request would exceed your [\w'\u2019]{1,20} rate limit",
    r"this is a server-side issue, usually temporary",
    r"(?:if it persists, )?check (?:the|your) [\w-]*\b ?gateway[^.]{0,60}(?:\.\d[^.]{0,30}){0,5}",
    r"(?:upgrade to |to get more access now|visit https?://|please go to plans & billing).{1,250}",
)
_BETWEEN = r"[ .!,;|\u00b7\u2022\u2219\u2013\u2014-]{1,4}"
_LIMIT = re.compile(rf"(?:{'|'.join(_SAID)})(?:{_BETWEEN}(?:{'|'.join(_BEHIND)})){{0,4}}[ .!]{{0,2}}", re.IGNORECASE)
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
    return len(answer) <= _LIMIT_LENGTH and _LIMIT.fullmatch(" ".join(answer.split())) is not None
