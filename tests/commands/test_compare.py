"""`skilleval compare`."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Shell

OLD, NEW = "a" * 64, "b" * 64
BAD = {f"c{number}:self-load": "ffffff" for number in range(8)} | {f"c{number}:none": "fpffpf" for number in range(8)}
GOOD = BAD | {f"c{number}:self-load": "pppppp" for number in range(8)}


def test_a_skill_that_turns_every_failure_into_a_pass_is_improved(shell: Shell) -> None:
    shell.judged("old", BAD, skill=OLD)
    shell.judged("new", GOOD, skill=NEW)
    said = shell("compare", "old", "new")
    assert said.status == 0
    assert "against old (6 trials each): skill greeter aaaaaaaa -> bbbbbbbb" in said.out
    assert "improved: pass rate +100 points" in said.out


def test_the_reverse_is_regressed_and_ends_with_1(shell: Shell) -> None:
    shell.judged("old", GOOD, skill=OLD)
    shell.judged("new", BAD, skill=NEW)
    said = shell("compare", "old", "new", "--json")
    assert said.status == 1
    assert said.json["overall"]["verdict"] == "regressed"
    assert said.json["overall"]["pass_rate"]["delta"] == -1.0
    assert {row["condition"] for row in said.json["groups"] if row["verdict"] == "regressed"} == {"self-load"}


def test_the_same_skill_is_an_a_a_comparison_and_inconclusive(shell: Shell) -> None:
    shell.judged("one", {"c1:self-load": "ppfpf", "c2:self-load": "fffpp"})
    shell.judged("two", {"c1:self-load": "pfppp", "c2:self-load": "pffpf"}, seed=1)
    said = shell("compare", "one", "two")
    assert said.status == 0
    assert "A/A" in said.out
    assert "inconclusive" in said.out


def test_it_finds_what_the_run_itself_has_found(shell: Shell, stub_project: Path) -> None:
    shutil.copytree(stub_project / ".skilleval", shell.folder / ".skilleval", symlinks=True)
    first, second = sorted(path.name for path in shell.output.iterdir())
    said = shell("compare", first, second, "--json")
    assert said.json == json.loads((shell.output / second / "report.json").read_text())["comparison"]
    assert said.json["levels"]["pass_threshold"] == 0.2


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"provider": "claude"}, "provider: claude in the baseline, stub here"),
        ({"model": "large"}, "model: large in the baseline, default here"),
    ],
)
def test_another_provider_or_model_is_not_comparable_unless_it_is_allowed(
    shell: Shell, change: dict[str, str], wanted: str
) -> None:
    shell.judged("old", {"c1:self-load": "ppff"}, **change)
    shell.judged("new", {"c1:self-load": "ppff"})
    said = shell("compare", "old", "new")
    assert (said.status, said.out) == (4, "")
    assert wanted in said.err
    said = shell("compare", "old", "new", "--allow-incomparable")
    assert said.status == 0
    assert wanted in said.out


@pytest.mark.parametrize(("old", "new"), [("ppf.", "ppff"), ("ppff", "ppf.")])
def test_an_incomplete_run_on_either_side_is_not_comparable_unless_it_is_allowed(
    shell: Shell, old: str, new: str
) -> None:
    shell.judged("old", {"c1:self-load": old})
    shell.judged("new", {"c1:self-load": new})
    said = shell("compare", "old", "new")
    assert said.status == 4
    assert "interrupted" in said.err
    assert shell("compare", "old", "new", "--allow-incomparable").status == 0


def test_changed_added_and_removed_cases_are_named_and_left_out(shell: Shell) -> None:
    shell.judged("old", {"c1:self-load": "pppp", "gone:self-load": "pppp"})
    shell.judged("new", {"c1:self-load": "pppp", "fresh:self-load": "ffff"})
    value = shell("compare", "old", "new", "--json").json
    assert [row["case"] for row in value["groups"]] == ["c1"]
    assert [row["case"] for row in value["added"]] == ["fresh"]
    assert [row["case"] for row in value["removed"]] == ["gone"]
    out = shell("compare", "old", "new").out
    assert "execution:fresh:self-load" in out
    assert "execution:gone:self-load" in out


def test_runs_without_an_unchanged_case_in_common_are_not_comparable(shell: Shell) -> None:
    shell.judged("old", {"c1:self-load": "pppp"}, fingerprint="0" * 16)
    shell.judged("new", {"c1:self-load": "pppp"}, fingerprint="1" * 16)
    said = shell("compare", "old", "new", "--json")
    assert said.status == 4
    assert "no shared cases" in said.json["error"]


def test_errors_are_in_no_rate(shell: Shell) -> None:
    shell.judged("old", {"c1:self-load": "ppee"}, max_errors=0.9)
    shell.judged("new", {"c1:self-load": "ppp"})
    value = shell("compare", "old", "new", "--json").json
    assert value["groups"][0]["n"] == [2, 3]
    assert value["overall"]["pass_rate"]["base"] == 1.0


def test_a_run_that_was_never_judged_is_judged_from_its_journal(shell: Shell) -> None:
    shell.run("old", {"c1:self-load": "pppp"})
    shell.judged("new", {"c1:self-load": "pppp"})
    said = shell("compare", "old", "new", "--json")
    assert said.status == 0
    assert said.json["baseline"] == {"run": "old", "digest": "", "trials": 4}
    assert not (shell.output / "old/report.json").exists()


def test_a_blessed_name_is_a_baseline(shell: Shell) -> None:
    shell.judged("old", BAD, skill=OLD)
    shell("bless", "old", "main")
    shutil.rmtree(shell.output / "old")
    shell.judged("new", GOOD, skill=NEW)
    assert shell("compare", "main", "new", "--json").json["overall"]["verdict"] == "improved"


def test_the_first_implementations_rule_can_be_asked_for(shell: Shell) -> None:
    shell.judged("old", BAD, skill=OLD)
    shell.judged("new", GOOD, skill=NEW)
    value = shell("compare", "old", "new", "--method", "paired-bootstrap", "--json").json
    assert value["method"] == "paired-bootstrap"
    assert value["overall"]["verdict"] == "improved"


def test_the_older_side_of_a_run_of_two_versions_is_no_candidate(shell: Shell) -> None:
    shell.judged("old", {"c1:self-load": "ppfpf"})
    folder = shell.judged("new", {"c1:self-load": "ppfpf"})
    report = json.loads((folder / "report.json").read_text())
    twins = [{**line, "condition": "self-load@base", "outcome": "failed"} for line in report["trials"]]
    report["trials"] += [{**twin, "key": twin["key"].replace("self-load", "self-load@base")} for twin in twins]
    (folder / "report.json").write_text(json.dumps(report))
    said = shell("compare", "old", "new", "--json")
    assert said.status == 0, said.err
    (row,) = said.json["groups"]
    assert (row["condition"], row["n"], row["pass_rate"]["delta"]) == ("self-load", [5, 5], 0.0)
