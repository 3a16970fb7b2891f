"""Every line of the board: importing this puts them there."""

from __future__ import annotations

from . import crashes, kills, signals, storage

__all__ = ["crashes", "kills", "signals", "storage"]
