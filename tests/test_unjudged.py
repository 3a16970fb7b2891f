"""Trials that only a judge could decide: without one they are unjudged, and enter no rate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conftest import Project

RUBRIC = {"id": "kind-words", "kind": "rubric", "statement": "The greeting is kind."}


def statements(project: Project, **more: Any) -> None:
    """Write a case that prose alone decides."""
    project.case(checks=[RUBRIC], **more)


def test_without_a_judge_a_case_of_prose_alone_is_unjudged_and_in_no_rate(any_mode: Project) -> None:
    statements(any_mode)
    result = any_mode.run("--trials", "3", "--skilleval-report", "json", "--skilleval-report", "md")
    assert result.ret == 0
    report = any_mode.report()
    assert report["run"]["counts"] == {"passed": 0, "failed": 0, "error": 0, "missing": 0, "unjudged": 3}
    assert report["run"]["status"] == "finished"
    (group,) = report["groups"]
    assert (group["n"], group["unjudged"], group["missing"], group["pass_rate"]["rate"]) == (0, 3, 0, None)
    assert report["lanes"][0]["unjudged"] == 3
    assert {(line["outcome"], line["score"]) for line in report["trials"]} == {("unjudged", None)}
    assert [check["passed"] for line in report["trials"] for check in line["checks"]] == [None] * 3
    result.stdout.fnmatch_lines(
        ["*unjudged*", "*3 trials are unjudged, outside every rate*--skilleval-judge*", "*3 unjudged*"]
    )
    assert "3 unjudged" in (any_mode.path / ".skilleval/latest/report.md").read_text()


def test_an_agent_that_ends_badly_is_no_failure_where_none_could_pass(project: Project) -> None:
    # With failures but no passes the rate would be 0 whatever the agents did.
    project.write("cases/execution/greet.sh", "sleep 30\n")
    path = project.case(checks=[RUBRIC], budget={"timeout": 0.5})
    path.with_suffix(".sh").write_text("touch begun; sleep 30\n")
    assert project.run().ret == 0
    assert project.outcomes() == {"unjudged": 1}


def test_where_something_else_decides_the_statement_is_listed_and_left_out(project: Project) -> None:
    said = {"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}
    project.case(checks=[said, RUBRIC])
    project.case("wrong", rate=0.0, checks=[said, RUBRIC])
    project.case("made", checks=[RUBRIC], artifacts=[{"path": "out.txt"}])
    assert project.run().ret == 0
    report = project.report()
    lines = {line["case"]: line for line in report["trials"]}
    assert {case: line["outcome"] for case, line in lines.items()} == {
        "greet": "passed", "wrong": "failed", "made": "passed"
    }  # fmt: skip
    assert lines["greet"]["reason"] == "all that is required holds; unjudged: kind-words"
    assert [(check["id"], check["passed"]) for check in lines["greet"]["checks"]] == [
        ("said", True),
        ("kind-words", None),
    ]
    assert "unjudged" not in report["run"]["counts"]
    # 1 of 1 checks that were decided holds, and the agent finished: nothing is taken off for the open one.
    assert lines["greet"]["score"]["total"] == 1.0


def test_a_statement_that_is_not_required_leaves_the_outcome_alone(project: Project) -> None:
    said = {"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}
    project.case(checks=[{**said, "required": False}, RUBRIC])
    project.case("optional", checks=[{**RUBRIC, "required": False}])
    assert project.run().ret == 0
    lines = {line["case"]: line["outcome"] for line in project.report()["trials"]}
    assert lines == {"greet": "unjudged", "optional": "passed"}


def test_an_error_stays_an_error(project: Project) -> None:
    statements(project, workspace={"setup": [{"run": ["false"]}]})
    assert project.run().ret == 1
    assert project.outcomes() == {"error": 1}


def test_a_resumed_run_keeps_unjudged_trials(project: Project) -> None:
    statements(project)
    assert project.run("--trials", "2").ret == 0
    result = project.run("--trials", "2", "--skilleval-resume", "latest")
    assert project.outcomes() == {"unjudged": 2}
    assert result.ret == 0


def test_keys_of_other_formats_are_kept_in_each_record_and_listed_once(project: Project) -> None:
    project.skill()
    evals = [
        {
            "id": number,
            "prompt": f"Greet {name}.",
            "assertions": ["It is kind."],
            "difficulty": "easy",
            "weights": [1, 2],
        }
        for number, name in ((1, "Ada"), (2, "Bob"))
    ]
    project.write("skills/greeter/evals/evals.json", json.dumps({"skill_name": "greeter", "evals": evals}))
    result = project.run("skills/greeter/evals/evals.json", "--skilleval-condition", "self-load")
    assert result.ret == 0
    assert project.outcomes() == {"unjudged": 2}
    records = [json.loads(path.read_text()) for path in project.path.glob(".skilleval/latest/trials/*/record.json")]
    kept = [record["body"]["extra"] for record in records]
    assert [{key: extra[key] for key in ("difficulty", "weights")} for extra in kept] == [
        {"difficulty": "easy", "weights": [1, 2]}
    ] * 2
    notes = [note for note in project.report()["run"]["notes"] if "difficulty" in note]
    assert len(notes) == 1
