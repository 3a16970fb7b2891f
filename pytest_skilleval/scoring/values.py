"""Checks of values in JSON files and in lines of JSON: json and event-log."""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_skilleval.casespec import EventLogCheck, JsonCheck
from pytest_skilleval.errors import ErrorClass, TrialFault

from .facts import Facts
from .finding import Finding, no, yes
from .folder import Folder, Refused
from .patterns import one_line, search

__all__ = ["check_event_log", "check_json", "parse_json"]


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; NaN and Infinity are not JSON.

    Raises:
        ValueError: It is not JSON, or nested too deeply.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def look_up(expression: str, value: object) -> Any:
    """Return what a JMESPath expression finds; None when nothing.

    Raises:
        TrialFault: The expression is no JMESPath.
        ValueError: The value does not fit the expression's functions.
    """
    import jmespath  # noqa: PLC0415 - most checks need none
    from jmespath import exceptions  # noqa: PLC0415

    try:
        compiled = jmespath.compile(expression)
    except exceptions.JMESPathError as problem:
        raise TrialFault(ErrorClass.CHECK, f"{expression!r} is no JMESPath: {one_line(str(problem))}") from None
    try:
        return compiled.search(value)
    except exceptions.UnknownFunctionError as problem:
        raise TrialFault(ErrorClass.CHECK, f"{expression!r}: {one_line(str(problem))}") from None
    except (exceptions.JMESPathError, TypeError, OverflowError, RecursionError) as problem:
        raise ValueError(f"{expression} cannot be applied: {one_line(str(problem))}") from None


def same_value(found: object, wanted: object) -> bool:
    """Return whether two JSON values are equal: numbers within 1e-9, and true is not 1."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, (int, float)) and isinstance(wanted, (int, float)):
        try:
            return abs(found - wanted) <= 1e-9
        except OverflowError:  # a whole number beside a fraction, and larger than any of these
            return False
    if isinstance(found, list) and isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(same_value, found, wanted))
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same_value(found[key], wanted[key]) for key in found)
    return type(found) is type(wanted) and found == wanted


def json_type(value: object) -> str:
    """Return the JSON type of a value; a whole number is an `integer`, also when written 1.0."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def check_json(check: JsonCheck, facts: Facts) -> Finding:
    """Look at a value in a JSON file; without any condition it must be there."""
    folder = Folder(facts.workspace)
    try:
        name = folder.find(check.path)
        value = look_up(check.at, parse_json(folder.text(name)))
    except Refused as refusal:
        return no(str(refusal))
    except ValueError as problem:
        return no(f"{check.path} is not the JSON that was wanted: {one_line(str(problem))}")
    problem_found = _value_problem(check, value)
    where = name if check.at == "@" else f"{check.at} in {name}"
    return yes(f"{where} is as wanted") if problem_found is None else no(f"{where} {problem_found}")


def _value_problem(check: JsonCheck, value: object) -> str | None:
    shown = one_line(json.dumps(value, ensure_ascii=False), 80)
    if "equals" in check.model_fields_set and not same_value(value, check.equals):
        return f"is {shown}, wanted {one_line(json.dumps(check.equals, ensure_ascii=False), 80)}"
    if (
        check.type is not None
        and json_type(value) != check.type
        and (check.type, json_type(value)) != ("number", "integer")
    ):
        return f"is {shown}, of type {json_type(value)}; wanted {check.type}"
    if check.matches is not None:
        if not isinstance(value, str):
            return f"is {shown}, wanted a string that matches {check.matches!r}"
        if search(check.matches, value) is None:
            return f"is {shown}, wanted a match of {check.matches!r}"
    if check.min is not None or check.max is not None:
        return _range_problem(check, value, shown)
    conditions = {"equals", "type", "matches"} & check.model_fields_set
    return "is null or absent" if value is None and not conditions else None


def _range_problem(check: JsonCheck, value: object, shown: str) -> str | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # A whole number stays one: it may be larger than any fraction.
        size, found = value, f"is {shown if isinstance(value, int) else f'{value:g}'}"
    elif isinstance(value, (str, list, dict)):
        size, found = len(value), f"has length {len(value)}"
    else:
        return f"is {shown}, which has neither size nor length"
    if check.min is not None and size < check.min:
        return f"{found}, wanted at least {check.min:g}"
    if check.max is not None and size > check.max:
        return f"{found}, wanted at most {check.max:g}"
    return None


def check_event_log(check: EventLogCheck, facts: Facts) -> Finding:
    """Look for events in a file of JSON lines, in order; other lines may lie between, and bad lines are counted."""
    folder = Folder(facts.workspace)
    try:
        name = folder.find(check.path)
        lines = folder.text(name).splitlines()
    except Refused as refusal:
        return no(str(refusal))
    wanted = iter(enumerate(check.events, start=1))
    number, event = next(wanted)
    bad = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError:
            bad += 1
            continue
        if _event_fits(event, record):
            following = next(wanted, None)
            if following is None:
                return yes(f"{name} holds all {number} events in order{_bad(bad)}")
            number, event = following
    shown = one_line(json.dumps(event, ensure_ascii=False, default=str), 80)
    return no(f"{name}: event {number} of {len(check.events)}, {shown}, is not there in that order{_bad(bad)}")


def _bad(count: int) -> str:
    return f" ({count} lines are no JSON)" if count else ""


def _event_fits(event: dict[str, Any], record: object) -> bool:
    if not isinstance(record, dict):
        return False
    return all(_field_fits(record, key, wanted) for key, wanted in event.items())


def _field_fits(record: dict[str, Any], key: str, wanted: object) -> bool:
    try:
        # Names such as `exit-status` are no JMESPath, and common in logs.
        found = record.get(key) if key in record or re.fullmatch(r"[\w -]+", key) else look_up(key, record)
    except ValueError:
        return False
    if isinstance(wanted, str) and len(wanted) > 1 and wanted.startswith("/") and wanted.endswith("/"):
        return isinstance(found, str) and search(wanted[1:-1], found) is not None
    return same_value(found, wanted)
