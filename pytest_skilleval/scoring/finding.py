"""The answer of one check: yes, no, or not to be decided here, always with its reason."""

from __future__ import annotations

from typing import NamedTuple

from pytest_skilleval.records import Judged

__all__ = ["Finding", "no", "undecided", "yes"]


class Finding(NamedTuple):
    """What a check found."""

    passed: bool | None
    """None = it cannot be decided here, and stays outside everything."""
    reason: str
    """One plain line: what was found and, where that is not it, what was wanted."""
    judged: Judged | None = None
    """What a judge said, where one was asked."""


def yes(reason: str) -> Finding:
    """Return that it holds."""
    return Finding(passed=True, reason=reason)


def no(reason: str) -> Finding:
    """Return that it does not hold."""
    return Finding(passed=False, reason=reason)


def undecided(reason: str) -> Finding:
    """Return that it can be neither yes nor no."""
    return Finding(passed=None, reason=reason)
