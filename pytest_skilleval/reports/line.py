"""One line for the terminal, and its colour."""

from __future__ import annotations

from typing import NamedTuple, Self

from pytest_skilleval.reports.plain import plain

__all__ = ["Line"]


class _Line(NamedTuple):
    text: str
    colour: str
    """One of pytest's markup names, or none."""


class Line(_Line):
    """A line of the terminal; whatever its text quotes, it stays one line and drives nothing.

    Args:
        text: What is said; control and bidi characters become escapes.
        colour: One of pytest's markup names, or none.
    """

    __slots__ = ()

    def __new__(cls, text: str, colour: str = "") -> Self:  # noqa: D102 - the class says it
        return super().__new__(cls, plain(text, keep=""), colour)
