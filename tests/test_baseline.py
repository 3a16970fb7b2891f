"""--compare-baseline in use: verdicts, comparability, and what is refused before the first agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project


def suite(project: Project, rate: float, body: str, *, cases: int = 24) -> None:
    """Write a suite whose skill can be seen, with one solve rate for all cases."""
    project.skill(body=body)
    found = [
        {
            "id": f"case-{number:02d}",
            "skill": "greeter",
            "prompt": f"Greet {number}.",
            "expect": ["hello"],
            "answer": "hello",
            "conditions": ["preloaded"],
            "stub": {"solve_rate": rate, "failure_answer": "goodbye"},
        }
        for number in range(cases)
    ]
    project.write("cases/prompt/many.json", json.dumps({"cases": found}))


def verdict(project: Project) -> str:
    comparison = project.report()["comparison"]
    assert comparison["comparable"], comparison["reasons"]
    return comparison["overall"]["verdict"]


def test_two_runs_of_one_skill_with_other_seeds_are_inconclusive(project: Project) -> None:
    suite(project, 0.7, "Say hello.")
    assert project.run("--trials", "5", "--skilleval-seed", "1").ret == 0
    result = project.run("--trials", "5", "--skilleval-seed", "2", "--compare-baseline", "latest")
    assert result.ret == 0
    comparison = project.report()["comparison"]
    assert comparison["kind"] == "A/A"
    assert comparison["overall"]["verdict"] == "inconclusive"
    assert {row["verdict"] for row in comparison["groups"]} == {"inconclusive"}


def test_a_skill_that_helps_is_improved_and_back_is_regressed_and_red(project: Project) -> None:
    suite(project, 0.4, "Old text.")
    assert project.run("--trials", "5").ret == 0
    worse = (project.path / ".skilleval/latest").resolve().name
    suite(project, 0.9, "New text.")
    result = project.run("--trials", "5", "--compare-baseline", worse)
    assert result.ret == 0
    assert verdict(project) == "improved"
    assert project.report()["comparison"]["kind"] == "changed"
    result.stdout.fnmatch_lines(["*improved*"])
    better = (project.path / ".skilleval/latest").resolve().name

    suite(project, 0.4, "Old text.")
    result = project.run("--trials", "5", "--compare-baseline", better, "--junitxml", "junit.xml")
    assert result.ret == 1
    assert verdict(project) == "regressed"
    assert "skilleval-gate" in (project.path / "junit.xml").read_text()
    assert project.report()["gate"]["passed"] is False
    result = project.run("--trials", "5", "--compare-baseline", better, "--skilleval-gate", "never")
    assert result.ret == 0


@pytest.mark.parametrize(
    ("write", "wanted"),
    [
        (None, "neither a report.json"),
        ("", "not a report.json"),
        ("{}", "not a report.json"),
        ('{"schema": "skilleval-report/2"}', "this version reads skilleval-report/1"),
        ('{"schema": "skilleval-report/1"', "not a report.json"),
        ('{"schema": "skilleval-report/1"}', "run: Field required"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_refused_before_the_first_agent(
    project: Project, write: str | None, wanted: str
) -> None:
    project.case()
    if write is not None:
        project.write("base.json", write)
    result = project.run("--compare-baseline", "base.json")
    assert result.ret == 4
    assert wanted in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
    assert not (project.path / ".skilleval").exists()


def test_a_run_of_another_provider_is_not_comparable_unless_allowed(project: Project) -> None:
    project.case()
    project.run("--trials", "2", "--skilleval-provider", "oracle")
    result = project.run("--trials", "2", "--compare-baseline", "latest")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*not comparable: provider: oracle in the baseline, stub here*--skilleval-allow-incomparable*"]
    )
    result = project.run("--trials", "2", "--compare-baseline", "latest", "--skilleval-allow-incomparable")
    assert result.ret == 0
    assert "provider: oracle in the baseline, stub here" in project.report()["comparison"]["reasons"]


def test_changed_added_and_removed_cases_are_listed_and_left_out(project: Project) -> None:
    project.case("kept", rate=0.5)
    project.case("changed", rate=0.5)
    project.case("gone", rate=0.5)
    project.run("--trials", "3")
    project.case("changed", rate=0.5, prompt="Something else is asked.")
    (project.path / "cases/execution/gone.yaml").unlink()
    project.case("new", rate=0.5)
    project.run("--trials", "4", "--compare-baseline", "latest")
    comparison = project.report()["comparison"]
    assert [row["case"] for row in comparison["changed"]] == ["changed"]
    assert [row["case"] for row in comparison["added"]] == ["new"]
    assert [row["case"] for row in comparison["removed"]] == ["gone"]
    assert [(row["case"], row["n"]) for row in comparison["groups"]] == [("kept", [3, 4])]


def test_without_a_shared_case_there_is_no_verdict_b19(project: Project) -> None:
    project.case("one")
    project.run("--trials", "2")
    (project.path / "cases/execution/one.yaml").unlink()
    project.case("two")
    result = project.run("--trials", "2", "--compare-baseline", "latest")
    comparison = project.report()["comparison"]
    assert comparison["comparable"] is False
    assert comparison["overall"]["verdict"] == "not comparable"
    result.stdout.fnmatch_lines(["*no case of this run is in the baseline*"])


def test_a_candidate_of_errors_alone_is_never_regressed_b14(project: Project) -> None:
    project.case("greet")
    project.run("--trials", "5")
    project.write("cases/execution/greet.sh", "echo hello > out.txt\n")
    project.case("greet", workspace={"setup": [{"run": ["sh", "-c", "test ! -e /nonexistent"]}]})
    project.run("--trials", "5")
    good = (project.path / ".skilleval/latest").resolve().name
    # The fingerprint stays: only the world around the case breaks.
    project.write("conftest.py", "import pytest_skilleval.stage as s\ns.Stage.prepare = lambda self: 1 / 0\n")
    result = project.run("--trials", "5", "--compare-baseline", good)
    report = project.report()
    assert report["run"]["status"] == "invalid"
    assert report["comparison"]["overall"]["verdict"] == "not comparable"
    assert result.ret == 1


def test_a_design_that_cannot_conclude_says_so_before_the_first_agent(project: Project) -> None:
    project.case(rate=0.5)
    project.run("--trials", "2")
    result = project.run("--trials", "2", "--compare-baseline", "latest")
    result.stdout.fnmatch_lines(["skilleval: 2 trials cannot give a group a verdict*"])


def test_decided_gates_spare_trials_and_stay_as_they_would_be(project: Project) -> None:
    project.case("bad", rate=0.0, min_pass_rate=0.8)
    project.case("good", rate=1.0, min_pass_rate=0.3)
    result = project.run("--trials", "10", "--skilleval-stop", "decided", "-p", "no:cacheprovider")
    assert result.ret == 1
    groups = {row["case"]: row for row in project.report()["groups"]}
    # 5 failed of 10: even 5 of 10 has an upper end of 0.763, below 0.8. One passed of 10: 0.404, not below 0.3.
    assert (groups["bad"]["failed"], groups["bad"]["not_needed"], groups["bad"]["missing"]) == (5, 5, 0)
    assert (groups["good"]["passed"], groups["good"]["not_needed"]) == (1, 9)
    assert project.report()["run"]["status"] == "finished"
    result.stdout.fnmatch_lines(["*execution:bad:none*below min_pass_rate 0.8*"])


def test_a_gate_that_cannot_be_red_spares_no_trial_and_says_how_many_it_needs(project: Project) -> None:
    project.case(rate=0.0, min_pass_rate=0.7)
    result = project.run("--skilleval-stop", "decided")
    assert result.ret == 0, "a control that is missed is never red by itself"
    report = project.report()
    assert report["run"]["counts"] == {"passed": 0, "failed": 1, "error": 0, "missing": 0}
    # Wilson: the upper end of 0 of 1 is 0.793, of 0 of 2 it is 0.658.
    (note,) = [note for note in report["run"]["notes"] if "--skilleval-stop" in note]
    assert note.endswith("min_pass_rate 0.7 cannot be red with 1, only with 2 or more")


@pytest.mark.parametrize("flag", ["--compare-baseline=latest", "--skilleval-against=git:HEAD"])
def test_a_comparison_and_early_stopping_do_not_go_together(project: Project, flag: str) -> None:
    project.case(min_pass_rate=0.7)
    result = project.run("--skilleval-stop=decided", flag)
    assert result.ret == 4
    assert "a comparison needs the trials that no gate needs" in result.stderr.str()


def test_a_spent_budget_leaves_the_rest_not_run(project: Project) -> None:
    project.case(rate=1.0, stub={"solve_rate": 1.0, "tokens": 1000})
    result = project.run("--trials", "6", "--skilleval-budget", "tokens=3k")
    assert result.ret == 2
    report = project.report()
    assert report["run"]["counts"] == {"passed": 3, "failed": 0, "error": 0, "missing": 3}
    assert {trial["reason"] for trial in report["trials"][3:]} == {"not run: budget: tokens=3000 is spent (3000)"}
    result.stdout.fnmatch_lines(["*3 of 6 planned trials have no result*3 not run: budget: tokens=3000 is spent*"])


def test_near_misses_decide_too_since_their_agents_could_see_the_changed_skill(project: Project) -> None:
    project.skill(body="Old text.")

    def write(near: float) -> None:
        cases = [
            {"id": f"{word}-{number}", "skill": skill, "stub": {"solve_rate": rate, "failure_answer": "goodbye"}}
            for word, skill, rate in (("hit", "greeter", 0.95), ("near", "none", near))
            for number in range(8)
        ]
        shared = {"prompt": "Greet.", "expect": ["hello"], "answer": "hello", "conditions": ["none", "self-load"]}
        project.write("cases/prompt/many.json", json.dumps({"cases": [case | shared for case in cases]}))

    write(0.95)
    assert project.run("--trials", "6").ret == 0
    project.skill(body="New text, and a description that triggers too often.")
    write(0.05)
    assert project.run("--trials", "6", "--compare-baseline", "latest").ret == 1
    comparison = project.report()["comparison"]
    assert {(row["case"][:4], row["condition"]): row["deciding"] for row in comparison["groups"]} == {
        ("hit-", "none"): False,
        ("hit-", "self-load"): True,
        ("near", "none"): False,
        ("near", "self-load"): True,
    }
    assert comparison["overall"]["verdict"] == "regressed"
