"""`skilleval report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.commands.conftest import Shell


RUN = "20260101T000000Z-aaaa"


@pytest.fixture
def run(shell: Shell) -> Path:
    folder = shell.judged(RUN, {"one:self-load": "ppf", "one:none": "fff"})
    assert shell("rebuild", RUN).status == 0
    return folder


def test_without_a_format_it_says_what_the_terminal_said(shell: Shell, run: Path) -> None:
    said = shell("report", RUN)
    assert said.status == 0
    assert "stub: simulated, no agent was run" in said.out
    row = next(line.split() for line in said.out.splitlines() if "self-load" in line)
    assert "66.7%" in row


def test_formats_go_into_the_runs_folder_and_run_no_agent(shell: Shell, run: Path) -> None:
    before = {name: (run / f"report.{name}").read_bytes() for name in ("json", "md", "html")}
    (run / "report.md").unlink()
    (run / "report.html").unlink()
    said = shell("report", RUN, "--format", "md", "--format", "html", "--format", "json", "--json")
    assert said.status == 0
    assert set(said.json["written"]) == {"json", "md", "html"}
    assert {name: (run / f"report.{name}").read_bytes() for name in ("json", "md", "html")} == before


def test_a_path_is_relative_to_the_current_folder_and_its_folders_are_made(shell: Shell, run: Path) -> None:
    assert shell("report", RUN, "--format", "md=out/here.md").status == 0
    assert (shell.folder / "out/here.md").read_bytes() == (run / "report.md").read_bytes()


def test_a_hyphen_is_stdout_and_nothing_else_is_there(shell: Shell, run: Path) -> None:
    said = shell("report", RUN, "--format", "json=-")
    assert json.loads(said.out) == json.loads((run / "report.json").read_text())
    said = shell("report", RUN, "--format", "md=-")
    assert said.out == (run / "report.md").read_text()


def test_junit_holds_a_test_case_a_group(shell: Shell, run: Path) -> None:
    assert shell("report", RUN, "--format", "junit=evals.xml").status == 0
    assert (shell.folder / "evals.xml").read_text().count("<testcase") >= 2


def test_a_report_alone_is_enough(shell: Shell, run: Path) -> None:
    (shell.folder / "mail").mkdir()
    (shell.folder / "mail/report.json").write_bytes((run / "report.json").read_bytes())
    assert shell("report", "mail/report.json", "--format", "html").status == 0
    assert (shell.folder / "mail/report.html").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--format", "pdf"), "choose from json, md, html, junit=PATH"),
        (("--format", "junit"), "say where"),
        (("--format", "md="), "choose from"),
        (("--format", "md=-", "--json"), "stdout"),
    ],
)
def test_a_format_that_is_none_is_one_line_and_status_4(
    shell: Shell, run: Path, words: tuple[str, ...], wanted: str
) -> None:
    said = shell("report", RUN, *words)
    assert said.status == 4
    assert wanted in said.err
    assert said.err.count("\n") == 1


def test_a_run_that_was_never_judged_is_not_reported_but_told_how(shell: Shell) -> None:
    shell.run("r1", {"one:self-load": "pf."})
    said = shell("report", "r1")
    assert said.status == 4
    assert "skilleval rebuild r1" in said.err


def test_an_unknown_run_names_those_there_are(shell: Shell, run: Path) -> None:
    said = shell("report", "nope")
    assert (said.status, said.out) == (4, "")
    assert RUN in said.err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "not a report.json"),
        ("[1]", "not a report.json"),
        ('{"schema": "skilleval-report/2"}', "skilleval-report/2"),
        ('{"schema": "skilleval-report/1"}', "run"),
    ],
)
def test_a_report_that_cannot_be_read_is_refused_with_the_reason(
    shell: Shell, run: Path, text: str, wanted: str
) -> None:
    (run / "report.json").write_text(text)
    said = shell("report", RUN)
    assert said.status == 4
    assert wanted in said.err
    assert said.err.count("\n") == 1
