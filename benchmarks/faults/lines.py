"""Every line of the board: importing this puts them there."""

from __future__ import annotations

from . import crashes, crowd, kills, signals, storage

__all__ = ["crashes", "crowd", "kills", "signals", "storage"]
