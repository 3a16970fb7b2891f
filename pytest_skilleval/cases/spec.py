"""A case's plain data to a CaseSpec, with each mistake in the words of the file."""

from __future__ import annotations

import difflib
import json
import types
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pytest_skilleval.casespec import CaseSpec
from pytest_skilleval.documents import Loc

__all__ = ["Problem", "did_you_mean", "problems_of", "shown", "validate_spec"]


class Problem(NamedTuple):
    """Something wrong at a place of a case."""

    loc: Loc
    message: str


UNIONS: dict[Loc, str] = {
    ("checks", 0): "a mapping with `id` and `kind`",
    ("anti_patterns", 0): "the name of a built-in anti-pattern or a mapping with `id` and `patterns`",
    ("stub", "solve_rate"): "a number from 0 to 1, or a mapping of conditions to such numbers",
    ("min_pass_rate",): "a number from 0 to 1, or a mapping of conditions to such numbers",
}
"""Places (list index 0 for all) where pydantic's location names the branch that it tried, and what is allowed there."""


def validate_spec(data: dict[str, Any]) -> CaseSpec:
    """Return the case of a mapping that a file holds.

    JSON is what is validated: only there strict types (no text for a number, no number for a text) go with lists.

    Raises:
        pydantic.ValidationError: See `problems_of`.
    """
    return CaseSpec.model_validate_json(json.dumps(data), strict=True)


def problems_of(exc: ValidationError, data: dict[str, Any]) -> list[Problem]:
    """Return what is wrong, at places of the data and in the order of the file's keys as far as they are known."""
    found: dict[Loc, str] = {}
    unknown: set[Loc] = set()
    for error in exc.errors(include_url=False, include_context=True):
        loc, tag = _place(error["loc"])
        if tag is not None and not _is_branch_of(tag, _at(data, loc[: len(_union_at(loc) or ())])):
            continue
        if error["type"] == "extra_forbidden":
            unknown.add(loc[:-1])
        message = _message(error, loc, data)
        if error["type"] in {"union_tag_invalid", "union_tag_not_found"}:
            loc = (*loc, "kind")
        found.setdefault(loc, message)
    # A key that is misspelt is also missing: the misspelling is the news.
    misspelt = {loc for loc in found if loc[:-1] in unknown and found[loc] == _MISSING}
    return [Problem(loc, message) for loc, message in found.items() if loc not in misspelt]


_MISSING = "is required"


def shown(value: object, limit: int = 60) -> str:
    """Return a value as a message shows it: JSON, on one line, cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    # JSON leaves these line breaks as they are; a message is one line.
    text = text.translate({0x85: " ", 0x2028: " ", 0x2029: " ", 0x7F: " "})
    return text if len(text) <= limit else text[: limit - 3] + "..."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean x? allowed: x, y`, without the first part when nothing is near."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    allowed = "allowed: " + (", ".join(names) or "none")
    return f"did you mean {near[0]}? {allowed}" if near else allowed


def _union_at(loc: Loc) -> Loc | None:
    for end in range(1, len(loc) + 1):
        general = tuple(0 if isinstance(part, int) else part for part in loc[:end])
        if general in UNIONS:
            return general
    return None


def _place(loc: tuple[str | int, ...]) -> tuple[Loc, str | None]:
    """Return the place in the data, and the name of the branch that pydantic wove into its own location."""
    place: list[str | int] = []
    tag = None
    for part in loc:
        if tag is None and place and _union_at(tuple(place)) is not None:
            tag = str(part)
        elif part != "[key]":
            place.append(part)
    return tuple(place), tag


def _is_branch_of(tag: str, value: Any) -> bool:
    """Whether an error of this branch speaks of what the user meant by the value."""
    if tag in {"str", "constrained-float", "float"}:
        return not isinstance(value, dict)
    return isinstance(value, dict)


def _at(data: Any, loc: Loc) -> Any:
    for part in loc:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _message(error: ErrorDetails, loc: Loc, data: Any) -> str:
    kind, value = error["type"], error["input"]
    if kind == "missing":
        return _MISSING
    if kind == "extra_forbidden":
        return f"unknown key; {did_you_mean(str(loc[-1]), _keys_at(loc[:-1], data))}"
    if kind == "union_tag_not_found":
        return f"is required; {did_you_mean('', _kinds())}"
    if kind == "union_tag_invalid":
        return f"{shown(value.get('kind'))} is no kind of check; {did_you_mean(str(value.get('kind')), _kinds())}"
    if kind.endswith("_type"):
        return _type_message(kind, loc, value)
    return _value_message(error, loc, value)


def _value_message(error: ErrorDetails, loc: Loc, value: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in {"too_short", "string_too_short"}:
        return "must not be empty"
    if kind == "string_too_long":
        return f"has {len(value)} characters; at most {context['max_length']} are allowed"
    if kind == "int_from_float":
        return f"must be a whole number, not {shown(value)}"
    if kind in {"enum", "literal_error"}:
        allowed = did_you_mean(str(value), _words(str(context["expected"])))
    elif kind in _LIMITS:
        name, words = _LIMITS[kind]
        allowed = f"must be {words} {context[name]:g}"
    elif kind == "string_pattern_mismatch":
        allowed = _PATTERNS.get(loc[-1], "write it without spaces, slashes, colons and brackets")
    else:
        allowed = error["msg"][:1].lower() + error["msg"][1:]
    return f"{shown(value)} is not allowed; {allowed}"


_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_PATTERNS: dict[str | int, str] = {"function": "write file.py::function"}
_TYPES = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _type_message(kind: str, loc: Loc, value: Any) -> str:
    union = _union_at(loc)
    if union is not None and len(union) == len(loc):
        return f"must be {UNIONS[union]}, not {shown(value)}"
    hint = ""
    if kind == "string_type" and isinstance(value, bool | int | float):
        hint = f"; write '{json.dumps(value)}' in quotes"
    elif kind in {"tuple_type", "list_type"} and not isinstance(value, dict | list) and value is not None:
        hint = f"; write [{shown(value)}]"
    elif value is None:
        hint = "; leave the key out for its default"
    return f"must be {_TYPES.get(kind, 'of another type')}, not {shown(value)}{hint}"


def _words(expected: str) -> list[str]:
    return [part.strip(" '") for part in expected.replace(" or ", ",").split(",")]


def _kinds() -> list[str]:
    """Return the kinds of checks."""
    models = _branches(CaseSpec.model_fields["checks"].annotation)
    return [kind for model in models for kind in get_args(model.model_fields["kind"].annotation)]


def _keys_at(loc: Loc, data: Any) -> list[str]:
    """Return the keys that a mapping at this place may have."""
    models: list[Any] = [CaseSpec]
    for end, part in enumerate(loc, 1):
        if isinstance(part, str):
            fields = [model.model_fields[part] for model in models if part in model.model_fields]
            models = [branch for field in fields for branch in _branches(field.annotation)]
        value = _at(data, loc[:end])
        if isinstance(value, dict) and len(models) > 1:
            models = [m for m in models if value.get("kind") in get_args(m.model_fields["kind"].annotation)] or models
    return list(models[0].model_fields) if models else []


def _branches(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation names, through tuples, unions and Annotated."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, tuple, Annotated):
        return [model for part in get_args(annotation) for model in _branches(part)]
    return []
