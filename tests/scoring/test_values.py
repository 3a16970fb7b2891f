"""Checks of JSON: values and event lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .test_files import answer, verified
from .trials import MakeFacts

REPORT = {
    "run": {"id": "r1", "n": 5, "rate": 0.1 + 0.2, "ok": True, "none": None},
    "groups": [{"case": "a", "passed": 3}, {"case": "b", "passed": 0}],
    "empty": [],
    "huge": int("9" * 400),
}


@pytest.mark.parametrize(
    ("check", "holds", "reason"),
    [
        ({}, True, "report.json is as wanted"),
        ({"at": "run.id", "equals": "r1"}, True, "run.id in report.json is as wanted"),
        ({"at": "run.id", "equals": "r2"}, False, 'run.id in report.json is "r1", wanted "r2"'),
        ({"at": "run.rate", "equals": 0.3}, True, "as wanted"),
        ({"at": "run.rate", "equals": 0.3001}, False, "wanted 0.3001"),
        ({"at": "run.ok", "equals": 1}, False, "is true, wanted 1"),
        ({"at": "run.none", "equals": None}, True, "as wanted"),
        ({"at": "run.missing"}, False, "is null or absent"),
        ({"at": "run.missing", "type": "null"}, True, "as wanted"),
        ({"at": "groups[?passed==`0`].case | [0]", "equals": "b"}, True, "as wanted"),
        ({"at": "groups[*].case", "equals": ["a", "b"]}, True, "as wanted"),
        ({"at": "groups[*].case", "equals": ["b", "a"]}, False, 'wanted ["b", "a"]'),
        ({"at": "groups", "type": "array", "min": 2, "max": 2}, True, "as wanted"),
        ({"at": "groups", "min": 3}, False, "has length 2, wanted at least 3"),
        ({"at": "run.n", "type": "integer"}, True, "as wanted"),
        ({"at": "run.n", "type": "number"}, True, "as wanted"),
        ({"at": "run.rate", "type": "integer"}, False, "of type number; wanted integer"),
        ({"at": "run.ok", "type": "number"}, False, "of type boolean; wanted number"),
        ({"at": "run.n", "min": 1, "max": 4}, False, "is 5, wanted at most 4"),
        ({"at": "run.ok", "min": 0}, False, "neither size nor length"),
        ({"at": "run.id", "matches": r"^r\d$"}, True, "as wanted"),
        ({"at": "run.id", "matches": "^x"}, False, "wanted a match of '^x'"),
        ({"at": "run.n", "matches": "5"}, False, "wanted a string that matches"),
        ({"at": "empty", "equals": []}, True, "as wanted"),
        ({"at": "huge", "type": "integer", "min": 1}, True, "as wanted"),
        ({"at": "huge", "max": 5}, False, "is 999999"),
        ({"at": "huge", "equals": 0.5}, False, "wanted 0.5"),
        ({"at": "huge", "equals": int("9" * 400)}, True, "as wanted"),
        ({"at": "avg([huge, huge])"}, False, "not the JSON that was wanted"),
        ({"at": "length(run.n)"}, False, "not the JSON that was wanted"),
    ],
)
def test_a_value_is_looked_at(make_facts: MakeFacts, check: dict[str, Any], holds: bool, reason: str) -> None:
    files = {"report.json": json.dumps(REPORT)}
    result = answer(make_facts, {"kind": "json", "path": "report.json", **check}, files=files)
    assert (result.passed, result.error) == (holds, False)
    assert reason in result.reason


@pytest.mark.parametrize(
    "content", ["{", "", "{'a': 1}", '{"a": NaN}', "[Infinity]", "[" * 100_000, "9" * 10_000, b"\xff\xfe"]
)
def test_what_is_no_json_fails_and_does_not_break(make_facts: MakeFacts, content: str | bytes) -> None:
    result = answer(make_facts, {"kind": "json", "path": "x.json"}, files={"x.json": content})
    assert result.passed is False
    assert "not the JSON that was wanted" in result.reason


def test_an_expression_that_is_no_jmespath_is_an_error_of_the_check(make_facts: MakeFacts) -> None:
    outcome = verified(make_facts, {"kind": "json", "path": "x.json", "at": "a[["}, files={"x.json": "{}"})
    assert outcome.results[0].error
    assert "is no JMESPath" in outcome.faults[0].message


EVENTS = """\
{"type": "start", "run": {"id": "r1"}}
not json at all
{"type": "trial", "outcome": "passed", "exit-status": 0}
{"type": "trial", "outcome": "failed"}

["no", "object"]
{"type": "end", "n": 2}
"""


@pytest.mark.parametrize(
    ("events", "holds", "reason"),
    [
        ([{"type": "start"}, {"type": "end"}], True, "holds all 2 events in order (1 lines are no JSON)"),
        ([{"type": "start", "run.id": "r1"}, {"type": "trial", "outcome": "/^fail/"}], True, "all 2 events"),
        ([{"exit-status": 0}], True, "all 1 events"),
        ([{"type": "end"}, {"type": "start"}], False, "event 2 of 2"),
        ([{"type": "trial"}, {"type": "trial"}, {"type": "trial"}], False, "event 3 of 3"),
        ([{"type": "end", "n": "2"}], False, "event 1 of 1"),
    ],
)
def test_events_are_found_in_order_and_a_bad_line_does_not_matter(
    make_facts: MakeFacts, events: list[dict[str, Any]], holds: bool, reason: str
) -> None:
    check = {"kind": "event-log", "path": "events.jsonl", "events": events}
    result = answer(make_facts, check, files={"events.jsonl": EVENTS})
    assert result.passed is holds
    assert reason in result.reason
