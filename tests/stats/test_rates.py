"""Rates over repeated trials against exact enumeration and published rows."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats

from pytest_skilleval.stats.rates import (
    case_flip_rate,
    clustered_rate,
    flip_rate,
    flip_rate_between,
    lane_rate,
    pass_at_k,
    pass_hat_k,
    rate,
    routing,
)

from .reference import rows

COUNTS = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("pass_at_k"))
def test_pass_at_k_agrees_with_published_values(given_, expected, tol):
    assert pass_at_k(**given_) == pytest.approx(expected, abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("pass_hat_k"))
def test_pass_hat_k_agrees_with_published_values(given_, expected, tol):
    assert pass_hat_k(**given_) == pytest.approx(expected, abs=tol)


@given(COUNTS)
def test_pass_at_k_and_pass_hat_k_equal_the_enumeration_of_all_draws(counts):
    n, c, k = counts
    bits = [1] * c + [0] * (n - c)
    draws = list(itertools.combinations(bits, k))
    assert pass_at_k(n, c, k) == pytest.approx(float(Fraction(sum(any(d) for d in draws), len(draws))), abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(float(Fraction(sum(all(d) for d in draws), len(draws))), abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_draws_that_are_impossible_are_refused(n, c, k):
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="impossible"):
            function(n, c, k)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("flip_rate_one_case"))
def test_a_cases_flip_rate_agrees_with_the_share_of_pairs(given_, expected, tol):
    assert case_flip_rate(**given_) == pytest.approx(expected, abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("flip_rate_between_runs"))
def test_the_flip_rate_between_runs_agrees_with_the_share_of_cross_pairs(given_, expected, tol):
    measured = flip_rate_between([(given_["k1"], given_["T1"], given_["k2"], given_["T2"])])
    assert measured["rate"] == pytest.approx(expected, abs=tol)
    assert measured["n"] == 1


@given(st.lists(st.integers(2, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=6))
def test_the_flip_rate_is_the_mean_share_of_disagreeing_pairs(counts):
    shares = []
    for k, n in counts:
        bits = [1] * k + [0] * (n - k)
        pairs = list(itertools.combinations(bits, 2))
        shares.append(sum(a != b for a, b in pairs) / len(pairs))
    measured = flip_rate(counts)
    assert measured["rate"] == pytest.approx(sum(shares) / len(shares), abs=1e-12)
    lower, upper = measured["ci"]
    assert 0 <= lower < upper <= 1
    assert lower - 1e-12 <= measured["rate"] <= upper + 1e-12


def test_cases_with_one_trial_say_nothing_about_flips():
    assert case_flip_rate(1, 1) is None
    assert flip_rate([(1, 1), (0, 1)])["rate"] is None
    assert flip_rate([(1, 1), (1, 2)])["n"] == 1
    assert flip_rate_between([(1, 1, 0, 0)])["rate"] is None


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("lane_rate"))
def test_a_lanes_interval_agrees_with_wilson_on_the_effective_number(given_, expected, tol):
    measured = lane_rate(given_["case_rates"], given_["trials"])
    assert measured["ci"] == pytest.approx(expected["ci"], abs=tol)
    assert measured["rate"] == pytest.approx(sum(given_["case_rates"]) / len(given_["case_rates"]), abs=1e-12)


def test_the_effective_number_of_trials_is_the_published_one():
    given_, expected, tol = rows("lane_rate")[1].values
    p, cases = sum(given_["case_rates"]) / len(given_["case_rates"]), len(given_["case_rates"])
    quantile = scipy_stats.t.ppf(0.975, cases - 1)
    upper = lane_rate(given_["case_rates"], given_["trials"])["ci"][1]
    # Solve Wilson's defining equation at the upper end for n.
    n = optimize.brentq(lambda n: (upper - p) ** 2 - quantile**2 * upper * (1 - upper) / n, 1, 1000)
    assert n == pytest.approx(expected["n_eff"], abs=1e-6)
    assert tol < 1e-6


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(1, 10))
def test_a_clustered_interval_is_in_range_and_no_point(values, trials):
    lower, upper = clustered_rate(values, at_least=0, at_most=trials * len(values))
    centre = sum(values) / len(values)
    assert 0 <= lower <= centre + 1e-9
    assert centre - 1e-9 <= upper <= 1
    assert upper - lower > 1e-6


def test_one_case_is_one_observation_of_cases_like_it():
    assert lane_rate([1.0], 50)["ci"] == pytest.approx([0.2065493143772374, 1.0], abs=1e-9)  # Wilson 1 of 1, published


def test_a_rate_of_nothing_is_unknown_and_not_zero():
    assert rate(0, 0) == {"rate": None, "ci": None, "n": 0, "method": "none"}
    assert lane_rate([], 0)["rate"] is None


def test_routing_gives_recall_false_triggers_and_precision_with_their_numbers():
    trials = [(True, True)] * 3 + [(True, False)] + [(False, True)] + [(False, False)] * 4
    found = routing(trials)
    assert {name: (r["rate"], r["n"]) for name, r in found.items()} == {
        "recall": (0.75, 4),
        "false_trigger_rate": (0.2, 5),
        "precision": (0.75, 4),
    }
    assert found["recall"]["ci"] == pytest.approx([0.3006418423, 0.9544127392], abs=1e-9)  # Wilson 3 of 4, published
    assert routing([])["precision"]["rate"] is None


def test_lane_and_flip_intervals_cover_the_truth_of_cases_like_these():
    # 400 lanes of 12 cases whose rates are uniform: the true mean is 1/2, the true flip rate E[2p(1 - p)] is 1/3.
    # 93 % less three standard errors of 400 draws is 89 %.
    rng = np.random.default_rng(9)
    for trials in (3, 5, 10):
        held = {"lane": 0, "flips": 0}
        for _ in range(400):
            passes = rng.binomial(trials, rng.random(12))
            lane = lane_rate((passes / trials).tolist(), 12 * trials)["ci"]
            flips = flip_rate([(int(k), trials) for k in passes])["ci"]
            held["lane"] += lane[0] <= 1 / 2 <= lane[1]
            held["flips"] += flips[0] <= 1 / 3 <= flips[1]
        assert min(held.values()) >= 0.89 * 400
