"""Killed runs taken up again: what runs, what is refused, and that nothing is bought twice."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.journal import read_plan, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Project

KILL = """
import os, signal

def pytest_skilleval_trial_finished(config, record):
    with open(config.rootpath / "calls.txt", "a") as file:
        file.write(record.id.key + "\\n")
    if os.environ.get("KILL_AT") == str(record.trial):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def calls(project: Project) -> list[str]:
    path = project.path / "calls.txt"
    return path.read_text().split() if path.exists() else []


def test_a_killed_run_is_resumed_and_equals_one_that_was_not(
    any_mode: Project, strip_volatile: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    any_mode.case(rate=0.5)
    any_mode.run("--trials", "6")
    whole = strip_volatile(any_mode.report())

    any_mode.write("conftest.py", KILL)
    mode, any_mode.mode = any_mode.mode, ()
    any_mode.run("--trials", "6", env={"KILL_AT": "3"})
    any_mode.mode = mode
    assert len(calls(any_mode)) == 3
    result = any_mode.run("--trials", "6", "--skilleval-resume")
    assert result.ret == 0
    assert sorted(calls(any_mode)) == [f"execution:greet:none:{number}" for number in range(1, 7)]
    assert strip_volatile(any_mode.report()) == whole


def test_a_finished_run_has_nothing_left_to_do_b04(project: Project) -> None:
    project.case(rate=0.5)
    project.write("conftest.py", KILL)
    project.run("--trials", "4", env={"KILL_AT": "2"})
    assert project.run("--trials", "4", "--skilleval-resume").ret == 0
    done = calls(project)
    before = {path: path.read_bytes() for path in project.path.glob(".skilleval/runs/*/trials/*/record.json")}
    for _ in range(2):
        assert project.run("--trials", "4", "--skilleval-resume").ret == 0
    assert calls(project) == done
    assert before == {path: path.read_bytes() for path in project.path.glob(".skilleval/runs/*/trials/*/record.json")}
    assert len(before) == 4


def test_a_change_since_is_refused_and_named(project: Project) -> None:
    project.case(rate=0.5)
    project.write("conftest.py", KILL)
    project.run("--trials", "4", env={"KILL_AT": "2"})
    result = project.run("--trials", "4", "--skilleval-resume", "--skilleval-seed", "7")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*seed was 0 and is 7*start a new run*"])
    project.case(rate=0.5, prompt="Something else is asked.")
    result = project.run("--trials", "4", "--skilleval-resume")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*case execution:greet changed*"])
    assert len(calls(project)) == 2


def test_trials_are_matched_by_identity_and_not_by_position_b24(project: Project) -> None:
    for name in ("a", "b", "c"):
        project.case(name, rate=1.0)
    project.write("conftest.py", KILL)
    project.run()
    run = (project.path / ".skilleval/latest").resolve().name
    assert len(calls(project)) == 3
    project.case("a0", rate=1.0)
    (project.path / "cases/execution/b.yaml").unlink()
    assert project.run(f"--skilleval-resume={run}").ret == 0
    assert calls(project)[3:] == ["execution:a0:none:1"]
    report = project.report()
    assert [trial["case"] for trial in report["trials"]] == ["a", "a0", "b", "c"]
    assert "in the journal, no longer collected: execution:b:none:1" in report["timing"]["events"]


def test_a_resumed_run_has_the_number_of_trials_that_were_planned(any_mode: Project) -> None:
    any_mode.case(rate=1.0)
    any_mode.write("conftest.py", KILL)
    mode, any_mode.mode = any_mode.mode, ()
    any_mode.run("--trials", "5", env={"KILL_AT": "2"})
    any_mode.mode = mode
    result = any_mode.run("--trials", "3", "--skilleval-resume")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--trials=3*: 5 were planned; leave --trials out, or give at least 5"])
    assert any_mode.run("--skilleval-resume").ret == 0
    assert sorted(calls(any_mode)) == [f"execution:greet:none:{number}" for number in range(1, 6)]
    report = any_mode.report()
    assert (report["run"]["trials"], report["run"]["counts"]["passed"]) == (5, 5)
    assert any_mode.run("--skilleval-resume", "--trials", "6").ret == 0
    report = any_mode.report()
    assert (report["run"]["trials"], report["run"]["counts"]["passed"]) == (6, 6)
    assert len(calls(any_mode)) == 6


def test_a_planned_trial_that_is_not_collected_any_more_is_missing_and_named(project: Project) -> None:
    for name in ("a", "b", "c"):
        project.case(name, rate=1.0)
    project.write("conftest.py", KILL.replace("str(record.trial)", "record.case"))
    project.run(env={"KILL_AT": "a"})
    result = project.run("--skilleval-resume", "-k", "b")
    assert result.ret == 2
    report = project.report()
    assert report["run"]["status"] == "interrupted"
    assert report["run"]["counts"] == {"passed": 2, "failed": 0, "error": 0, "missing": 1}
    note = "planned, not collected any more, and without a result: execution:c:none:1"
    assert report["run"]["notes"][-1] == note
    result.stdout.fnmatch_lines([f"note: {note}", "next: pytest *--skilleval-resume=* *"])
    # What is missing runs once it is collected again, and the note is gone.
    assert project.run("--skilleval-resume").ret == 0
    assert project.report()["run"]["counts"]["passed"] == 3
    assert note not in project.report()["run"]["notes"]


def test_a_trial_is_what_is_collected_now(project: Project) -> None:
    project.case(rate=0.0, min_pass_rate=0.0)
    project.write("conftest.py", KILL)
    project.run("--trials", "6", env={"KILL_AT": "1"})
    project.case(rate=0.0, min_pass_rate=0.9)
    assert project.run("--skilleval-resume").ret == 1
    (group,) = project.report()["groups"]
    assert group["min_pass_rate"] == 0.9


def test_errors_run_again_and_failures_do_not(project: Project) -> None:
    project.case("bad", rate=0.0)
    project.case("broken", workspace={"setup": [{"run": ["test", "-e", str(project.path / "repaired")]}]})
    project.write("conftest.py", KILL)
    assert project.run().ret == 1
    project.write("repaired", "")
    run = (project.path / ".skilleval/latest").resolve().name
    result = project.run(f"--skilleval-resume={run}")
    assert result.ret == 0
    assert calls(project)[2:] == ["execution:broken:none:1"]
    assert project.outcomes() == {"passed": 1, "failed": 1}


def test_a_run_that_is_not_there_is_refused_with_those_that_are(project: Project) -> None:
    project.case()
    result = project.run("--skilleval-resume=nothing")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--skilleval-resume=nothing: no such run*"])


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--skilleval-shard=2/2", "--skilleval-method=paired-bootstrap"],
            "--skilleval-method was exact and is paired-bootstrap",
        ),
        (["--skilleval-shard=1/2"], "--skilleval-shard was 2/2 and is 1/2"),
        ([], "--skilleval-shard was 2/2 and is default"),
    ],
)
def test_another_method_or_share_is_refused(project: Project, flags: list[str], said: str) -> None:
    # SHA-256 of `execution:one` is even, that of `execution:two` odd.
    for name in ("one", "two"):
        project.case(name)
    project.write("conftest.py", KILL)
    project.run("--trials", "2", "--skilleval-shard=2/2", env={"KILL_AT": "1"})
    result = project.run("--skilleval-resume", *flags)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{said}*start a new run*"])


def test_a_change_of_any_skill_is_refused_and_another_version_of_the_provider_is_noted(project: Project) -> None:
    project.case()
    beside = project.skill("beside")
    project.write("conftest.py", KILL)
    project.run("--trials", "2", env={"KILL_AT": "1"})
    project.skill("beside", body="Something else.")
    project.skill("more")
    result = project.run("--skilleval-resume")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*skill beside changed; skill more is new*start a new run*"])
    shutil.rmtree(beside.parent)
    result = project.run("--skilleval-resume")
    result.stderr.fnmatch_lines(["*skill beside is gone; skill more is new*"])
    shutil.rmtree(project.path / "skills/more")
    project.skill("beside")
    run = next((project.path / ".skilleval/runs").iterdir())
    plan = read_plan(run)
    write_plan(run, plan.model_copy(update={"provider": plan.provider.model_copy(update={"version": "0.0"})}))
    project.write("conftest.py", "")
    assert project.run("--skilleval-resume").ret == 0
    (note,) = [note for note in project.report()["run"]["notes"] if "version" in note]
    assert note.startswith("the provider's version was 0.0 and is ")


@pytest.mark.parametrize("reference", ["", "=latest"])
def test_a_damaged_plan_is_a_mistake_in_one_line(project: Project, reference: str) -> None:
    project.case()
    assert project.run().ret == 0
    plan = project.path / ".skilleval/latest/plan.json"
    plan.write_text(plan.read_text()[:-20])
    result = project.run(f"--skilleval-resume{reference}")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --skilleval-resume=*plan.json: torn*start a new run*"])


def test_a_baseline_without_a_report_has_the_method_of_its_plan(project: Project) -> None:
    project.case()
    assert project.run("--trials", "2").ret == 0
    (project.path / ".skilleval/latest/report.json").unlink()
    result = project.run("--compare-baseline=latest", "--skilleval-method=paired-bootstrap")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*method*exact*paired-bootstrap*"])


def test_events_of_a_resumed_run_are_written(project: Project) -> None:
    project.case(stub={"solve_rate": 1.0, "tokens": 1000})
    assert project.run("--trials", "3", "--skilleval-budget", "tokens=1k").ret == 2
    assert project.run("--skilleval-resume", "--skilleval-report", "jsonl=events.jsonl").ret == 0
    kinds = [json.loads(line)["event"] for line in (project.path / "events.jsonl").read_text().splitlines()]
    assert kinds.count("trial_finished") == 2, "one trial was done before"
