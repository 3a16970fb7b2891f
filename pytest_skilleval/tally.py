"""How reports of trials are counted and shown; light, since every session loads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

__all__ = ["IDLE_ID", "REPORT_KEY", "Tally", "status"]

IDLE_ID = "skilleval::idle"
"""The item that a worker waits on between two trials; it appears in no count and no report."""
REPORT_KEY = "skilleval"
"""The attribute of a report, and the user property, that holds the short copy of a record."""


def status(report: pytest.CollectReport | pytest.TestReport) -> Any:
    """Return category, letter and word of a trial's report, or None for pytest's own."""
    text = getattr(report, REPORT_KEY, None)
    if text is None or report.when != "call" or report.passed:
        return None
    short = json.loads(text)
    if short["outcome"] == "unjudged":
        return "unjudged", "u", ("UNJUDGED", {"yellow": True})
    if short["missed"]:
        return "missed", "m", ("MISSED", {"yellow": True})
    return ("error", "E", ("ERROR", {"red": True})) if short["outcome"] == "error" else None


class Tally:
    """Counts what is red whatever the evals say: failed reports that are no missed trials."""

    def __init__(self) -> None:
        self.red = 0
        self.home: set[str] = set()
        """Node ids whose own report is home."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a report."""
        text = getattr(report, REPORT_KEY, None)
        if text is not None:
            self.home.add(report.nodeid)
        if report.failed and not (text and json.loads(text)["missed"]):
            self.red += 1
