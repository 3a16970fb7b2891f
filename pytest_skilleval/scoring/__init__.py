"""Facts about a finished trial, turned into checks and scores."""

from __future__ import annotations
