"""Evals for Agent Skills as pytest tests."""

from __future__ import annotations
