"""Intervals for one sample against printed tables, scipy and exact enumeration."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_skilleval.stats.intervals import (
    Interval,
    clip,
    mean,
    normal_quantile,
    score_interval,
    sd,
    t_interval,
    t_quantile,
    unit_values,
    wilson,
)

from .reference import rows

SCORES = st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=1, max_size=12)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("wilson"))
def test_wilson_agrees_with_published_intervals(given_, expected, tol):
    assert wilson(given_["k"], given_["n"]) == pytest.approx(expected, abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("t_interval_mean"))
def test_t_interval_agrees_with_published_intervals(given_, expected, tol):
    assert t_interval(given_["values"]) == pytest.approx(expected, abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("score_mean"))
def test_equal_scores_get_wilsons_interval_on_their_sum(given_, expected, tol):
    interval, method = score_interval(given_["values"])
    assert method == "wilson"
    assert interval == pytest.approx(expected, abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("t_quantile_975"))
def test_t_quantiles_agree_with_published_ones(given_, expected, tol):
    assert t_quantile(0.975, given_["df"]) == pytest.approx(expected, abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("normal_quantile_975"))
def test_the_normal_quantile_agrees_with_the_published_one(given_, expected, tol):
    assert normal_quantile(0.975) == pytest.approx(expected, abs=tol)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_equals_scipys_for_whole_counts(counts, confidence):
    k, n = counts
    theirs = scipy_stats.binomtest(k, n).proportion_ci(confidence, method="wilson")
    assert wilson(k, n, confidence=confidence) == pytest.approx([theirs.low, theirs.high], abs=1e-12)


@given(st.floats(0.01, 500).flatmap(lambda n: st.tuples(st.floats(0, 1), st.just(n))))
def test_wilson_holds_the_rate_is_never_a_point_and_stays_in_range(rate_and_n):
    rate, n = rate_and_n
    lower, upper = wilson(rate * n, n)
    assert 0 <= lower <= rate + 1e-12
    assert rate - 1e-12 <= upper <= 1
    assert upper - lower > 1e-6


def test_wilson_solves_the_score_equation_for_fractional_counts():
    # Each end r satisfies |p - r| = z · √(r(1 - r)/n): the definition, not the closed form.
    k, n, z = 3.7, 5.0, 1.959963984540054
    for end in wilson(k, n):
        assert abs(k / n - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(1, 0), (-1, 3), (4, 3), (1, -2)])
def test_an_impossible_count_is_refused(k, n):
    with pytest.raises(ValueError, match="trial"):
        wilson(k, n)


@given(SCORES)
def test_mean_and_sd_equal_the_standard_librarys(values):
    assert mean(values) == pytest.approx(statistics.fmean(values), abs=1e-12)
    if len(values) == 1:
        assert sd(values) is None
    else:
        assert sd(values) == pytest.approx(statistics.stdev(values), abs=1e-9)


@given(SCORES.flatmap(lambda v: st.tuples(st.just(v), st.permutations(v))))
def test_the_order_of_trials_changes_no_bit(pair):
    values, shuffled = pair
    assert mean(values) == mean(shuffled)
    assert sd(values) == sd(shuffled)
    assert score_interval(values) == score_interval(shuffled)


@given(SCORES)
def test_a_score_interval_is_in_range_holds_the_mean_and_is_no_point(values):
    interval, method = score_interval(values)
    assert 0 <= interval.lower <= mean(values) + 1e-12
    assert mean(values) - 1e-12 <= interval.upper <= 1
    assert interval.upper - interval.lower > 0.02
    assert (method == "wilson") == (len(set(values)) == 1)


@given(st.lists(st.floats(0, 1).map(lambda x: round(x, 2)), min_size=2, max_size=9).filter(lambda v: len(set(v)) > 1))
def test_the_t_interval_equals_scipys(values):
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert t_interval(values) == pytest.approx([theirs.low, theirs.high], rel=1e-9, abs=1e-9)


def test_one_value_has_no_t_interval_and_no_spread():
    assert sd([0.5]) is None
    with pytest.raises(ValueError, match="at least two values"):
        t_interval([0.5])
    with pytest.raises(ValueError, match="at least two values"):
        t_quantile(0.975, 0)


def test_the_mean_of_nothing_is_refused():
    with pytest.raises(ValueError, match="unknown"):
        mean([])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1.01, -0.5])
def test_a_score_that_is_no_share_is_refused_with_its_value(bad):
    with pytest.raises(ValueError, match=str(bad)):
        unit_values([0.5, bad])


def test_scores_that_differ_by_float_rounding_become_equal():
    assert unit_values([0.1 + 0.2, 0.3, 1 + 1e-12, -1e-12, True]) == [0.3, 0.3, 1.0, 0.0, 1.0]
    assert math.copysign(1, unit_values([-1e-12])[0]) == 1


def test_clip_keeps_an_interval_in_its_range():
    assert clip(Interval(-0.2, 1.3)) == (0, 1)
    assert clip(Interval(-3.0, 0.5), -1, 1) == (-1, 0.5)


@given(st.integers(2, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1))))
def test_scores_that_are_pass_bits_get_students_interval(counts):
    n, k = counts
    interval, method = score_interval([1.0] * k + [0.0] * (n - k))
    theirs = scipy_stats.ttest_1samp([1.0] * k + [0.0] * (n - k), 0).confidence_interval()
    assert method == "t"
    assert interval == pytest.approx((max(0, theirs.low), min(1, theirs.high)), abs=1e-9)


def test_graded_scores_that_nearly_agree_get_a_moderated_variance():
    # m = .88, s² = .032, n = 5: v = (.0528 + .128) / 4.5; half = t.975(4) √(v / 5), by hand.
    interval, method = score_interval([1.0, 1.0, 1.0, 0.8, 0.6])
    half = 2.7764451051977934 * math.sqrt((0.5 * 0.88 * 0.12 + 4 * 0.032) / 4.5 / 5)
    assert method == "moderated t"
    assert interval == pytest.approx((0.88 - half, 1.0), abs=1e-9)


@given(SCORES.filter(lambda v: len(set(v)) > 1))
def test_a_score_interval_is_never_narrower_than_students(values):
    plain, shown = clip(t_interval(values)), score_interval(values)[0]
    assert shown.lower <= plain.lower + 1e-12
    assert shown.upper >= plain.upper - 1e-12


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10])
def test_shown_intervals_of_one_group_cover_the_truth_in_at_least_93_percent_over_all_rates(n):
    # Exact: all n + 1 outcomes of n pass bits, weighted by their binomial probability, averaged over 1000 rates.
    rates = [(i + 0.5) / 1000 for i in range(1000)]
    for interval_of in (
        lambda k: wilson(k, n),
        lambda k: score_interval([1.0] * k + [0.0] * (n - k))[0],
    ):
        covered = 0.0
        for k in range(n + 1):
            lower, upper = interval_of(k)
            covered += sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for p in rates if lower <= p <= upper) / len(
                rates
            )
        assert covered >= 0.93


@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_intervals_of_graded_scores_cover_the_truth_in_at_least_93_percent(n):
    # A score of .6 for the pass and .2 for each of two lesser checks, all rates uniform: 4,000 groups. Student's own interval
    # would have 92.8 % at five trials.
    rng = np.random.default_rng(6)
    rates = rng.random((4000, 3))
    weights = np.array([0.6, 0.2, 0.2])
    scores = (rng.random((4000, n, 3)) < rates[:, None, :]) @ weights
    held = 0
    for group, truth in zip(scores.round(9).tolist(), rates @ weights, strict=True):
        lower, upper = score_interval(group)[0]
        held += lower <= truth <= upper
    assert held >= 0.93 * 4000
