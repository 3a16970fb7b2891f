"""--skilleval-against: an older version of the skill runs beside the current one, and the verdict needs no second run."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project

NEW = "Say hello, and the name."


def old_skill(project: Project, body: str = "Say hello.") -> None:
    """Write the version that is compared with, into a folder of its own."""
    text = f"---\nname: greeter\ndescription: Greets people by name.\n---\n\n{body}\n"
    project.write("old/greeter/SKILL.md", text)


def suite(project: Project, rates: dict[str, float], *, cases: int = 24, **more: Any) -> None:
    """Write prompt cases that start no process, with rates for both sides."""
    project.skill(body=NEW)
    case = {
        "skill": "greeter",
        "expect": ["hello"],
        "answer": "hello",
        "conditions": ["none", "self-load"],
        "stub": {"solve_rate": rates, "failure_answer": "goodbye"},
        **more,
    }
    rows = [{**case, "id": f"case-{number:02d}", "prompt": f"Greet {number}."} for number in range(cases)]
    project.write("cases/prompt/many.json", json.dumps({"cases": rows}))


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_a_better_skill_is_improved_in_one_run(any_mode: Project) -> None:
    old_skill(any_mode)
    suite(any_mode, {"none": 0.2, "self-load": 0.9, "self-load@base": 0.4})
    result = any_mode.run("--trials", "5", "--skilleval-against", "old")
    assert result.ret == 0
    report = any_mode.report()
    comparison = report["comparison"]
    assert (comparison["kind"], comparison["overall"]["verdict"]) == ("changed", "improved")
    assert comparison["overall"]["pass_rate"]["delta"] > 0
    assert comparison["baseline"]["reference"] == "old"
    (pair,) = comparison["skills"]
    (current,) = report["run"]["skills"]
    assert pair["candidate"] == current["digest"] != pair["baseline"]
    # 24 cases, 5 trials: none once, self-load on both sides.
    assert sum(report["run"]["counts"].values()) == 24 * 5 * 3
    # Everything else in the report is the candidate's alone.
    assert {row["condition"] for row in report["groups"]} == {"none", "self-load"} == set(report["run"]["conditions"])
    assert {row["condition"] for row in comparison["groups"]} == {"self-load"}
    assert {row["condition"] for row in report["baseline_groups"]} == {"self-load@base"}
    assert {(row["n"], row["skill_digest"]) for row in report["baseline_groups"]} == {(5, pair["baseline"])}
    seen = {(line["condition"], line["exposure"]["digest"]) for line in report["trials"]}
    assert seen == {("none", None), ("self-load", pair["candidate"]), ("self-load@base", pair["baseline"])}
    short = f"greeter {pair['baseline'][:8]} -> {pair['candidate'][:8]}"
    result.stdout.fnmatch_lines(
        [f"skilleval: against old, both sides in this run: {short}", "*against old (in this run)*", "improved: *"]
    )


def test_a_worse_skill_is_regressed_and_red(project: Project) -> None:
    old_skill(project)
    suite(project, {"self-load": 0.4, "self-load@base": 0.9}, conditions=["self-load"])
    assert project.run("--trials", "5", "--skilleval-against", "old").ret == 1
    assert project.report()["comparison"]["overall"]["verdict"] == "regressed"
    assert any("overall" in reason for reason in project.report()["gate"]["reasons"])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_versions_of_equal_rates_are_inconclusive(project: Project, seed: int) -> None:
    old_skill(project)
    suite(project, {"self-load": 0.7}, conditions=["self-load"])
    result = project.run("--trials", "5", "--skilleval-against", "old", "--skilleval-seed", str(seed))
    assert result.ret == 0
    comparison = project.report()["comparison"]
    assert (comparison["kind"], comparison["overall"]["verdict"]) == ("changed", "inconclusive")
    # The two sides are drawn apart: equal rates, not equal trials.
    assert any(row["pass_rate"]["delta"] for row in comparison["groups"])


def test_the_two_sides_take_turns(project: Project) -> None:
    old_skill(project)
    suite(project, {"self-load": 0.7}, cases=1)
    result = project.run("--trials", "2", "--skilleval-against", "old", "--collect-only", "-q")
    names = [line.rpartition("::")[2] for line in result.stdout.lines if "::" in line]
    assert names == ["none-1", "self-load-1", "self-load@base-1", "self-load@base-2", "self-load-2", "none-2"]


def test_a_revision_is_taken_from_git_and_the_same_one_is_an_a_a_comparison(project: Project) -> None:
    project.skill(body="Say hello.")
    git(project.path, "init", "-q")
    git(project.path, "add", "skills")
    git(project.path, "commit", "-qm", "first")
    suite(project, {"self-load": 0.7}, cases=2, conditions=["self-load"])
    assert project.run("--trials", "2", "--skilleval-against", "git:HEAD").ret == 0
    assert project.report()["comparison"]["kind"] == "changed"
    git(project.path, "commit", "-qam", "second")
    result = project.run("--trials", "2", "--skilleval-against", "git:HEAD")
    assert result.ret == 0
    comparison = project.report()["comparison"]
    assert (comparison["kind"], comparison["overall"]["verdict"]) == ("A/A", "inconclusive")
    result.stdout.fnmatch_lines(["*against git:HEAD: nothing differs; this is an A/A comparison*"])


def test_a_skill_that_was_not_changed_is_a_control(project: Project) -> None:
    old_skill(project)
    suite(project, {"preloaded": 0.7}, cases=2, conditions=["preloaded"])
    wave = project.skill("waver", body="Wave.")
    project.case("wave", lane="prompt", skill="waver", conditions=["preloaded"], checks=[], expect=["x"], answer="x")
    result = project.run("--skilleval-against", "old")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--skilleval-against=old: *holds no skill 'waver'*"])
    project.write("old/waver/SKILL.md", wave.read_text())
    assert project.run("--trials", "2", "--skilleval-against", "old").ret == 0
    groups = {row["case"]: row["deciding"] for row in project.report()["comparison"]["groups"]}
    assert groups == {"case-00": True, "case-01": True, "wave": False}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("old", "--compare-baseline", "latest"), "a run has one baseline"),
        (("nowhere",), "holds no skill 'greeter'"),
        (("git:HEAD",), "git knows no such commit"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_the_first_agent(
    project: Project, words: tuple[str, ...], wanted: str
) -> None:
    old_skill(project)
    suite(project, {"self-load": 0.7}, cases=1)
    result = project.run("--skilleval-against", *words)
    assert result.ret == 4
    assert wanted in result.stderr.str()
    assert not (project.path / ".skilleval").exists()


def test_a_failed_trial_of_the_older_skill_is_missed_and_gates_are_the_candidates(project: Project) -> None:
    old_skill(project)
    suite(project, {"self-load": 1.0, "self-load@base": 0.0}, cases=1, conditions=["self-load"], min_pass_rate=0.9)
    result = project.run("--skilleval-against", "old")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*1 missed*"])
