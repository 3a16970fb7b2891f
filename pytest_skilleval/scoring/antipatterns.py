"""Anti-patterns, found in what an agent did and said."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pytest_skilleval.casespec import AntiPattern
from pytest_skilleval.errors import ErrorClass, TrialFault

from .habits import BUILT_IN
from .negation import is_negated
from .patterns import search_all
from .workflow import Deeds

__all__ = ["BUILT_IN", "AntiPatternHit", "detect", "resolve"]


class AntiPatternHit(NamedTuple):
    """An anti-pattern in what an agent did or said."""

    id: str
    severity: Literal["info", "warning", "error"]
    line: str
    """The line that it was found in, bounded."""
    fix: str

    @property
    def reason(self) -> str:
        """One line for a record."""
        return f"{self.id} ({self.severity}): {self.line!r}" + (f"; instead: {self.fix}" if self.fix else "")


def resolve(wanted: str | AntiPattern) -> AntiPattern:
    """Return the anti-pattern that a case names or writes itself.

    Raises:
        TrialFault: Of class `check`: no built-in one has that name.
    """
    if isinstance(wanted, AntiPattern):
        return wanted
    try:
        return BUILT_IN[wanted]
    except KeyError:
        message = f"no anti-pattern is called {wanted!r}; built in are {', '.join(sorted(BUILT_IN))}"
        raise TrialFault(ErrorClass.CHECK, message) from None


def detect(wanted: tuple[str | AntiPattern, ...], deeds: Deeds) -> tuple[AntiPatternHit, ...]:
    """Return at most one hit for each anti-pattern: its first that is not advised against.

    Raises:
        TrialFault: A pattern runs out of time, or a name is unknown.
    """
    hits = []
    for anti_pattern in map(resolve, wanted):
        hit = _first(anti_pattern, deeds)
        if hit:
            hits.append(hit)
    return tuple(hits)


def _first(anti_pattern: AntiPattern, deeds: Deeds) -> AntiPatternHit | None:
    for pattern in anti_pattern.patterns:
        for hit in search_all(pattern, deeds.text):
            if not is_negated(deeds.text, hit.start, hit.end):
                return AntiPatternHit(anti_pattern.id, anti_pattern.severity, hit.line, anti_pattern.fix)
    return None
