"""Finished trials made by hand."""

from __future__ import annotations

from scoring.trials import make_facts

__all__ = ["make_facts"]
