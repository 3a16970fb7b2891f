"""Tests of checks and scores, over finished trials made by hand."""

from __future__ import annotations
