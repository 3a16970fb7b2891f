"""What the two wings hand each other: a run's plan, and intent and record of each trial."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, Field

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.frozen import Frozen
from pytest_skilleval.model import TrialId

__all__ = [
    "AgainstRef",
    "ArtifactRef",
    "BaselineRef",
    "CheckResult",
    "Component",
    "ExpectedGroup",
    "Exposure",
    "FileRef",
    "Intent",
    "Isolation",
    "Judged",
    "Judging",
    "Outcome",
    "Plan",
    "PlannedTrial",
    "ProviderInfo",
    "Score",
    "SkillPair",
    "SkillSeen",
    "SkillUse",
    "Tokens",
    "ToolCall",
    "Transcript",
    "TrialError",
    "TrialRecord",
    "TrialTiming",
]


class Outcome(StrEnum):
    """How a trial ended."""

    PASSED = "passed"
    FAILED = "failed"
    """The agent did badly."""
    ERROR = "error"
    """It could not be measured."""
    MISSING = "missing"
    """It was planned and never came home, or was not run."""
    NOT_NEEDED = "not-needed"
    """Left out on purpose: its group's gate could not change any more, or its test was skipped. Outside every rate."""
    UNJUDGED = "unjudged"
    """All that could decide it is stated in prose, and no judge was asked. Outside every rate."""


# ------------------------------------------------------------------------------------------------- one trial


class Tokens(Frozen):
    """Token use, normalised over providers; None is unknown, never 0."""

    input: int | None = None
    """All input, cached included."""
    cached: int | None = None
    output: int | None = None
    """All output, reasoning included."""
    reasoning: int | None = None

    @classmethod
    def total(cls, found: Iterable[Tokens | None]) -> Tokens | None:
        """Return the sum of what is known; None when nothing is."""
        known = [tokens for tokens in found if tokens is not None]

        def sum_of(name: str) -> int | None:
            values = [value for tokens in known if (value := getattr(tokens, name)) is not None]
            return sum(values) if values else None

        return cls(**{name: sum_of(name) for name in cls.model_fields}) if known else None


class ToolCall(Frozen):
    """A tool that the agent ran."""

    name: str
    """The provider's name of the tool, such as `Bash` or `command_execution`."""
    command: str = ""
    """The command line, or the input as compact JSON."""
    output: str = ""
    """What came back, bounded."""
    exit_status: int | None = None
    status: Literal["ok", "error", "denied", "unknown"] = "unknown"
    path: str | None = None
    """The file that it reads or writes, where the tool says so."""
    reads_only: bool = False
    """Whether it can only read."""


class SkillUse(Frozen):
    """A skill that the agent loaded, with the evidence."""

    name: str
    how: Literal["tool", "read", "choice", "forced"]
    """Its own load event, a read of SKILL.md, a plain model's explicit choice, or the harness."""
    position: int
    """Index among the transcript's tool calls."""
    evidence: str


class Transcript(Frozen):
    """What an agent said and did, whatever its stream looked like."""

    final_text: str = ""
    """The final answer; never an error's text."""
    tool_calls: tuple[ToolCall, ...] = ()
    skills_used: tuple[SkillUse, ...] = ()
    skills_visible: tuple[str, ...] | None = None
    """Names that the agent was offered, where the stream says so."""
    finished: bool = False
    """Whether the terminal event is there and good."""
    session_id: str | None = None
    model: str | None = None
    version: str | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None
    turns: int | None = None
    attempts: tuple[str, ...] = ()
    """The agent's own retries, as it told them."""
    unparsed_lines: tuple[int, ...] = ()
    """1-based numbers of stream lines that were no JSON object (the first 100)."""


class TrialError(Frozen):
    """Why a trial could not be measured, or how it ended badly."""

    error_class: ErrorClass = Field(alias="class")
    message: str
    retry_after: float | None = None
    """Seconds that the provider asked to wait."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Judged(Frozen):
    """What a judge said of a statement in prose."""

    provider: str
    model: str | None = None
    simulated: bool = False
    answers: tuple[Literal["yes", "no"], ...]
    """One for each time that it was asked; most of them decide."""
    evidence: str = ""
    """What it quoted of the agent's work, for the answer that decided."""
    agreement: float | None = None
    """Share of pairs of its answers that agree; None with one answer."""
    tokens: Tokens | None = None
    """Of all its answers."""
    cost_usd: float | None = None
    """The same."""


class CheckResult(Frozen):
    """One yes or no, and why."""

    id: str
    kind: str
    passed: bool | None
    """None: could not be decided (an error of the check, or unjudged)."""
    reason: str
    required: bool = True
    weight: float = 1.0
    error: bool = False
    """Whether the check itself broke."""
    statement: str = ""
    """What was asked in prose, of a rubric check."""
    judged: Judged | None = None
    """What a judge said of it, where one was asked."""


class Component(Frozen):
    """A part of a score."""

    id: str
    value: float | None
    """In [0, 1]; None where it cannot apply: it is left out and the others are scaled up."""
    weight: float
    """Negative for a penalty: `value` times it is taken off."""
    reason: str


class Score(Frozen):
    """A trial's score and what it is made of."""

    total: float
    """In [0, 1]."""
    components: tuple[Component, ...] = ()

    @classmethod
    def of(cls, components: tuple[Component, ...], only: Collection[str] | None = None) -> Score | None:
        """Return the score that components make, or None when none of them applies.

        Components of positive weight are averaged by weight; those that cannot apply are left out and the others scaled
        up. Components of negative weight are penalties, taken off afterwards. The total is held within [0, 1].

        Args:
            components: All components of a trial; all are kept in the score.
            only: Ids that may enter the total: the components that apply in every condition of a comparison.
        """
        used = [part for part in components if part.value is not None and (only is None or part.id in only)]
        weight = math.fsum(part.weight for part in used if part.weight > 0)
        if weight <= 0:
            return None
        mean = math.fsum(part.weight * (part.value or 0.0) for part in used if part.weight > 0) / weight
        penalty = math.fsum(part.weight * (part.value or 0.0) for part in used if part.weight < 0)
        return cls(total=min(1.0, max(0.0, mean + penalty)), components=components)


class FileRef(Frozen):
    """A file in the run folder."""

    path: str
    """Relative to the run folder."""
    bytes: int
    digest: str
    """SHA-256, 64 hex digits."""
    truncated: bool = False


class ArtifactRef(FileRef):
    """A file that the agent left."""

    name: str
    """Its path in the workspace or bundle."""
    kind: str


class SkillSeen(Frozen):
    """A skill that lay where the agent discovers skills, or in its context."""

    name: str
    digest: str
    preloaded: bool = False
    stale: bool = False


class Exposure(Frozen):
    """What the agent could see of skills: evidence, not intention."""

    skills: tuple[SkillSeen, ...] = ()
    listed: tuple[str, ...] | None = None
    """Names that the agent's own stream says it was offered; None where it does not say."""
    digest: str | None = None
    """Digest of the skill under test that the agent could see; None = it could see none."""


class Isolation(Frozen):
    """How the trial was kept apart, as it was and not as it was asked."""

    sandbox: Literal["bubblewrap", "none"] = "none"
    sandbox_reason: str = ""
    tree: Literal["dead", "unproven", "no-process"] = "no-process"
    """Whether the process tree was proven dead before scoring."""
    killed: int = 0
    """Processes that were still alive when the agent had ended."""


class ProviderInfo(Frozen):
    """Who answered."""

    id: str
    version: str | None = None
    model: str | None = None
    effort: str | None = None
    simulated: bool = False
    path: str | None = None


class TrialTiming(Frozen):
    """What differs between two equal trials."""

    started: float = 0.0
    """Seconds since the epoch."""
    duration_s: float = 0.0
    """By a monotonic clock, from intent to record."""
    agent_s: float = 0.0
    """Of these, the agent."""
    agent_started: float = 0.0
    """Seconds since the epoch; of the last try."""
    waited_s: float = 0.0
    """Of these, waiting: for a cap's slot, and between tries that a provider refused."""
    rate_limited: int = 0
    """How often the provider refused it for coming too often."""
    worker: str = "main"
    pid: int = 0
    attempt: int = 1
    session_id: str | None = None


class TrialRecord(Frozen):
    """The only record of what happened in one trial."""

    schema_: Literal["skilleval-record/1"] = Field(default="skilleval-record/1", alias="schema")
    run: str
    lane: str
    case: str
    condition: str
    trial: int
    outcome: Outcome
    reason: str = ""
    """One line for people."""
    control: bool = False
    category: str = "general"
    skill: str | None = None
    fingerprint: str = ""
    provider: ProviderInfo
    score: Score | None = None
    checks: tuple[CheckResult, ...] = ()
    selected_skill: str | None = None
    skills_used: tuple[SkillUse, ...] = ()
    exposure: Exposure = Exposure()
    isolation: Isolation = Isolation()
    error: TrialError | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None
    attempts: tuple[str, ...] = ()
    transcript: FileRef | None = None
    stdout: FileRef | None = None
    stderr: FileRef | None = None
    artifacts: tuple[ArtifactRef, ...] = ()
    final_text: str = ""
    """The agent's answer, cut at 20,000 characters."""
    notes: tuple[str, ...] = ()
    extra: dict[str, Any] = Field(default_factory=dict)
    """What the case's file says in keys of another format, which nothing here uses."""
    regraded_from: str | None = None
    """The run whose agent it was, where another run has graded its trial again."""
    timing: TrialTiming = TrialTiming()

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    @property
    def id(self) -> TrialId:
        """The work item."""
        return TrialId(self.lane, self.case, self.condition, self.trial)


class Intent(Frozen):
    """That a trial is about to start: what tells a lost trial from one that never began."""

    schema_: Literal["skilleval-intent/1"] = Field(default="skilleval-intent/1", alias="schema")
    run: str
    lane: str
    case: str
    condition: str
    trial: int
    fingerprint: str
    attempt: int = 1
    started: float
    worker: str
    pid: int
    session: str = ""
    """The token of the session that starts it."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


# --------------------------------------------------------------------------------------------------- the plan


class PlannedTrial(Frozen):
    """One work item of a run, as collected."""

    lane: str
    case: str
    condition: str
    trial: int
    nodeid: str
    control: bool = False
    category: str = "general"
    skill: str | None = None
    fingerprint: str
    skill_digest: str | None = None
    """Of the version that this trial's agent will be able to see."""
    base: bool = False
    """Whether it belongs to the baseline side of a comparison within the run."""
    seen: str = ""
    """Digest of all skills that its agent will be able to see; empty where it sees none."""
    min_pass_rate: float | None = None
    expected_s: float | None = None
    """A guess at its duration, from the case's budget."""
    timeout_s: float = 300.0

    @property
    def id(self) -> TrialId:
        """The work item."""
        return TrialId(self.lane, self.case, self.condition, self.trial)


class ExpectedGroup(NamedTuple):
    """Trials of one case under one condition that are to run, and what its case allows one of them at most."""

    lane: str
    case: str
    condition: str
    trials: int
    timeout_s: float
    tokens: int | None = None
    cost_usd: float | None = None


class SkillDigest(Frozen):
    """A skill under test."""

    name: str
    digest: str


class BaselineRef(Frozen):
    """The baseline of a run, as it was before the first agent."""

    path: str
    """Its report.json, or its run folder when it had none."""
    digest: str
    """SHA-256 of that report.json, 64 hex digits; "" when it was judged from its journal."""


class SkillPair(Frozen):
    """Both versions of a skill in a comparison within one run."""

    name: str
    baseline: str | None
    """Digest of the version that it is compared with; None where there is none."""
    candidate: str
    """Digest of the current one."""


class AgainstRef(Frozen):
    """The older skills that run beside the current ones in the same run."""

    reference: str
    """As the user typed it: `git:REV` or a folder."""
    skills: tuple[SkillPair, ...]


class Judging(Frozen):
    """What a run is judged by: with its records, all that its reports are made of."""

    gate: Literal["auto", "trials", "regression", "never"] = "auto"
    max_errors: float = 0.1
    thresholds: tuple[tuple[str, float], ...] = ()
    """Smallest gains that are called improved, by `pass_rate` and `score`."""
    baseline: BaselineRef | None = None
    against: AgainstRef | None = None
    judge: str | None = None
    """Who decides statements in prose, as the user typed it."""
    judge_repeats: int = 1


class Plan(Frozen):
    """Everything that a run set out to do; written before the first trial, never changed."""

    schema_: Literal["skilleval-plan/1"] = Field(default="skilleval-plan/1", alias="schema")
    run: str
    token: str
    """Shared by all processes of one session; tells our folder from a neighbour's."""
    started: str
    """ISO 8601, UTC."""
    argv: tuple[str, ...] = ()
    provider: ProviderInfo
    seed: int = 0
    trials_each: int = 1
    shard: tuple[int, int] | None = None
    """Which of how many shares of the cases it runs: from 1; None = all."""
    shards_with_cases: tuple[int, ...] = ()
    """The shares that hold a case, by their numbers, so that one that is lost is missed; empty where it runs all."""
    shards: tuple[tuple[int, int], ...] = ()
    """The shares that a merged run holds."""
    shards_lost: tuple[tuple[int, int], ...] = ()
    """The shares that hold a case, and that were in none of the runs that a merged run is made of."""
    method: str = "exact"
    judging: Judging = Judging()
    skills: tuple[SkillDigest, ...] = ()
    trials: tuple[PlannedTrial, ...]
    environment: dict[str, Any] = Field(default_factory=dict)
    commit: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    """What every run like this one would note."""
    events: tuple[str, ...] = ()
    """What happened to this one: taken up again, leftovers of a killed one found."""
    todo: tuple[str, ...] | None = None
    """Keys of the trials that a resumed session runs; None = all. Fixed before its first trial, so that a worker that
    replaces a dead one collects the same."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)
