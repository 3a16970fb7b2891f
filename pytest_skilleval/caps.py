"""Caps: what a trial takes one of, and how many there may be at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_skilleval.model import Lane

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CAUTIOUS", "caps_of", "resources_of"]

CAUTIOUS = 4
"""Trials at once of a provider that costs money or quota, unless the user says otherwise."""


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
