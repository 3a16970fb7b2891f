from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.journal import write_plan
from pytest_skilleval.records import Plan, PlannedTrial, ProviderInfo
from pytest_skilleval.reports.events import EventStream

from .made import made

if TYPE_CHECKING:
    from tests.conftest import Project

KEYS = [("greet", 1), ("greet", 2), ("wave", 1)]


def planned(folder: Path) -> list[PlannedTrial]:
    trials = tuple(
        PlannedTrial(
            lane="execution", case=case, condition="none", trial=number, nodeid=f"{case}-{number}", fingerprint="f"
        )
        for case, number in KEYS
    )
    folder.mkdir()
    write_plan(
        folder,
        Plan(run="r1", token="t", started="2026-11-30T00:00:00Z", provider=ProviderInfo(id="stub"), trials=trials),
    )
    return list(trials)


def report(
    nodeid: str, when: str = "call", outcome: str = "passed", short: dict[str, Any] | None = None
) -> pytest.TestReport:
    made_report = pytest.TestReport(nodeid, ("f", 0, "d"), {}, outcome, None, when)  # type: ignore[arg-type]
    if short is not None:
        made_report.skilleval = json.dumps(short)  # type: ignore[attr-defined]
    return made_report


def events(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="ascii")
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def names(path: Path) -> list[str]:
    return [" ".join(str(event[key]) for key in ("event", "case", "trial") if key in event) for event in events(path)]


def test_run_lane_case_and_trial_start_before_what_they_hold_and_finish_after_it(tmp_path: Path) -> None:
    stream = EventStream(tmp_path / "events.jsonl", tmp_path / "run")
    planned(tmp_path / "run")
    for nodeid in ("greet-1", "greet-2", "wave-1"):
        stream.pytest_runtest_logstart(nodeid)
        stream.pytest_runtest_logreport(report(nodeid, "setup"))
        stream.pytest_runtest_logreport(
            report(nodeid, short={"outcome": "passed", "seconds": 0.5, "tokens": 3, "cost_usd": None, "error": None})
        )
        stream.pytest_runtest_logreport(report(nodeid, "teardown"))
    stream.pytest_skilleval_report_finished(made())
    stream.pytest_unconfigure()
    assert names(tmp_path / "events.jsonl") == [
        "run_started",
        "lane_started",
        "case_started greet",
        "trial_started greet 1",
        "trial_finished greet 1",
        "trial_started greet 2",
        "trial_finished greet 2",
        "case_finished greet",
        "case_started wave",
        "trial_started wave 1",
        "trial_finished wave 1",
        "case_finished wave",
        "lane_finished",
        "run_finished",
    ]
    found = events(tmp_path / "events.jsonl")
    assert {event["schema"] for event in found} == {"skilleval-event/1"}
    assert {event["run"] for event in found} == {"r1"}
    assert found[0]["planned"] == 3
    assert found[4] | {"time": ""} == {
        "schema": "skilleval-event/1", "event": "trial_finished", "time": "", "run": "r1", "key": "execution:greet:none:1",
        "lane": "execution", "case": "greet", "condition": "none", "trial": 1,
        "outcome": "passed", "seconds": 0.5, "tokens": 3, "cost_usd": None, "error": None,
    }  # fmt: skip
    assert found[7]["counts"] == {"passed": 2}
    assert found[-1]["counts"] == {"passed": 3, "failed": 3, "error": 0, "missing": 0}


def test_a_trial_whose_worker_died_is_finished_once_and_open_cases_end_with_the_run(tmp_path: Path) -> None:
    stream = EventStream(tmp_path / "events.jsonl", tmp_path / "run")
    planned(tmp_path / "run")
    stream.pytest_runtest_logstart("greet-1")
    stream.pytest_runtest_logreport(report("greet-1", "???", "failed"))
    stream.pytest_runtest_logreport(report("greet-1", "teardown"))
    stream.pytest_skilleval_report_finished(made())
    found = events(tmp_path / "events.jsonl")
    ended = [event for event in found if event["event"] == "trial_finished"]
    assert [(event["outcome"], event["error"]) for event in ended] == [("missing", "worker_died")]
    assert [event["event"] for event in found[-3:]] == ["case_finished", "lane_finished", "run_finished"]


def test_ordinary_tests_and_gates_are_no_events(tmp_path: Path) -> None:
    stream = EventStream(tmp_path / "events.jsonl", tmp_path / "run")
    stream.pytest_runtest_logstart("tests/test_x.py::test_x")
    planned(tmp_path / "run")
    stream.pytest_runtest_logstart("skilleval-gate::overall")
    stream.pytest_runtest_logreport(report("skilleval-gate::overall", outcome="failed"))
    assert names(tmp_path / "events.jsonl") == ["run_started"]


def test_a_file_of_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("old\n")
    EventStream(tmp_path / "events.jsonl", tmp_path / "run").pytest_unconfigure()
    assert (tmp_path / "events.jsonl").read_text() == ""


def test_a_place_that_cannot_be_written_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(OptionMistake, match=r"jsonl=.*: Is a directory; name another file"):
        EventStream(tmp_path, tmp_path / "run")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device that is always full")
def test_a_full_disk_stops_the_stream_and_not_the_run(tmp_path: Path) -> None:
    stream = EventStream(Path("/dev/full"), tmp_path / "run")
    planned(tmp_path / "run")
    stream.pytest_runtest_logstart("greet-1")
    stream.pytest_runtest_logstart("greet-2")
    assert stream.problem == "/dev/full: No space left on device: events after this one are not written"


def test_a_real_run_streams_each_trial_once_in_every_mode(any_mode: Project) -> None:
    any_mode.skill()
    any_mode.case(rate=0.5)
    result = any_mode.run("--trials", "3", "--skilleval-report", "jsonl=out/events.jsonl", "--skilleval-report", "json")
    assert result.ret == 0
    found = names(any_mode.path / "out/events.jsonl")
    assert sorted(found) == sorted(
        ["run_started", "lane_started", "case_started greet", "case_finished greet", "lane_finished", "run_finished"]
        + [f"trial_{word} greet {number}" for word in ("started", "finished") for number in (1, 2, 3)]
    )
    assert (found[0], found[-1]) == ("run_started", "run_finished")
    for number in (1, 2, 3):
        assert found.index(f"trial_started greet {number}") < found.index(f"trial_finished greet {number}")
    outcomes = [
        event["outcome"] for event in events(any_mode.path / "out/events.jsonl") if event["event"] == "trial_finished"
    ]
    assert {name: outcomes.count(name) for name in set(outcomes)} == any_mode.outcomes()


def test_a_stream_that_cannot_be_opened_stops_the_session_before_any_trial(project: Project) -> None:
    project.skill()
    project.case()
    result = project.run("--skilleval-report", "jsonl=.")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--skilleval-report=jsonl=.: Is a directory; name another file*"])
    assert not (project.path / ".skilleval").exists()
