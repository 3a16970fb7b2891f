"""Tests of what people already have: evals.json, trigger queries, SKILL.md as agents load it."""

from __future__ import annotations
