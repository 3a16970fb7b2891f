"""A comparison with a baseline as lines for people: the same at the end of a run and from `skilleval compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.line import Line

__all__ = ["comparison_lines"]

_COLOURS = {"improved": "green", "regressed": "red", "inconclusive": "yellow", "not comparable": "red"}
_SHOWN = 10
"""Groups that are named; the reports name all."""


def comparison_lines(comparison: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the verdict first, then what qualifies it, then the groups that have one of their own.

    Args:
        comparison: As it stands in report.json; what an older one lacks is left out.
    """
    overall, base = comparison["overall"], comparison["baseline"]
    verdict = str(overall["verdict"])
    text = str(overall.get("text") or verdict)
    trials = f" ({numbers.count(base['trials'], 'trial')} each)" if "trials" in base else ""
    yield Line(f"against {base.get('id') or base['run']}{trials}: {_what(comparison)}")
    yield Line(text, _COLOURS.get(verdict, ""))
    for reason in (*comparison.get("reasons", ()), *overall.get("reasons", ())):
        if reason not in text:
            yield Line(f"note: {reason}", "yellow")
    yield from _groups(comparison.get("groups", ()))
    for word, why in (
        ("added", "not in the baseline"),
        ("removed", "not in this run"),
        ("changed", "case has changed"),
    ):
        if rows := comparison.get(word):
            yield Line(f"left out, {why}: {_names(rows)}")


def _what(comparison: Mapping[str, Any]) -> str:
    """Say what differs between the two runs."""
    if comparison.get("kind") == "A/A":
        return "the same skills, so this is an A/A comparison: it measures noise"
    versions = {
        (row["skill"], row["baseline"], row["candidate"])
        for row in comparison.get("skills", ())
        if row["baseline"] != row["candidate"]
    }
    shown = [f"{skill} {_short(base)} -> {_short(candidate)}" for skill, base, candidate in sorted(versions, key=str)]
    return "skill " + ", ".join(shown) if shown else "nothing in common"


def _short(digest: str | None) -> str:
    return "none" if digest is None else digest[:8]


def _groups(rows: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    for verdict in ("regressed", "improved"):
        own = [row for row in rows if row["verdict"] == verdict]
        for row in own[:_SHOWN]:
            yield Line(f"  {_name(row)}: {row.get('text', verdict)}", _COLOURS[verdict])
        if len(own) > _SHOWN:
            yield Line(f"  and {len(own) - _SHOWN} more {verdict}", _COLOURS[verdict])
    signals = [row for row in rows if row.get("signal") and row["verdict"] not in ("regressed", "improved")]
    if signals:
        yield Line(f"signals without a verdict, to look at and not to act on: {_names(signals)}")


def _names(rows: Sequence[Mapping[str, Any]]) -> str:
    shown = ", ".join(_name(row) for row in rows[:_SHOWN])
    return shown if len(rows) <= _SHOWN else f"{shown} and {len(rows) - _SHOWN} more"


def _name(row: Mapping[str, Any]) -> str:
    return ":".join(str(row[key]) for key in ("lane", "case", "condition") if key in row)
