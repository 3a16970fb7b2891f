"""What a run is judged to be: report.json and its parts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pytest_skilleval.described import Described
from pytest_skilleval.records import (
    ArtifactRef,
    CheckResult,
    Exposure,
    FileRef,
    Isolation,
    Outcome,
    ProviderInfo,
    Score,
    SkillDigest,
    Tokens,
    TrialError,
)

__all__ = [
    "GateResult",
    "GroupSummary",
    "LaneSummary",
    "Lift",
    "Noise",
    "Rate",
    "Reading",
    "Report",
    "ReportPart",
    "RunInfo",
    "ScoreStats",
    "TrialLine",
]


class ReportPart(Described, BaseModel):
    """Part of report.json: a reader ignores keys that it does not know."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", populate_by_name=True, serialize_by_alias=True, defer_build=True
    )


class Rate(ReportPart):
    """A share of trials."""

    rate: float | None
    ci: tuple[float, float] | None
    n: int
    method: str


class ScoreStats(ReportPart):
    """Scores of one group."""

    mean: float | None
    sd: float | None
    ci: tuple[float, float] | None
    min: float | None
    max: float | None
    n: int
    method: str


class GroupSummary(ReportPart):
    """All trials of one case under one condition."""

    lane: str
    case: str
    condition: str
    category: str
    skill: str | None
    control: bool
    fingerprint: str
    skill_digest: str | None
    """Of the version of its skill that its agents could see."""
    seen: str = ""
    """Digest of all skills that its agents could see: what a change decides about; empty where they saw none."""
    """Of the skill text that the group's agents could see."""
    n: int
    """Passed and failed: what the rates stand on."""
    passed: int
    failed: int
    errors: int
    missing: int
    not_needed: int = 0
    """Left out by early stopping: the gate could not change any more."""
    unjudged: int = 0
    """Ran, but nothing could decide them: statements in prose, and no judge."""
    pass_rate: Rate
    score: ScoreStats
    pass_at_k: dict[str, float]
    pass_hat_k: dict[str, float]
    flip_rate: float | None
    tokens: Tokens | None
    """Mean of the trials that know them."""
    cost_usd: float | None
    duration_s: None = None
    """Durations differ between equal runs: see `timing`."""
    min_pass_rate: float | None = None


class LaneSummary(ReportPart):
    """All cases of one lane under one condition, clustered by case."""

    lane: str
    condition: str
    control: bool
    cases: int
    n: int
    passed: int
    failed: int
    errors: int
    missing: int
    pass_rate: Rate
    score: ScoreStats
    tokens: Tokens | None = None
    """Mean of the measured trials that know them."""
    cost_usd: float | None = None
    """The same."""
    unjudged: int = 0


class Lift(ReportPart):
    """What the skill changes, over the cases of a lane."""

    lane: str
    metric: str
    """realised, oracle, routing_gap, stale_harm, regression_rate, unlock_rate, routing_efficiency."""
    of: str
    """`score` or `pass_rate`."""
    value: float | None
    ci: tuple[float, float] | None
    cases: int
    note: str = ""


class Noise(ReportPart):
    """How much two identical runs would disagree."""

    flip_rate: float | None
    ci: tuple[float, float] | None
    cases: int
    n: int


class Reading(ReportPart):
    """The sentence that reads the conditions of one lane for people."""

    lane: str
    diagnosis: str
    """works, discovery, loaded, content, harm, unclear."""
    text: str


class GateResult(ReportPart):
    """What made the run red, or nothing."""

    passed: bool
    mode: str
    reasons: tuple[str, ...]


class TrialLine(ReportPart):
    """One trial in the report."""

    key: str
    lane: str
    case: str
    condition: str
    trial: int
    outcome: Outcome
    reason: str
    score: Score | None
    checks: tuple[CheckResult, ...]
    selected_skill: str | None
    error: TrialError | None
    tokens: Tokens | None
    cost_usd: float | None
    transcript: FileRef | None
    artifacts: tuple[ArtifactRef, ...] = ()
    exposure: Exposure | None = None
    isolation: Isolation | None = None
    notes: tuple[str, ...] = ()


class RunInfo(ReportPart):
    """What was run."""

    id: str
    status: Literal["finished", "interrupted", "invalid"]
    started: str
    finished: str
    argv: tuple[str, ...]
    provider: ProviderInfo
    lanes: tuple[str, ...]
    conditions: tuple[str, ...]
    trials: int
    seed: int
    method: str
    planned: int
    counts: dict[str, int]
    skills: tuple[SkillDigest, ...]
    environment: dict[str, Any]
    commit: dict[str, Any] | None
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why the status is not `finished`."""


class Report(ReportPart):
    """report.json: a finished run, judged once. Rendering it never computes."""

    schema_: str = Field(default="skilleval-report/1", alias="schema")
    run: RunInfo
    groups: tuple[GroupSummary, ...]
    lanes: tuple[LaneSummary, ...]
    lift: tuple[Lift, ...]
    readings: tuple[Reading, ...] = ()
    routing: dict[str, Any] | None = None
    noise: Noise
    power: dict[str, Any] = {}
    comparison: dict[str, Any] | None = None
    judge: dict[str, Any] | None = None
    """Who decided statements in prose, how often, and how well it agrees with itself; None where nobody did."""
    baseline_groups: tuple[GroupSummary, ...] = ()
    """The baseline side of a comparison within the run; `groups` and all that is made of them are the candidate's."""
    tokens: dict[str, Any] | None = None
    """What `--skilleval-tokens` saved, or warns of; None without it. Never part of a verdict."""
    gate: GateResult
    trials: tuple[TrialLine, ...]
    timing: dict[str, Any] = {}
    """Everything that differs between two equal runs."""
