"""`skilleval list`: the runs there are, newest first, and the names they are blessed under."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_skilleval.errors import JournalDamage
from pytest_skilleval.journal import is_held, read_plan

from .answer import Answer, table
from .place import Place, add_output, place_of

__all__ = ["add_arguments", "blessed_names", "run"]

EXAMPLES = """\
examples:
  skilleval list
  skilleval list --json | jq -r '.runs[0].id'
"""
_HEAD = ("run", "status", "provider", "planned", "passed", "failed", "errors", "missing", "started", "blessed")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("-n", type=int, metavar="N", help="show the newest N only (default: all)")
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """List the runs."""
    place = place_of(arguments)
    names = blessed_names(place)
    found = list(_runs(place, names))[: arguments.n]
    kept = [{"name": name, "run": run_id, "path": str(place.blessed / name)} for name, run_id in names.items()]
    value = {"output": str(place.output), "runs": found, "blessed": kept}
    if not found:
        return Answer(value, notes=[f"no runs in {place.output}; `pytest` makes one, `skilleval init` a first case"])
    rows = [_cells(row) for row in found]
    return Answer(value, table(_HEAD, rows, right=("planned", "passed", "failed", "errors", "missing")))


def blessed_names(place: Place) -> dict[str, str | None]:
    """Return the blessed names, and the run id of each (None where its report cannot be read)."""
    if not place.blessed.is_dir():
        return {}
    folders = sorted(folder for folder in place.blessed.iterdir() if (folder / "report.json").is_file())
    heads = {folder.name: _head(folder / "report.json") for folder in folders}
    return {name: None if head is None else str(head["id"]) for name, head in heads.items()}


def _runs(place: Place, names: dict[str, str | None]) -> Iterator[dict[str, Any]]:
    folders = sorted(place.output.iterdir(), reverse=True) if place.output.is_dir() else []
    for folder in folders:
        if (folder / "plan.json").exists():
            mine = [name for name, run_id in names.items() if run_id == folder.name]
            head = None if (running := is_held(folder)) else _head(folder / "report.json")
            yield {
                **(_judged(head) if head else _unjudged(folder, running=running)),
                "path": str(folder),
                "blessed": mine,
            }


def _head(path: Path) -> dict[str, Any] | None:
    """Return what a report.json says of its run; None when it cannot be read, which is no reason to list nothing."""
    try:
        head = json.loads(path.read_bytes())["run"]
        return head if _judged(head) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _judged(head: dict[str, Any]) -> dict[str, Any]:
    provider = head["provider"]
    return {
        "id": str(head["id"]),
        "status": str(head["status"]),
        "provider": str(provider["id"]),
        "model": provider.get("model"),
        "planned": int(head["planned"]),
        "trials": int(head["trials"]),
        "counts": {name: int(count) for name, count in head["counts"].items()},
        "started": str(head["started"]),
    }


def _unjudged(folder: Path, *, running: bool) -> dict[str, Any]:
    """Return what is known of a run that is still running, or has no report because it was killed."""
    try:
        plan = read_plan(folder)
    except (JournalDamage, OSError) as error:
        unknown = dict.fromkeys(("provider", "model", "planned", "trials", "counts", "started"))
        return {"id": folder.name, "status": "damaged", **unknown, "reason": str(error)}
    recorded = sum((folder / "trials" / trial.id.folder / "record.json").exists() for trial in plan.trials)
    return {
        "id": folder.name,
        "status": "running" if running else "unfinished",
        "provider": plan.provider.id,
        "model": plan.provider.model,
        "planned": len(plan.trials),
        "trials": plan.trials_each,
        "counts": None,
        "started": plan.started,
        "reason": f"{'still running' if running else 'it was killed'}; "
        f"{recorded} of {len(plan.trials)} trials are recorded",
    }


def _cells(row: dict[str, Any]) -> list[str]:
    counts = row["counts"] or {}
    numbers = [counts.get(name, "-") for name in ("passed", "failed", "error", "missing")]
    who = " ".join(part for part in (row["provider"], row["model"]) if part) or "-"
    cells = [row["id"], row["status"], who, row["planned"], *numbers, row["started"]]
    return [*("-" if cell is None else str(cell) for cell in cells), ", ".join(row["blessed"])]
