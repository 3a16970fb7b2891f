"""Every line of the board: importing this puts them there."""

from __future__ import annotations

from . import kills, signals

__all__ = ["kills", "signals"]
