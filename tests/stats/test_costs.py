"""Costs now and before: the rise, its bound and its rate of false discoveries, by hand calculation."""

from __future__ import annotations

import math

import pytest

from pytest_skilleval.stats.costs import Costs, costs_of, rises


def test_three_trials_on_both_sides_give_the_bound_that_the_tables_give() -> None:
    # s = 10 on both sides, so the error is 10 * sqrt(2/3) = 8.16497 and t = 40 / 8.16497 = sqrt(24), at 4 degrees of
    # freedom. The tables give t(0.975, 4) = 2.776; Student's distribution at 4 degrees has the closed form
    # F(t) = 1/2 + 3/8 * t / sqrt(1 + t^2/4) * (1 - t^2 / (12 (1 + t^2/4))).
    (rise,) = rises([(costs_of([100, 110, 120]), costs_of([140, 150, 160]))])
    t = math.sqrt(24)
    wanted = 1 / 2 - 3 / 8 * t / math.sqrt(7) * (1 - 24 / (12 * 7))
    assert rise.delta == 40
    assert rise.lower == pytest.approx(40 - 2.776 * 8.16497, abs=0.01)
    assert rise.p == pytest.approx(wanted, abs=1e-9)
    assert rise.q == rise.p


def test_one_saved_trial_is_compared_with_the_noise_of_the_others() -> None:
    # One degree of freedom: the Cauchy distribution, p = atan(1 / t) / pi. s = sqrt(50), error = sqrt(50 * 3/2).
    (rise,) = rises([(costs_of([100]), costs_of([150, 160]))])
    assert rise.p == pytest.approx(math.atan(math.sqrt(75) / 55) / math.pi)


@pytest.mark.parametrize("before", [[100.0], [90.0, 100.0, 110.0]])
def test_with_one_trial_now_nothing_is_known_of_noise(before: list[float]) -> None:
    assert rises([(costs_of(before), costs_of([900]))]) == [(800, None, None, None)]


def test_trials_that_never_differ_give_an_exact_difference() -> None:
    same, more, less = rises(
        [(Costs(5, 0, 2), Costs(5, 0, 2)), (Costs(5, 0, 2), Costs(6, 0, 3)), (Costs(5, 0, 2), Costs(4, 0, 2))]
    )
    assert (same.lower, same.p) == (0, 1)
    assert (more.lower, more.p) == (1, 0)
    assert (less.lower, less.p) == (-1, 1)


def test_a_fall_is_no_rise() -> None:
    (rise,) = rises([(costs_of([140, 150, 160]), costs_of([100, 110, 120]))])
    assert rise.p is not None
    assert rise.p > 0.99


def test_among_many_groups_a_chance_find_is_worth_less() -> None:
    # Benjamini and Hochberg: p = 0.0497 (above) is the smallest of four, so q = 4 * p, unless a larger p bounds it.
    lone = (costs_of([100]), costs_of([150, 160]))
    flat = (Costs(5, 0, 2), Costs(5, 0, 2))
    found = rises([flat, lone, flat, flat])
    assert found[1].p is not None
    assert found[1].q == pytest.approx(4 * found[1].p)
    assert [rise.q for rise in found if rise is not found[1]] == [1, 1, 1]


def test_when_all_groups_rise_alike_each_is_found() -> None:
    lone = (costs_of([100]), costs_of([150, 160]))
    found = rises([lone] * 4)
    assert [rise.q for rise in found] == pytest.approx([found[0].p] * 4)


def test_no_trials_are_no_costs() -> None:
    with pytest.raises(ValueError, match="no values"):
        costs_of([])
