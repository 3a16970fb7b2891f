"""The hooks and fixtures pytest sees."""

from __future__ import annotations
