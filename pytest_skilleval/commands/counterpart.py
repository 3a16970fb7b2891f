"""The baseline that a run was compared with, found again by its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pytest_skilleval.records import BaselineRef
from pytest_skilleval.results import Report

from .place import Place
from .reference import Opened, open_run

__all__ = ["counterpart", "digest_of", "named_in"]


def named_in(report: Report | None) -> BaselineRef | None:
    """Return the baseline that a report names, or None when it compares with nothing."""
    if report is None or report.comparison is None:
        return None
    found = report.comparison["baseline"]
    if "reference" in found:
        return None  # the baseline side ran in the same run
    return BaselineRef(path=str(found["run"]), digest=str(found["digest"]))


def counterpart(place: Place, wanted: BaselineRef) -> Opened | None:
    """Return the very report that a run was compared with; None when it is gone or has changed."""
    for path in _places(place, wanted):
        if path.exists() and digest_of(path) == wanted.digest:
            return open_run(place, str(path))
    return None


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a report.json; "" for a run folder, whose journal is judged."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _places(place: Place, wanted: BaselineRef) -> Iterator[Path]:
    """Yield where a report may lie that was somewhere when the run began: it may have been blessed since."""
    yield Path(wanted.path)
    yield place.output / wanted.path / "report.json"
    yield place.output / wanted.path
    if place.blessed.is_dir():
        yield from (folder / "report.json" for folder in sorted(place.blessed.iterdir()))
