"""Lists of trigger queries, in every shape that repositories hold, to prompt cases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_skilleval.casespec import Lane
from pytest_skilleval.documents import Document, Loc
from pytest_skilleval.model import Case

from .adoption import Adoption
from .spec import shown

__all__ = ["LISTS", "SIDES", "read_triggers"]

LISTS = ("queries", "cases", "evals", "tests", "items", "trigger_evals", "eval_queries", "prompts")
"""Keys of a file that hold queries, each with its `should_trigger`."""
SIDES = {
    "should_trigger": True,
    "should_trigger_prompts": True,
    "should_trigger_queries": True,
    "should_not_trigger": False,
    "should_not_trigger_prompts": False,
    "should_not_trigger_queries": False,
}
"""Keys of a file that hold queries of one side."""
_FILE_KEYS = frozenset({*LISTS, *SIDES, "skill_name", "skill", "$schema"})
_TEXT = ("query", "prompt", "text", "input")
_WHY = ("why", "reason", "note", "notes", "description", "rationale")
_USED = frozenset({*_TEXT, *_WHY, "id", "name", "should_trigger", "category"})
_WORDS = {"true": True, "yes": True, "false": False, "no": False, "none": None, "null": None, "": None}
_SPLIT_NAME = re.compile(r"(?i)^(train|validation|valid|test|dev|holdout)(?=[-_.]|$)")


def read_triggers(document: Document, path: Path, name: str, skill_root: Path | None) -> tuple[list[Case], list[str]]:
    """Return the cases of a list of trigger queries, and what the user should hear of it.

    A query for which the skill should load is a case of that skill, all others are cases of no skill. They are asked
    where the skill can be discovered: elsewhere no choice of a skill could be seen.

    Args:
        document: The file.
        path: Where it lies.
        name: What messages call it.
        skill_root: The skill's folder.

    Raises:
        CaseMistake: With the line and key of what cannot be read.
    """
    data = document.data
    adopted = Adoption(document, path, name, skill_root)
    whole: dict[str, Any] = data if isinstance(data, dict) else {}
    skill = adopted.skill_of_file(whole.get("skill_name", whole.get("skill")))
    beside = {key: value for key, value in whole.items() if key not in _FILE_KEYS}
    adopted.unused(beside)
    kept: dict[str, Any] = {"file": beside} if beside else {}
    if split := _SPLIT_NAME.match(path.stem):
        kept["split"] = split[1].lower()
    sides: dict[str, tuple[str | None, Loc]] = {}
    for loc, item, side in _queries(adopted):
        query, wanted = _adopt(adopted, loc, item, skill, side=side, kept=kept)
        other, first = sides.setdefault(" ".join(query.split()), (wanted, loc))
        if (other is None) is not (wanted is None):
            asks = f"asks what the query on line {adopted.line(first)} asks, and wants the opposite"
            raise adopted.mistake(loc, f"{asks}: one of them fails whatever the agent does; leave one out")
    if not sides:
        raise adopted.mistake((), "holds no query")
    return adopted.done()


def _queries(adopted: Adoption) -> Iterator[tuple[Loc, Any, bool | None]]:
    """Yield place, query and (where the list says it for all) the side of each."""
    data = adopted.document.data
    if isinstance(data, list):
        for index, item in enumerate(data):
            yield (index,), item, None
        return
    for key, value in data.items():
        if key not in LISTS and key not in SIDES:
            continue
        if not isinstance(value, list):
            raise adopted.mistake((key,), f"must be a list of queries, not {shown(value)}")
        for index, item in enumerate(value):
            yield (key, index), item, SIDES.get(key)


def _adopt(
    adopted: Adoption, loc: Loc, item: Any, skill: str | None, *, side: bool | None, kept: dict[str, Any]
) -> tuple[str, str | None]:
    """Add the case of one query, and return what it asks and which skill it should load."""
    if isinstance(item, str) and side is not None:
        item = {"query": item}
    if not isinstance(item, dict):
        raise adopted.mistake(loc, f"must be a mapping with query and should_trigger, not {shown(item)}")
    found = adopted.text(item, _TEXT, loc)
    if found is None:
        raise adopted.mistake(loc, f"has no query; its keys are {', '.join(map(str, item)) or 'none'}")
    wanted = _wanted(adopted, loc, item, skill, side=side)
    extra = {key: value for key, value in item.items() if key not in _USED}
    adopted.unused(extra)
    label = next((str(item[key]) for key in ("id", "name") if item.get(key) not in (None, "")), "")
    category = item.get("category")
    standard = "near-miss" if wanted is None else "trigger"
    data = {
        "id": adopted.identify(skill, label, found[1], loc),
        "skill": wanted or "none",
        "category": category if isinstance(category, str) and category.strip() else standard,
        "description": "\n\n".join(str(item[key]) for key in _WHY if item.get(key)),
        "prompt": found[1],
        "conditions": ["self-load"],
    }
    adopted.add(Lane.PROMPT, data, loc, {**kept, **extra})
    return found[1], wanted


def _wanted(adopted: Adoption, loc: Loc, item: dict[str, Any], skill: str | None, *, side: bool | None) -> str | None:
    """Return the skill that a query should load, or None."""
    if "should_trigger" not in item and side is None:
        raise adopted.mistake((*loc, "should_trigger"), "is required: true, false, a skill's name or null")
    value = item.get("should_trigger", side)
    if isinstance(value, str):
        value = _WORDS.get(value.strip().lower(), value.strip())
    if isinstance(value, str):
        return value
    if value is not None and not isinstance(value, bool):
        allowed = "must be true, false, a skill's name or null"
        raise adopted.mistake((*loc, "should_trigger"), f"{allowed}, not {shown(value)}")
    if value and skill is None:
        message = "says no skill; put the file into the skill's folder, or give skill_name"
        raise adopted.mistake((*loc, "should_trigger"), message)
    return skill if value else None
