"""`skilleval list`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_skilleval.journal import hold

if TYPE_CHECKING:
    from tests.commands.conftest import Shell


def test_runs_are_listed_newest_first_with_their_counts_and_names(shell: Shell) -> None:
    shell.judged("20260101T000000Z-aaaa", {"one:self-load": "ppf"})
    shell.judged("20260102T000000Z-bbbb", {"one:self-load": "ppe"}, max_errors=0.5)
    assert shell("bless", "20260101T000000Z-aaaa", "main").status == 0
    said = shell("list")
    assert said.status == 0
    rows = [line.split() for line in said.out.splitlines()[2:]]
    started = "2026-05-28T20:26:40Z"
    assert rows == [
        ["20260102T000000Z-bbbb", "finished", "stub", "3", "2", "0", "1", "0", started],
        ["20260101T000000Z-aaaa", "finished", "stub", "3", "2", "1", "0", "0", started, "main"],
    ]


def test_json_holds_the_same_as_one_object(shell: Shell) -> None:
    shell.judged("r1", {"one:self-load": "pf"})
    shell("bless", "r1", "main")
    value = shell("list", "--json").json
    assert [(run["id"], run["status"], run["blessed"]) for run in value["runs"]] == [("r1", "finished", ["main"])]
    assert value["runs"][0]["counts"] == {"passed": 1, "failed": 1, "error": 0, "missing": 0}
    assert value["blessed"] == [{"name": "main", "run": "r1", "path": str(shell.output.parent / "blessed/main")}]


def test_a_blessed_name_stays_when_its_run_is_gone(shell: Shell) -> None:
    run = shell.judged("r0", {"one:self-load": "p"})
    shell("bless", "r0", "main")
    shutil.rmtree(run)
    value = shell("list", "--json").json
    assert value["runs"] == []
    assert [(row["name"], row["run"]) for row in value["blessed"]] == [("main", "r0")]


def test_a_run_without_a_report_is_unfinished_and_says_how_far_it_is(shell: Shell) -> None:
    shell.run("r1", {"one:self-load": "pf.-"})
    (row,) = shell("list", "--json").json["runs"]
    assert row["status"] == "unfinished"
    assert row["counts"] is None
    assert "2 of 4 trials are recorded" in row["reason"]
    assert "unfinished" in shell("list").out


@pytest.mark.parametrize("text", ["", "{}", '{"checksum": "00", "body": {}}', "\0\1"])
def test_a_damaged_plan_is_listed_as_damaged_and_hides_no_other_run(shell: Shell, text: str) -> None:
    shell.judged("r1", {"one:self-load": "p"})
    (shell.run("r2", {"one:self-load": "p"}) / "plan.json").write_text(text)
    said = shell("list", "--json")
    assert said.status == 0
    assert [(row["id"], row["status"]) for row in said.json["runs"]] == [("r2", "damaged"), ("r1", "finished")]


def test_a_run_that_is_being_worked_on_is_running_and_not_merged(shell: Shell) -> None:
    folder = shell.run("r1", {"one:self-load": "p-"})
    shell.run("r2", {"two:self-load": "p"})
    descriptor = hold(folder)
    try:
        assert [row["status"] for row in shell("list", "--json").json["runs"]] == ["unfinished", "running"]
        assert "still running" in shell("merge", "r1", "r2").err
        said = shell("rebuild", "r1")
        assert said.status == 2
        assert "still running" in said.err
        assert [row["status"] for row in shell("list", "--json").json["runs"]] == ["unfinished", "running"]
    finally:
        os.close(descriptor)
    assert [row["status"] for row in shell("list", "--json").json["runs"]] == ["unfinished", "interrupted"]


def test_a_torn_report_is_no_reason_to_list_nothing(shell: Shell) -> None:
    folder = shell.judged("r1", {"one:self-load": "p"})
    (folder / "report.json").write_text('{"schema": "skilleval-report/1", "run": {"id"')
    (row,) = shell("list", "--json").json["runs"]
    assert row["status"] == "unfinished"


def test_no_runs_is_no_mistake(shell: Shell) -> None:
    said = shell("list", "--json")
    assert said.status == 0
    assert said.json["runs"] == []
    assert "no runs in" in said.err


def test_the_project_is_found_from_any_folder_below_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.judged("r1", {"one:self-load": "p"})
    below = shell.folder / "src/deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert [row["id"] for row in shell("list", "--json").json["runs"]] == ["r1"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\nskilleval_output = evals/out\n"),
        ("pyproject.toml", '[tool.pytest]\nskilleval_output = "evals/out"\n'),
        ("pyproject.toml", '[tool.pytest.ini_options]\nskilleval_output = "evals/out"\n'),
        ("pytest.toml", '[pytest]\nskilleval_output = "evals/out"\n'),
    ],
)
def test_the_projects_own_output_folder_is_where_runs_are_looked_for(shell: Shell, name: str, text: str) -> None:
    (shell.folder / "pytest.ini").unlink()
    (shell.folder / name).write_text(text)
    shell.output = shell.folder / "evals/out"
    shell.judged("r1", {"one:self-load": "p"})
    assert [row["id"] for row in shell("list", "--json").json["runs"]] == ["r1"]


def test_output_names_another_folder(shell: Shell, tmp_path: Path) -> None:
    shell.output = tmp_path / "elsewhere"
    shell.run("r1", {"one:self-load": "p"})
    assert [row["id"] for row in shell("list", "--json", "--output", "elsewhere").json["runs"]] == ["r1"]
