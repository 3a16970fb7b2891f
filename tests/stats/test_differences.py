"""Differences of samples and of paired cases against published rows, scipy and brute force."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_skilleval.stats.differences import (
    Difference,
    combine_differences,
    fieller,
    moderated_t,
    newcombe,
    paired_difference,
    pooled_variance,
    win_loss_tie,
)
from pytest_skilleval.stats.intervals import Interval

from .reference import rows

VALUES = st.lists(st.sampled_from([0, 0.2, 0.5, 0.55, 0.9, 1]), min_size=1, max_size=6)
COUNTS = st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("newcombe"))
def test_newcombe_agrees_with_published_intervals(given_, expected, tol):
    assert given_["diff"] == "p1-p2"
    found = newcombe(given_["k2"], given_["n2"], given_["k1"], given_["n1"])
    assert found.interval == pytest.approx(expected, abs=tol)


@given(COUNTS, COUNTS)
def test_newcombe_is_antisymmetric_in_range_and_never_a_point(first, second):
    forth, back = newcombe(*first, *second), newcombe(*second, *first)
    assert forth.delta == -back.delta
    assert forth.interval == pytest.approx((-back.interval.upper, -back.interval.lower), abs=1e-15)
    assert -1 <= forth.interval.lower <= forth.delta <= forth.interval.upper <= 1
    assert forth.interval.upper - forth.interval.lower > 0.1


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("moderated_t"))
def test_the_moderated_interval_agrees_with_its_formula(given_, expected, tol):
    found = moderated_t(given_["baseline"], given_["candidate"], given_["run_variance"], prior_df=given_["prior_df"])
    assert found.delta == pytest.approx(expected["delta"], abs=tol)
    assert found.interval == pytest.approx(expected["ci"], abs=tol)


@given(VALUES, VALUES, st.sampled_from([0, 0.01, 0.2]))
def test_the_moderated_interval_is_in_range_and_never_a_point(first, second, run_variance):
    found = moderated_t(first, second, run_variance)
    assert -1 <= found.interval.lower <= found.delta + 1e-12
    assert found.delta - 1e-12 <= found.interval.upper <= 1
    assert found.interval.upper - found.interval.lower > 0.01


def test_a_run_without_any_variance_gets_newcombes_interval():
    assert moderated_t([1.0] * 3, [0.0] * 3, 0.0).interval == pytest.approx((-1, -0.2059232824597782), abs=1e-9)


@given(VALUES, VALUES)
def test_the_pooled_variance_weighs_each_samples_variance_by_its_degrees_of_freedom(first, second):
    found = pooled_variance(first, second)
    df = len(first) + len(second) - 2
    if df == 0:
        assert found is None
        return
    squares = sum(statistics.variance(v) * (len(v) - 1) for v in (first, second) if len(v) > 1)
    assert found == pytest.approx(squares / df, abs=1e-12)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("paired_case_t"))
def test_the_paired_interval_agrees_with_scipys_on_case_means(given_, expected, tol):
    differences = given_["case_differences"]
    first = [max(0.0, -d) for d in differences]
    second = [max(0.0, d) for d in differences]
    found = paired_difference(first, second)
    assert found.delta == pytest.approx(expected["mean"], abs=tol)
    assert found.interval == pytest.approx(expected["ci"], abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("clustered_se_of_mean"))
def test_the_paired_interval_rests_on_the_clustered_standard_error(given_, expected, tol):
    means = [
        sum(v for v, c in zip(given_["trials"], given_["case"], strict=True) if c == case) / 3 for case in range(4)
    ]
    found = paired_difference([0.0] * 4, means)
    half = (found.delta + expected["se_with_small_sample_factor"] * scipy_stats.t.ppf(0.975, 3)) - found.delta
    assert found.delta == pytest.approx(expected["mean"], abs=tol)
    assert found.interval.lower == pytest.approx(max(-1, found.delta - half), abs=tol)


@given(st.lists(st.tuples(st.sampled_from([0, 0.2, 1]), st.sampled_from([0, 0.2, 1])), min_size=1, max_size=8))
def test_the_paired_interval_is_in_range_and_never_a_point(pairs):
    found = paired_difference([a for a, _ in pairs], [b for _, b in pairs])
    assert -1 <= found.interval.lower <= found.delta + 1e-12
    assert found.delta - 1e-12 <= found.interval.upper <= 1
    assert found.interval.upper - found.interval.lower > 0.01


def test_equal_differences_get_newcombes_interval_on_the_means():
    found = paired_difference([1.0] * 10, [0.0] * 10)
    assert found.interval == pytest.approx((-1.0, -0.6075), abs=5.1e-5)  # Newcombe (1998), 10/10 against 0/10


@given(VALUES, VALUES)
def test_wins_losses_and_ties_equal_the_enumeration_of_all_cross_pairs(first, second):
    pairs = [(a, b) for a in first for b in second]
    expected = (sum(b > a for a, b in pairs), sum(b < a for a, b in pairs), sum(b == a for a, b in pairs))
    assert win_loss_tie(first, second) == expected


@given(VALUES, VALUES)
def test_wins_minus_losses_is_the_mann_whitney_statistic(first, second):
    theirs = scipy_stats.mannwhitneyu(second, first, method="asymptotic").statistic
    found = win_loss_tie(first, second)
    assert found.wins + found.ties / 2 == theirs


def test_float_rounding_is_a_tie():
    assert win_loss_tie([0.1 + 0.2] * 5, [0.3] * 5) == (0, 0, 25)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("fieller"))
def test_fieller_agrees_with_its_closed_form(given_, expected, tol):
    found = fieller(given_["num"], given_["den"])
    assert found.delta == pytest.approx(expected["ratio"], abs=tol)
    assert found.interval == pytest.approx(expected["ci"], abs=tol)


@given(
    st.lists(
        st.tuples(st.floats(0, 1).map(lambda x: round(x, 2)), st.floats(0.4, 1).map(lambda x: round(x, 2))),
        min_size=3,
        max_size=10,
    )
)
def test_at_each_end_of_fiellers_interval_the_t_statistic_is_the_quantile(pairs):
    top, bottom = [a for a, _ in pairs], [b for _, b in pairs]
    found = fieller(top, bottom)
    if found is None:
        return
    for end in found.interval:
        residuals = [a - end * b for a, b in pairs]
        statistic = scipy_stats.ttest_1samp(residuals, 0).statistic
        assert abs(statistic) == pytest.approx(scipy_stats.t.ppf(0.975, len(pairs) - 1), rel=1e-4)


@pytest.mark.parametrize(
    ("top", "bottom"),
    [
        ([0.1], [0.2]),
        ([0.1, 0.2, 0.3], [0.3, -0.3, 0.1]),  # the denominator may be 0
        ([0.5, 0.5], [0.5, 0.5]),  # a point is no interval
        ([0.11, 0.11, 0.11], [0.4, 0.4, 0.4]),  # the same, with rounding
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_a_ratio_that_is_not_estimable_is_none(top, bottom):
    assert fieller(top, bottom) is None


def test_a_ratio_needs_as_many_numerators_as_denominators():
    with pytest.raises(ValueError, match="2 numerators and 1"):
        fieller([0.1, 0.2], [0.1])


def test_independent_differences_combine_by_the_root_of_squares():
    found = combine_differences(Difference(0.1, Interval(-0.2, 0.4)), Difference(0.5, Interval(0.1, 0.9)))
    assert found.delta == pytest.approx(0.4)
    assert found.interval == pytest.approx((0.4 - 0.5, 0.4 + 0.5))  # √(0.4² + 0.3²) = 0.5


def _coverage(n: int, interval_of) -> float:
    grid = [(i + 0.5) / 40 for i in range(40)]
    pmf = [[math.comb(n, k) * p**k * (1 - p) ** (n - k) for p in grid] for k in range(n + 1)]
    covered = 0.0
    for a in range(n + 1):
        for b in range(n + 1):
            lower, upper = interval_of(a, b)
            covered += sum(
                pmf[a][i] * pmf[b][j] for i, p in enumerate(grid) for j, q in enumerate(grid) if lower <= q - p <= upper
            )
    return covered / len(grid) ** 2


@pytest.mark.parametrize("n", [3, 5, 10])
def test_differences_cover_the_truth_in_at_least_93_percent_over_all_pairs_of_rates(n):
    # Exact: all outcomes of two runs of n pass bits, averaged over a 40 x 40 grid of the two true rates. The run's
    # variance is the group's own here: the hardest case for the moderated interval.
    def bits(k: int) -> list[float]:
        return [1.0] * k + [0.0] * (n - k)

    def own(a: int, b: int) -> Interval:
        return moderated_t(bits(a), bits(b), pooled_variance(bits(a), bits(b)) or 0.0).interval

    assert _coverage(n, lambda a, b: newcombe(a, n, b, n).interval) >= 0.93
    assert _coverage(n, own) >= 0.93
