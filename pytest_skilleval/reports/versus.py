"""A comparison with a baseline as reports show it: read from `report.comparison` with every key optional."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_skilleval.reports import numbers
from pytest_skilleval.results import Report

__all__ = ["Change", "GroupChange", "Versus", "power_lines", "versus"]

GroupKey = tuple[str, str, str]


class Change(NamedTuple):
    """One metric's difference, candidate minus baseline."""

    delta: float | None
    ci: tuple[float, float] | None
    base: float | None
    cand: float | None
    p: float | None
    detectable: float | None
    """The smallest change that would be found in 80 % of runs."""
    needed: str
    """What would find a change of practical size; empty when nothing is said."""


class GroupChange(NamedTuple):
    """One group's difference."""

    lane: str
    case: str
    condition: str
    verdict: str
    signal: str
    """`up`, `down` or empty: never a verdict."""
    change: Change
    q: float | None
    wins: int | None
    losses: int | None
    ties: int | None
    text: str
    deciding: bool

    @property
    def key(self) -> GroupKey:
        """Lane, case and condition."""
        return (self.lane, self.case, self.condition)

    @property
    def name(self) -> str:
        """`lane:case:condition`."""
        return f"{self.lane}:{self.case}:{self.condition}"


class Versus(NamedTuple):
    """A comparison, ready to be shown."""

    baseline: str
    digest: str
    comparable: bool
    kind: str
    """`A/A` where no agent could see anything else than in the baseline; `changed`; or `none`."""
    verdict: str
    """`improved`, `regressed`, `inconclusive`, or `not comparable`."""
    score: Change
    pass_rate: Change
    p: float | None
    wins: int | None
    losses: int | None
    ties: int | None
    reasons: tuple[str, ...]
    groups: tuple[GroupChange, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    controls: str
    """What the negative controls say; empty without any."""
    bootstrap: str
    chance: str
    """How many signals there are, and how many chance alone would show."""
    skills: tuple[str, ...]
    """Which version of each skill the agents of both runs could see."""

    @property
    def regressed(self) -> tuple[GroupChange, ...]:
        """Groups that got worse."""
        return tuple(row for row in self.groups if row.verdict == "regressed")

    @property
    def improved(self) -> tuple[GroupChange, ...]:
        """Groups that got better."""
        return tuple(row for row in self.groups if row.verdict == "improved")

    @property
    def signals(self) -> tuple[GroupChange, ...]:
        """Groups without a verdict that a small p points at."""
        return tuple(row for row in self.groups if row.signal and row.verdict not in ("regressed", "improved"))

    @property
    def outlook(self) -> tuple[str, ...]:
        """What this comparison could have seen, and what would see more."""
        lines = []
        for word, change in (("pass rate", self.pass_rate), ("mean score", self.score)):
            parts = []
            if change.detectable is not None:
                parts.append(f"a change of {change.detectable:.2f} would be found in 80% of such comparisons")
            parts += [change.needed] if change.needed else []
            lines += [f"{word}: {'; '.join(parts)}"] if parts else []
        return tuple(lines)


def versus(report: Report) -> Versus | None:
    """Read a report's comparison; what a key lacks is shown as unknown, never computed."""
    found = report.comparison
    if not found:
        return None
    overall = _mapping(found.get("overall"))
    baseline = _mapping(found.get("baseline"))
    comparable = bool(found.get("comparable", True))
    return Versus(
        baseline=_text(baseline.get("id") or baseline.get("run") or baseline.get("run_id") or baseline.get("path")),
        digest=_text(baseline.get("digest")),
        comparable=comparable,
        kind=_text(found.get("kind")),
        verdict=(_text(overall.get("verdict")) or "inconclusive") if comparable else "not comparable",
        score=_change(_mapping(overall.get("score"))),
        pass_rate=_change(_mapping(overall.get("pass_rate"))),
        p=_number(overall.get("p")),
        wins=_whole(overall.get("wins")),
        losses=_whole(overall.get("losses")),
        ties=_whole(overall.get("ties")),
        reasons=tuple(dict.fromkeys((*_texts(found.get("reasons")), *_texts(overall.get("reasons"))))),
        groups=tuple(_group(_mapping(row)) for row in _sequence(found.get("groups"))),
        added=_names(found.get("added")),
        removed=_names(found.get("removed")),
        changed=_names(found.get("changed")),
        controls=_controls(_mapping(overall.get("controls"))),
        bootstrap=_bootstrap(_mapping(overall.get("bootstrap"))),
        chance=_chance(_mapping(_mapping(found.get("families")).get("deciding"))),
        skills=tuple(_skill(_mapping(row)) for row in _sequence(found.get("skills"))),
    )


def power_lines(power: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what a run could see: the smallest change that it would find, and the least trials for verdicts of groups."""
    change = _number(power.get("detectable_change"))
    least = _whole(power.get("least_trials"))
    lines = list(_texts(power.get("reasons")))
    if change is not None:
        lines.append(
            f"Against a run of this size, an overall change of {change:.2f} would be found in 80% of comparisons."
        )
    if least is not None and power.get("group_verdicts"):
        lines.append(f"Single groups get verdicts of their own from {numbers.count(least, 'trial')} on.")
    return tuple(lines)


def _group(row: Mapping[str, Any]) -> GroupChange:
    return GroupChange(
        lane=_text(row.get("lane")),
        case=_text(row.get("case")),
        condition=_text(row.get("condition")),
        verdict=_text(row.get("verdict")) or "inconclusive",
        signal=_text(row.get("signal")),
        change=_change(row),
        q=_number(row.get("q")),
        wins=_whole(row.get("wins")),
        losses=_whole(row.get("losses")),
        ties=_whole(row.get("ties")),
        text=_text(row.get("text") or row.get("reason")).removeprefix(f"{row.get('verdict')}: "),
        deciding=bool(row.get("deciding", True)),
    )


def _change(row: Mapping[str, Any]) -> Change:
    bounds = [_number(bound) for bound in _sequence(row.get("ci"))]
    low, high = bounds if len(bounds) == 2 else (None, None)
    return Change(
        delta=_number(row.get("delta")),
        ci=None if low is None or high is None else (low, high),
        base=_number(row.get("base")),
        cand=_number(row.get("cand")),
        p=_number(row.get("p")),
        detectable=_number(row.get("detectable")),
        needed=_needed(_mapping(row.get("needed"))),
    )


def _needed(row: Mapping[str, Any]) -> str:
    change, trials, cases = _number(row.get("change")), _whole(row.get("trials")), _whole(row.get("cases"))
    ways = [numbers.count(trials, "trial") + " for each case"] if trials else []
    ways += [numbers.count(cases, "case")] if cases else []
    return f"to find {change:.2f}: {' or '.join(ways)}" if ways and change is not None else ""


def _chance(family: Mapping[str, Any]) -> str:
    up, down, expected = (_number(family.get(f"signals_{name}")) for name in ("up", "down", "expected"))
    if up is None or down is None or expected is None:
        return ""
    return f"signals: {up:.0f} up and {down:.0f} down; chance alone would show {expected:.2g}"


def _skill(row: Mapping[str, Any]) -> str:
    old, new = (_text(row.get(run))[:12] or "none" for run in ("baseline", "candidate"))
    name = f"{_text(row.get('skill'))} ({_text(row.get('condition'))})"
    return f"{name}: {old}, the same in both runs" if old == new else f"{name}: {old} in the baseline, {new} here"


def _controls(row: Mapping[str, Any]) -> str:
    if not row:
        return ""
    moved = "moved: the provider or the world changed too" if row.get("moved") else "did not move"
    groups = _whole(row.get("groups"))
    return (
        f"negative controls ({numbers.count(groups, 'group')}) {moved}"
        if groups is not None
        else f"negative controls {moved}"
    )


def _bootstrap(row: Mapping[str, Any]) -> str:
    parts = []
    for key, word in (("pass_rate", "pass rate"), ("score", "score")):
        part = row.get(key, row if key == row.get("metric") else None)
        bounds = _mapping(part).get("ci") if isinstance(part, Mapping) else part
        values = [_number(bound) for bound in _sequence(bounds)]
        if len(values) == 2 and values[0] is not None and values[1] is not None:
            parts.append(f"{word} {numbers.ci((values[0], values[1]), signed=True)}")
    return ", ".join(parts)


# --------------------------------------------------------------------------------------------- keys that may be missing


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in _sequence(value))


def _names(value: object) -> tuple[str, ...]:
    """Name groups, whether they are given as text, as a mapping or as a triple."""
    names = []
    for one in _sequence(value):
        if isinstance(one, Mapping):
            name = ":".join(str(one[key]) for key in ("lane", "case", "condition") if key in one)
            why = one.get("text") or one.get("reason") or ", ".join(_texts(one.get("reasons")))
            names.append(f"{name} ({why})" if why else name)
        else:
            names.append(":".join(map(str, one)) if isinstance(one, list | tuple) else str(one))
    return tuple(names)


def _number(value: object) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable else None  # type: ignore[arg-type] # a number, by the line above


def _whole(value: object) -> int | None:
    found = _number(value)
    return None if found is None else int(found)
