"""Token snapshots: saved after a finished run, held against a later one, and never a verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval import tokens
from pytest_skilleval.errors import BaselineMistake
from pytest_skilleval.records import Outcome, Tokens
from pytest_skilleval.results import Report
from tests.reports.made import made

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.conftest import Project

FILE = ".skilleval-tokens.json"


def saved(project: Project) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((project.path / FILE).read_text())
    return value


def cases(project: Project) -> None:
    """Write two cases that say what they cost, and one that does not."""
    project.case("dear", rate=1.0, stub={"solve_rate": 1, "tokens": 3000})
    project.case("cheap", rate=1.0, stub={"solve_rate": 1, "tokens": 40})
    project.case("silent", rate=1.0)


def scale(project: Project, case: str, factor: float) -> None:
    """Write another saved mean for a case."""
    value = saved(project)
    for row in value["groups"]:
        if row["case"] == case:
            row["mean"] *= factor
    (project.path / FILE).write_text(json.dumps(value))


# ---------------------------------------------------------------------------------------------------- whole runs


def test_a_finished_run_saves_what_its_groups_cost_in_stable_bytes(any_mode: Project) -> None:
    cases(any_mode)
    result = any_mode.run("--trials=3", "--skilleval-tokens=update")
    assert result.ret == 0
    first = (any_mode.path / FILE).read_bytes()
    rows = saved(any_mode)["groups"]
    assert [(row["case"], row["of"], row["mean"], row["sd"], row["n"]) for row in rows] == [
        ("cheap", "output", 40.0, 0.0, 3),
        ("dear", "output", 3000.0, 0.0, 3),
    ]
    assert {row["provider"] for row in rows} == {"stub"}
    assert len(first.splitlines()) == 5 + 2, "a row is a line"
    result.stdout.fnmatch_lines(["tokens: 2 groups saved in .skilleval-tokens.json*", "tokens: 1 group did not say*"])
    assert any_mode.run("--trials=3", "--skilleval-tokens=update").ret == 0
    assert (any_mode.path / FILE).read_bytes() == first


def test_a_group_that_costs_more_is_warned_of_and_changes_neither_status_nor_verdict(any_mode: Project) -> None:
    cases(any_mode)
    any_mode.run("--trials=2", "--skilleval-tokens=update")
    scale(any_mode, "dear", 0.5)
    before = any_mode.report()
    result = any_mode.run("--trials=2", "--skilleval-tokens=check")
    assert result.ret == 0
    after = any_mode.report()
    # 3000 tokens now, 1500 when saved; no trial differs from another.
    line = "execution:dear:none costs 3,000 tokens a trial (n=2), 1,500 when saved (n=2): +1,500 (+100%), 95% interval from +1,500"
    assert [text for text in result.stdout.lines if line in text] == [f"tokens: {line}"]
    assert after["gate"] == before["gate"]
    assert after["run"]["status"] == "finished"
    assert after["tokens"]["warned"] == 1
    assert {row["case"]: row["warned"] for row in after["tokens"]["groups"]} == {"cheap": False, "dear": True}
    assert after["tokens"]["unknown"] == 1
    run = any_mode.path / ".skilleval/latest"
    for name in ("report.md", "report.html"):
        assert "costs 3,000 tokens a trial" in (run / name).read_text()


def test_serial_and_parallel_runs_say_the_same_of_tokens(project: Project) -> None:
    cases(project)
    project.run("--trials=2", "--skilleval-tokens=update")
    scale(project, "dear", 0.5)
    found = []
    for mode in (("-n0",), ("-n2",)):
        project.mode = mode
        assert project.run("--trials=2", "--skilleval-tokens=check").ret == 0
        found.append(project.report()["tokens"])
    assert found[0] == found[1]


def test_a_rise_below_the_threshold_or_of_few_tokens_is_no_warning(project: Project) -> None:
    cases(project)
    project.run("--trials=2", "--skilleval-tokens=update")
    scale(project, "dear", 0.9)  # 2700 -> 3000 is 11 %
    scale(project, "cheap", 0.1)  # 4 -> 40 is ten times as much, and 36 tokens
    project.run("--trials=2", "--skilleval-tokens=check")
    assert project.report()["tokens"]["warned"] == 0
    project.run("--trials=2", "--skilleval-tokens=check", "--skilleval-tokens-threshold=0.1")
    assert [row["case"] for row in project.report()["tokens"]["groups"] if row["warned"]] == ["dear"]


def test_only_groups_that_ran_are_replaced(project: Project) -> None:
    cases(project)
    project.run("--trials=2", "--skilleval-tokens=update")
    scale(project, "cheap", 2)
    project.run("--trials=3", "--skilleval-tokens=update", "--skilleval-case=dear")
    assert [(row["case"], row["mean"], row["n"]) for row in saved(project)["groups"]] == [
        ("cheap", 80.0, 2),
        ("dear", 3000.0, 3),
    ]


def test_a_run_with_errors_beyond_what_is_allowed_saves_nothing_and_says_so(project: Project) -> None:
    cases(project)
    project.run("--trials=2", "--skilleval-tokens=update")
    before = (project.path / FILE).read_bytes()
    project.case("broken", rate=1.0, workspace={"setup": [{"run": ["false"]}]})
    result = project.run("--trials=2", "--skilleval-tokens=update")
    assert result.ret == 1
    assert (project.path / FILE).read_bytes() == before
    result.stdout.fnmatch_lines(["tokens: .skilleval-tokens.json stays as it was: the run is invalid"])


def test_an_interrupted_run_saves_nothing(project: Project) -> None:
    cases(project)
    result = project.run("--trials=2", "--skilleval-tokens=update", "--skilleval-budget=tokens=1")
    assert result.ret == 2
    assert not (project.path / FILE).exists()
    result.stdout.fnmatch_lines(["tokens: .skilleval-tokens.json stays as it was: the run is interrupted"])


def test_without_a_file_there_is_nothing_to_check_and_that_is_said(project: Project) -> None:
    cases(project)
    result = project.run("--skilleval-tokens=check")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["tokens: there is no .skilleval-tokens.json to check against*update writes it"])


def test_a_file_that_is_none_is_refused_before_the_first_agent(any_mode: Project) -> None:
    any_mode.case()
    any_mode.write(FILE, '{"schema": "skilleval-tokens/1", "groups": [{"lane": "execution"}]}')
    result = any_mode.run("--skilleval-tokens=check")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*.skilleval-tokens.json: groups.0.case: *restore it*"])
    assert not (any_mode.path / ".skilleval").exists()


@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_a_threshold_that_is_no_share_is_refused(project: Project, value: str) -> None:
    project.case()
    result = project.run("--skilleval-tokens=check", f"--skilleval-tokens-threshold={value}")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--skilleval-tokens-threshold=*a share of at least 0*"])


# ----------------------------------------------------------------------------------------------------- one report


def report_of(counts: Sequence[Tokens | None], outcome: Outcome = Outcome.PASSED) -> Report:
    """Return a report of one group whose trials cost this."""
    report = made()
    group = report.groups[0]
    line = next(line for line in report.trials if (line.case, line.condition) == (group.case, group.condition))
    lines = [line.model_copy(update={"tokens": one, "outcome": outcome}) for one in counts]
    return report.model_copy(update={"groups": (group,), "trials": tuple(lines)})


def examined(before: Sequence[Tokens | None], now: Sequence[Tokens | None]) -> dict[str, Any]:
    snapshot = tokens.updated(None, tokens.rows_of(report_of(before)).rows)
    return tokens.examine(report_of(now), snapshot, "check", 0.2)


def out(*numbers: int) -> list[Tokens | None]:
    return [Tokens(output=number) for number in numbers]


def test_a_rise_that_noise_explains_is_no_warning() -> None:
    # 2000 -> 3000 with a spread of 1000: t = 1000 / (1000 * sqrt(2/3)) = 1.22, far from t(0.975, 4) = 2.776.
    found = examined(out(1000, 2000, 3000), out(2000, 3000, 4000))
    assert found["groups"][0]["rise"] == 1000
    assert found["groups"][0]["lower"] == pytest.approx(1000 - 2.776 * 816.497, abs=1)
    assert found["warned"] == 0


def test_the_same_rise_without_that_noise_is_one() -> None:
    # The spread is 10: t = 1000 / (10 * sqrt(2/3)) = 122.
    found = examined(out(1990, 2000, 2010), out(2990, 3000, 3010))
    assert found["warned"] == 1


@pytest.mark.parametrize("before", [(1000,), (1000, 1010, 990)])
def test_one_trial_now_is_never_a_warning_and_counted_as_unknown_noise(before: tuple[int, ...]) -> None:
    found = examined(out(*before), out(9000))
    assert (found["warned"], found["noise_unknown"]) == (0, 1)


def test_unknown_tokens_are_unknown_and_not_zero() -> None:
    found = examined(out(1000, 1000), [None, Tokens()])
    assert (found["unknown"], found["groups"]) == (1, [])
    (row,) = tokens.rows_of(report_of([None, Tokens(output=7), Tokens(output=9)])).rows
    assert (row.mean, row.n) == (8.0, 2)


def test_what_is_counted_must_be_the_same_to_be_compared() -> None:
    # 1000 of output alone, then 1000 of output and 5000 of input: nothing rose, more is known.
    found = examined(out(1000, 1000), [Tokens(input=5000, output=1000)] * 2)
    assert (found["changed"], found["groups"]) == (1, [])


def test_trials_that_could_not_be_measured_cost_nothing_here() -> None:
    assert tokens.rows_of(report_of(out(5, 5), Outcome.ERROR)) == ([], 0)


def test_another_model_or_provider_has_rows_of_its_own() -> None:
    report = report_of(out(10, 10))
    info = report.run.provider.model_copy(update={"model": "other"})
    other = report.model_copy(update={"run": report.run.model_copy(update={"provider": info})})
    snapshot = tokens.updated(None, tokens.rows_of(report).rows)
    assert tokens.examine(other, snapshot, "check", 0.2)["new"] == 1
    assert len(tokens.updated(snapshot, tokens.rows_of(other).rows).groups) == 2


def test_a_file_of_another_format_or_with_impossible_numbers_is_refused(tmp_path: Path) -> None:
    row = tokens.rows_of(report_of(out(1, 2))).rows[0].model_dump(mode="json")
    for text in (
        "",
        "[]",
        '{"schema": "skilleval-tokens/2", "groups": []}',
        json.dumps({"schema": "skilleval-tokens/1", "groups": [{**row, "mean": -1}]}),
        json.dumps({"schema": "skilleval-tokens/1", "groups": [{**row, "n": 0}]}),
    ):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(BaselineMistake, match="--skilleval-tokens=update"):
            tokens.read_snapshot(tmp_path)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    snapshot = tokens.updated(None, tokens.rows_of(report_of(out(1, 2, 4))).rows)
    tokens.write_snapshot(tmp_path, snapshot)
    assert tokens.read_snapshot(tmp_path) == snapshot
    # (1 + 2 + 4) / 3 = 2.33; deviations -1.33, -0.33, 1.67: sd = sqrt((1.78 + 0.11 + 2.78) / 2) = 1.53
    assert (snapshot.groups[0].mean, snapshot.groups[0].sd) == (2.3, 1.5)
