"""The scoreboard as a page of the documentation, made from the results of the last full run of each line."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from .account import Totals
from .board import LINES, Result

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "explanation" / "fault-scoreboard.md"

_OF_THIS_MACHINE = re.compile(r": it said: |/\w+/")
"""What a session printed, and paths: they are on the terminal, and not for a page."""
_TOTALS = (
    ("faults injected", "points"),
    ("finished trials lost", "lost"),
    ("trials counted twice, or bought twice", "twice"),
    ("corrupt files under a final name", "corrupt"),
    ("processes alive after 3 s", "alive"),
    ("temp homes left", "homes"),
)

_HEAD = """# Fault scoreboard

What happens to a run when its worker is killed, its disk is full, or its agent will not die? `make faults` does it, to
real runs of the simulated agent, and looks afterwards. A line is green when, after every one of its faults,

- no finished trial is lost: its record was in its place before the fault, and is there unchanged after it;
- none counts twice, and none that has its result is bought again by a resumed run;
- no file under its final name is torn;
- three seconds later no process of the run is alive, and no home of it is left;
- the exit status is not 0 when anything planned is missing;
- the report can be made from the journal alone;
- and what the line itself asks for, such as an exit status or a message, holds.

This page is written by `python -m benchmarks.faults --full --write`; the tests run the same lines with a few faults each.
"""

_FOOT = """
The commit is the one that was tried. A line that is red, or that a change concerns, is run again after it.

A power cut (F5) is not injected but worked out: from the list of system calls of a run, everything that was not synced
before each call is taken away. What a disk does that says it has synced and has not, and what a network file system does,
is not measured. Moments are drawn from the seed, so that a repeat strikes at the same places of the schedule, as far as
the machine is as busy.
"""


def keep(result: Result, *, seed: int, repeats: int | None, full: bool) -> None:
    """Put a result into the file of results, in place of an older one of the same line; two boards may run at once."""
    with RESULTS.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = read()
        found[result.id] = {
            "state": result.state,
            "totals": vars(result.totals),
            "why": [why for why in result.why if not _OF_THIS_MACHINE.search(why)],
            "seconds": round(result.seconds),
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "seed": seed,
            "full": full and repeats is None,
            "commit": _commit(),
            "python": platform.python_version(),
            "machine": f"{platform.system()}, {platform.machine()}, {os.cpu_count()} cores",
        }
        ordered = {name: found[name] for name in sorted(found, key=lambda name: int(name[1:]))}
        RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    RESULTS.with_suffix(".lock").unlink(missing_ok=True)


def read() -> dict[str, Any]:
    """Return the kept results by line."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return found


def page(results: dict[str, Any]) -> str:
    """Return the page."""
    states = [one["state"] for one in results.values()]
    totals = Totals()
    for one in results.values():
        totals.add(Totals(**one["totals"]))
    skipped = states.count("skipped")
    score = f"{states.count('green')} lines green, {states.count('red')} red" + (
        f", {skipped} not injected here" if skipped else ""
    )
    absent = [name for name in LINES if name not in results]
    rows = [_row(name, one) for name, one in results.items()]
    return "\n".join(
        (
            _HEAD,
            f"**{score}{', not run: ' + ', '.join(absent) if absent else ''}.**\n",
            "| in all lines together | |",
            "|---|--:|",
            *(f"| {words} | {getattr(totals, name)} |" for words, name in _TOTALS),
            "",
            _measured(results),
            "| line | fault | faults | result | seconds | seen | commit |",
            "|---|---|--:|---|--:|---|---|",
            *rows,
            *_reds(results),
            _FOOT,
        )
    )


def _row(name: str, one: dict[str, Any]) -> str:
    seen = "; ".join(one["why"]) if one["state"] != "red" else f"{len(one['why'])} things did not hold, see below"
    size = "" if one["full"] or one["state"] == "skipped" else " (fewer than the full board)"
    told = LINES[name].inject.__doc__ or ""
    fault = f"{LINES[name].fault}: {_cell(' '.join(told.split()))}"
    return f"| {name} | {fault} | {one['totals']['points']}{size} | {one['state']} | {one['seconds']} | {_cell(seen)} | {one['commit']} |"


def _reds(results: dict[str, Any]) -> list[str]:
    found = []
    for name, one in results.items():
        if one["state"] == "red":
            counts = Counter(_cell(why[:300]) for why in one["why"])
            found += [
                f"\nWhat did not hold in {name}, once where nothing else is said:\n",
                *(f"- {why}" + (f" ({count} times)" if count > 1 else "") for why, count in counts.items()),
            ]
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _all(results: dict[str, Any], name: str) -> str:
    return ", ".join(sorted({str(one[name]) for one in results.values()}))


def _measured(results: dict[str, Any]) -> str:
    when, where, python, seed = (_all(results, name) for name in ("date", "machine", "python", "seed"))
    return f"Measured {when} on {where}, that were busy with other work too; Python {python}; seed {seed}.\n"


def _commit() -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"
