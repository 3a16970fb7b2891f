"""What a run will take: from recorded runs where there are any, else from what its cases allow at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_skilleval import store
from pytest_skilleval.reports import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import ExpectedGroup
    from pytest_skilleval.results import GroupSummary, Report

__all__ = ["forecast", "forecast_lines"]


class _Sum(NamedTuple):
    """What a quantity adds up to."""

    value: float
    recorded: int
    """Groups that an earlier run has measured."""
    allowed: int
    """Groups that were counted with what their case allows at most."""
    unknown: int

    def text(self, write: Callable[[float], str], limit: str) -> str:
        """Write it with where it comes from."""
        groups = self.recorded + self.allowed + self.unknown
        if self.unknown == groups:
            return f"unknown: nothing recorded, and no {limit}"
        word = "about" if self.recorded else "at most"
        parts = [f"{self.recorded} of {groups} groups as recorded"] if self.recorded else []
        parts += [f"{self.allowed} of {groups} groups at most their {limit}"] if self.allowed else []
        parts += [f"{self.unknown} of {groups} groups unknown and not counted"] if self.unknown else []
        return f"{word} {write(self.value)} ({', '.join(parts)})"


def forecast(settings: Settings, groups: Sequence[ExpectedGroup], provider: str, *, paid: bool) -> list[str]:
    """Return the lines that say what a run will take.

    Args:
        settings: What the user asked for.
        groups: What it will run.
        provider: Who answers.
        paid: Whether that costs money or quota.
    """
    durations = store.read_durations(settings.output, provider)
    return forecast_lines(groups, durations, store.last_report(settings.output, provider), paid=paid)


def forecast_lines(
    groups: Sequence[ExpectedGroup], durations: Mapping[str, float], last: Report | None, *, paid: bool
) -> list[str]:
    """Return the expected time, tokens and cost of a run.

    Args:
        groups: What it will run.
        durations: Seconds by `lane:case`, from earlier runs.
        last: The newest report of the same provider, or None.
        paid: Whether it costs money or quota; else only what is known is shown.
    """
    known = {(row.lane, row.case, row.condition): row for row in last.groups} if last is not None else {}
    rows = [(group, known.get((group.lane, group.case, group.condition))) for group in groups]
    time = _sum((group.trials, durations.get(f"{group.lane}:{group.case}"), group.timeout_s) for group in groups)
    tokens = _sum((group.trials, _tokens(row), group.tokens) for group, row in rows)
    cost = _sum((group.trials, row.cost_usd if row is not None else None, group.cost_usd) for group, row in rows)
    lines = [f"  time    {time.text(numbers.seconds, 'timeout')}, one after the other"]
    if paid or tokens.unknown < len(rows):
        lines.append(f"  tokens  {tokens.text(numbers.tokens, 'budget.tokens')}")
    if paid or cost.unknown < len(rows):
        lines.append(f"  cost    {cost.text(numbers.money, 'budget.cost_usd')}")
    return lines


def _tokens(row: GroupSummary | None) -> float | None:
    if row is None or row.tokens is None:
        return None
    values = [value for value in (row.tokens.input, row.tokens.output) if value is not None]
    return sum(values) if values else None


def _sum(rows: Iterable[tuple[int, float | None, float | None]]) -> _Sum:
    total, counts = 0.0, {"recorded": 0, "allowed": 0, "unknown": 0}
    for trials, measured, most in rows:
        value = measured if measured is not None else most
        counts["recorded" if measured is not None else "allowed" if most is not None else "unknown"] += 1
        total += trials * (value or 0.0)
    return _Sum(total, **counts)
