"""Bootstraps against scipy, the enumeration of all resamples, and the rows of the first implementation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_skilleval.stats.bootstrap import bca, cluster_bootstrap, percentile, resampled_means
from pytest_skilleval.stats.origin import mulberry32, paired_bootstrap

from .reference import ROWS, rows

VALUES = st.lists(st.integers(0, 20).map(lambda x: x / 20), min_size=5, max_size=9).filter(lambda v: len(set(v)) > 2)


@pytest.mark.parametrize("values", [[0, 0.5, 1.0], [0, 0, 1.0], [0.2, 0.4, 0.9, 1.0]])
def test_resampled_means_have_the_distribution_of_all_resamples(values):
    every = [sum(sample) / len(values) for sample in itertools.product(values, repeat=len(values))]
    drawn = resampled_means(values, resamples=40_000)
    for point in np.unique(np.round(every, 9)):
        share = np.mean(np.array(every) <= point + 1e-9)
        assert np.mean(drawn <= point + 1e-9) == pytest.approx(share, abs=0.0125)  # five standard errors


@settings(max_examples=15, derandomize=True)
@given(st.integers(0, 1000), st.integers(10, 16))
def test_percentile_and_bca_agree_with_scipys(seed, size):
    values = (np.random.default_rng(seed).random(size) ** 2).tolist()
    sample = (np.array(values),)
    for ours, method in ((percentile(values), "percentile"), (bca(values), "BCa")):
        theirs = scipy_stats.bootstrap(sample, np.mean, n_resamples=20_000, method=method, rng=0).confidence_interval
        # Two bootstraps of 10,000 and 20,000 resamples: their ends differ by about 2 % of the interval.
        assert ours == pytest.approx((theirs.low, theirs.high), abs=0.06 * (theirs.high - theirs.low))


@pytest.mark.parametrize("method", [percentile, bca])
def test_equal_values_have_no_bootstrap_interval(method):
    assert method([0.4] * 5) is None


def test_whole_cases_are_resampled_together():
    both = [[1.0, -1.0], [0.0, 0.0], [0.5, -0.5], [0.25, -0.25], [0.75, -0.75], [1.0, -1.0]]
    first, second = cluster_bootstrap(both)
    assert first == pytest.approx((-second.upper, -second.lower))


def test_the_expanded_percentiles_are_about_students_interval_for_a_symmetric_sample():
    # Hesterberg (2015): the expansion makes the bootstrap's width that of t. 21 evenly spread values are nearly normal
    # in their mean, so the two intervals agree to the bootstrap's own error.
    values = [i / 20 for i in range(21)]
    found = cluster_bootstrap([[v] for v in values], resamples=40_000)[0]
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval()
    assert found == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_cases_that_agree_or_are_fewer_than_five_have_no_bootstrap_interval():
    agreeing, other = cluster_bootstrap([[0.5, i / 10] for i in range(5)])
    assert agreeing is None
    assert other is not None
    assert cluster_bootstrap([[0.5, i / 10] for i in range(4)]) == [None, None]


@given(VALUES.flatmap(lambda v: st.tuples(st.just(v), st.permutations(v))))
def test_the_order_of_cases_changes_no_bit(pair):
    first, second = ([[v, 1 - v] for v in values] for values in pair)
    assert cluster_bootstrap(first, resamples=500) == cluster_bootstrap(second, resamples=500)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("mulberry32"))
def test_mulberry32_gives_the_published_numbers(given_, expected, tol):
    assert mulberry32(given_["seed"], given_["n"]) == pytest.approx(expected, abs=tol)
    assert mulberry32(given_["seed"], given_["n"] - 1, start=1) == pytest.approx(expected[1:], abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("origin_bootstrap"))
def test_the_paired_bootstrap_gives_the_published_intervals_to_the_last_digit(given_, expected, tol):
    found = paired_bootstrap(
        given_["baseline"], given_["candidate"], resamples=given_["iterations"], seed=given_["seed"]
    )
    assert found.interval == pytest.approx(expected, abs=tol)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=256, max_size=260))
def test_many_pairs_draw_the_same_numbers_as_few(values):
    cand = [1 - v for v in values]
    found = paired_bootstrap(values, cand, resamples=100)
    picks = (mulberry32(42, 100 * len(values)) * len(values)).astype(int).reshape(100, -1)
    means = np.array(cand)[picks].mean(axis=1) - np.array(values)[picks].mean(axis=1)
    assert found.interval == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=1e-12)


def test_pairs_that_differ_alike_give_the_first_rule_a_point_and_others_are_left_out():
    found = paired_bootstrap([0.0] * 3, [1.0] * 5)
    assert (found.delta, found.interval, found.pairs, found.left_out) == (1.0, (1.0, 1.0), 3, 2)
    assert paired_bootstrap([0.5], [0.25]).interval == (-0.25, -0.25)
    with pytest.raises(ValueError, match="at least one trial"):
        paired_bootstrap([], [1.0])


def test_every_reference_row_is_used():
    used = {"wilson", "newcombe", "t_quantile_975", "normal_quantile_975", "least_attainable_p", "pass_at_k"}
    used |= {"pass_hat_k", "permutation_p_mean_difference", "flip_rate_one_case", "flip_rate_between_runs", "fieller"}
    used |= {"t_interval_mean", "score_mean", "case_family", "mde_80", "lane_rate", "paired_case_t", "fisher_p"}
    used |= {"clustered_se_of_mean", "moderated_t", "float_trap", "beta_from_flip", "origin_bootstrap", "mulberry32"}
    assert {row["what"] for row in ROWS} == used
