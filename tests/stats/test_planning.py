"""The planner against published rows, arithmetic, and simulated runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_skilleval.stats.levels import DEFAULT_LEVELS, Levels
from pytest_skilleval.stats.permutation import relabelling_p
from pytest_skilleval.stats.planning import (
    between_case_variance,
    cases_needed,
    design_limits,
    detectable_change,
    least_visible_change,
    least_visible_overall,
    min_trials_for_case_verdict,
    standard_error,
    trials_needed,
)

from .reference import rows


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("mde_80"))
def test_the_smallest_detectable_change_agrees_with_its_formula(given_, expected, tol):
    design = (given_["flip"], given_["cases"], given_["trials"])
    assert standard_error(*design, tau2=given_["tau"] ** 2) == pytest.approx(expected["se"], abs=tol)
    assert detectable_change(*design, tau2=given_["tau"] ** 2, alpha=0.05) == pytest.approx(expected["mde"], abs=tol)


@given(st.floats(0.02, 0.4), st.floats(0.01, 0.5), st.integers(2, 200), st.floats(0, 0.01))
def test_the_trials_needed_are_the_fewest_that_detect_the_change(change, flip, cases, tau2):
    needed = trials_needed(change, flip, cases, tau2=tau2)
    if needed is None:
        limit = detectable_change(flip, cases, 1000, tau2=tau2)
        assert limit is None or limit > change
        return
    assert detectable_change(flip, cases, needed, tau2=tau2) <= change * (1 + 1e-6)
    if needed > 1:
        fewer = detectable_change(flip, cases, needed - 1, tau2=tau2)
        assert fewer is None or fewer > change * (1 - 1e-6)


@given(st.floats(0.02, 0.4), st.floats(0.01, 0.5), st.integers(1, 20), st.floats(0, 0.1))
def test_the_cases_needed_are_the_fewest_that_detect_the_change(change, flip, trials, tau2):
    needed = cases_needed(change, flip, trials, tau2=tau2)
    assert detectable_change(flip, needed, trials, tau2=tau2) <= change
    if needed > 2:
        fewer = detectable_change(flip, needed - 1, trials, tau2=tau2)
        assert fewer is None or fewer > change


def test_no_number_of_trials_helps_against_variance_between_cases():
    assert trials_needed(0.05, 0.16, 8, tau2=0.04) is None
    assert cases_needed(0.05, 0.16, 5, tau2=0.04) > 8
    assert cases_needed(0.0, 0.16, 5) is None


def test_the_variance_between_cases_is_what_noise_leaves_over():
    # Two runs of 3 trials with flip .3 each: noise is p(1-p)/T = .15/3 a run, .1 for the difference.
    differences = [0.5, -0.5, 0.5, -0.5]
    assert between_case_variance(differences, 0.3, 0.3, 3) == pytest.approx(1 / 3 - 0.1)
    assert between_case_variance([0.1, 0.1], 0.3, 0.3, 3) == 0.0
    assert between_case_variance([0.4], 0.3, 0.3, 3) == 0.0


@pytest.mark.parametrize(("reversible", "trials"), [(1, 5), (4, 6), (8, 6), (24, 7), (40, 7), (160, 8)])
def test_the_least_trials_for_a_verdict_of_one_group_agree_with_arithmetic(reversible, trials):
    # E = v · 2 / C(2T, T) must not exceed .025 and p = 2 / C(2T, T) not .05: 2/252, 2/924, 2/3432, 2/12870.
    assert min_trials_for_case_verdict(reversible) == trials
    p = 2 / math.comb(2 * trials, trials)
    assert reversible * p <= 0.025
    assert reversible * 2 / math.comb(2 * trials - 2, trials - 1) > 0.025


@pytest.mark.parametrize("t1", [3, 4, 5, 8])
@pytest.mark.parametrize("t2", [3, 4, 5, 8])
def test_the_least_visible_change_is_the_fewest_failures_whose_test_is_small_enough(t1, t2):
    found = least_visible_change(t1, t2, 0.03)
    p = [relabelling_p([1.0] * t1, [0.0] * f + [1.0] * (t2 - f)) for f in range(1, t2 + 1)]
    fits = [f for f, value in enumerate(p, start=1) if value <= 0.03]
    assert found == (fits[0] / t2 if fits else None)


def test_the_least_visible_overall_change_needs_failures_on_one_side_only():
    assert least_visible_overall(120, 0.03) == pytest.approx(6 / 120)  # 2^-6 = .016 <= .03 < 2^-5
    assert least_visible_overall(5, 0.03) is None


def test_a_design_that_cannot_conclude_says_so_with_the_number_that_could():
    limits = design_limits(24, 48, 3)
    assert not limits["group_verdicts"]
    assert limits["overall_verdict"]
    assert limits["reasons"] == [f"3 trials cannot give a group a verdict of its own; {limits['least_trials']} would"]
    assert min_trials_for_case_verdict(5) == limits["least_trials"]  # a tenth of 48 groups can reverse by chance

    single = design_limits(1, 1, 1)
    assert not single["overall_verdict"]
    assert single["detectable_change"] is None
    assert any("overall" in reason for reason in single["reasons"])

    assert design_limits(24, 24, 8)["reasons"] == []
    assert design_limits(0, 0, 5)["detectable_change"] is None


def test_more_of_anything_detects_smaller_changes():
    found = [design_limits(c, c, t)["detectable_change"] for c, t in ((8, 3), (24, 3), (24, 5), (160, 5))]
    assert found == sorted(found, reverse=True)
    noisy, quiet = (design_limits(24, 24, 5, flip=flip)["detectable_change"] for flip in (0.3, 0.05))
    assert noisy > quiet


def test_the_planned_power_is_what_simulated_runs_have():
    # 24 cases of 5 trials, p = .9 against .9 - MDE: the planner promises 80 % for a z test at its level.
    rng = np.random.default_rng(4)
    flip = (2 * 0.9 * 0.1 + 2 * 0.7 * 0.3) / 2
    change = detectable_change(flip, 24, 5)
    base = rng.binomial(5, 0.8 + change / 2, (4000, 24)) / 5
    cand = rng.binomial(5, 0.8 - change / 2, (4000, 24)) / 5
    differences = (cand - base).mean(axis=1)
    error = standard_error(2 * 0.8 * 0.2 - change**2 / 2, 24, 5)
    found = np.mean(differences <= -2.17 * error)  # z at two-sided .03
    assert found == pytest.approx(0.80, abs=0.10)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"cases": 0}, "between 0 and 1"), ({"overall": 1.5}, "between 0 and 1"), ({"score_threshold": -1}, "0..1")],
)
def test_levels_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Levels(**change)


def test_the_default_levels_are_the_documented_ones():
    assert (DEFAULT_LEVELS.case_p, DEFAULT_LEVELS.signal) == (0.05, 0.10)
    assert (DEFAULT_LEVELS.score_threshold, DEFAULT_LEVELS.pass_threshold) == (0.05, 0.05)
