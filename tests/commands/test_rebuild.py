"""`skilleval rebuild`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_skilleval.model import TrialId

if TYPE_CHECKING:
    from tests.commands.conftest import Shell

FORMATS = ("report.json", "report.md", "report.html")


@pytest.fixture
def project(shell: Shell, stub_project: Path) -> list[Path]:
    """The folders of the two real runs, oldest first, in a project of this test's own."""
    shutil.copytree(stub_project / ".skilleval", shell.folder / ".skilleval", symlinks=True)
    return sorted((shell.folder / ".skilleval/runs").iterdir())


@pytest.mark.parametrize("which", [0, 1])
def test_a_finished_run_gets_the_bytes_it_had(shell: Shell, project: list[Path], which: int) -> None:
    run = project[which]
    before = {name: (run / name).read_bytes() for name in FORMATS}
    assert json.loads(before["report.json"])["comparison"] is None or which == 1
    for name in FORMATS[1:]:
        (run / name).unlink()
    said = shell("rebuild", run.name)
    assert said.status == 0, said.err
    assert {name: (run / name).read_bytes() for name in FORMATS} == before


def test_without_its_report_only_the_time_of_its_end_may_differ(shell: Shell, project: list[Path]) -> None:
    run = project[1]
    before = json.loads((run / "report.json").read_text())
    (run / "report.json").unlink()
    assert shell("rebuild", run.name).status == 0
    after = json.loads((run / "report.json").read_text())
    assert after["comparison"]["baseline"]["run"] == project[0].name
    before["run"].pop("finished")
    after["run"].pop("finished")
    assert after == before


def test_a_killed_run_is_interrupted_names_what_is_missing_and_ends_with_2(shell: Shell) -> None:
    shell.run("r1", {"one:self-load": "pf.", "two:self-load": "p-"})
    said = shell("rebuild", "r1", "--json")
    assert said.status == 2
    assert said.json["status"] == "interrupted"
    assert said.json["missing"] == ["execution:one:self-load:3", "execution:two:self-load:2"]
    assert said.json["counts"] == {"passed": 2, "failed": 1, "error": 0, "missing": 2}
    assert "execution:one:self-load:3" in said.err
    assert "--skilleval-resume=r1" in said.err
    report = json.loads((shell.output / "r1/report.json").read_text())
    # The newest record started at 1780000000 and took 2 s.
    assert report["run"]["finished"] == "2026-05-28T20:26:42Z"
    assert [trial["reason"] for trial in report["trials"] if trial["outcome"] == "missing"] == [
        "started, but never finished",
        "never started",
    ]


def test_rebuilding_twice_changes_nothing(shell: Shell) -> None:
    run = shell.run("r1", {"one:self-load": "pf.", "one:none": "fff"})
    assert shell("rebuild", "r1").status == 2
    before = {name: (run / name).read_bytes() for name in FORMATS}
    assert shell("rebuild", "r1").status == 2
    assert {name: (run / name).read_bytes() for name in FORMATS} == before


def test_a_torn_record_is_named_and_counted_as_missing(shell: Shell) -> None:
    run = shell.run("r1", {"one:self-load": "pp"})
    record = run / "trials" / TrialId("execution", "one", "self-load", 2).folder / "record.json"
    record.write_bytes(record.read_bytes()[:-20])
    said = shell("rebuild", "r1", "--json")
    assert said.status == 2
    assert said.json["missing"] == ["execution:one:self-load:2"]
    assert any("torn" in reason for reason in said.json["reasons"])


def test_a_record_of_another_run_is_foreign(shell: Shell) -> None:
    run, other = shell.run("r1", {"one:self-load": "pp"}), shell.run("r2", {"one:self-load": "ff"})
    name = TrialId("execution", "one", "self-load", 2).folder
    shutil.copy(other / "trials" / name / "record.json", run / "trials" / name / "record.json")
    said = shell("rebuild", "r1", "--json")
    assert said.json["missing"] == ["execution:one:self-load:2"]
    assert any("of run r2" in reason for reason in said.json["reasons"])


def test_what_a_run_was_judged_by_is_kept_in_its_plan(shell: Shell) -> None:
    shell.run("r1", {"one:self-load": "pppe"}, max_errors=0.2, gate="never")
    shell.run("r2", {"one:self-load": "pppe"}, max_errors=0.3)
    assert shell("rebuild", "r1", "--json").json["status"] == "invalid"
    assert shell("rebuild", "r2", "--json").json["status"] == "finished"
    assert json.loads((shell.output / "r1/report.json").read_text())["gate"]["mode"] == "never"


def test_a_baseline_that_has_changed_is_refused_and_two_ways_out_are_offered(shell: Shell, project: list[Path]) -> None:
    with (project[0] / "report.json").open("a") as file:
        file.write("\n")
    said = shell("rebuild", project[1].name)
    assert said.status == 4
    assert "gone or has changed" in said.err
    assert shell("rebuild", project[1].name, "--no-baseline").status == 0
    report = json.loads((project[1] / "report.json").read_text())
    assert report["comparison"] is None
    assert shell("rebuild", project[1].name, "--baseline", project[0].name).status == 0
    report = json.loads((project[1] / "report.json").read_text())
    assert report["comparison"]["baseline"]["run"] == project[0].name


def test_a_baseline_that_was_blessed_is_found_when_its_run_is_gone(shell: Shell, project: list[Path]) -> None:
    before = (project[1] / "report.json").read_bytes()
    assert shell("bless", project[0].name, "main").status == 0
    shutil.rmtree(project[0])
    assert shell("rebuild", project[1].name).status == 0
    assert (project[1] / "report.json").read_bytes() == before


def test_a_report_that_cannot_be_written_is_said_and_the_others_are(shell: Shell) -> None:
    run = shell.run("r1", {"one:self-load": "p"})
    (run / "report.md").mkdir()
    said = shell("rebuild", "r1", "--json")
    assert said.status == 1
    assert "report.md" in said.json["problems"][0]
    assert (run / "report.json").is_file()
    assert (run / "report.html").is_file()


def test_a_report_alone_cannot_be_rebuilt(shell: Shell) -> None:
    run = shell.judged("r1", {"one:self-load": "p"})
    (shell.folder / "report.json").write_bytes((run / "report.json").read_bytes())
    said = shell("rebuild", "report.json")
    assert said.status == 4
    assert "a report alone" in said.err


def test_a_plan_that_cannot_be_trusted_is_said_in_one_line(shell: Shell) -> None:
    run = shell.run("r1", {"one:self-load": "p"})
    (run / "plan.json").write_text("{")
    said = shell("rebuild", "r1")
    assert said.status == 4
    assert "plan.json" in said.err
    assert said.err.count("\n") == 1
