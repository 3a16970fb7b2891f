"""The run folder: runs found, journals read back, reports written."""

from __future__ import annotations

import contextlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_skilleval.errors import BaselineMistake, JournalDamage, RunFolderMistake
from pytest_skilleval.journal import Journal, read_plan, write_aside
from pytest_skilleval.results import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_skilleval.caps import CapChange
    from pytest_skilleval.journal import Entry
    from pytest_skilleval.model import TrialId
    from pytest_skilleval.records import Plan

__all__ = [
    "CapLog",
    "Gathered",
    "find_run",
    "gather",
    "last_report",
    "new_run_id",
    "now",
    "point_latest",
    "read_durations",
    "read_report",
    "write_durations",
    "write_text",
]

MAX_REPORT = 256 * 1024 * 1024
"""A larger report.json is refused: it is read into memory."""
SCHEMA = "skilleval-report/"


class Gathered:
    """A run's plan, and what its journal holds."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        journal = Journal(folder, plan.run)
        ids = [trial.id for trial in plan.trials]
        self.entries: dict[TrialId, Entry] = journal.read_all(ids)
        self.strangers = journal.strangers(ids)
        self.caps = CapLog(folder).read()


class CapLog:
    """How rate limits changed the caps of a run: `caps.json`, a list that grows; a hint, never evidence.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "caps.json"

    def add(self, change: CapChange) -> None:
        """Add a change, with the time."""
        rows = [*self.read(), {"at": now(), **change._asdict()}]
        with contextlib.suppress(OSError):
            write_aside(self._path, json.dumps(rows).encode())

    def read(self) -> list[dict[str, Any]]:
        """Return the changes so far."""
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def gather(folder: Path) -> Gathered:
    """Read a run back from its journal alone.

    Raises:
        RunFolderMistake: It is no run folder, or its plan cannot be trusted.
    """
    try:
        return Gathered(folder, read_plan(folder))
    except FileNotFoundError:
        raise RunFolderMistake(f"{folder}: no run folder (plan.json is missing)") from None
    except (JournalDamage, OSError) as error:
        raise RunFolderMistake(f"{error}") from None


def now() -> str:
    """Return the time for a report: ISO 8601, UTC, whole seconds."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def new_run_id() -> str:
    """Return a run id that sorts by time and is unique: `20261130T004211Z-3f9c`."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}"


def write_text(path: Path, text: str) -> None:
    """Write a report whole or not at all.

    Raises:
        OSError: The disk is full, or the place is a link, a folder or not writable; nothing is changed then.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise FileExistsError(17, "is no regular file; remove it", str(path))
    write_aside(path, text.encode("utf-8", "backslashreplace"))


def point_latest(output: Path, run: str) -> None:
    """Let `<output>/../latest` point at the newest run, where links can be made."""
    link = output.parent / "latest"
    aside = output.parent / f".latest.{os.getpid()}"
    with contextlib.suppress(OSError):
        if link.exists() and not link.is_symlink():
            return
        aside.symlink_to(os.path.relpath(output / run, output.parent))
        aside.replace(link)


def run_ids(output: Path) -> list[str]:
    """Return the ids of the runs that have a plan, the newest first, whether or not they came to a report."""
    if not output.is_dir():
        return []
    return sorted((entry.name for entry in output.iterdir() if (entry / "plan.json").exists()), reverse=True)


def find_run(output: Path, reference: str, root: Path) -> Path:
    """Return what a reference means: a report.json, a run folder, a run id, a blessed name or `latest`.

    Raises:
        BaselineMistake: Nothing is found; the message lists what there is.
    """
    places = [
        root / reference,
        Path(reference),
        output / reference,
        output.parent / "blessed" / reference,
        output.parent / reference,
    ]
    for place in places:
        if place.is_file():
            return place.resolve()
        if place.is_dir() and (place / "report.json").exists():
            return place.resolve() / "report.json"
        if place.is_dir() and (place / "plan.json").exists():
            return place.resolve()
    runs = run_ids(output)
    known = ", ".join(runs[:5]) or f"no runs in {output}"
    raise BaselineMistake(
        f"{reference}: neither a report.json, a run folder, a run id, a blessed name nor 'latest' (there are: {known})"
    )


def read_durations(output: Path, provider: str) -> dict[str, float]:
    """Return how long each case took in earlier runs, by `lane:case`; nothing where that is not known."""
    try:
        found = json.loads((output.parent / "durations.json").read_text(encoding="utf-8"))
        return {str(case): float(seconds) for case, seconds in found[provider].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def last_report(output: Path, provider: str) -> Report | None:
    """Return the newest finished run's report of a provider, among the newest twenty; None where there is none."""
    try:
        runs = sorted((entry.name for entry in output.iterdir() if (entry / "report.json").is_file()), reverse=True)
    except OSError:
        return None
    for name in runs[:20]:
        with contextlib.suppress(BaselineMistake):
            report = read_report(output / name / "report.json")
            if report.run.provider.id == provider and report.run.status == "finished":
                return report
    return None


def write_durations(output: Path, provider: str, durations: Mapping[str, float]) -> None:
    """Remember how long each case took, for the next run's order; a hint, so that a full disk is no reason to fail."""
    path = output.parent / "durations.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    known = found if isinstance(found, dict) else {}
    known[provider] = read_durations(output, provider) | {case: round(value, 3) for case, value in durations.items()}
    with contextlib.suppress(OSError):
        write_text(path, json.dumps(known, sort_keys=True, indent=0) + "\n")


def read_report(path: Path) -> Report:
    """Read a report.json back.

    Raises:
        BaselineMistake: It cannot be read, is too large, or has another schema.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_REPORT + 1)
    except OSError as error:
        raise BaselineMistake(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_REPORT:
        raise BaselineMistake(f"{path}: larger than {MAX_REPORT // 2**20} MiB; give the report.json of one run")
    try:
        value = json.loads(data)
        schema = str(value["schema"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BaselineMistake(f"{path}: not a report.json of pytest-skilleval (no `schema`, or torn)") from None
    if schema.partition(".")[0] != f"{SCHEMA}1":
        raise BaselineMistake(f"{path}: schema {schema!r}; this version reads {SCHEMA}1")
    try:
        return Report.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BaselineMistake(f"{path}: {where}: {first['msg']} ({error.error_count()} mistakes)") from None
