"""Every line of the board: importing this puts them there."""

from __future__ import annotations

from . import agents, crashes, crowd, damage, kills, signals, size, storage, surroundings

__all__ = ["agents", "crashes", "crowd", "damage", "kills", "signals", "size", "storage", "surroundings"]
