"""The sentence that reads the conditions of a lane: only an interval that excludes 0 is an effect."""

from __future__ import annotations

import pytest

from pytest_skilleval.results import Lift
from pytest_skilleval.summaries import readings

UP, DOWN, WIDE, FLAT = (0.1, 0.5), (-0.5, -0.1), (-0.2, 0.4), (-0.03, 0.03)
"""An effect, harm, noise, and an interval so narrow that no effect of 5 points is left in it."""


def lift(metric: str, ci: tuple[float, float], lane: str = "execution", of: str = "pass_rate") -> Lift:
    return Lift(lane=lane, metric=metric, of=of, value=sum(ci) / 2, ci=ci, cases=10)


@pytest.mark.parametrize(
    ("realised", "oracle", "gap", "diagnosis", "says"),
    [
        (UP, UP, FLAT, "works", "agents find it by themselves"),
        (UP, None, None, "works", "agents find it by themselves"),
        (WIDE, UP, UP, "discovery", "agents do not load it."),
        (UP, UP, UP, "discovery", "agents do not load it often enough."),
        (WIDE, UP, WIDE, "loaded", "cannot be told from noise yet"),
        (None, UP, None, "loaded", "was not asked"),
        (DOWN, WIDE, WIDE, "harm", "hurts"),
        (WIDE, FLAT, WIDE, "content", "less than 5 points"),
        (WIDE, DOWN, WIDE, "content", "less than 5 points"),
        (WIDE, WIDE, WIDE, "unclear", "No effect can be told from noise yet"),
        (WIDE, None, None, "unclear", "No effect can be told from noise yet"),
    ],
)
def test_what_the_intervals_show_is_said_and_no_more(
    realised: tuple[float, float] | None,
    oracle: tuple[float, float] | None,
    gap: tuple[float, float] | None,
    diagnosis: str,
    says: str,
) -> None:
    given = {"realised": realised, "oracle": oracle, "routing_gap": gap}
    (found,) = readings([lift(metric, ci) for metric, ci in given.items() if ci is not None])
    assert (found.lane, found.diagnosis) == ("execution", diagnosis)
    assert says in found.text
    assert "stale" not in found.text


@pytest.mark.parametrize(("harm", "says"), [(UP, "does harm"), (WIDE, "no measurable harm"), (DOWN, "no measurable")])
def test_a_stale_version_has_a_sentence_of_its_own(harm: tuple[float, float], says: str) -> None:
    (found,) = readings([lift("realised", UP), lift("stale_harm", harm)])
    assert says in found.text


def test_each_lane_is_read_by_its_pass_rate_and_one_without_a_skill_is_not() -> None:
    lifts = [
        lift("realised", UP, lane="prompt"),
        lift("realised", DOWN, of="score"),
        lift("realised", WIDE),
        lift("stale_harm", UP, lane="dogfood"),
    ]
    assert [(found.lane, found.diagnosis) for found in readings(lifts)] == [
        ("prompt", "works"),
        ("execution", "unclear"),
    ]
