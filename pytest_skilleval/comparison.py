"""A run against a baseline: what may be compared, and what the comparison says."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_skilleval import summaries
from pytest_skilleval.errors import BaselineMistake
from pytest_skilleval.records import Outcome
from pytest_skilleval.stats.compare import compare_arrays
from pytest_skilleval.stats.levels import DEFAULT_LEVELS
from pytest_skilleval.stats.planning import design_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import ProviderInfo
    from pytest_skilleval.results import GroupSummary, Report

__all__ = ["Baseline", "compare", "comparer", "forecast", "hindrances", "power", "weigh"]

GroupKey = tuple[str, str, str]

_THRESHOLDS = {"pass_rate": "pass_threshold", "score": "score_threshold"}


class Baseline(NamedTuple):
    """A finished run to compare with."""

    report: Report
    path_digest: str
    """SHA-256 of its report.json, 64 hex digits; "" when it was made from a journal."""
    allowed: tuple[str, ...] = ()
    """Why it is not comparable, where the user has allowed it all the same."""
    path: str = ""
    """Its report.json, or its run folder when it was made from a journal."""


def hindrances(baseline: Report, provider: ProviderInfo, method: str, judge: str | None = None) -> list[str]:
    """Return why a run of this provider cannot be compared with a baseline; empty when it can.

    The skill's digest is what is expected to differ; provider, model, effort and method are not, nor is the judge where
    statements in prose decide.
    """
    base = baseline.run
    reasons = [
        f"{word}: {old or 'default'} in the baseline, {new or 'default'} here"
        for word, old, new in (
            ("provider", base.provider.id, provider.id),
            ("model", base.provider.model, provider.model),
            ("effort", base.provider.effort, provider.effort),
            ("method", base.method, method),
        )
        if old != new
    ]
    judged = (baseline.judge or {}).get("name")
    if judged != judge and any(check.kind == "rubric" for line in baseline.trials for check in line.checks):
        reasons.append(f"judge: {judged or 'none'} in the baseline, {judge or 'none'} here")
    if base.status != "finished":
        reasons.append(f"the baseline is {base.status}: {'; '.join(base.reasons[:2])}")
    return reasons


def accept(baseline: Report, data: bytes, provider: ProviderInfo, settings: Settings) -> Baseline:
    """Return the baseline, checked before the first agent starts.

    Raises:
        BaselineMistake: It is not comparable, and the user has not allowed that.
    """
    reasons = hindrances(baseline, provider, settings.method, settings.judge)
    if reasons and not settings.allow_incomparable:
        raise BaselineMistake(
            f"--compare-baseline={settings.compare_baseline}: not comparable: {'; '.join(reasons)}; "
            "choose another baseline, or add --skilleval-allow-incomparable"
        )
    return Baseline(baseline, hashlib.sha256(data).hexdigest() if data else "", tuple(reasons))


def forecast(baseline: Report | None, groups: Sequence[GroupKey], trials: int) -> list[str]:
    """Return what a comparison of this design could not say, before the first agent starts.

    Args:
        baseline: What is compared with, or None.
        groups: Lane, case and condition of what will run.
        trials: For each of them.
    """
    shared = groups if baseline is None else [key for key in groups if key in _by_key(baseline)]
    if not shared:
        return ["no case of this run is in the baseline: there will be no verdict"] if groups else []
    smaller = trials if baseline is None else min(trials, baseline.run.trials)
    flip = baseline.noise.flip_rate if baseline is not None else None
    limits = design_limits(len({key[:2] for key in shared}), len(shared), smaller, flip=flip)
    return list(limits["reasons"])


def power(groups: summaries.Trials, trials: int, flip: float | None) -> dict[str, Any]:
    """Return what two runs like this one could tell apart: the smallest change, and the trials for group verdicts."""
    # Controls decide nothing: they would make the design look better than it is.
    measured = [key for key, group in groups.items() if group.measured and not group.planned[0].control]
    if not measured:
        return {}
    return dict(design_limits(len({key[:2] for key in measured}), len(measured), trials, flip=flip))


def comparer(
    baseline: Baseline, settings: Settings
) -> Callable[[summaries.Trials, Sequence[GroupSummary], str, str], dict[str, Any]]:
    """Return the function that a judge calls with what came back."""

    def call(groups: summaries.Trials, rows: Sequence[GroupSummary], status: str, run: str) -> dict[str, Any]:
        return compare(
            baseline,
            groups,
            rows,
            status=status,
            run=run,
            method=settings.method,
            seed=settings.seed,
            thresholds=settings.thresholds,
        )

    return call


def compare(
    baseline: Baseline,
    groups: summaries.Trials,
    rows: Sequence[GroupSummary],
    *,
    status: str,
    run: str,
    method: str,
    seed: int,
    thresholds: Sequence[tuple[str, float]] = (),
) -> dict[str, Any]:
    """Compare a run with its baseline.

    Only groups that are in both runs with one fingerprint count; the others are listed.

    Args:
        baseline: What to compare with.
        groups: The candidate's trials.
        rows: Their summaries.
        status: The candidate's status; without `finished` there is no verdict.
        run: The candidate's run id.
        method: `exact` or `paired-bootstrap`.
        seed: Of resampling.
        thresholds: Smallest gains that are called improved, by `pass_rate` and `score`.
    """
    old, new = _by_key(baseline.report), {(row.lane, row.case, row.condition): row for row in rows}
    shared = [key for key in new if key in old and old[key].fingerprint == new[key].fingerprint]
    reasons = list(baseline.allowed)
    blocked = []
    if status == "invalid":
        blocked.append(f"this run is {status}")
    if not shared:
        blocked.append("no shared cases: no case of this run is unchanged in the baseline")
    frame = {
        "baseline": {
            "run": baseline.report.run.id,
            "digest": baseline.path_digest,
            "trials": baseline.report.run.trials,
        },
        "candidate": {"run": run},
        "method": method,
        "comparable": not blocked,
        "reasons": reasons + blocked,
        "added": _named(key for key in new if key not in old),
        "removed": _named(key for key in old if key not in new),
        "changed": _named(key for key in new if key in old and key not in shared),
        "skills": _skills(old, new, shared),
    }
    if not blocked and (status == "interrupted" or baseline.report.run.status != "finished"):
        frame["reasons"] = [*reasons, "one of the runs is incomplete: only finished trials are compared"]
    return weigh(
        frame,
        shared,
        _baseline_trials(baseline.report),
        groups,
        [_sees_a_change(old[key], new[key]) for key in shared],
        method=method,
        seed=seed,
        thresholds=thresholds,
    )


def _sees_a_change(old: GroupSummary, new: GroupSummary) -> bool:
    """Tell whether a group's agents could see another version of any skill: also of one that is not to be used."""
    if old.seen and new.seen:
        return old.seen != new.seen
    return old.skill_digest != new.skill_digest  # they saw no skill, or the baseline is of an older version


def weigh(
    frame: dict[str, Any],
    shared: Sequence[GroupKey],
    base: Mapping[GroupKey, Sequence[tuple[float, bool]]],
    groups: summaries.Trials,
    deciding: Sequence[bool],
    *,
    method: str,
    seed: int,
    thresholds: Sequence[tuple[str, float]],
) -> dict[str, Any]:
    """Return a comparison with its verdicts.

    Args:
        frame: What is compared, and whether it may be.
        shared: The groups that are on both sides.
        base: Score and outcome of each measured trial of the baseline.
        groups: The candidate's trials.
        deciding: For each shared group, whether its agents saw something else than in the baseline.
        method: `exact` or `paired-bootstrap`.
        seed: Of resampling.
        thresholds: Smallest gains that are called improved, by `pass_rate` and `score`.
    """
    if not frame["comparable"]:
        text = "; ".join(frame["reasons"])
        return {**frame, "kind": "none", "groups": [], "overall": {"verdict": "not comparable", "text": text}}
    found = compare_arrays(
        [[score for score, _ in base.get(key, ())] for key in shared],
        [groups[key].scores for key in shared],
        [[passed for _, passed in base.get(key, ())] for key in shared],
        [groups[key].passes for key in shared],
        deciding=deciding,
        case=[key[:2] for key in shared],
        method="paired-bootstrap" if method == "paired-bootstrap" else "exact",
        levels=replace(DEFAULT_LEVELS, **{_THRESHOLDS[name]: value for name, value in thresholds}),
        seed=seed,
    )
    return {
        **frame,
        "kind": "changed" if any(deciding) else "A/A",
        "levels": found["levels"],
        "families": found["families"],
        "overall": {**found["overall"], "text": _overall_text(found["overall"])},
        "groups": [
            {"lane": key[0], "case": key[1], "condition": key[2], **finding, "text": _group_text(finding)}
            for key, finding in zip(shared, found["per_case"], strict=True)
        ],
    }


def _by_key(report: Report) -> dict[GroupKey, GroupSummary]:
    return {(row.lane, row.case, row.condition): row for row in report.groups}


def _named(keys: Iterable[GroupKey]) -> list[dict[str, str]]:
    return [
        {"lane": lane, "case": case, "condition": condition}
        for lane, case, condition in sorted(keys, key=summaries.order)
    ]


def _baseline_trials(report: Report) -> dict[GroupKey, list[tuple[float, bool]]]:
    found: dict[GroupKey, list[tuple[float, bool]]] = {}
    for trial in report.trials:
        if trial.outcome in (Outcome.PASSED, Outcome.FAILED):
            passed = trial.outcome is Outcome.PASSED
            score = trial.score.total if trial.score is not None else float(passed)
            found.setdefault((trial.lane, trial.case, trial.condition), []).append((score, passed))
    return found


def _skills(
    old: Mapping[GroupKey, GroupSummary], new: Mapping[GroupKey, GroupSummary], shared: Sequence[GroupKey]
) -> list[dict[str, str | None]]:
    """Return the versions of each skill that the agents of both runs could see."""
    pairs = {
        (new[key].skill or "", key[2], old[key].skill_digest, new[key].skill_digest)
        for key in shared
        if old[key].skill_digest is not None or new[key].skill_digest is not None
    }
    return [
        {"skill": skill, "condition": condition, "baseline": base, "candidate": candidate}
        for skill, condition, base, candidate in sorted(pairs, key=str)
    ]


# ------------------------------------------------------------------------------------------------------ in words


def _change_text(word: str, change: Mapping[str, Any], *, share: bool) -> str:
    if change["delta"] is None:
        return f"{word} unknown"
    low, high = change["ci"]
    if share:
        return f"{word} {100 * change['delta']:+.0f} points [{100 * low:+.0f}, {100 * high:+.0f}]"
    return f"{word} {change['delta']:+.3f} [{low:+.3f}, {high:+.3f}]"


def _overall_text(overall: Mapping[str, Any]) -> str:
    """Say the overall verdict in one line, with its numbers and with what would be needed to see more."""
    parts = [
        _change_text("pass rate", overall["pass_rate"], share=True),
        _change_text("score", overall["score"], share=False),
    ]
    if overall["p"] is not None:
        parts.append(f"p={overall['p']:.3g} (needs {overall['level']:.3g})")
    noun = "case" if overall["cases"] == 1 else "cases"
    sides = f"{overall['wins']} up, {overall['losses']} down, {overall['ties']} equal"
    parts.append(f"{overall['cases']} {noun}: {sides}")
    detectable = overall["pass_rate"].get("detectable")
    if overall["verdict"] == "inconclusive" and detectable is not None:
        parts.append(f"this design finds a change of {100 * detectable:.0f} points of pass rate in 80 % of runs")
    needed = overall["pass_rate"].get("needed")
    if overall["verdict"] == "inconclusive" and needed:
        ways = [
            f"{needed[key]} {word}" for key, word in (("trials", "trials each"), ("cases", "cases")) if needed.get(key)
        ]
        if ways:
            parts.append(f"{' or '.join(ways)} would find {100 * needed['change']:.0f} points")
    return f"{overall['verdict']}: {'; '.join(parts)}"


def _group_text(finding: Mapping[str, Any]) -> str:
    base, cand = finding["n"]
    what = _change_text("score", finding["score"], share=False)
    rate = _change_text("pass rate", finding["pass_rate"], share=True)
    parts = [rate, what, f"n={base} and {cand}"]
    if finding["p"] is not None:
        parts.append(f"p={finding['p']:.3g}")
    if finding["expected"] is not None:
        parts.append(f"{finding['expected']:.2g} such groups expected by chance")
    return f"{finding['verdict']}: {'; '.join(parts)}"
