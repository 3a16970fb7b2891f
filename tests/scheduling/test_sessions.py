"""The scheduler in sessions: caps from the journal's timing, deaths, early ends, other schedulers, mixed sessions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project


def most_at_once(report: dict[str, Any], lane: str = "execution") -> int:
    """Return how many agents ran at the same moment, from the journal's timing."""
    events = []
    for key, row in report["timing"]["trials"].items():
        if key.startswith(lane):
            events += [(row["agent_started"], 1), (row["agent_started"] + row["agent_s"], -1)]
    running = most = 0
    for _, step in sorted(events):
        running += step
        most = max(most, running)
    return most


def sleepers(project: Project, *names: str, sleep: float = 0.4, **more: Any) -> None:
    for name in names:
        project.case(name, stub={"solve_rate": 1.0, "sleep": sleep}, **more)


def test_the_plugins_scheduler_runs_and_its_idle_item_is_seen_nowhere(project: Project) -> None:
    sleepers(project, "one", "two")
    result = project.run(
        "-n3", "-v", "--trials", "3", "--skilleval-cap=kind:agent=2", "--junitxml=junit.xml", "--durations=0"
    )
    assert result.ret == 0
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["scheduling tests via CapScheduler"])
    texts = [result.stdout.str(), (project.path / "junit.xml").read_text()]
    texts += [path.read_text() for path in project.path.glob(".skilleval/latest/report.*")]
    assert len(texts) == 5
    assert not any("skilleval::idle" in text for text in texts)
    report = project.report()
    assert report["run"]["counts"]["passed"] == report["run"]["planned"] == 6
    assert most_at_once(report) == 2
    assert {row["worker"] for row in report["timing"]["trials"].values()} <= {"gw0", "gw1", "gw2"}


@pytest.mark.parametrize("dist", ["load", "worksteal"])
def test_another_dist_goes_before_and_slots_hold_the_cap(project: Project, dist: str) -> None:
    sleepers(project, "one", "two")
    result = project.run("-n3", "-v", "--dist", dist, "--trials", "3", "--skilleval-cap=kind:agent=1")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*CapScheduler*")
    report = project.report()
    assert report["run"]["counts"]["passed"] == 6
    assert most_at_once(report) == 1
    assert max(row["waited_s"] for row in report["timing"]["trials"].values()) > 0.4
    durations = json.loads((project.path / ".skilleval/durations.json").read_text())["stub"]
    waited = sum(row["duration_s"] for row in report["timing"]["trials"].values()) / 6
    assert max(durations.values()) < waited, "waiting for a slot is no part of how long a trial takes"


def test_a_dead_workers_trial_is_an_error_and_all_others_run_within_the_cap(project: Project) -> None:
    project.skill()
    sleepers(project, "one", "two")
    project.write(
        "test_killer.py",
        """
import os, pytest

@pytest.mark.skilleval(conditions=["none"])
def test_killer(skilleval):
    skilleval.run("hi")
    if skilleval.trial == 2:
        os._exit(3)
""",
    )
    result = project.run("-n2", "--trials", "3", "--skilleval-cap=kind:agent=1")
    assert result.ret == 1
    report = project.report()
    found = {trial["key"]: trial["outcome"] for trial in report["trials"]}
    assert len(found) == 9
    assert [key for key, outcome in found.items() if outcome != "passed"] == ["execution:killer:none:2"]
    (lost,) = (trial for trial in report["trials"] if trial["outcome"] == "error")
    assert lost["error"]["class"] == "worker_died"
    assert most_at_once(report) == 1


@pytest.mark.parametrize("flag", ["-x", "--maxfail=1"])
def test_an_early_end_reports_the_rest_as_missing(project: Project, flag: str) -> None:
    project.skill()
    project.case("bad", rate=0.0, skill="greeter", conditions=["self-load"])
    result = project.run("-n2", "--trials", "12", flag)
    assert result.ret == 2
    counts = project.report()["run"]["counts"]
    assert counts["failed"] >= 1
    assert counts["missing"] >= 8, "more than each worker's running trial was handed out after the end"
    assert counts["failed"] + counts["missing"] == 12


def test_mixed_sessions_run_all_and_last_failed_ones_run_again(project: Project) -> None:
    project.case("bad", rate=0.0)
    project.case("good", rate=1.0)
    project.write(
        "test_plain.py", "import pytest\n\n@pytest.mark.parametrize('n', range(5))\ndef test(n):\n    assert n\n"
    )
    result = project.run("-n2", "-v", "--trials", "2", "-p", "cacheprovider")
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 6, "failed": 1, "missed": 2}
    result.stdout.fnmatch_lines(["scheduling tests via CapScheduler"])
    again = project.run("-n2", "--trials", "2", "--lf")
    assert again.parseoutcomes() == {"failed": 1, "missed": 2}


PYTHON = """
import pytest

@pytest.mark.skilleval(conditions=["none"])
def test_sleeps(skilleval):
    skilleval.run("hi")

def test_plain():
    pass
"""


@pytest.mark.parametrize("flags", [("--trials", "4"), ("--skilleval-lane=execution",), ()])
def test_python_cases_alone_run_under_workers_with_and_without_flags(project: Project, flags: tuple[str, ...]) -> None:
    project.write("test_case.py", PYTHON)
    result = project.run("-n2", "-v", *flags)
    assert result.ret == 0
    trials = 4 if "--trials" in flags else 1
    result.assert_outcomes(passed=trials + ("--skilleval-lane=execution" not in flags))
    assert project.outcomes() == {"passed": trials}
    own = "scheduling tests via CapScheduler" in result.stdout.str()
    assert own == bool(flags), "without a flag or a case file nobody knows of evals before workers collect"


def test_workers_that_collect_different_tests_run_nothing_and_the_difference_is_named(project: Project) -> None:
    project.case()
    project.write(
        "test_odd.py",
        """
import os, pytest

@pytest.mark.parametrize("worker", [os.environ.get("PYTEST_XDIST_WORKER")])
def test_odd(worker):
    pass
""",
    )
    result = project.run("-n2")
    assert result.ret != 0
    text = result.stdout.str()
    assert "gw0, gw1 collected different tests: " in text or "gw1, gw0 collected different tests: " in text
    assert "test_odd[gw0]" in text
    assert "INTERNALERROR" not in text
    assert "passed" not in result.parseoutcomes()


def test_ordinary_tests_alone_run_although_a_flag_expects_evals(project: Project) -> None:
    project.write("test_plain.py", "def test_one():\n    pass\n\ndef test_two():\n    pass\n")
    result = project.run("-n2", "--trials", "4")
    assert result.ret == 0
    result.assert_outcomes(passed=2)
    assert not (project.path / ".skilleval").exists()
