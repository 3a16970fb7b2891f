"""Checks of the dogfood cases that a pattern cannot make: what the report claims must follow from the runs beside it."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pytest_skilleval.results import Report


def _no_for_rubbish(function: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """An agent's file may hold anything: what cannot be read as meant is a no, not an error of the check."""

    @functools.wraps(function)
    def wrapped(run: Any) -> bool:
        try:
            return function(run)
        except (OSError, ValueError, TypeError, AttributeError, LookupError, ZeroDivisionError) as error:
            message = f"not as meant: {type(error).__name__}: {str(error)[:200]}"
            raise AssertionError(message) from None

    return wrapped


def _file(run: Any, name: str) -> Path:
    path = Path(run.workspace) / "proof" / name
    assert path.is_file(), f"proof/{name} is not there"
    assert path.stat().st_size < 5_000_000, f"proof/{name} is too large"
    return path


def _report(run: Any, name: str) -> Report:
    report = Report.model_validate_json(_file(run, name).read_bytes())
    assert report.run.status in ("finished", "invalid"), f"{name}: the run is {report.run.status}"
    assert report.trials, f"{name} holds no trial"
    outcomes = [str(trial.outcome) for trial in report.trials]
    counts = {name: count for name, count in report.run.counts.items() if count}
    assert counts == {name: outcomes.count(name) for name in set(outcomes)}, f"{name}: its counts are not those of its trials"
    return report


def _object(run: Any, name: str) -> dict[str, Any]:
    value = json.loads(_file(run, name).read_text("utf-8"))
    assert isinstance(value, dict), f"proof/{name} is no object"
    return value


def _outcomes(report: Report, condition: str = "self-load") -> dict[str, list[str]]:
    cases: dict[str, list[str]] = {}
    for trial in report.trials:
        if trial.condition == condition:
            cases.setdefault(trial.case, []).append(str(trial.outcome))
    return cases


def _flip(outcomes: Iterable[str]) -> float:
    graded = [outcome for outcome in outcomes if outcome in ("passed", "failed")]
    k, n = graded.count("passed"), len(graded)
    return 2 * k * (n - k) / (n * (n - 1))


def _says(text: str, number: float) -> bool:
    """Whether a text holds a number, as a share or in percent, with at least two places and rightly rounded."""
    found = [(float(x.replace("\u2212", "-")), len(x.partition(".")[2])) for x in re.findall(r"[-+\u2212]?\d+\.\d+|[-+\u2212]?\d+", text)]
    return any(
        abs(value - number) <= 0.5001 * 10**-places if places >= 2 else abs(value - 100 * number) <= 0.5001 * 10**-places
        for value, places in found
    )


# -------------------------------------------------------------------------------------------------- measured-lift


@_no_for_rubbish
def lift_follows(run: Any) -> bool:
    """The report names the lift of the run beside it, with its interval."""
    report, text = _report(run, "run.json"), _file(run, "report.md").read_text("utf-8")
    assert min(map(len, _outcomes(report).values())) >= 5, "fewer than five trials with the skill"
    assert min(map(len, _outcomes(report, "none").values())) >= 5, "fewer than five trials without it"
    [lift] = [lift for lift in report.lift if (lift.metric, lift.of) == ("realised", "pass_rate")]
    assert lift.value is not None, "no lift in run.json"
    assert lift.ci is not None, "no interval in run.json"
    for number in (lift.value, *lift.ci):
        assert _says(text, number), f"report.md does not say {number:.3f}"
    return True


@_no_for_rubbish
def lift_is_read_rightly(run: Any) -> bool:
    """An interval that holds 0 is not sold as an effect."""
    report, text = _report(run, "run.json"), _file(run, "report.md").read_text("utf-8")
    [lift] = [lift for lift in report.lift if (lift.metric, lift.of) == ("realised", "pass_rate")]
    assert lift.ci is not None, "no interval in run.json"
    summary = text.partition("## Summary")[2].partition("\n## ")[0]
    assert summary.strip(), "no Summary"
    word = r"\blift\b" if lift.ci[0] > 0 else r"\bunderpowered\b|\bnoise\b"
    assert re.search(word, summary, re.IGNORECASE), f"the interval {lift.ci} is read otherwise"
    return True


# ----------------------------------------------------------------------------------------------------- flaky-case


@_no_for_rubbish
def flaky_case_follows(run: Any) -> bool:
    """The case named is the one whose trials disagree most in the run beside it."""
    report, finding = _report(run, "run.json"), _object(run, "flaky.json")
    outcomes = _outcomes(report)
    assert min(map(len, outcomes.values())) >= 6, "fewer than six trials"
    flips = {case: _flip(each) for case, each in outcomes.items()}
    assert flips[finding["case"]] == max(flips.values()) > 0, f"{finding['case']} is not the flakiest: {flips}"
    assert abs(finding["flip_rate"] - flips[finding["case"]]) < 0.006, f"its flip rate is {flips[finding['case']]:.3f}"
    return True


@_no_for_rubbish
def flaky_cases_are_sorted(run: Any) -> bool:
    """Cases that never or always passed are not called flaky."""
    report, finding = _report(run, "run.json"), _object(run, "flaky.json")
    for case, outcomes in _outcomes(report).items():
        word = finding["sorted"][case]
        if len(set(outcomes)) == 1:
            right = ("stable",) if outcomes[0] == "passed" else ("never-passes",)
        else:
            right = ("flaky", "stable") if _flip(outcomes) < 0.35 else ("flaky",)
        assert word in right, f"{case} is called {word}: {outcomes.count('passed')} of {len(outcomes)} passed"
    return True


# --------------------------------------------------------------------------------------------------- noise-report


@_no_for_rubbish
def noise_follows(run: Any) -> bool:
    """The cases that changed and the flip rate between the runs are those of the two runs."""
    before, again, finding = _report(run, "before.json"), _report(run, "again.json"), _object(run, "noise.json")
    assert before.run.id != again.run.id, "both are the same run"
    assert again.run.seed == 7, f"seed {again.run.seed}"
    assert before.run.skills == again.run.skills, "the skill was changed"
    a, b = _outcomes(before), _outcomes(again)
    assert a.keys() == b.keys(), "not the same cases"
    assert finding["changed"] == sorted(case for case in a if a[case].count("passed") != b[case].count("passed")), "changed"
    shares = []
    for case in a:
        (k, m), (j, n) = ((each.count("passed"), len(each)) for each in (a[case], b[case]))
        shares.append((k * (n - j) + (m - k) * j) / (m * n))
    assert abs(finding["flip_rate"] - sum(shares) / len(shares)) < 0.006, f"the flip rate is {sum(shares) / len(shares):.3f}"
    return True


@_no_for_rubbish
def noise_is_not_called_drift(run: Any) -> bool:
    """Nothing was changed: the summary says so and claims no change."""
    text = _file(run, "report.md").read_text("utf-8")
    summary = text.partition("## Summary")[2].partition("\n## ")[0]
    assert re.search(r"\bflaky\b|\bnoise\b|\bchance\b", summary, re.IGNORECASE), "the summary does not say that it is chance"
    assert not re.search(r"\b(improved|regressed|got (better|worse))\b", summary, re.IGNORECASE), "the summary claims a change"
    return True


# --------------------------------------------------------------------------------------------------- broken-cases


@_no_for_rubbish
def broken_cases_are_proven(run: Any) -> bool:
    """The two runs beside the report are the oracle's and the no-op's over all six cases."""
    oracle, noop = _report(run, "oracle.json"), _report(run, "noop.json")
    assert (oracle.run.provider.id, noop.run.provider.id) == ("oracle", "noop"), "not the oracle's and the no-op's runs"
    for report in (oracle, noop):
        assert len({trial.case for trial in report.trials}) == 6, "not all six cases"
    return True


# ----------------------------------------------------------------------------------------------------- red-or-not


@_no_for_rubbish
def red_follows(run: Any) -> bool:
    """Exit statuses and counts are those of the two runs, whose terminals were kept."""
    finding = _object(run, "status.json")
    for name, status in (("one", 1), ("many", 0)):
        report = _report(run, f"{name}.json")
        assert finding[name] == status, f"{name}: exit status {finding[name]}"
        assert finding["failed"][name] == report.run.counts["failed"], f"{name}: {report.run.counts}"
        assert (report.run.trials == 1) is (name == "one"), f"{name}: {report.run.trials} trials"
        assert {trial.case for trial in report.trials} == {"birds"}, f"{name}: other cases"
    return True


# --------------------------------------------------------------------------------------------------- errors-apart


@_no_for_rubbish
def errors_follow(run: Any) -> bool:
    """Rates stand on what was measured, errors beside them."""
    report, finding = _report(run, "run.json"), _object(run, "triage.json")
    outcomes = [outcome for each in _outcomes(report).values() for outcome in each]
    assert min(map(len, _outcomes(report).values())) >= 4, "fewer than four trials"
    passed, failed, errors = (outcomes.count(word) for word in ("passed", "failed", "error"))
    assert errors, "no error in run.json"
    assert (finding["passed"], finding["n"], finding["error"]) == (passed, passed + failed, errors), f"{passed}, {passed + failed}, {errors}"
    classes = {trial.case: str(trial.error.error_class) for trial in report.trials if trial.error and str(trial.outcome) == "error"}
    assert finding["errors"] == classes, f"errors are {classes}"
    assert (finding["status"], finding["exit_status"]) == (report.run.status, 1), f"the run is {report.run.status}"
    return True
