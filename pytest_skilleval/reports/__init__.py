"""A finished run, rendered; nothing here computes."""

from __future__ import annotations
