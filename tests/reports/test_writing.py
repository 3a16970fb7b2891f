from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from pytest_skilleval.reports import writing
from pytest_skilleval.reports.writing import report_texts, write_reports, write_step_summary
from pytest_skilleval.results import TrialLine

from .made import group, made, trial, write_trial

if TYPE_CHECKING:
    from tests.conftest import Project


def test_each_format_lies_in_the_run_folder_and_junit_where_it_was_asked_for(tmp_path: Path) -> None:
    written = write_reports(("json", "md", "html", f"junit={tmp_path}/ci/evals.xml"), made(), tmp_path / "run")
    assert written.problems == []
    assert {name: path.relative_to(tmp_path).as_posix() for name, path in written.paths.items()} == {
        "json": "run/report.json",
        "md": "run/report.md",
        "html": "run/report.html",
        "junit": "ci/evals.xml",
    }
    assert json.loads(written.paths["json"].read_text())["schema"] == "skilleval-report/1"
    assert ET.parse(written.paths["junit"]).getroot().tag == "testsuites"


def test_a_format_that_breaks_is_said_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise KeyError("missing piece")

    monkeypatch.setattr(writing.html, "as_html", broken)
    written = write_reports(("html", "md", "json"), made(), tmp_path)
    assert written.problems == [f"{tmp_path}/report.html: KeyError: 'missing piece': this report is not written"]
    assert sorted(written.paths) == ["json", "md"]


def test_a_report_never_replaces_a_link_or_a_folder(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    (tmp_path / "report.html").symlink_to(target)
    (tmp_path / "report.md").mkdir()
    written = write_reports(("html", "md", "json"), made(), tmp_path)
    assert [
        line.endswith("is no regular file; remove it: this report is not written") for line in written.problems
    ] == [True, True]
    assert sorted(written.paths) == ["json"]
    assert target.read_text() == "mine"


def test_a_run_of_two_versions_shows_each_trial_beside_its_twin(tmp_path: Path) -> None:
    ours, theirs = trial("greet", "self-load", 1), trial("greet", "self-load@base", 1)
    write_trial(tmp_path, ours, [{"type": "answer", "text": "what the new skill said"}])
    write_trial(tmp_path, theirs, [{"type": "answer", "text": "what the old skill said"}])
    report = made((), {}, trials=[ours], baseline_groups=[group("greet", "self-load@base", ["passed"])])
    report = report.model_copy(update={"trials": (*report.trials, TrialLine.model_validate(theirs))})
    [(_, text)] = report_texts("html", report, tmp_path, tmp_path / "report.html")
    after = text.partition('<div class="pair">')[2]
    assert after.index("what the new skill said") < after.index("what the old skill said")


def test_a_steps_summary_is_appended_to(tmp_path: Path) -> None:
    place = tmp_path / "summary.md"
    place.write_text("before\n")
    assert write_step_summary(made(), str(place)) == []
    lines = place.read_text().splitlines()
    assert lines[:4] == ["before", "# Measured", "", "**stub: simulated, no agent was run**"]


def test_a_summary_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    assert write_step_summary(made(), str(tmp_path)) == [
        f"GITHUB_STEP_SUMMARY={tmp_path}: Is a directory: the summary is not written"
    ]
    assert write_step_summary(made(), None) == []


def test_a_run_writes_all_its_reports_and_the_steps_summary(project: Project) -> None:
    project.skill()
    project.case(rate=1.0, conditions=["none", "self-load"])
    wanted = [part for name in ("json", "md", "html", "junit=evals.xml") for part in ("--skilleval-report", name)]
    result = project.run("--trials", "2", *wanted, env={"GITHUB_STEP_SUMMARY": str(project.path / "summary.md")})
    assert result.ret == 0
    latest = project.path / ".skilleval/latest"
    assert "stub: simulated, no agent was run" in (latest / "report.html").read_text()
    assert (project.path / "summary.md").read_text().rstrip() == (latest / "report.md").read_text().rstrip()
    cases = [case.get("name") for case in ET.parse(project.path / "evals.xml").getroot().iter("testcase")]
    assert cases == ["greet:none", "greet:self-load"]
    result.stdout.fnmatch_lines(["stub: simulated, no agent was run", "report: *report.html", "report: evals.xml"])


def test_another_plugin_that_fails_at_the_end_is_said_and_the_run_keeps_its_reports(project: Project) -> None:
    project.skill()
    project.case()
    project.write(
        "conftest.py",
        "def pytest_skilleval_report_finished(config, report, paths):\n    raise ValueError(paths['html'])\n",
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["pytest_skilleval_report_finished: ValueError: .skilleval/runs/*/report.html"])
    assert (project.path / ".skilleval/latest/report.json").exists()
