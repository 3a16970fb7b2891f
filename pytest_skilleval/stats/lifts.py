"""What a condition changes over the cases of one run: lifts, regression and unlock rates, routing efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from .differences import fieller, paired_difference
from .intervals import ROUNDING, wilson

__all__ = ["LiftNumber", "lift", "regression_rate", "routing_efficiency", "unlock_rate"]


class LiftNumber(TypedDict):
    """A number over cases with its 95 % interval; None where it has no value, `note` saying why."""

    value: float | None
    ci: list[float] | None
    cases: int
    note: str


NO_CASES = "no case was measured under both conditions"


def lift(without: Sequence[float], with_skill: Sequence[float], *, confidence: float = 0.95) -> LiftNumber:
    """Mean over cases of with_skill - without, with the interval of `paired_difference`.

    Args:
        without: Mean score or pass rate of each case under the first condition, in [0, 1].
        with_skill: The same under the second, case by case; only cases that were measured under both.
        confidence: Nominal coverage.
    """
    if not without:
        return LiftNumber(value=None, ci=None, cases=0, note=NO_CASES)
    difference = paired_difference(without, with_skill, confidence=confidence)
    return LiftNumber(value=difference.delta, ci=list(difference.interval), cases=len(without), note="")


def _share(hits: int, cases: int, confidence: float) -> LiftNumber:
    if cases == 0:
        return LiftNumber(value=None, ci=None, cases=0, note=NO_CASES)
    return LiftNumber(value=hits / cases, ci=list(wilson(hits, cases, confidence=confidence)), cases=cases, note="")


def regression_rate(without: Sequence[float], with_skill: Sequence[float], *, confidence: float = 0.95) -> LiftNumber:
    """Share of cases that do worse with the skill than without, with Wilson's interval; arguments as in `lift`."""
    hits = sum(b < a - ROUNDING for a, b in zip(without, with_skill, strict=True))
    return _share(hits, len(without), confidence)


def unlock_rate(without: Sequence[float], with_skill: Sequence[float], *, confidence: float = 0.95) -> LiftNumber:
    """Share of cases that do better with the skill than without, with Wilson's interval; arguments as in `lift`."""
    hits = sum(b > a + ROUNDING for a, b in zip(without, with_skill, strict=True))
    return _share(hits, len(without), confidence)


def _why_not(without: Sequence[float], preloaded: Sequence[float], confidence: float) -> str:
    if not without:
        return NO_CASES
    if paired_difference(without, preloaded, confidence=confidence).interval.lower > 0:
        return "not estimable: every case shows the same ratio, or there are too few cases"
    return "not estimable: the preloaded skill's own lift is not clearly above 0"


def routing_efficiency(
    without: Sequence[float], discovered: Sequence[float], preloaded: Sequence[float], *, confidence: float = 0.95
) -> LiftNumber:
    """How much of the preloaded skill's lift arrives when the agent has to find it: realised lift / oracle lift.

    Args:
        without: Mean of each case under `none`, in [0, 1].
        discovered: The same under `self-load`, case by case.
        preloaded: The same under `preloaded`.
        confidence: Nominal coverage.

    Returns:
        The ratio with Fieller's interval, not clamped. None, with the note "not estimable", when the oracle lift is
        not clearly above 0 (a ratio to something that may be 0 can be anything) or when all cases show the same ratio.
    """
    realised = [b - a for a, b in zip(without, discovered, strict=True)]
    oracle = [b - a for a, b in zip(without, preloaded, strict=True)]
    ratio = fieller(realised, oracle, confidence=confidence)
    if ratio is None or sum(oracle) <= 0:
        return LiftNumber(value=None, ci=None, cases=len(without), note=_why_not(without, preloaded, confidence))
    return LiftNumber(value=ratio.delta, ci=list(ratio.interval), cases=len(without), note="")
