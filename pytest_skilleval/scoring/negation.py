"""Whether a sentence that names a habit advises against it: "do not sleep", "rather than the best seed".

The rules are few and local, so that a hit can be explained: they look at the match's own sentence, and for an item of a
list at the line that introduces the list. A condition ("if it is not green, rerun it") is no advice against.
"""

from __future__ import annotations

import re

__all__ = ["is_negated"]

REACH_CHARS = 300
"""How far around a match a sentence is looked at."""

_NEGATOR = re.compile(
    r"\b(?:(?:do|does|did|should|must|shall|can|could|would|will|may|need)\s?(?:not|n['\u2019]t)|cannot|ca?n['\u2019]t"
    r"|wo?n['\u2019]t|never|avoid(?:s|ed|ing)?|instead\s+of|rather\s+than|refrain(?:s|ed|ing)?\s+from"
    r"|stop(?:s|ped|ping)?(?=\s+\w+ing\b)|without|not|nor|neither|no\s+need\s+to"
    r"|(?:forbid|prohibit|reject)(?:s|den|ed|ing)?|resist(?:s|ed|ing)?|against|beware\s+of)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|when|whenever|while|as long as|unless|until|because|since)\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"^(?:never|avoid|do\s?n|do not|must|should|refrain|forbid|prohibit|reject|neither|nor)", re.IGNORECASE
)
# "Do not hesitate to rerun" advises to rerun.
_DOUBLE = re.compile(
    r"^\s*(?:to\s+)?(?:hesitate|forget|fail|be afraid|worry|mind|neglect|only|just\s+\w+,)\b", re.IGNORECASE
)
_TURN = re.compile(r"\b(?:but|instead(?!\s+of)|then|so)\b|,\s*(?:just|simply)\b", re.IGNORECASE)
_VERDICT = re.compile(
    r"^[^.!?;\n]{0,60}?\b(?:is|are|was|were|would\s+be|counts?\s+as)\s+(?:\w+\s+){0,2}?"
    r"(?:not|never|no|wrong|bad|mistakes?|an?\s+(?:mistake|anti-?pattern|trap|error)|forbidden|cheating|biased?|misleading"
    r"|invalid|meaningless|worthless|tempting)\b"
    r"|^[^.!?;\n]{0,60}?\b(?:must|should|can|do|does|would)(?:\s?not|n['\u2019]t|\s+never)\b"
    r"|^[^.!?;\n]{0,40}?\b(?:misleads?|bias(?:es)?|cheats?|hides?|inflates?|proves?\s+nothing|says?\s+nothing)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+\u2022]|\d+[.)])\s+")


def is_negated(text: str, start: int, end: int) -> bool:
    """Return whether the text between `start` and `end` stands in a sentence that advises against it."""
    before = text[max(0, start - REACH_CHARS) : start]
    for boundary in reversed(list(_SENTENCE_END.finditer(before))):
        before = before[boundary.end() :]
        break
    after = text[end : end + REACH_CHARS]
    stop = _SENTENCE_END.search(after)
    sentence_rest = after[: stop.start()] if stop else after
    return (
        _negated_before(before, sentence_rest)
        or _VERDICT.match(sentence_rest) is not None
        or _negated_by_introduction(text, start)
    )


def _negated_before(before: str, rest: str) -> bool:
    negators = list(_NEGATOR.finditer(before))
    if not negators:
        return False
    negator = negators[-1]
    between = before[negator.end() :]
    if _DOUBLE.match(between) or _TURN.search(between) or len(between.split()) > 8:
        return False
    advice = _ADVICE.match(negator.group()) is not None
    if not advice and _CONDITION.search(before[: negator.start()].rpartition(",")[2]):
        return False
    if "," in between:
        # A comma ends what is denied, unless it parts the items of one denied list.
        listed = re.search(r"\b(?:or|nor)\b", between + rest, re.IGNORECASE)
        conditional = _CONDITION.search(before[: negator.start()])
        return advice and listed is not None and conditional is None
    return True


def _negated_by_introduction(text: str, start: int) -> bool:
    """Look at the line above a list: "Avoid:", "## What not to do"."""
    lines = text[max(0, start - 10 * REACH_CHARS) : start].split("\n")
    if not _LIST_ITEM.match(lines[-1]):
        return False
    for line in reversed(lines[:-1]):
        if not line.strip() or _LIST_ITEM.match(line) or line.startswith((" ", "\t")):
            continue
        heading = line.lstrip().startswith("#") or line.strip().startswith("**") or line.rstrip().endswith(":")
        return heading and (
            _NEGATOR.search(line) is not None or re.search(r"(?i)\bdon['\u2019]?ts?\b", line) is not None
        )
    return False
