"""`skilleval bless`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.commands.conftest import Shell


def test_a_blessed_report_has_the_runs_bytes_and_is_found_by_its_name(shell: Shell) -> None:
    run = shell.judged("r1", {"one:self-load": "pf"})
    said = shell("bless", "r1", "main")
    assert said.status == 0
    assert "--compare-baseline main" in said.out
    kept = shell.folder / ".skilleval/blessed/main/report.json"
    assert kept.read_bytes() == (run / "report.json").read_bytes()
    assert list(kept.parent.iterdir()) == [kept], "something is left beside it"
    assert shell("report", "main", "--json").json["run"] == "r1"


def test_a_taken_name_is_replaced_only_by_force(shell: Shell) -> None:
    shell.judged("r1", {"one:self-load": "pf"})
    shell.judged("r2", {"one:self-load": "pp"})
    assert shell("bless", "r1", "main").status == 0
    assert shell("bless", "r1", "main").status == 0, "the same again is no change"
    said = shell("bless", "r2", "main")
    assert said.status == 4
    assert "--force" in said.err
    assert shell("report", "main", "--json").json["run"] == "r1"
    said = shell("bless", "r2", "main", "--force", "--json")
    assert said.json["replaced"] is True
    assert shell("report", "main", "--json").json["run"] == "r2"


@pytest.mark.parametrize(
    ("results", "wanted"),
    [
        ({"one:self-load": "pp."}, "interrupted (1 of 3 planned trials have no result)"),
        ({"one:self-load": "ppe"}, "invalid (1 of 3 trials are errors"),
    ],
)
def test_an_incomplete_or_invalid_run_is_refused_with_the_reason(
    shell: Shell, results: dict[str, str], wanted: str
) -> None:
    shell.judged("r1", results)
    said = shell("bless", "r1", "main")
    assert said.status == 4
    assert wanted in said.err
    assert "--skilleval-resume=r1" in said.err
    assert not (shell.folder / ".skilleval/blessed").exists()


def test_a_run_that_was_never_judged_is_refused(shell: Shell) -> None:
    shell.run("r1", {"one:self-load": "pp"})
    said = shell("bless", "r1", "main")
    assert said.status == 4
    assert "no report.json" in said.err


@pytest.mark.parametrize(
    "name", ["", "Main", "a b", "../up", "a/b", ".hidden", "-x", "x" * 65, "latest", "runs", "r1", "a\nb"]
)
def test_a_name_that_could_not_be_found_again_is_refused(shell: Shell, name: str) -> None:
    shell.judged("r1", {"one:self-load": "pf"})
    said = shell("bless", "r1", "--", name)
    assert said.status == 4
    assert said.err.count("\n") == 1
    assert not (shell.folder / ".skilleval/blessed").exists()
