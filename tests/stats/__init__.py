"""Tests of the statistics: published values, independent computations, simulated coverage."""

from __future__ import annotations
