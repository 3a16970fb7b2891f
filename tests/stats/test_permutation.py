"""The relabelling test against scipy, Fisher's exact test and brute force over all relabellings."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from pytest_skilleval.stats.fdr import attainable_level, discrete_step_up, expected_by_chance
from pytest_skilleval.stats.permutation import relabelling_p, relabelling_tests, relabellings

from .reference import rows

FEW = st.sampled_from([0, 0.5, 1])
MANY = st.integers(0, 1000).map(lambda x: x / 1000)


def samples(values, largest=5):
    return st.tuples(st.lists(values, min_size=1, max_size=largest), st.lists(values, min_size=1, max_size=largest))


def brute_force(base, cand) -> dict[Fraction, int]:
    """How many relabellings give each |mean difference|, in exact arithmetic on thousandths."""
    pooled = [Fraction(round(v * 1000), 1000) for v in (*base, *cand)]
    sizes: dict[Fraction, int] = {}
    for chosen in combinations(range(len(pooled)), len(cand)):
        dealt = sum(pooled[i] for i in chosen)
        size = abs(dealt / len(cand) - (sum(pooled) - dealt) / len(base))
        sizes[size] = sizes.get(size, 0) + 1
    return sizes


def p_of(sizes: dict[Fraction, int], size: Fraction) -> Fraction:
    return Fraction(sum(n for s, n in sizes.items() if s >= size), sum(sizes.values()))


def observed(base, cand) -> Fraction:
    b, c = ([Fraction(round(v * 1000), 1000) for v in values] for values in (base, cand))
    return abs(sum(c) / len(c) - sum(b) / len(b))


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("permutation_p_mean_difference"))
def test_p_agrees_with_scipys_permutation_test(given_, expected, tol):
    assert relabelling_p(given_["baseline"], given_["candidate"]) == pytest.approx(expected, abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("least_attainable_p"))
def test_a_complete_reversal_has_the_least_attainable_p(given_, expected, tol):
    assert relabelling_p([1.0] * given_["T1"], [0.0] * given_["T2"]) == pytest.approx(expected, abs=tol)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("fisher_p"))
def test_on_pass_bits_of_equal_runs_p_is_fishers_exact_one(given_, expected, tol):
    first, second = ([1.0] * passes + [0.0] * fails for passes, fails in given_["table"])
    assert relabelling_p(first, second) == pytest.approx(expected, abs=tol)


@given(samples(MANY))
def test_p_equals_the_enumeration_of_all_relabellings(runs):
    assert relabelling_p(*runs) == pytest.approx(float(p_of(brute_force(*runs), observed(*runs))), abs=1e-12)


@given(samples(FEW, largest=6))
def test_p_with_many_ties_equals_the_enumeration_of_all_relabellings(runs):
    assert relabelling_p(*runs) == pytest.approx(float(p_of(brute_force(*runs), observed(*runs))), abs=1e-12)


@given(st.lists(st.booleans(), min_size=12, max_size=40))
def test_p_of_long_runs_of_bits_is_exact(bits):
    half = len(bits) // 2
    first, second = [float(b) for b in bits[:half]], [float(b) for b in bits[half : 2 * half]]
    k1, k2 = round(sum(first)), round(sum(second))
    theirs = scipy_stats.fisher_exact([[k1, half - k1], [k2, half - k2]]).pvalue
    assert relabelling_p(first, second) == pytest.approx(theirs, rel=1e-9)


@settings(max_examples=20, derandomize=True)
@given(st.lists(MANY, min_size=20, max_size=20, unique=True))
def test_p_of_many_distinct_scores_is_close_to_scipys_though_drawn(values):
    base, cand = values[:10], values[10:]
    theirs = scipy_stats.permutation_test(
        (np.array(cand), np.array(base)),
        lambda x, y, axis: np.round(x.mean(axis=axis) - y.mean(axis=axis), 12),
        vectorized=True,
        n_resamples=30_000,
        rng=1,
    ).pvalue
    assert relabelling_p(base, cand) == pytest.approx(theirs, abs=0.025)


@given(samples(MANY).flatmap(lambda r: st.tuples(st.just(r), st.permutations(r[0]), st.permutations(r[1]))))
def test_the_order_of_trials_changes_no_bit(case):
    (base, cand), base_shuffled, cand_shuffled = case
    assert relabelling_p(base, cand) == relabelling_p(base_shuffled, cand_shuffled)


@given(samples(MANY))
def test_exchanging_the_runs_changes_nothing(runs):
    base, cand = runs
    assert relabelling_p(base, cand) == pytest.approx(relabelling_p(cand, base), abs=1e-12)


def test_float_rounding_is_no_difference():
    assert relabelling_p([0.1 + 0.2] * 5, [0.3] * 5) == 1.0
    # A third of a third: sums that only rounding tells apart are ties.
    assert relabelling_p([1 / 3, 2 / 3, 1 / 3], [2 / 3, 1 / 3, 2 / 3]) == pytest.approx(
        float(p_of(brute_force([1, 2, 1], [2, 1, 2]), Fraction(1, 3)))
    )


@pytest.mark.parametrize(("base", "cand"), [([], [1.0]), ([1.0], []), ([], []), ([0.5] * 3, [0.5] * 4), ([0.0], [1.0])])
def test_nothing_to_relabel_gives_p_one(base, cand):
    assert relabelling_p(base, cand) == 1.0


@pytest.mark.parametrize(("t1", "t2"), [(1, 1), (2, 3), (3, 2), (4, 4), (5, 1)])
def test_all_relabellings_are_there_once(t1, t2):
    found = relabellings(t1, t2)
    assert found.complete
    columns = {tuple(column > 0) for column in found.weights.T}
    if found.mirrored:
        columns |= {tuple(not taken for taken in column) for column in columns}
    assert len(columns) == math.comb(t1 + t2, t2)
    assert {sum(column) for column in columns} == {t2}


def test_drawn_relabellings_hold_what_was_observed_first_and_repeat_with_their_seed():
    found = relabellings(10, 11)
    assert not found.complete
    assert found.weights.shape == (21, 20_000)
    assert list(found.weights[:, 0] > 0) == [False] * 10 + [True] * 11
    assert np.array_equal(relabellings.__wrapped__(10, 11).weights, found.weights)


@given(st.lists(samples(FEW, largest=4), min_size=1, max_size=6), st.sampled_from([0.05, 0.1, 0.5, 1.0]))
def test_what_a_family_attains_by_chance_equals_its_enumeration(family, t):
    base, cand = [list(b) for b, _ in family], [list(c) for _, c in family]
    chance = relabelling_tests(base, cand, horizon=1.0).chance
    expected = Fraction(0)
    for b, c in family:
        sizes = brute_force(b, c)
        # P(p <= t) over the relabellings, straight from the definition; equal results only ever give p = 1.
        if len(sizes) > 1 or len(set(b + c)) > 1:
            expected += Fraction(sum(n for s, n in sizes.items() if p_of(sizes, s) <= t), sum(sizes.values()))
    if t < 1:
        assert expected_by_chance(t, chance) == pytest.approx(float(expected), abs=1e-9)


def test_what_a_drawn_family_attains_by_chance_is_about_uniform():
    rng = np.random.default_rng(3)
    chance = relabelling_tests(rng.random((40, 10)).tolist(), rng.random((40, 10)).tolist()).chance
    # Of continuous scores each p-value is attainable: 40 groups have 40 t of them below t.
    for t in (0.01, 0.05, 0.10):
        assert expected_by_chance(t, chance) == pytest.approx(40 * t, rel=0.02)


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("case_family"))
def test_a_familys_chances_and_discoveries_agree_with_arithmetic(given_, expected, tol):
    tests = relabelling_tests(given_["baseline"], given_["candidate"])
    steps = discrete_step_up(tests.p, tests.chance, 0.10)
    assert tests.p[0] == pytest.approx(expected.get("p_first", expected.get("p", [0])[0]), abs=tol)
    if "p" in expected:
        assert tests.p == pytest.approx(expected["p"], abs=tol)
    assert steps.expected[0] == pytest.approx(expected["expected_by_chance_first"], abs=tol)
    if "q_first" in expected:
        assert steps.q[0] == pytest.approx(expected["q_first"], abs=tol)
    decided = [p <= 0.05 and q <= 0.025 for p, q in zip(tests.p, steps.q, strict=True)]
    assert sum(decided) == expected["n_regressed_at_0.025"]


@given(st.lists(samples(FEW, largest=4), min_size=1, max_size=8))
def test_q_is_the_least_ratio_of_expected_to_found_at_no_smaller_p(family):
    tests = relabelling_tests([b for b, _ in family], [c for _, c in family], horizon=1.0)
    steps = discrete_step_up(tests.p, tests.chance, 1.0)
    for p, q in zip(tests.p, steps.q, strict=True):
        ratios = [
            expected_by_chance(other, tests.chance) / sum(mine <= other + 1e-12 for mine in tests.p)
            for other in tests.p
            if other >= p - 1e-12
        ]
        assert q == pytest.approx(min(1.0, *ratios), abs=1e-9)


def test_above_the_horizon_nothing_is_claimed():
    tests = relabelling_tests([[1, 1, 1], [1, 0, 1]], [[0, 0, 0], [1, 1, 1]], horizon=0.2)
    steps = discrete_step_up(tests.p, tests.chance, 0.2)
    assert steps.expected[0] is not None
    assert (steps.expected[1], steps.q[1]) == (None, 1.0)


def test_the_attainable_level_is_the_largest_that_fits():
    chance = relabelling_tests([[1.0] * 5] * 3, [[0.0] * 5] * 3).chance
    assert attainable_level(chance, 0.025, 0.05) == pytest.approx((1 / 126, 3 / 126))
    assert attainable_level(chance, 0.02, 0.05) == (None, 0.0)
