"""Checks that are Python functions beside the case."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.scoring.facts import Facts
from pytest_skilleval.scoring.verifiers import Verified, verify_all

from .trials import MakeFacts, loaded, ran

CHECKS = """
from __future__ import annotations
from dataclasses import dataclass


@dataclass
class Point:
    x: int


def holds(run):
    assert Point(1).x == 1
    assert (run.workspace / "out.txt").read_text() == "improved"
    assert run.final_text == "Done."
    assert [call.command for call in run.tool_calls] == ["ls"]
    assert run.used_skill("eval-guide")
    assert not run.used_skill("other")


def says_true(run):
    return True


def says_false(run):
    return False


def says_why(run):
    return "the verdict has no interval"


def asserts(run):
    count = 3
    assert count == 4


def asserts_with_text(run):
    assert False, "three is not four"


def raises(run):
    return {}["missing"]


def leaves(run):
    raise SystemExit(3)


def returns_number(run):
    return 1


def fails_like_pytest(run):
    import pytest
    pytest.fail("not so")
"""


ASSERT_LINE = CHECKS.splitlines().index("    assert count == 4") + 1


def facts_for(make_facts: MakeFacts, *functions: str, code: str = CHECKS, digest: str | None = None) -> Facts:
    checks = [{"id": name, "kind": "python", "function": f"verify.py::{name}"} for name in functions]
    facts = make_facts(
        answer="Done.",
        calls=[ran("ls")],
        used=[loaded("eval-guide")],
        files={"out.txt": "improved"},
        checks=checks,
        digests={"verify.py": digest or hashlib.sha256(code.encode()).hexdigest()},
    )
    (facts.case.folder / "verify.py").write_text(code)
    return facts


def judged(facts: Facts) -> Verified:
    return verify_all(facts.case.spec.checks, facts)


@pytest.mark.parametrize(
    ("function", "passed", "reason"),
    [
        ("holds", True, "holds holds"),
        ("says_true", True, "says_true holds"),
        ("says_false", False, "says_false does not hold"),
        ("says_why", False, "the verdict has no interval"),
        ("asserts", False, f"failed: assert count == 4 (verify.py:{ASSERT_LINE})"),
        ("asserts_with_text", False, "three is not four"),
        ("fails_like_pytest", False, "not so"),
    ],
)
def test_a_function_answers(make_facts: MakeFacts, function: str, passed: bool, reason: str) -> None:
    outcome = judged(facts_for(make_facts, function))
    assert outcome.faults == ()
    assert outcome.results[0].passed is passed
    assert outcome.results[0].reason == reason


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("raises", "raised KeyError: 'missing'"),
        ("leaves", "raised SystemExit: 3"),
        ("returns_number", "returned int; a check returns None, True, False or a text"),
        ("absent", "verify.py has no function absent"),
    ],
)
def test_a_function_that_breaks_is_an_error_and_no_failure(make_facts: MakeFacts, function: str, reason: str) -> None:
    outcome = judged(facts_for(make_facts, function))
    assert (outcome.results[0].passed, outcome.results[0].error) == (None, True)
    assert outcome.faults[0].error_class is ErrorClass.CHECK
    assert reason in outcome.faults[0].message


def test_a_file_that_cannot_be_imported_is_an_error(make_facts: MakeFacts) -> None:
    outcome = judged(facts_for(make_facts, "holds", code="import no_such_module_anywhere\n"))
    assert "verify.py cannot be imported: ModuleNotFoundError" in outcome.faults[0].message


def test_a_checker_that_was_changed_during_the_run_is_not_run_and_the_trial_is_an_error(make_facts: MakeFacts) -> None:
    facts = facts_for(make_facts, "says_false")
    ran_marker = facts.workspace / "tampered"
    (facts.case.folder / "verify.py").write_text(f"def says_false(run):\n    open({str(ran_marker)!r}, 'w')\n")
    outcome = judged(facts)
    assert [fault.error_class for fault in outcome.faults] == [ErrorClass.TAMPERED]
    assert outcome.results[0].passed is None
    assert "verify.py changed since the case was collected" in outcome.results[0].reason
    assert not ran_marker.exists()


def test_expected_answers_beside_the_checker_are_guarded_too(make_facts: MakeFacts) -> None:
    expected = hashlib.sha256(b"42").hexdigest()
    checks: list[dict[str, Any]] = [
        {"id": "script", "kind": "command", "run": ["cat", "{case}/expected.txt"]},
        {"id": "file", "kind": "file", "path": "out.txt"},
    ]
    facts = make_facts(checks=checks, files={"out.txt": "x"}, digests={"expected.txt": expected})
    target = facts.case.folder / "expected.txt"
    target.write_text("42")
    assert [result.passed for result in judged(facts).results] == [True, True]
    target.write_text("43")
    outcome = judged(facts)
    assert [fault.error_class for fault in outcome.faults] == [ErrorClass.TAMPERED]
    assert [result.passed for result in outcome.results] == [None, True]
    target.unlink()
    assert [fault.error_class for fault in judged(facts).faults] == [ErrorClass.TAMPERED]


def test_two_cases_with_files_of_one_name_do_not_mix_and_nothing_is_left_beside_them(
    make_facts: MakeFacts, tmp_path: Path
) -> None:
    facts = facts_for(make_facts, "says_true")
    other = facts.case.model_copy(update={"path": tmp_path / "other" / "case.yaml", "digests": {}})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "verify.py").write_text("def says_true(run):\n    return 'the other one'\n")
    from dataclasses import replace

    assert judged(facts).results[0].passed is True
    assert judged(replace(facts, case=other)).results[0].reason == "the other one"
    assert judged(facts).results[0].passed is True
    assert "verify" not in sys.modules
    assert sorted(path.name for path in facts.case.folder.iterdir()) == ["verify.py"]
