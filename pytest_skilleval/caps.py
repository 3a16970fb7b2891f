"""Caps: what a trial takes one of, how many there may be at once, and what a rate limit does to that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pytest_skilleval.casespec import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["CAUTIOUS", "CapChange", "Caps", "caps_of", "resources_of"]

CAUTIOUS = 4
"""Trials at once of a provider that costs money or quota, unless the user says otherwise."""
CUT = 0.8
"""What is left of a cap after a rate limit."""


def resources_of(lane: str, provider: str) -> tuple[str, str]:
    """Return what a trial takes one of: its kind and its provider."""
    return f"kind:{Lane(lane).kind.value}", f"provider:{provider}"


def caps_of(asked: Iterable[tuple[str, int]], provider: str, *, paid: bool) -> dict[str, int]:
    """Return resource to the most trials at once.

    Args:
        asked: What `--skilleval-cap` says.
        provider: Who answers.
        paid: Whether that costs money or quota.
    """
    return ({f"provider:{provider}": CAUTIOUS} if paid else {}) | dict(asked)


class CapChange(NamedTuple):
    """A cap that was cut or grew back."""

    resource: str
    cap: int | None
    """None: no cap any more."""
    why: str


class Caps:
    """The caps of one run: who holds what, and how a rate limit changes them.

    Tickets number the trials in the order of their start. Trials that started before a cut tell nothing new when they
    are refused too: they belong to the same episode.

    Args:
        limits: Resource to the most trials at once; what is not named has no limit.
        told: Called with each change.
    """

    def __init__(self, limits: Mapping[str, int], told: Callable[[CapChange], None] = lambda _: None) -> None:
        self.limits = dict(limits)
        self.in_use: Counter[str] = Counter()
        self.most_in_use: Counter[str] = Counter()
        self._told = told
        self._ceiling = dict(limits)
        self._unlimited: set[str] = set()
        """Resources whose cap only a rate limit made."""
        self._tickets = 0
        self._cut_at: dict[str, int] = {}
        self._good: Counter[str] = Counter()

    def room(self, resources: Iterable[str]) -> bool:
        """Tell whether one more trial may start."""
        return all(self.in_use[name] < self.limits[name] for name in resources if name in self.limits)

    def full(self, resources: Iterable[str]) -> list[str]:
        """Return the resources that keep a trial from starting."""
        return [name for name in resources if name in self.limits and self.in_use[name] >= self.limits[name]]

    def take(self, resources: Sequence[str]) -> int:
        """Take one of each; return the trial's ticket."""
        for name in resources:
            self.in_use[name] += 1
            self.most_in_use[name] = max(self.most_in_use[name], self.in_use[name])
        self._tickets += 1
        return self._tickets

    def release(self, resources: Iterable[str]) -> None:
        """Give one of each back."""
        for name in resources:
            self.in_use[name] -= 1

    def refused(self, name: str, ticket: int) -> None:
        """Cut a cap after a rate limit: to 0.8 of itself, by one at least, never below one; once an episode.

        Args:
            name: The resource that was refused.
            ticket: Of the trial that was.
        """
        self._good[name] = 0
        if ticket <= self._cut_at.get(name, 0):
            return
        self._cut_at[name] = self._tickets
        if name not in self.limits:
            # Nobody asked for a cap: what ran when the limit was hit is the most that is known to be too much.
            self._unlimited.add(name)
            self.limits[name] = self._ceiling[name] = max(1, self.in_use[name])
        before = self.limits[name]
        after = max(1, min(before - 1, int(before * CUT)))
        if after < before:
            self._change(name, after, "rate limit")

    def answered(self, name: str, ticket: int) -> None:
        """Let a cut cap grow by one after as many good answers as it allows at once.

        Args:
            name: The resource that answered.
            ticket: Of the trial; one from before the cut says nothing about now.
        """
        if name not in self._cut_at or ticket <= self._cut_at[name] or name not in self.limits:
            return
        self._good[name] += 1
        if self._good[name] < self.limits[name]:
            return
        self._good[name] = 0
        if self.limits[name] < self._ceiling[name]:
            self._change(name, self.limits[name] + 1, "grown back")
        elif name in self._unlimited:
            self._unlimited.discard(name)
            self._change(name, None, "grown back")

    def _change(self, name: str, cap: int | None, why: str) -> None:
        if cap is None:
            del self.limits[name]
        else:
            self.limits[name] = cap
        self._told(CapChange(name, cap, why))
