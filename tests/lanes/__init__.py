"""Tests of what lanes ask and how they grade, over finished trials made by hand."""

from __future__ import annotations
