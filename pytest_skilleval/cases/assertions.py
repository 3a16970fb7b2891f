"""One assertion of an evals.json to a check: run where it is deterministic, left to a judge where it is prose."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from pytest_skilleval.frozen import canonical_json

from .rules import path_problem, regex_problem

__all__ = ["Asserted", "check_of", "prose"]

_PROSE = ("text", "statement", "assertion", "expectation", "criterion", "description")
"""Keys that hold an assertion in prose, the most telling first."""
_BARE = ("check", "value", "expected", "name")
"""Keys that hold one where nothing else says what is to be thought of them."""
_VALUE = ("value", "check", "pattern", "text", "expected")
_JUDGES = frozenset({"llm", "judge", "rubric", "manual", "model", "graded", "grader", "review"})
"""Words of types that say who decides, and nothing of how: their value is prose."""
_TARGET = ("target", "path", "file", "filename")
_ANSWERS = frozenset({"output", "response", "answer", "final_answer", "message", "chat", "chat_output", "reply"})
_FILE_NAME = re.compile(r"[^\s]*[/*][^\s]*|[^\s/*]+\.[A-Za-z0-9]{1,8}")


class Asserted(NamedTuple):
    """What an assertion became."""

    check: dict[str, Any]
    """The data of a check, without its id."""
    used: frozenset[str]
    """Keys of the assertion that are in it."""
    note: str = ""
    """Why a typed assertion is left to a judge; "" for all others."""


def prose(statement: str) -> Asserted:
    """Return the check of a statement that only a judge can decide."""
    return Asserted({"kind": "rubric", "statement": statement}, frozenset())


def check_of(item: dict[str, Any]) -> Asserted:
    """Return the check that an assertion object stands for.

    Nothing is guessed from prose: an object is run only when its `type` says how, and has what that type needs.
    """
    kind = item.get("type")
    if not isinstance(kind, str):
        return _judged(item)
    made = _typed(re.sub(r"[\s-]+", "_", kind.strip().lower()), item)
    if made is None:
        return _judged(item, note=f"assertions of type {kind[:40]!r} are left to a judge")
    check, used = made
    description = next((item[key] for key in ("description", "name") if isinstance(item.get(key), str)), "")
    used |= {"type", "description" if "description" in item else "name"}
    if isinstance(item.get("required"), bool):
        check["required"] = item["required"]
        used.add("required")
    return Asserted({**check, "description": description}, frozenset(used))


def _judged(item: dict[str, Any], note: str = "") -> Asserted:
    """Return the check of an object that only a judge can decide: its prose, or all of it where that is not enough."""
    said = next((key for key in _PROSE if _is_text(item.get(key))), "")
    value = next((key for key in _VALUE if key != said and item.get(key) not in (None, "")), "")
    # What a typed object compares with is part of what its judge must know, and how it does is in its type alone.
    if note and said and (value or said != "text"):
        used = [said, value] if value else [said]
    elif note:
        used = [value] if value and _is_text(item[value]) and _only_names_a_judge(item["type"]) else []
    else:
        used = [said] if said else _bare(item)
    parts = [item[key] if _is_text(item[key]) else canonical_json(item[key]) for key in used]
    statement = ": ".join(parts) if parts else canonical_json(item)
    return Asserted({"kind": "rubric", "statement": statement}, frozenset(used or item), note)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _only_names_a_judge(kind: str) -> bool:
    return set(re.split(r"[\s_-]+", kind.strip().lower())) <= _JUDGES


def _bare(item: dict[str, Any]) -> list[str]:
    """Return the key of an object without type and prose that is its statement; none where another one says more."""
    first = next((key for key in _BARE if _is_text(item.get(key))), "")
    beside = {key for key in item if _is_text(item[key])} - {first, "id", "name", "evidence"}
    return [first] if first and not beside else []


Made = tuple[dict[str, Any], set[str]]


def _typed(kind: str, item: dict[str, Any]) -> Made | None:
    """Return the check of a known type and the keys that went into it; None where it is unknown or incomplete."""
    denied = bool(re.search(r"(?:^|_)(?:not|no|without|lacks|excludes?|absent|missing)(?:_|$)", kind))
    for pattern, make in _TYPES:
        if pattern.search(kind):
            return make(item, denied)
    return None


def _first(item: dict[str, Any], keys: tuple[str, ...], *, other_than: str = "") -> tuple[str, Any]:
    return next(((key, item[key]) for key in keys if key in item and key != other_than), ("", None))


def _words(value: Any) -> list[str]:
    """Return the literal texts of a value: one, or all of a list."""
    values = value if isinstance(value, list) else [value]
    texts = [str(one) if isinstance(one, int | float) and not isinstance(one, bool) else one for one in values]
    return texts if texts and all(isinstance(text, str) and text for text in texts) else []


def _place(item: dict[str, Any]) -> Made | None:
    """Return where a text is looked for: a file, the final answer, or all that was produced."""
    key, target = _first(item, _TARGET)
    if not isinstance(target, str) or not target.strip():
        return {"kind": "output"}, {key} - {""}
    name = target.strip()
    if name.lower().replace(" ", "_") in _ANSWERS:
        return {"kind": "text"}, {key}
    if _FILE_NAME.fullmatch(name):
        return None if path_problem(name) else ({"kind": "file", "path": name}, {key})
    return {"kind": "output"}, set()


def _ignores_case(item: dict[str, Any]) -> tuple[bool, set[str]]:
    for key, meaning in (("case_sensitive", False), ("ignore_case", True), ("case_insensitive", True)):
        if item.get(key) is meaning:
            return True, {key}
    return False, {"case_sensitive"} & item.keys()


def _contains(item: dict[str, Any], denied: bool) -> Made | None:  # noqa: FBT001 - one signature for all types
    key, value = _first(item, _VALUE)
    words, place = _words(value), _place(item)
    if not words or place is None:
        return None
    check, used = place
    any_case, case_keys = _ignores_case(item)
    flags = "(?si)" if any_case else "(?s)"
    if denied:
        check["never"] = flags + "|".join(map(re.escape, words))
    elif len(words) == 1 and not any_case:
        check["contains"] = words[0]
    else:
        check["matches"] = flags + r"\A" + "".join(f"(?=.*?{re.escape(word)})" for word in words)
    return check, used | {key} | case_keys


def _matches(item: dict[str, Any], denied: bool) -> Made | None:  # noqa: FBT001 - one signature for all types
    key, value = _first(item, ("pattern", *_VALUE))
    place = _place(item)
    if not isinstance(value, str) or not value or regex_problem(value) or place is None:
        return None
    check, used = place
    check["never" if denied else "matches"] = value
    return check, used | {key}


def _count(item: dict[str, Any], _denied: bool) -> Made | None:  # noqa: FBT001 - one signature for all types
    key, value = _first(item, _VALUE)
    words, place = _words(value), _place(item)
    least, most = (item.get(name, item.get("count")) for name in ("min_count", "max_count"))
    least = 1 if least is None and most is None else least
    if len(words) != 1 or place is None or not all(_is_count(number) for number in (least, most)):
        return None
    check, used = place
    # An atomic group takes each next place only: without it, a text with too few of them takes exponential time.
    each = rf"(?s)\A(?>.*?{re.escape(words[0])})"
    if least:
        check["matches"] = f"{each}{{{least}}}"
    if most is not None:
        check["never"] = f"{each}{{{most + 1}}}"
    return check, used | {key} | ({"min_count", "max_count", "count"} & item.keys())


def _is_count(number: object) -> bool:
    return number is None or (isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= 10_000)


def _tool(item: dict[str, Any], denied: bool) -> Made | None:  # noqa: FBT001 - one signature for all types
    key, value = _first(item, ("tool", "tool_name", *_VALUE))
    words = _words(value)
    if len(words) != 1:
        return None
    check = {"kind": "tool-call", "tool": f"^(?:{re.escape(words[0])})$"}
    return {**check, "max": 0} if denied else check, {key}


def _file(item: dict[str, Any], denied: bool) -> Made | None:  # noqa: FBT001 - one signature for all types
    key, value = _first(item, (*_TARGET, *_VALUE))
    words = _words(value)
    if len(words) != 1 or path_problem(words[0]):
        return None
    check = {"kind": "file", "path": words[0]}
    return {**check, "exists": False} if denied else check, {key}


_TYPES: tuple[tuple[re.Pattern[str], Callable[[dict[str, Any], bool], Made | None]], ...] = (
    (re.compile(r"(?:^|_)(?:llm|judge|rubric|semantic|manual|model)(?:_|$)"), lambda _item, _denied: None),
    (re.compile(r"(?:^|_)count$"), _count),
    (re.compile(r"^(?:not_|no_)?(?:uses_)?tool(?:_not)?(?:_used?|_calls?|_called)?$"), _tool),
    (re.compile(r"^(?:file_)?(?:not_|does_not_)?(?:exists?|created|present|absent|missing)$|^creates_file$"), _file),
    (re.compile(r"(?:^|_)(?:contains?|includes?|excludes?|lacks)(?:_all)?$"), _contains),
    (re.compile(r"(?:^|_)(?:regex|regexp|pattern|matches|match)(?:_match)?$"), _matches),
)
"""Types by name, the first that fits; a `not` in the name turns a check round."""
