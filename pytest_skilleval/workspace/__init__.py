"""The isolated place a trial runs in, and the process that owns its tree."""

from __future__ import annotations
