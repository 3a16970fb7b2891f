"""Where a number lies on a drawn axis: positions in percent of its width, for SVG that fits any screen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Axis", "Bar", "difference_axis", "share_axis"]

Interval = tuple[float, float] | Sequence[float] | None
EDGE = 2.0
"""Percent of the width that stays free at either end, so that a mark at the end is whole."""


class Bar(NamedTuple):
    """An interval and its point, in percent of the width; None where a number is unknown."""

    low: str
    high: str
    point: str


class Axis(NamedTuple):
    """A linear axis."""

    low: float
    high: float
    ticks: tuple[tuple[str, str], ...]
    """Position in percent, and label."""
    zero: str | None
    """Position of zero, where it is worth a line."""

    def at(self, value: float) -> str:
        """Return a value's position; what lies beyond the axis is drawn at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{EDGE + share * (100 - 2 * EDGE):.1f}%"

    def bar(self, value: float | None, interval: Interval) -> Bar:
        """Return the positions of an interval and its point; empty where unknown."""
        low, high = interval if interval is not None and len(interval) == 2 else (None, None)
        return Bar(*("" if one is None else self.at(one) for one in (low, high, value)))

    @property
    def grid(self) -> tuple[str, ...]:
        """Positions of the grid lines."""
        return tuple(place for place, _ in self.ticks)


def _axis(low: float, high: float, steps: int, zero: float | None, label: str) -> Axis:
    bare = Axis(low, high, (), None)
    values = [low + (high - low) * step / steps for step in range(steps + 1)]
    ticks = tuple((bare.at(value), "0" if value == 0 and zero is not None else label.format(value)) for value in values)
    return Axis(low, high, ticks, None if zero is None else bare.at(zero))


def share_axis() -> Axis:
    """Return the axis of rates and scores: 0 to 1 in quarters, labelled in percent."""
    return _axis(0.0, 1.0, 4, None, "{:.0%}")


def difference_axis(intervals: Iterable[Interval], values: Iterable[float | None] = ()) -> Axis:
    """Return a symmetric axis that holds all differences: as narrow as ±0.1, 0.2, 0.3, 0.5 or 1 allows."""
    bounds = [abs(bound) for interval in intervals if interval is not None for bound in interval]
    bounds += [abs(value) for value in values if value is not None]
    most = max((bound for bound in bounds if math.isfinite(bound)), default=0.0)
    reach = next((reach for reach in (0.1, 0.2, 0.3, 0.5, 1.0) if most <= reach), 1.0)
    return _axis(-reach, reach, 4, 0.0, "{:+.2g}")
