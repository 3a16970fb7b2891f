"""Token snapshots: what each group's trials cost when it was saved, in a small file that a team commits.

`--skilleval-tokens=update` writes the file after a finished run; `check` compares with it and warns. A warning changes
neither the exit status nor a verdict.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from pytest_skilleval import store
from pytest_skilleval.errors import BaselineMistake
from pytest_skilleval.frozen import Frozen
from pytest_skilleval.records import Outcome
from pytest_skilleval.stats.costs import Costs, Rise, costs_of, rises

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_skilleval.records import Tokens
    from pytest_skilleval.results import Report

__all__ = [
    "FILE",
    "FLOOR",
    "LEVEL",
    "Row",
    "Snapshot",
    "examine",
    "read_snapshot",
    "rows_of",
    "updated",
    "write_snapshot",
]

FILE = ".skilleval-tokens.json"
"""In the project's root folder."""
FLOOR = 200.0
"""Tokens a trial: a smaller rise is not worth a warning, whatever its share."""
LEVEL = 0.025
"""Largest q with which a group is called risen: the upper tail of a 95 % interval, over all groups together."""
_PARTS = ("input", "output")
_RAN = (Outcome.PASSED, Outcome.FAILED, Outcome.UNJUDGED)

Of = Literal["input", "output", "input+output"]
RowKey = tuple[str, str, str, str, str, str]


class Row(Frozen):
    """What the trials of one group cost, each on average."""

    lane: str
    case: str
    condition: str
    provider: str
    model: str | None = None
    effort: str | None = None
    fingerprint: str
    """Of the case: a changed case is not compared."""
    of: Of
    """Which tokens are known, and counted; input includes what came from a cache."""
    mean: float = Field(ge=0, allow_inf_nan=False)
    sd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """None with one trial."""
    n: int = Field(ge=1)

    @property
    def key(self) -> RowKey:
        """What tells rows apart, and orders them."""
        return (self.lane, self.case, self.condition, self.provider, self.model or "", self.effort or "")

    @property
    def costs(self) -> Costs:
        """The numbers."""
        return Costs(self.mean, self.sd, self.n)


class Snapshot(Frozen):
    """The file."""

    schema_: Literal["skilleval-tokens/1"] = Field(default="skilleval-tokens/1", alias="schema")
    groups: tuple[Row, ...] = ()


class Counted(NamedTuple):
    """What a run says of its groups' tokens."""

    rows: list[Row]
    unknown: int
    """Groups that ran, and do not say what they cost."""


def read_snapshot(root: Path) -> Snapshot | None:
    """Read the project's file; None where there is none.

    Raises:
        BaselineMistake: It cannot be read, or is none.
    """
    path = root / FILE
    try:
        return Snapshot.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BaselineMistake(f"{path}: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BaselineMistake(
            f"{path}: {f'{where}: ' if where else ''}{first['msg']}; restore it, or remove it and write it anew with "
            "--skilleval-tokens=update"
        ) from None


def write_snapshot(root: Path, snapshot: Snapshot) -> None:
    """Write the file whole or not at all: sorted rows, a row a line, so that a change is a small diff.

    Raises:
        OSError: It cannot be written; its former content is then untouched.
    """
    rows = [
        json.dumps(row.model_dump(mode="json"), ensure_ascii=True, sort_keys=True)
        for row in sorted(snapshot.groups, key=lambda row: row.key)
    ]
    inner = ",".join(f"\n  {row}" for row in rows)
    text = f'{{\n "groups": [{inner}\n ],\n "schema": "{snapshot.schema_}"\n}}\n'
    store.write_text(root / FILE, text)


def rows_of(report: Report) -> Counted:
    """Return what each group of a run cost: its passed, failed and unjudged trials that know their tokens."""
    rows, unknown, provider = [], 0, report.run.provider
    ran: dict[tuple[str, str, str], list[Tokens | None]] = defaultdict(list)
    for line in report.trials:
        if line.outcome in _RAN:
            ran[line.lane, line.case, line.condition].append(line.tokens)
    for group in report.groups:
        trials = ran[group.lane, group.case, group.condition]
        found = _costs(trials)
        if found is None:
            unknown += bool(trials)
            continue
        of, costs = found
        rows.append(
            Row(
                lane=group.lane,
                case=group.case,
                condition=group.condition,
                provider=provider.id,
                model=provider.model,
                effort=provider.effort,
                fingerprint=group.fingerprint,
                of=of,
                mean=round(costs.mean, 1),
                sd=None if costs.sd is None else round(costs.sd, 1),
                n=costs.n,
            )
        )
    return Counted(rows, unknown)


def _costs(trials: Sequence[Tokens | None]) -> tuple[Of, Costs] | None:
    """Return what all trials that know anything know; None where there is nothing that all of them know."""
    known = [one for one in trials if one is not None and any(getattr(one, part) is not None for part in _PARTS)]
    parts = [part for part in _PARTS if known and all(getattr(one, part) is not None for one in known)]
    if not parts:
        return None
    of: Of = "input+output" if len(parts) == 2 else "input" if parts == ["input"] else "output"
    return of, costs_of([float(sum(getattr(one, part) for part in parts)) for one in known])


def updated(snapshot: Snapshot | None, rows: Iterable[Row]) -> Snapshot:
    """Return the snapshot with these groups replaced; all others stay as they are."""
    kept = {row.key: row for row in (snapshot.groups if snapshot is not None else ())}
    kept |= {row.key: row for row in rows}
    return Snapshot(groups=tuple(kept[key] for key in sorted(kept)))


def examine(report: Report, snapshot: Snapshot | None, mode: str, threshold: float) -> dict[str, Any]:
    """Return what a run's report says of its tokens: `tokens` of report.json.

    A group is warned of when its mean exceeds the saved one by the threshold and by `FLOOR` tokens, and the rise is
    more than noise: its q (`stats.costs.rises`) is at most `LEVEL`.

    Args:
        report: The judged run.
        snapshot: The file as it was before the first agent; None where there is none.
        mode: `check` or `update`.
        threshold: Share of the saved mean.
    """
    counted = rows_of(report)
    found: dict[str, Any] = {"mode": mode, "file": FILE, "unknown": counted.unknown}
    if mode == "update":
        return {**found, "saved": len(counted.rows) if report.run.status == "finished" else 0}
    saved = {row.key: row for row in (snapshot.groups if snapshot is not None else ())}
    pairs = [(saved[row.key], row) for row in counted.rows if row.key in saved]
    same = [(old, new) for old, new in pairs if (old.fingerprint, old.of) == (new.fingerprint, new.of)]
    weighed = rises([(old.costs, new.costs) for old, new in same])
    groups = [_compared(old, new, rise, threshold) for (old, new), rise in zip(same, weighed, strict=True)]
    return {
        **found,
        "file_found": snapshot is not None,
        "threshold": threshold,
        "floor": FLOOR,
        "level": LEVEL,
        "method": "pooled t, Benjamini-Hochberg",
        "new": len(counted.rows) - len(pairs),
        "changed": len(pairs) - len(same),
        "noise_unknown": sum(rise.p is None for rise in weighed),
        "warned": sum(row["warned"] for row in groups),
        "groups": groups,
    }


def _compared(old: Row, new: Row, rise: Rise, threshold: float) -> dict[str, Any]:
    more = rise.delta >= max(threshold * old.mean, FLOOR)
    return {
        "lane": new.lane,
        "case": new.case,
        "condition": new.condition,
        "of": new.of,
        "saved": {"mean": old.mean, "sd": old.sd, "n": old.n},
        "now": {"mean": new.mean, "sd": new.sd, "n": new.n},
        "rise": round(rise.delta, 1),
        "lower": None if rise.lower is None else round(rise.lower, 1),
        "p": rise.p,
        "q": rise.q,
        "warned": more and rise.q is not None and rise.q <= LEVEL,
    }
