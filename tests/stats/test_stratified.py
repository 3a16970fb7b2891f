"""The overall test against brute force over all relabellings of all groups, and its exact and drawn forms."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_skilleval.stats import stratified
from pytest_skilleval.stats.stratified import Stratum, stratified_test

PAIR = st.sampled_from([(0.0, 0.0), (0.5, 0.0), (0.8, 1.0), (1.0, 1.0)])
GROUP = st.tuples(st.lists(PAIR, min_size=1, max_size=3), st.lists(PAIR, min_size=1, max_size=3))


def strata(groups):
    return [Stratum(1 / len(groups), tuple(sorted(b)), tuple(sorted(c))) for b, c in groups]


def mean_difference(base, cand, metric):
    return sum(t[metric] for t in cand) / len(cand) - sum(t[metric] for t in base) / len(base)


def relabelled(base, cand, metric):
    """The group's mean difference under each of its relabellings."""
    pooled = [*base, *cand]
    law = []
    for chosen in combinations(range(len(pooled)), len(cand)):
        c = [pooled[i] for i in chosen]
        b = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        law.append(mean_difference(b, c, metric))
    return law


def brute_force(groups):
    """(deltas, spreads, mid-p of score and pass rate), by going through every joint relabelling."""
    columns, deltas = [], []
    for metric, steady in ((0, False), (1, False), (1, True)):
        laws, delta = [], 0.0
        for base, cand in groups:
            law = np.array(relabelled(base, cand, metric))
            unit = (law.std() if law.std() > 1e-12 else math.inf) if steady else 1.0
            laws.append(law / unit / len(groups))
            delta += mean_difference(base, cand, metric) / unit / len(groups)
        columns.append(np.array([sum(draw) for draw in product(*laws)]))
        deltas.append(delta)
    spreads = [column.std() for column in columns]
    z = [abs(d) / s if s > 1e-12 else 0.0 for d, s in zip(deltas, spreads, strict=True)]
    moving = [np.abs(column) / s for column, s in zip(columns, spreads, strict=True) if s > 1e-12]
    largest = np.maximum.reduce(moving) if moving else np.zeros(1)

    def p(own):
        return float((largest > own + 1e-9).mean() + (np.abs(largest - own) <= 1e-9).mean() / 2)

    best_pass = max(z[1], z[2] if deltas[1] * deltas[2] > 0 else 0.0)
    found = [p(z[0]) if spreads[0] > 1e-12 else 1.0, p(best_pass) if spreads[1] > 1e-12 else 1.0]
    return deltas[:2], spreads[:2], found


@settings(max_examples=60)
@given(st.lists(GROUP, min_size=1, max_size=3))
def test_it_equals_the_enumeration_of_all_joint_relabellings(groups):
    deltas, spreads, p = brute_force(groups)
    found = stratified_test(strata(groups), level=0.05)
    assert found.exact
    for metric, delta, spread, own in zip((found.score, found.pass_rate), deltas, spreads, p, strict=True):
        assert metric.delta == pytest.approx(delta, abs=1e-12)
        assert metric.spread == pytest.approx(spread, abs=1e-12)
        assert metric.p == pytest.approx(own, abs=1e-9)
    assert found.p == min(found.score.p, found.pass_rate.p)


@settings(max_examples=20, derandomize=True)
@given(st.lists(GROUP, min_size=1, max_size=3))
def test_what_is_drawn_is_what_could_be_counted(groups):
    weighted = [w for w in map(stratified._weighted, strata(groups)) if max(w.variances) > 0]
    if not weighted:
        return
    spreads = [math.sqrt(sum(w.weights[c] ** 2 * w.variances[c] for w in weighted)) for c in range(3)]
    exact = stratified._counted_law(weighted, spreads)
    drawn = stratified._drawn_law(weighted, spreads, 0.0, 20_000, 0)
    for z in exact.values:
        assert drawn.p(z) == pytest.approx(exact.p(z), abs=0.018)  # five standard errors of 20,000 draws


def test_a_reversal_of_two_groups_has_the_product_of_their_chances():
    # Two groups, 2 trials a run, pass bits 1,1 against 0,0: each has K ~ hypergeometric(4, 2, 2), P(K = 0) = 1/6.
    groups = [([(1.0, 1.0)] * 2, [(0.0, 0.0)] * 2)] * 2
    found = stratified_test(strata(groups), level=0.05)
    assert found.pass_rate.p == pytest.approx(2 * (1 / 6) ** 2 / 2)  # both extremes have (1/6)², the mid-p half of it
    assert found.pass_rate.delta == -1


def test_a_small_change_that_all_groups_share_is_seen_beside_noisy_ones():
    # 14 steady groups lose one of 8 trials each: d = -1/8 with a standard deviation of 1/8, so -14/√24 = -2.9 in all.
    # 10 noisy groups are as mixed as can be, without a change: they hide it in the plain mean.
    steady = ([(1.0, 1.0)] * 8, [(0.0, 0.0)] + [(1.0, 1.0)] * 7)
    noisy = ([(0.0, 0.0)] * 4 + [(1.0, 1.0)] * 4,) * 2
    found = stratified_test(strata([steady] * 14 + [noisy] * 10), level=0.05)
    plain_z = abs(found.pass_rate.delta) / found.pass_rate.spread
    assert plain_z == pytest.approx(14 / 8 / math.sqrt(14 / 64 + 10 * 16 / 60 / 4), rel=1e-9)  # 1.86: not significant
    assert found.pass_rate.p < 0.01


@pytest.mark.parametrize("trials", [(9, 9), (10, 12)])
def test_long_runs_are_drawn_without_bias(trials):
    # 160 groups without any difference in how they are made: p is uniform, so its mean over 60 runs is 0.5 ± 0.04.
    rng = np.random.default_rng(2)
    p = []
    for _ in range(60):
        groups = [
            ([(x, float(x > 0.5)) for x in rng.random(trials[0])], [(x, float(x > 0.5)) for x in rng.random(trials[1])])
            for _ in range(40)
        ]
        p.append(stratified_test(strata(groups), level=0.05, draws=2000).p)
    assert np.mean(p) == pytest.approx(0.5, abs=0.12)
    assert np.mean(np.array(p) < 0.2) == pytest.approx(0.2, abs=0.16)


@settings(max_examples=30)
@given(st.lists(GROUP, min_size=1, max_size=5).flatmap(lambda g: st.tuples(st.just(g), st.permutations(g))), st.data())
def test_the_order_of_groups_and_trials_changes_no_bit(pair, data):
    groups, shuffled = pair
    again = [(data.draw(st.permutations(b)), data.draw(st.permutations(c))) for b, c in shuffled]
    assert stratified_test(strata(groups), level=0.05, draws=500) == stratified_test(
        strata(again), level=0.05, draws=500
    )


def test_constant_groups_drop_out_by_themselves():
    moving = ([(1.0, 1.0)] * 3, [(0.0, 0.0)] * 3)
    still = ([(1.0, 1.0)] * 3, [(1.0, 1.0)] * 3)
    alone, among = (stratified_test(strata(g), level=0.05) for g in ([moving], [moving, *[still] * 9]))
    assert alone.p == among.p == pytest.approx(2 / math.comb(6, 3) / 2)
    nothing = stratified_test(strata([still]), level=0.05)
    assert (nothing.p, nothing.score.spread) == (1.0, 0.0)


def test_the_critical_value_is_the_smallest_that_the_level_allows():
    rng = np.random.default_rng(8)
    groups = [
        ([(float(x), float(x)) for x in rng.integers(0, 2, 4)], [(float(x), float(x)) for x in rng.integers(0, 2, 4)])
        for _ in range(6)
    ]
    for level in (0.02, 0.05, 0.2):
        found = stratified_test(strata(groups), level=level)
        z = abs(found.pass_rate.delta) / found.pass_rate.spread
        assert (z >= found.critical - 1e-9) == (found.pass_rate.p <= level)
