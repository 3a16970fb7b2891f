"""Test functions with the `skilleval` fixture: what each way to end makes of the trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

CASE = """
import sys
import pytest

@pytest.fixture
def machine():
    {fixture}

{mark}
@pytest.mark.skilleval(conditions=["none"])
def test_asks(skilleval, machine):
    {body}
"""


def written(project: Project, body: str, *, mark: str = "", fixture: str = "return 1") -> None:
    """Write a case whose function does this."""
    project.write("test_asks.py", CASE.format(body=body, mark=mark, fixture=fixture))


def test_a_case_that_never_asks_its_agent_is_an_error_and_no_pass(any_mode: Project) -> None:
    written(any_mode, "assert True")
    assert any_mode.run().ret == 1
    (line,) = any_mode.report()["trials"]
    assert (line["outcome"], line["error"]["class"]) == ("error", "check")
    assert line["reason"] == "skilleval.run() was never called: nothing was measured"
    assert (line["score"], line["checks"]) == (None, [])


@pytest.mark.parametrize("body", ["skilleval.run('hi'); sys.exit(3)", "sys.exit('no such tool')", "sys.exit()"])
def test_an_exit_in_a_case_is_an_error_and_the_session_goes_on(project: Project, body: str) -> None:
    written(project, body)
    project.case()
    result = project.run("--skilleval-max-errors=1")
    assert result.ret == 1
    assert project.outcomes() == {"passed": 1, "error": 1}
    (line,) = (line for line in project.report()["trials"] if line["case"] == "asks")
    assert line["reason"].startswith("SystemExit")


@pytest.mark.parametrize(
    ("body", "mark", "fixture"),
    [
        ("pytest.skip('no phone here')", "", "return 1"),
        ("skilleval.run('hi'); pytest.skip('no phone here')", "", "return 1"),
        ("skilleval.run('hi')", "@pytest.mark.skip(reason='no phone here')", "return 1"),
        ("skilleval.run('hi')", "@pytest.mark.skipif(True, reason='no phone here')", "return 1"),
        ("skilleval.run('hi')", "", "pytest.skip('no phone here')"),
    ],
)
def test_a_skipped_trial_is_not_needed_and_the_run_is_finished(
    any_mode: Project, body: str, mark: str, fixture: str
) -> None:
    written(any_mode, body, mark=mark, fixture=fixture)
    any_mode.case()
    result = any_mode.run("--trials", "2")
    assert result.ret == 0
    report = any_mode.report()
    assert any_mode.outcomes() == {"passed": 2, "not-needed": 2}
    assert report["run"]["status"] == "finished"
    skipped = [line for line in report["trials"] if line["case"] == "asks"]
    assert {line["reason"] for line in skipped} == {"not needed: skipped: no phone here"}
    assert {line["score"] for line in skipped} == {None}
    assert result.parseoutcomes()["skipped"] == 2


def test_a_data_case_with_a_skip_mark_is_not_needed(project: Project) -> None:
    project.case()
    project.write(
        "conftest.py",
        "import pytest\n\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        item.add_marker(pytest.mark.skip(reason='not today'))\n",
    )
    assert project.run().ret == 0
    assert project.outcomes() == {"not-needed": 1}
