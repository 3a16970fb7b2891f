"""`skilleval export`: skill-creator's layout, against files written by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.model import TrialId

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Shell

FILE = {"id": "said", "kind": "file", "required": True, "weight": 1.0, "error": False}
PROSE = {**FILE, "id": "kind", "kind": "rubric", "statement": "The greeting is kind."}
SIMULATED = "stub: simulated, no agent was run"


def hand_made(shell: Shell, name: str = "r1", **groups: str) -> None:
    """Write a run whose trials have checks, tokens, times and transcripts."""
    folder = shell.judged(name, groups or {"7:none": "fpe", "7:self-load": "pp"})
    report = json.loads((folder / "report.json").read_text())
    for line in report["trials"]:
        passed = line["outcome"] == "passed"
        line["checks"] = [
            {**FILE, "passed": passed, "reason": "out.txt says hello" if passed else "out.txt is not there"},
            {**PROSE, "passed": True, "reason": "judge wise: yes: 'Dear Ada'"}
            if line["condition"] == "self-load"
            else {**PROSE, "passed": None, "reason": "unjudged: no judge was asked"},
        ]
        line["tokens"] = {"input": 1000, "output": 100 * line["trial"], "cached": None, "reasoning": None}
        report["timing"]["trials"][line["key"]]["agent_s"] = 2.0 * line["trial"] + (line["condition"] == "self-load")
        key = TrialId(line["lane"], line["case"], line["condition"], line["trial"])
        steps = [
            {"type": "prompt", "text": "Greet Ada."},
            {"type": "tool", "name": "Bash", "command": "ls", "status": "ok"},
            {"type": "tool", "name": "Bash", "command": "cat x", "status": "error"},
            {"type": "answer", "text": "Dear Ada", "finished": True},
        ]
        text = "".join(json.dumps(step) + "\n" for step in steps)
        (folder / "trials" / key.folder / "transcript.jsonl").write_text(text)
    (folder / "report.json").write_text(json.dumps(report))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_grading_timing_and_benchmark_are_as_skill_creator_reads_them(shell: Shell) -> None:
    hand_made(shell)
    said = shell("export", "r1", "--format", "skill-creator", "out/iteration-1")
    assert said.status == 0, said.err
    top = shell.folder / "out/iteration-1"
    files = sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())
    each = ("eval_metadata.json", "grading.json", "outputs/answer.md", "timing.json")
    runs = [
        f"eval-7/{name}/run-{n}/{file}" for name in ("with_skill", "without_skill") for n in (1, 2) for file in each
    ]
    assert files == sorted(["benchmark.json", "eval-7/eval_metadata.json", *runs])

    said_fact = {"text": "said (file)", "passed": True, "evidence": "out.txt says hello"}
    prose = {"text": "The greeting is kind.", "passed": True, "evidence": "judge wise: yes: 'Dear Ada'"}
    size = len((top / "eval-7/with_skill/run-2/outputs/answer.md").read_text())
    grading = read(top / "eval-7/with_skill/run-2/grading.json")
    chars = grading["execution_metrics"].pop("transcript_chars")
    assert chars > 4 * size
    assert grading == {
        "expectations": [said_fact, prose],
        "summary": {"passed": 2, "failed": 0, "total": 2, "pass_rate": 1.0},
        "execution_metrics": {
            "tool_calls": {"Bash": 2},
            "total_tool_calls": 2,
            "total_steps": 4,
            "errors_encountered": 1,
            "output_chars": 8,
        },
        "claims": [],
        "user_notes_summary": {"uncertainties": [], "needs_review": [], "workarounds": []},
        "eval_feedback": {"suggestions": [], "overall": ""},
    }
    assert read(top / "eval-7/with_skill/run-2/timing.json") == {
        "total_tokens": 1200,
        "duration_ms": 5000,
        "total_duration_seconds": 5.0,
    }
    assert read(top / "eval-7/eval_metadata.json")["prompt"] == "Greet Ada."

    found = read(top / "benchmark.json")
    assert found["metadata"] == {
        "skill_name": "greeter",
        "skill_path": "",
        "executor_model": "stub 1",
        "analyzer_model": "none",
        "timestamp": "2026-05-28T21:00:00Z",
        "evals_run": [7],
        "runs_per_configuration": 3,
    }
    bare = {"text": "said (file)", "passed": False, "evidence": "out.txt is not there"}
    assert [(row["configuration"], row["run_number"]) for row in found["runs"]] == [
        ("with_skill", 1),
        ("with_skill", 2),
        ("without_skill", 1),
        ("without_skill", 2),
    ]
    assert found["runs"][2] == {
        "eval_id": 7,
        "eval_name": "7",
        "configuration": "without_skill",
        "run_number": 1,
        "result": {
            "pass_rate": 0.0, "passed": 0, "failed": 1, "total": 1, "time_seconds": 2.0, "tokens": 1100,
            "tool_calls": 2, "errors": 1,
        },
        "expectations": [bare],
        "notes": ["unjudged: The greeting is kind."],
    }  # fmt: skip
    # With the skill: rates 1 and 1, seconds 3 and 5, tokens 1100 and 1200. Without: 0 and 1, 2 and 4, the same tokens.
    # The sample standard deviation of (0, 1) is sqrt(1/2), of (3, 5) and (2, 4) sqrt(2), of (1100, 1200) 50 sqrt(2).
    tokens = {"mean": 1150.0, "stddev": 70.7107, "min": 1100, "max": 1200}
    assert found["run_summary"] == {
        "with_skill": {
            "pass_rate": {"mean": 1.0, "stddev": 0.0, "min": 1.0, "max": 1.0},
            "time_seconds": {"mean": 4.0, "stddev": 1.4142, "min": 3.0, "max": 5.0},
            "tokens": tokens,
        },
        "without_skill": {
            "pass_rate": {"mean": 0.5, "stddev": 0.7071, "min": 0.0, "max": 1.0},
            "time_seconds": {"mean": 3.0, "stddev": 1.4142, "min": 2.0, "max": 4.0},
            "tokens": tokens,
        },
        # With minus without: the skill gains half a point and takes a second longer.
        "delta": {"pass_rate": "+0.50", "time_seconds": "+1.0", "tokens": "+0"},
    }
    assert found["notes"] == [
        SIMULATED,
        "skilleval run r1: its report.json has the intervals; the spread here is none",
        "without_skill: left out, since they were not measured: 1 error",
    ]


def test_a_skill_that_does_harm_has_a_negative_delta(shell: Shell) -> None:
    hand_made(shell, **{"greet:none": "pp", "greet:preloaded": "ff"})
    assert shell("export", "r1", "out").status == 0
    assert read(shell.folder / "out/benchmark.json")["run_summary"]["delta"]["pass_rate"] == "-1.00"


def test_an_older_version_in_the_same_run_is_what_the_skill_is_compared_with(shell: Shell) -> None:
    hand_made(shell, **{"greet:none": "ff", "greet:self-load": "pp", "greet:self-load@base": "fp"})
    assert shell("export", "r1", "out").status == 0
    summary = read(shell.folder / "out/benchmark.json")["run_summary"]
    # Of self-load every trial has a second, judged expectation that holds: (2 of 2), and (0 of 1), (1 of 1) without.
    assert list(summary) == ["new_skill", "old_skill", "delta"]
    assert summary["delta"]["pass_rate"] == "+0.50"
    # The aggregator subtracts in the order of the folders' names.
    assert min(path.name for path in (shell.folder / "out/eval-greet").iterdir() if path.is_dir()) == "new_skill"
    assert shell("export", "r1", "out2", "--with", "self-load", "--without", "none").status == 0
    assert list(read(shell.folder / "out2/benchmark.json")["run_summary"]) == ["with_skill", "without_skill", "delta"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("r1", "full"), "full: is there and not empty"),
        (("r1", "out", "--with", "nothing"), "the run has no condition 'nothing'; it has none, self-load"),
        (("r1", "out", "--format", "csv"), "invalid choice: 'csv'"),
        (("r2", "out"), "no trial was measured"),
        (("gone", "out"), "gone"),
    ],
)
def test_what_cannot_be_exported_is_said_in_a_line(shell: Shell, words: tuple[str, ...], wanted: str) -> None:
    hand_made(shell)
    shell.judged("r2", {"greet:self-load": "ee"})
    (shell.folder / "full").mkdir()
    (shell.folder / "full/benchmark.json").write_text("{}")
    said = shell("export", *words)
    assert said.status == 4
    assert wanted in said.err
    assert not (shell.folder / "out").exists()
