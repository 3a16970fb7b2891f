"""Killed runs taken up again: what runs, what is refused, and that nothing is bought twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
