from __future__ import annotations

from xml.etree import ElementTree as ET

from pytest_skilleval.reports.junit import as_junit

from .made import made
from .payloads import ANSI, CONTROLS, PAYLOADS, poisoned_report


def suite(report) -> ET.Element:
    found = ET.fromstring(as_junit(report)).find("testsuite")
    assert found is not None
    return found


def test_each_group_is_one_test_case_with_its_numbers() -> None:
    found = suite(made())
    assert [(case.get("classname"), case.get("name")) for case in found.iter("testcase")] == [
        ("skilleval.execution", "greet:none"),
        ("skilleval.execution", "greet:self-load"),
    ]
    properties = {one.get("name"): one.get("value") for one in found.find("testcase").iter("property")}
    assert properties == {
        "n": "3",
        "passed": "1",
        "errors": "0",
        "missing": "0",
        "pass_rate": "33.3% [6%, 79%]",
        "score": "0.333 [0.00, 1.00]",
    }


def test_failed_trials_alone_fail_nothing() -> None:
    found = suite(made(("greet",), {"none": ["failed", "failed", "failed"]}))
    assert (found.get("tests"), found.get("failures"), found.get("errors")) == ("1", "0", "0")


def test_what_the_gate_names_has_failed_and_nothing_else() -> None:
    reasons = ["overall: regressed: pass rate -20 points", "execution:greet:none: pass rate lies below min_pass_rate"]
    found = suite(made(gate={"passed": False, "mode": "auto", "reasons": reasons}))
    assert found.get("failures") == "2"
    failed = {
        case.get("name"): case.find("failure").get("message")
        for case in found.iter("testcase")
        if case.find("failure") is not None
    }
    assert failed == {"greet:none": "pass rate lies below min_pass_rate", "overall": "regressed: pass rate -20 points"}


def test_errors_and_missing_trials_are_errors() -> None:
    found = suite(made(("greet",), {"none": ["passed", "error"], "self-load": ["passed", "missing"]}))
    errors = [case.find("error") for case in found.iter("testcase")]
    assert [error.get("type") for error in errors] == ["rate_limit", "missing"]
    assert errors[0].text == "execution:greet:none:2: 429 after 3 attempts"
    assert found.get("errors") == "2"


def test_a_group_of_which_nothing_was_measured_is_skipped_and_not_passed() -> None:
    groups = {
        "none": ["unjudged", "unjudged", "not-needed"],
        "self-load": ["unjudged", "passed"],
        "stale": ["unjudged", "error"],
    }
    found = suite(made(("greet",), groups))
    cases = {case.get("name"): case for case in found.iter("testcase")}
    skipped = cases["greet:none"].find("skipped")
    assert skipped.get("message") == "nothing was measured: 2 trials unjudged, 1 trial not needed"
    assert cases["greet:self-load"].find("skipped") is None
    assert cases["greet:stale"].find("skipped") is None
    assert [found.get(key) for key in ("tests", "skipped", "errors", "failures")] == ["3", "1", "1", "0"]


def test_a_simulation_says_so() -> None:
    values = [one.get("value") for one in suite(made()).find("properties")]
    assert "stub: simulated, no agent was run" in values


def test_any_text_of_an_agent_makes_a_valid_file_of_the_same_shape() -> None:
    texts = (*PAYLOADS, ANSI, CONTROLS)
    hostile = [element.tag for element in suite(poisoned_report(texts)).iter()]
    tame = [
        element.tag
        for element in suite(poisoned_report(tuple(f"text-{number}" for number in range(len(texts))))).iter()
    ]
    assert hostile == tame
    assert "\\x1b[2J" in as_junit(poisoned_report(texts))


def test_equal_reports_give_equal_bytes() -> None:
    assert as_junit(made()) == as_junit(made())
