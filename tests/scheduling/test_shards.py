"""Shards: the same share of the cases in every session, and one run in the end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.cli import main
from pytest_skilleval.journal import read_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Project

CASES = ("one", "two", "three", "four")
# SHA-256 of `execution:<case>`, modulo 2: one is even, the others are odd.
SHARDS = {1: {"one"}, 2: {"two", "three", "four"}}
# The same modulo 3.
THIRDS = {"a": 3, "b": 1, "c": 3, "d": 2}


def test_merged_shards_equal_the_unsharded_run(
    project: Project,
    strip_volatile: Callable[[dict[str, Any]], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project.skill()
    for name in CASES:
        project.case(name, rate={"none": 0.3, "self-load": 0.7}, skill="greeter", conditions=["none", "self-load"])
    assert project.run("-n2", "--trials", "3").ret == 0
    whole = strip_volatile(project.report())
    assert whole["run"]["counts"]["failed"] > 0, "the seed drew no failure: the test would prove nothing"
    runs = []
    for number, names in SHARDS.items():
        assert project.run("--trials", "3", f"--skilleval-shard={number}/2").ret == 0
        report = project.report()
        assert {trial["case"] for trial in report["trials"]} == names
        runs.append(report["run"]["id"])
        plan = read_plan(project.path / ".skilleval/runs" / report["run"]["id"])
        assert plan.shard == (number, 2)
    monkeypatch.chdir(project.path)
    assert main(["merge", *runs]) == 0
    merged = strip_volatile(project.report())
    # That it was merged is the one thing that it says beyond the unsharded run.
    notes = merged["run"]["notes"]
    merged["run"]["notes"] = [note for note in notes if not note.startswith("merged from ")]
    assert len(merged["run"]["notes"]) == len(notes) - 1
    assert json.dumps(merged, sort_keys=True) == json.dumps(whole, sort_keys=True)


def test_another_case_moves_none_to_another_shard(project: Project) -> None:
    for name in (*CASES, "five", "six"):
        project.case(name)
    rows = [line for line in project.run("--co", "-q", "--skilleval-shard=1/2").outlines if "::" in line]
    found = {row.split("::")[1] for row in rows}
    assert found & set(CASES) == SHARDS[1]


@pytest.mark.parametrize("how", [(), ("-n0",), ("-n2",)])
def test_a_share_without_a_case_is_no_failure_and_says_where_the_cases_are(
    project: Project, how: tuple[str, ...]
) -> None:
    project.case("two")
    result = project.run(*how, "--skilleval-shard=1/2")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["skilleval: this share holds no case; they are in share 2"])
    assert not (project.path / ".skilleval/runs").exists()


def test_a_selection_that_fits_no_case_is_still_nothing_to_run(project: Project) -> None:
    project.case("two")
    assert project.run("--skilleval-shard=2/2", "-k", "nothing").ret == 5
    assert project.run("--skilleval-shard=2/2", "--skilleval-case=nothing").ret == 5


def test_a_share_that_is_lost_is_missed_when_the_others_are_merged(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in THIRDS:
        project.case(name)
    runs = []
    for number in (1, 2, 3):
        assert project.run(f"--skilleval-shard={number}/3").ret == 0
        report = project.report()
        assert {trial["case"] for trial in report["trials"]} == {name for name, own in THIRDS.items() if own == number}
        runs.append(report["run"]["id"])
    monkeypatch.chdir(project.path)
    assert main(["merge", *runs]) == 0
    assert main(["merge", *runs[:2]]) == 2
    said = "share 3/3 holds cases and is in none of the runs: its trials are not counted"
    assert said in capsys.readouterr().err
    assert said in project.report()["run"]["notes"]
    # A merged run knows which shares it holds, and which it still lacks.
    two = project.report()["run"]["id"]
    assert main(["merge", two, runs[2]]) == 0
    report = project.report()
    assert {trial["case"] for trial in report["trials"]} == set(THIRDS)
    assert not [note for note in report["run"]["notes"] if note.startswith("share ")]
    assert main(["merge", *runs[1:]]) == 2
    assert main(["merge", project.report()["run"]["id"], runs[0]]) == 0


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "1/2/3", "-1/2"])
def test_a_share_that_does_not_exist_is_refused(project: Project, text: str) -> None:
    project.case()
    result = project.run(f"--skilleval-shard={text}")
    assert result.ret == 4
    assert "write I/N with I from 1 to N" in result.stderr.str()
