"""Simulated eval runs: cases with true pass rates, trials that vary, and changes between two runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOTHING", "Floats", "Run", "Scenario", "Suite", "beta_shape", "drifting", "shifted", "single"]

Floats = NDArray[np.float64]
WEIGHTS = (0.6, 0.2, 0.2)
SMALL_CHECK = 0.85
"""Mean rate of the lesser checks."""


def beta_shape(flip: float, mean: float) -> tuple[float, float]:
    """(a, b) of the beta distribution with this mean and E[2p(1 - p)] = flip.

    E[2p(1 - p)] = 2 m (1 - m) s / (s + 1) with s = a + b; solved for s.
    """
    most = 2 * mean * (1 - mean)
    if not 0 < flip < most:
        raise ValueError(f"a flip rate of {flip} is impossible at a mean of {mean}; it must lie between 0 and {most}")
    size = flip / (most - flip)
    return mean * size, (1 - mean) * size


@dataclass(frozen=True)
class Run:
    """One simulated run: a row a case."""

    scores: Floats
    passes: NDArray[np.bool_]


@dataclass(frozen=True)
class Suite:
    """Cases with their true rates, and how to run them."""

    rates: Floats
    small: Floats
    """Rates of the two lesser checks, shape (cases, 2)."""

    @classmethod
    def draw(cls, rng: np.random.Generator, cases: int, flip: float, mean: float) -> Suite:
        """Cases as they come."""
        small = rng.beta(*beta_shape(0.1, SMALL_CHECK), (cases, 2))
        return cls(rng.beta(*beta_shape(flip, mean), cases), small)

    def run(self, rng: np.random.Generator, trials: int, rates: Floats | None = None) -> Run:
        """Trials of every case, at other pass rates when given."""
        chance = self.rates if rates is None else rates
        passes = rng.random((len(chance), trials)) < chance[:, None]
        small = rng.random((len(chance), trials, 2)) < self.small[:, None, :]
        return Run(WEIGHTS[0] * passes + small @ np.array(WEIGHTS[1:]), passes)

    def mean_score(self, rates: Floats) -> Floats:
        """True mean score of each case at these pass rates."""
        return np.asarray(WEIGHTS[0] * rates + self.small @ np.array(WEIGHTS[1:]))


@dataclass(frozen=True)
class Scenario:
    """What changes between the runs."""

    name: str
    change: Callable[[Floats, np.random.Generator], tuple[Floats, Floats]]
    """True rates to (rates of the baseline, rates of the candidate)."""


def shifted(by: float) -> Scenario:
    """Every case's pass rate moves, as far as there is room."""
    return Scenario(f"all cases {by:+.1f}", lambda rates, _: (rates, np.clip(rates + by, 0, 1)))


def single(before: float, after: float) -> Scenario:
    """One case changes."""

    def change(rates: Floats, _: np.random.Generator) -> tuple[Floats, Floats]:
        base, cand = rates.copy(), rates.copy()
        base[0], cand[0] = before, after
        return base, cand

    return Scenario(f"one case {before:g} → {after:g}", change)


def drifting(spread: float) -> Scenario:
    """Nothing changed, but each case of each run has its own day: a shift on the logit scale."""

    def change(rates: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        logit = np.log(np.clip(rates, 1e-9, 1 - 1e-9) / (1 - np.clip(rates, 1e-9, 1 - 1e-9)))
        moved = [1 / (1 + np.exp(-logit - rng.normal(0, spread, rates.shape))) for _ in range(2)]
        return moved[0], moved[1]

    return Scenario(f"nothing, with a drift of {spread:g} logit", change)


NOTHING = Scenario("nothing", lambda rates, _: (rates, rates))
