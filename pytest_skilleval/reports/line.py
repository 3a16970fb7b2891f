"""One line for the terminal, and its colour."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Line"]


class Line(NamedTuple):
    """A line of the terminal."""

    text: str
    colour: str = ""
    """One of pytest's markup names, or none."""
