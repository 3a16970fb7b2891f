"""The answers that the project's own execution cases want, worked out anew from their fixtures."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from pytest_skilleval.cases import load_case_file
from pytest_skilleval.casespec import JsonCheck
from pytest_skilleval.journal import Journal, read_plan
from pytest_skilleval.records import Outcome
from pytest_skilleval.results import Report, TrialLine

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "cases" / "execution" / "fixtures"
REPORTS = sorted(FIXTURES.rglob("report.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_a_report_of_the_fixtures_is_one_and_agrees_with_its_own_trials(path: Path) -> None:
    report = Report.model_validate_json(path.read_bytes())
    assert report.schema_ == "skilleval-report/1"
    assert Counter(str(line.outcome) for line in report.trials) == Counter(report.run.counts)
    assert len(report.trials) == report.run.planned
    for group in report.groups:
        outcomes = [
            line.outcome
            for line in report.trials
            if (line.lane, line.case, line.condition) == (group.lane, group.case, group.condition)
        ]
        assert (group.passed, group.failed) == (outcomes.count(Outcome.PASSED), outcomes.count(Outcome.FAILED))
        assert (group.errors, group.missing) == (outcomes.count(Outcome.ERROR), outcomes.count(Outcome.MISSING))
        assert group.n == group.passed + group.failed == group.pass_rate.n


def trials(path: str, *, lane: str = "execution", condition: str = "self-load") -> dict[str, list[TrialLine]]:
    report = Report.model_validate_json((FIXTURES / path).read_bytes())
    cases: dict[str, list[TrialLine]] = {}
    for line in report.trials:
        if (line.lane, line.condition) == (lane, condition):
            cases.setdefault(line.case, []).append(line)
    return cases


def count(lines: list[TrialLine], outcome: Outcome) -> int:
    return sum(line.outcome is outcome for line in lines)


def expected(name: str) -> dict[str, Any]:
    [case] = load_case_file(ROOT / "cases" / "execution" / f"{name}.yaml", root=ROOT)
    return {check.id: check for check in case.spec.checks}


def inside(check: JsonCheck, value: float) -> bool:
    assert check.min is not None
    assert check.max is not None
    return check.min < value < check.max


def test_read_pass_rate_wants_what_the_trials_say() -> None:
    lines = trials("one-report/results/report.json")["merge-tables"]
    passed, failed = count(lines, Outcome.PASSED), count(lines, Outcome.FAILED)
    n, want = passed + failed, expected("read-pass-rate")
    assert (want["passed"].equals, want["n"].equals, want["errors"].equals) == (passed, n, count(lines, Outcome.ERROR))
    # Wilson (1927): the roots of (p - rate)^2 = z^2 p (1 - p) / n.
    z, rate = NormalDist().inv_cdf(0.975), passed / n
    a, b, c = 1 + z * z / n, -(2 * rate + z * z / n), rate * rate
    root = math.sqrt(b * b - 4 * a * c)
    assert inside(want["rate"], rate)
    assert inside(want["low"], (-b - root) / (2 * a))
    assert inside(want["high"], (-b + root) / (2 * a))


def test_find_flaky_wants_what_the_trials_say() -> None:
    cases, flips = trials("many-cases/results/report.json"), {}
    for name, lines in cases.items():
        graded = [line.outcome for line in lines if line.outcome in (Outcome.PASSED, Outcome.FAILED)]
        pairs = [(a, b) for i, a in enumerate(graded) for b in graded[i + 1 :]]
        flips[name] = sum(a is not b for a, b in pairs) / len(pairs)
    want = expected("find-flaky")
    assert want["flaky"].equals == max(flips, key=lambda name: flips[name])
    assert list(flips.values()).count(max(flips.values())) == 1
    assert want["flip-rate"].equals == pytest.approx(flips[want["flaky"].equals])
    assert [want["never"].equals] == [name for name, lines in cases.items() if not count(lines, Outcome.PASSED)]
    assert [want["unmeasured"].equals] == [
        name for name, lines in cases.items() if count(lines, Outcome.ERROR) * 2 >= len(lines)
    ]


@pytest.mark.parametrize("skill", ["glossary", "summaries"])
def test_compare_runs_wants_what_the_trials_say(skill: str) -> None:
    before, after = (trials(f"two-changes/{skill}/{when}/report.json") for when in ("before", "after"))
    deltas = {name: (count(after[name], Outcome.PASSED) - count(before[name], Outcome.PASSED)) / 4 for name in before}
    want = expected("compare-runs")
    assert {len(lines) for lines in (*before.values(), *after.values())} == {4}
    assert inside(want[f"{skill}-delta"], sum(deltas.values()) / len(deltas))
    assert want[f"{skill}-fell"].equals == sorted(name for name, delta in deltas.items() if delta < 0)


@pytest.mark.parametrize(("skill", "clear"), [("glossary", True), ("summaries", False)])
def test_the_verdicts_of_compare_runs_follow_from_the_exact_test(skill: str, clear: bool) -> None:
    # Relabelling within each case: the candidate's passes are hypergeometric; the sum over cases by convolution.
    before, after = (trials(f"two-changes/{skill}/{when}/report.json") for when in ("before", "after"))
    null, observed = {0: 1.0}, 0
    for name in before:
        b, a = count(before[name], Outcome.PASSED), count(after[name], Outcome.PASSED)
        observed += a - b
        ways = {k: math.comb(a + b, k) * math.comb(8 - a - b, 4 - k) / math.comb(8, 4) for k in range(5)}
        summed: Counter[int] = Counter()
        for total, chance in null.items():
            for k, probability in ways.items():
                summed[total + 2 * k - a - b] += chance * probability
        null = dict(summed)
    p = sum(chance for total, chance in null.items() if abs(total) >= abs(observed))
    assert (p < 0.005) if clear else (p > 0.2)


def test_choose_trials_wants_what_the_noise_says() -> None:
    from scipy import stats

    flips = []
    for lines in trials("planning/results/report.json").values():
        k, n = count(lines, Outcome.PASSED), len(lines)
        flips.append(2 * k * (n - k) / (n * (n - 1)))
    flip, cases, want = sum(flips) / len(flips), len(flips), expected("choose-trials")
    assert cases == 24
    assert inside(want["flip-rate"], flip)
    # SE = sqrt(flip / (T C)); detectable = (t(1 - .025/2) + t(.80)) SE with C - 1 degrees of freedom.
    quantiles = stats.t.ppf(1 - 0.025 / 2, cases - 1) + stats.t.ppf(0.80, cases - 1)
    assert inside(want["trials"], flip / (cases * (0.1 / quantiles) ** 2))
    assert inside(want["smallest"], quantiles * math.sqrt(flip / (3 * cases)))


def test_errors_or_failures_wants_what_the_trials_say() -> None:
    lines = [line for group in trials("bad-day/results/report.json").values() for line in group]
    want = expected("errors-or-failures")
    assert want["failed"].equals == sorted(line.key for line in lines if line.outcome is Outcome.FAILED)
    assert want["missing"].equals == sorted(line.key for line in lines if line.outcome is Outcome.MISSING)
    assert want["error"].equals == Counter(str(line.error.error_class) for line in lines if line.error)
    assert want["passed"].equals == count(lines, Outcome.PASSED)
    assert want["n"].equals == count(lines, Outcome.PASSED) + count(lines, Outcome.FAILED)
    assert Report.model_validate_json((FIXTURES / "bad-day/results/report.json").read_bytes()).run.status == "invalid"


def test_resume_wants_exactly_the_trials_without_a_good_record() -> None:
    folder = FIXTURES / "cut-off/eval-runs/20261109T053500Z-b41c"
    plan, left = read_plan(folder), []
    journal = Journal(folder, plan.run)
    for planned in plan.trials:
        record = journal.read(planned.id).record
        if record is None or record.outcome is Outcome.ERROR:
            left.append(planned.id.key)
    assert expected("resume")["left"].equals == sorted(left)
    assert 0 < len(left) < len(plan.trials)
    assert not journal.strangers(planned.id for planned in plan.trials)
