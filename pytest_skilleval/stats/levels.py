"""The levels that verdicts are decided at, and the changes that are too small to matter."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_LEVELS", "Levels"]


@dataclass(frozen=True)
class Levels:
    """Error levels and practical thresholds of a comparison.

    All verdicts of a comparison share one budget of 5 %. The groups may spend up to `cases` of it (control groups up
    to `controls`), depending on what their results can give by chance: with three trials, nothing. The overall test
    gets `overall` less half of what they can spend, so that the sum never exceeds `overall` + (cases + controls) / 2.
    A comparison in which nothing changed so ends with every verdict inconclusive in at least 95 % of runs; `make
    calibrate` measures it.

    Raises:
        ValueError: A level is not in (0, 1), the groups' shares leave nothing to the overall test, or a threshold is
            not in [0, 1].
    """

    overall: float = 0.032
    """Of the overall test, when the groups can spend nothing."""
    cases: float = 0.025
    """False discovery rate among the groups that decide: a group's q must not exceed it."""
    controls: float = 0.005
    """The same among control groups, when there are any."""
    case_p: float = 0.05
    """A group's own p must not exceed this either, however many groups change with it."""
    signal: float = 0.10
    """A group's p up to which it is shown as a signal: never a verdict."""
    drift: float = 0.05
    """Of the control groups' own overall test, which warns and decides nothing."""
    score_threshold: float = 0.05
    """The smallest gain of score that is called improved."""
    pass_threshold: float = 0.05
    """The smallest gain of pass rate that is called improved."""

    def __post_init__(self) -> None:
        for name in ("overall", "cases", "controls", "case_p", "signal", "drift"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"the level {name} is {getattr(self, name)}; it must lie between 0 and 1")
        if self.left(self.cases + self.controls) <= 0:
            raise ValueError(
                f"cases ({self.cases}) and controls ({self.controls}) leave nothing of overall ({self.overall}); "
                "raise overall, or lower them"
            )
        for name in ("score_threshold", "pass_threshold"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must lie in 0..1")

    @property
    def horizon(self) -> float:
        """The largest p-value of a group that anything is said about."""
        return max(self.signal, self.case_p)

    def left(self, spent: float) -> float:
        """The level of the overall test when the groups can spend so much."""
        return self.overall - spent / 2

    @property
    def planned(self) -> float:
        """The level to plan with: that of the overall test when the groups spend half of their share."""
        return self.left(self.cases / 2)


DEFAULT_LEVELS = Levels()
