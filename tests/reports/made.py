"""Reports made by hand: every number is written here, none is computed by the code under test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_skilleval.model import TrialId
from pytest_skilleval.results import Report

CI = {0: (0.0, 0.56), 1: (0.06, 0.79), 2: (0.21, 0.94), 3: (0.44, 1.0)}
"""Wilson intervals of k of 3, as published tables round them."""


def trial(
    case: str = "greet", condition: str = "self-load", number: int = 1, outcome: str = "passed", **more: Any
) -> dict[str, Any]:
    """A trial's line; without more, one that passed."""
    lane = more.pop("lane", "execution")
    passed = outcome == "passed"
    line = {
        "key": f"{lane}:{case}:{condition}:{number}",
        "lane": lane,
        "case": case,
        "condition": condition,
        "trial": number,
        "outcome": outcome,
        "reason": "all that is required holds" if passed else "said: out.txt is not there",
        "score": {
            "total": 1.0 if passed else 0.25,
            "components": [{"id": "checks", "value": 1.0 if passed else 0.0, "weight": 1.0, "reason": "checks"}],
        },
        "checks": [
            {
                "id": "said",
                "kind": "file",
                "passed": passed,
                "reason": "out.txt is as wanted" if passed else "out.txt is not there",
            }
        ],
        "selected_skill": None,
        "error": None,
        "tokens": None,
        "cost_usd": None,
        "transcript": None,
    }
    if outcome in ("error", "missing"):
        line |= {
            "score": None,
            "checks": [],
            "reason": "429 after 3 attempts" if outcome == "error" else "never started",
        }
    if outcome == "error":
        line["error"] = {"class": "rate_limit", "message": "429 after 3 attempts"}
    return line | more


def group(case: str, condition: str, outcomes: Sequence[str], lane: str = "execution", **more: Any) -> dict[str, Any]:
    """A group of three or fewer measured trials."""
    passed, failed = outcomes.count("passed"), outcomes.count("failed")
    n = passed + failed
    rate = None if not n else (0.0, 1 / 3, 2 / 3, 1.0)[passed] if n == 3 else passed / n
    return {
        "lane": lane,
        "case": case,
        "condition": condition,
        "category": "general",
        "skill": "greeter",
        "control": condition in ("none", "stale"),
        "fingerprint": "f" * 16,
        "skill_digest": None if condition == "none" else "d" * 64,
        "n": n,
        "passed": passed,
        "failed": failed,
        "errors": outcomes.count("error"),
        "missing": outcomes.count("missing"),
        "not_needed": outcomes.count("not-needed"),
        "unjudged": outcomes.count("unjudged"),
        "pass_rate": {"rate": rate, "ci": CI[passed] if n else None, "n": n, "method": "wilson"},
        "score": {
            "mean": rate,
            "sd": None,
            "ci": (0.0, 1.0) if n else None,
            "min": None,
            "max": None,
            "n": n,
            "method": "t",
        },
        "pass_at_k": {},
        "pass_hat_k": {},
        "flip_rate": None,
        "tokens": None,
        "cost_usd": None,
    } | more


def lane(condition: str, rate: float | None = 0.7, **more: Any) -> dict[str, Any]:
    """A lane's row."""
    ci = None if rate is None else (0.42, 0.88)
    return {
        "lane": "execution",
        "condition": condition,
        "control": condition in ("none", "stale"),
        "cases": 10,
        "n": 30,
        "passed": 21,
        "failed": 9,
        "errors": 0,
        "missing": 0,
        "pass_rate": {"rate": rate, "ci": ci, "n": 30, "method": "wilson, clustered by case"},
        "score": {"mean": 0.775, "sd": 0.2, "ci": (0.54, 0.91), "min": 0.0, "max": 1.0, "n": 30, "method": "the same"},
    } | more


def made(
    cases: Iterable[str] = ("greet",),
    outcomes: Mapping[str, Sequence[str]] | None = None,
    *,
    run: Mapping[str, Any] | None = None,
    trials: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> Report:
    """A finished report: each case under each condition with these outcomes, and further trials in groups of their own."""
    by_condition = (
        {"none": ["failed", "failed", "passed"], "self-load": ["passed", "passed", "failed"]}
        if outcomes is None
        else outcomes
    )
    lines, groups = [], []
    for case in cases:
        for condition, results in by_condition.items():
            lines += [trial(case, condition, number, outcome) for number, outcome in enumerate(results, 1)]
            groups.append(group(case, condition, results))
    for line in trials:
        lines.append(dict(line))
        groups.append(group(line["case"], line["condition"], [line["outcome"]], line["lane"]))
    counts = {name: sum(line["outcome"] == name for line in lines) for name in ("passed", "failed", "error", "missing")}
    info = {
        "id": "20261130T004211Z-3f9c",
        "status": "finished",
        "started": "2026-11-30T00:42:11Z",
        "finished": "2026-11-30T00:43:00Z",
        "argv": ["--trials", "3"],
        "provider": {"id": "stub", "version": "0.1.0", "simulated": True},
        "lanes": sorted({line["lane"] for line in lines}),
        "conditions": list(dict.fromkeys(line["condition"] for line in lines)),
        "trials": 3,
        "seed": 0,
        "method": "exact",
        "planned": len(lines),
        "counts": counts,
        "skills": [{"name": "greeter", "digest": "d" * 64}],
        "environment": {"python": "3.11.7", "packages": {"pytest": "9.0.0"}},
        "commit": {"sha": "a" * 40, "dirty": True},
    } | dict(run or {})
    value = {
        "schema": "skilleval-report/1",
        "run": info,
        "groups": groups,
        "lanes": [lane(condition) for condition in by_condition],
        "lift": [],
        "noise": {"flip_rate": 0.233, "ci": (0.14, 0.36), "cases": 40, "n": 120},
        "gate": {"passed": True, "mode": "auto", "reasons": []},
        "trials": lines,
        "timing": {"wall_s": 12.5, "workers": ["gw0", "gw1"], "trials": {}},
    }
    return Report.model_validate(value | more)


def change(delta: float | None, ci: tuple[float, float] | None, **more: Any) -> dict[str, Any]:
    """One metric of a comparison."""
    return {"base": 0.8, "cand": 0.8 + (delta or 0), "delta": delta, "ci": ci, "p": 0.01} | more


def compared(verdict: str = "regressed", **more: Any) -> dict[str, Any]:
    """A comparison in which one group got worse and one only points upwards."""
    return {
        "baseline": {"run": "20261129T004211Z-aaaa", "digest": "b" * 64},
        "comparable": True,
        "reasons": [],
        "kind": "changed",
        "overall": {
            "verdict": verdict,
            "p": 0.004,
            "score": change(-0.12, (-0.20, -0.04)),
            "pass_rate": change(-0.2, (-0.33, -0.07), detectable=0.2, needed={"change": 0.05, "trials": 50, "cases": 131}),
            "wins": 1,
            "losses": 6,
            "ties": 3,
        },
        "groups": [
            {
                "lane": "execution", "case": "greet", "condition": "self-load", "verdict": verdict, "signal": "down", "delta": -0.6,
                "ci": (-0.9, -0.2), "p": 0.002, "q": 0.01, "wins": 0, "losses": 9, "ties": 0, "text": f"{verdict}: score -0.600; n=3 and 3",
            },
            {
                "lane": "execution", "case": "greet", "condition": "none", "verdict": "inconclusive", "signal": "up", "delta": 0.3,
                "ci": (-0.1, 0.7), "p": 0.1, "q": 0.4, "wins": 5, "losses": 1, "ties": 3, "text": "inconclusive: score +0.300; n=3 and 3",
            },
        ],
        "added": [{"lane": "execution", "case": "brand-new", "condition": "none"}],
        "removed": [],
        "changed": [],
    } | more  # fmt: skip


def write_trial(
    folder: Path, line: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] = (), diff: str = "", stderr: str = ""
) -> Path:
    """Write what a run folder holds of a trial."""
    place = folder / "trials" / TrialId(line["lane"], line["case"], line["condition"], line["trial"]).folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "transcript.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps), encoding="ascii")
    if diff:
        (place / "workspace.diff").write_text(diff, encoding="utf-8", errors="surrogatepass")
    if stderr:
        (place / "stderr").write_text(stderr, encoding="utf-8", errors="surrogatepass")
    return place
