"""`skilleval merge`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.journal import Journal, read_plan
from pytest_skilleval.model import TrialId
from pytest_skilleval.records import Judging

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Shell


def merged(shell: Shell, *words: str, status: int = 0) -> dict[str, Any]:
    said = shell("merge", *words, "--json")
    assert said.status == status, said.err
    report: dict[str, Any] = json.loads((shell.output / said.json["run"] / "report.json").read_text())
    assert report["run"]["id"] == said.json["run"]
    return report


def test_shards_become_one_run_with_all_their_trials(shell: Shell) -> None:
    shell.run("s1", {"one:self-load": "pf", "one:none": "ff"})
    shell.run("s2", {"two:self-load": "pp"})
    report = merged(shell, "s1", "s2")
    assert report["run"]["counts"] == {"passed": 3, "failed": 3, "error": 0, "missing": 0}
    assert report["run"]["planned"] == 6
    assert [(row["case"], row["condition"], row["n"]) for row in report["groups"]] == [
        ("one", "none", 2),
        ("one", "self-load", 2),
        ("two", "self-load", 2),
    ]
    assert any("merged from s1 (4 trials), s2 (2 trials)" in note for note in report["run"]["notes"])
    assert (shell.folder / ".skilleval/latest").resolve().name == report["run"]["id"]


def test_files_of_the_trials_come_along_and_are_found_where_the_report_says(shell: Shell) -> None:
    shell.run("r1", {"one:self-load": "pf"})
    shell.run("r2", {"one:self-load": "fp"}, seed=1)
    bundle = shell.output / "r2" / TrialId("execution", "one", "self-load", 1).bundle
    bundle.mkdir(parents=True)
    (bundle / "manifest.json").write_text("[]")
    report = merged(shell, "r1", "r2", "--repeats")
    folder = shell.output / report["run"]["id"]
    texts = {trial["key"]: (folder / trial["transcript"]["path"]).read_text() for trial in report["trials"]}
    # The second run's trials are numbered on: its first is the third.
    assert texts == {
        "execution:one:self-load:1": "what the agent did in execution:one:self-load:1",
        "execution:one:self-load:2": "what the agent did in execution:one:self-load:2",
        "execution:one:self-load:3": "what the agent did in execution:one:self-load:1",
        "execution:one:self-load:4": "what the agent did in execution:one:self-load:2",
    }
    assert [trial["outcome"] for trial in report["trials"]] == ["passed", "failed", "failed", "passed"]
    assert (folder / TrialId("execution", "one", "self-load", 3).bundle / "manifest.json").is_file()


def test_the_merged_run_is_a_run_like_any_other(shell: Shell) -> None:
    shell.run("r1", {"one:self-load": "ppf"})
    shell.run("r2", {"one:self-load": "pff"}, seed=1)
    report = merged(shell, "r1", "r2", "--repeats")
    name = report["run"]["id"]
    assert report["run"]["trials"] == 6
    before = (shell.output / name / "report.json").read_bytes()
    assert shell("rebuild", name).status == 0
    assert (shell.output / name / "report.json").read_bytes() == before
    assert shell("bless", name, "main").status == 0
    assert [row["id"] for row in shell("list", "--json").json["runs"]] == ["r2", "r1", name]
    journal = Journal(shell.output / name, name)
    assert all(journal.read(TrialId("execution", "one", "self-load", n)).damage == () for n in range(1, 7))


def test_a_trial_that_is_in_two_runs_is_refused_and_named(shell: Shell) -> None:
    shell.run("s1", {"one:self-load": "pf"})
    shell.run("s2", {"one:self-load": "p", "two:self-load": "p"})
    said = shell("merge", "s1", "s2")
    assert said.status == 4
    assert "execution:one:self-load:1 (in s1 and s2)" in said.err
    assert "--repeats" in said.err
    assert sorted(path.name for path in shell.output.iterdir()) == ["s1", "s2"], "something is left behind"


def test_a_trial_that_was_planned_twice_and_came_home_once_is_taken_from_there(shell: Shell) -> None:
    shell.run("s1", {"one:self-load": "p."})
    shell.run("s2", {"one:self-load": "-f"})
    report = merged(shell, "s1", "s2")
    assert [trial["outcome"] for trial in report["trials"]] == ["passed", "failed"]


def test_what_is_missing_in_a_shard_is_missing_in_the_run(shell: Shell) -> None:
    shell.run("s1", {"one:self-load": "p-"})
    shell.run("s2", {"two:self-load": "p"})
    report = merged(shell, "s1", "s2", status=2)
    assert report["run"]["status"] == "interrupted"
    assert [trial["key"] for trial in report["trials"] if trial["outcome"] == "missing"] == [
        "execution:one:self-load:2"
    ]


def test_a_damaged_record_is_missing_and_said(shell: Shell) -> None:
    run = shell.run("s1", {"one:self-load": "pp"})
    (run / "trials" / TrialId("execution", "one", "self-load", 2).folder / "record.json").write_text("{}")
    shell.run("s2", {"two:self-load": "p"})
    report = merged(shell, "s1", "s2", status=2)
    assert any("journal of s1" in note for note in report["run"]["notes"])


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"provider": "claude"}, "provider stub in s1, claude here"),
        ({"model": "large"}, "model default in s1, large here"),
        ({"seed": 7}, "seed 0 in s1, 7 here"),
        ({"skill": "b" * 64}, "skill greeter differs between s1 and s2"),
        ({"fingerprint": "0" * 16}, "case execution:one differs between s1 and s2"),
        ({"judge": "oracle"}, "judge default in s1, oracle here"),
        ({"judge_repeats": 3}, "judge repeats 1 in s1, 3 here"),
    ],
)
def test_runs_that_measured_something_else_are_refused(shell: Shell, change: dict[str, Any], wanted: str) -> None:
    shell.run("s1", {"one:self-load": "p"})
    shell.run("s2", {"one:preloaded": "p"}, **change)
    said = shell("merge", "s1", "s2")
    assert said.status == 4
    assert wanted in said.err
    assert said.err.count("\n") == 1


def test_the_run_is_judged_by_what_the_first_was_judged_by(shell: Shell) -> None:
    judging: dict[str, Any] = {"judge": "oracle", "judge_repeats": 3, "thresholds": (("pass_rate", 0.2),)}
    shell.run("s1", {"one:self-load": "p"}, gate="never", baseline={"path": "r0", "digest": ""}, **judging)
    shell.run("s2", {"two:self-load": "p"}, **judging)
    plan = read_plan(shell.output / merged(shell, "s1", "s2")["run"]["id"])
    assert plan.judging == Judging(gate="never", **judging)


def test_simulated_repeats_with_one_seed_are_copies_and_refused(shell: Shell) -> None:
    for name in ("r1", "r2"):
        shell.run(name, {"one:self-load": "pf"}, seed=3)
    said = shell("merge", "r1", "r2", "--repeats")
    assert said.status == 4
    assert "--skilleval-seed" in said.err


def test_real_repeats_may_share_a_seed(shell: Shell) -> None:
    for name in ("r1", "r2"):
        shell.run(name, {"one:self-load": "pf"}, provider="claude")
    assert merged(shell, "r1", "r2", "--repeats")["run"]["counts"]["passed"] == 2


@pytest.mark.parametrize("names", [("r1",), ("r1", "r1")])
def test_one_run_is_nothing_to_merge(shell: Shell, names: tuple[str, ...]) -> None:
    shell.run("r1", {"one:self-load": "pf"})
    said = shell("merge", *names)
    assert said.status == 4
    assert said.err.count("\n") == 1


def test_a_run_folder_that_cannot_be_written_leaves_nothing_behind(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run("s1", {"one:self-load": "p"})
    shell.run("s2", {"two:self-load": "p"})

    def full(_folder: Path, _plan: object) -> None:
        raise OSError(28, "No space left on device", "plan.json")

    monkeypatch.setattr("pytest_skilleval.commands.runfolder.write_plan", full)
    said = shell("merge", "s1", "s2")
    assert said.status == 4
    assert "No space left on device" in said.err
    assert sorted(path.name for path in shell.output.iterdir()) == ["s1", "s2"]
