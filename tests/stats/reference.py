"""Published and independently computed values that the statistics must reproduce, each with its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROWS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("reference_values.json").read_text())["rows"]


def rows(what: str) -> list[Any]:
    """The rows of one kind as pytest parameters (input, expected, tolerance)."""
    found = [pytest.param(r["input"], r["expected"], r["tol"], id=r["id"]) for r in ROWS if r["what"] == what]
    if not found:
        raise LookupError(f"reference_values.json has no row {what!r}")
    return found
