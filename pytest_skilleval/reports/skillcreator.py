"""A run in the layout of skill-creator's viewer and aggregator: grading.json, timing.json, benchmark.json."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.model import BASE
from pytest_skilleval.records import Outcome
from pytest_skilleval.reports.headline import provider_name, simulated
from pytest_skilleval.reports.trialfiles import TrialFiles, read_trial
from pytest_skilleval.results import Report, TrialLine

__all__ = ["Exported", "Sides", "benchmark", "exported", "sides_of"]

_SPOKEN_ELSEWHERE = ("checks", "provider-finished")
"""Components that repeat what single checks say, or say nothing of the task."""


class Sides(NamedTuple):
    """Which conditions the two configurations are; the second is None where the run has only one."""

    first: str
    second: str | None

    @property
    def names(self) -> tuple[str, str]:
        """What they are called. skill-creator subtracts in alphabetical order: both pairs come out right."""
        older = self.second is not None and (self.second.endswith(BASE) or self.second == "stale")
        return ("new_skill", "old_skill") if older else ("with_skill", "without_skill")


class Exported(NamedTuple):
    """One trial."""

    eval_id: int
    eval_name: str
    configuration: str
    line: TrialLine
    files: TrialFiles
    seconds: float | None

    @property
    def place(self) -> str:
        """Its folder, relative to that of the benchmark."""
        return f"eval-{self.eval_name}/{self.configuration}/run-{self.line.trial}"

    @property
    def tokens(self) -> int | None:
        """Of input and output; None when the agent does not tell."""
        known = self.line.tokens
        return None if known is None or known.input is None or known.output is None else known.input + known.output

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """What was asked and decided, each with its evidence; what nobody judged is no expectation."""
        rows = [
            {"text": check.statement or f"{check.id} ({check.kind})", "passed": check.passed, "evidence": check.reason}
            for check in self.line.checks
            if check.passed is not None
        ]
        parts = self.line.score.components if self.line.score is not None else ()
        rows += [
            {"text": part.id, "passed": part.value >= 1, "evidence": part.reason}
            for part in parts
            if part.value is not None and part.weight > 0 and part.id not in _SPOKEN_ELSEWHERE
        ]
        passed = self.line.outcome is Outcome.PASSED
        return rows or [{"text": "the trial passes", "passed": passed, "evidence": self.line.reason}]

    @property
    def summary(self) -> dict[str, Any]:
        """Counts of the expectations."""
        rows = self.expectations
        passed = sum(bool(row["passed"]) for row in rows)
        return {"passed": passed, "failed": len(rows) - passed, "total": len(rows), "pass_rate": passed / len(rows)}

    @property
    def metrics(self) -> dict[str, Any]:
        """Counts of what it did, from its transcript."""
        tools = [step for step in self.files.steps if step.kind == "tool"]
        return {
            "tool_calls": dict(sorted(Counter(step.name for step in tools).items())),
            "total_tool_calls": len(tools),
            "total_steps": len(self.files.steps),
            "errors_encountered": sum(step.status in ("error", "denied") for step in tools),
            "output_chars": sum(len(step.text) for step in self.files.steps if step.kind == "answer"),
            "transcript_chars": self.files.size("transcript.jsonl"),
        }

    @property
    def grading(self) -> dict[str, Any]:
        """grading.json. It has no `timing`: the aggregator would then not read timing.json, and lose the tokens."""
        open_ = [check.statement or check.id for check in self.line.checks if check.passed is None and not check.error]
        return {
            "expectations": self.expectations,
            "summary": self.summary,
            "execution_metrics": self.metrics,
            "claims": [],
            "user_notes_summary": {
                "uncertainties": [],
                "needs_review": [f"unjudged: {text}" for text in open_],
                "workarounds": [],
            },
            "eval_feedback": {"suggestions": [], "overall": ""},
        }

    @property
    def timing(self) -> dict[str, Any]:
        """timing.json."""
        seconds = self.seconds or 0.0
        return {
            "total_tokens": self.tokens,
            "duration_ms": round(1000 * seconds),
            "total_duration_seconds": round(seconds, 3),
        }

    @property
    def metadata(self) -> dict[str, Any]:
        """eval_metadata.json."""
        prompt = next((step.text for step in self.files.steps if step.kind == "prompt"), "")
        return {
            "eval_id": self.eval_id,
            "eval_name": self.eval_name,
            "prompt": prompt,
            "assertions": [row["text"] for row in self.expectations],
        }

    @property
    def row(self) -> dict[str, Any]:
        """Its row of benchmark.json."""
        return {
            "eval_id": self.eval_id,
            "eval_name": self.eval_name,
            "configuration": self.configuration,
            "run_number": self.line.trial,
            "result": {
                **{key: self.summary[key] for key in ("pass_rate", "passed", "failed", "total")},
                "time_seconds": self.timing["total_duration_seconds"],
                "tokens": self.tokens,
                "tool_calls": self.metrics["total_tool_calls"],
                "errors": self.metrics["errors_encountered"],
            },
            "expectations": self.expectations,
            "notes": list(self.grading["user_notes_summary"]["needs_review"]),
        }


def sides_of(report: Report, first: str | None = None, second: str | None = None) -> Sides:
    """Return which conditions are compared: what was asked for, else the skill against what the run has beside it.

    Raises:
        OptionMistake: The run has no such condition, or none with the skill.
    """
    there = dict.fromkeys(line.condition for line in report.trials)
    for name in (first, second):
        if name is not None and name not in there:
            raise OptionMistake(f"the run has no condition {name!r}; it has {', '.join(there)}")
    chosen = first or next((name for name in ("self-load", "preloaded") if name in there), None)
    if chosen is None:
        raise OptionMistake(f"no condition of the run shows the skill; say which with --with, of {', '.join(there)}")
    others = (f"{chosen}{BASE}", "none", "stale")
    return Sides(chosen, second or next((name for name in others if name in there and name != chosen), None))


def exported(report: Report, folder: Path | None, sides: Sides) -> list[Exported]:
    """Return the measured trials of both configurations, the first one's first."""
    cases = list(dict.fromkeys((line.lane, line.case) for line in report.trials))
    lanes = Counter(case for _, case in cases)
    numbers = [case for _, case in cases]
    plain = all(case.isascii() and case.isdigit() for case in numbers) and len(set(map(int, numbers))) == len(numbers)
    rows = report.timing.get("trials", {})
    found = []
    for condition, name in zip((sides.first, sides.second), sides.names, strict=True):
        for index, (lane, case) in enumerate(cases, start=1):
            for line in report.trials:
                if (line.lane, line.case, line.condition) != (lane, case, condition):
                    continue
                if line.outcome not in (Outcome.PASSED, Outcome.FAILED):
                    continue
                seconds = rows.get(line.key, {}).get("agent_s")
                title = case if lanes[case] == 1 else f"{lane}-{case}"
                number = int(case) if plain else index
                found.append(Exported(number, title, name, line, read_trial(folder, line), seconds))
    return found


def benchmark(report: Report, sides: Sides, trials: Sequence[Exported]) -> dict[str, Any]:
    """Return benchmark.json; each delta is the first configuration minus the second."""
    run = report.run
    skills = [skill.name for skill in run.skills]
    summary: dict[str, Any] = {
        name: _summary([trial for trial in trials if trial.configuration == name])
        for name in sides.names
        if any(trial.configuration == name for trial in trials)
    }
    if all(name in summary for name in sides.names):
        one, two = (summary[name] for name in sides.names)
        forms = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
        summary["delta"] = {
            key: _signed(one[key]["mean"] - two[key]["mean"], form)
            for key, form in forms.items()
            if key in one and key in two
        }
    return {
        "metadata": {
            "skill_name": ", ".join(skills),
            "skill_path": "",
            "executor_model": provider_name(run.provider),
            "analyzer_model": (report.judge or {}).get("model") or (report.judge or {}).get("provider") or "none",
            "timestamp": run.finished,
            "evals_run": sorted({trial.eval_id for trial in trials}),
            "runs_per_configuration": run.trials,
        },
        "runs": [trial.row for trial in trials],
        "run_summary": summary,
        "notes": list(_notes(report, sides, trials)),
    }


def _signed(value: float, form: str) -> str:
    """Return a difference with its sign; what rounds to nothing is `+0`, never `-0`."""
    text = format(value, form)
    return text if float(text) else text.replace("-", "+")


def _summary(trials: Sequence[Exported]) -> dict[str, Any]:
    values: dict[str, list[float]] = {
        "pass_rate": [trial.summary["pass_rate"] for trial in trials],
        "time_seconds": [trial.timing["total_duration_seconds"] for trial in trials],
        "tokens": [trial.tokens for trial in trials if trial.tokens is not None],
    }
    return {key: _spread(found) for key, found in values.items() if found}


def _spread(values: Sequence[float]) -> dict[str, float]:
    numbers = {
        "mean": statistics.fmean(values),
        "stddev": statistics.stdev(values) if len(values) > 1 else 0.0,
        "min": min(values),
        "max": max(values),
    }
    return {key: round(value, 4) for key, value in numbers.items()}


def _notes(report: Report, sides: Sides, trials: Sequence[Exported]) -> Iterable[str]:
    if report.run.provider.simulated:
        yield simulated(report.run.provider)
    yield f"skilleval run {report.run.id}: its report.json has the intervals; the spread here is none"
    if not any(trial.tokens is not None for trial in trials):
        yield "tokens are unknown"
    conditions = [name for name in sides if name is not None]
    for condition, name in zip(conditions, sides.names, strict=False):
        lost = Counter(
            line.outcome.value
            for line in report.trials
            if line.condition == condition and line.outcome not in (Outcome.PASSED, Outcome.FAILED)
        )
        if lost:
            counts = ", ".join(f"{number} {word}" for word, number in sorted(lost.items()))
            yield f"{name}: left out, since they were not measured: {counts}"
