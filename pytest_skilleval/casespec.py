"""The shape of a case file: CaseSpec, its checks and its other parts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from pytest_skilleval.frozen import NOTHING, Frozen

__all__ = [
    "AntiPattern",
    "Artifact",
    "Budget",
    "BundleCheck",
    "BundleSpec",
    "CaseSpec",
    "Check",
    "CheckBase",
    "CommandCheck",
    "EventLogCheck",
    "FileCheck",
    "JsonCheck",
    "Kind",
    "Lane",
    "OutputCheck",
    "PythonCheck",
    "RecordingCheck",
    "Regex",
    "ReportSpec",
    "RubricCheck",
    "ScreenshotCheck",
    "SkillCheck",
    "SnapshotCheck",
    "StubSpec",
    "TextCheck",
    "TextConditions",
    "ToolCallCheck",
    "WorkflowStep",
]


class Lane(StrEnum):
    """What a case asks of the agent, and what scores it."""

    PROMPT = "prompt"
    """Routing and planning, no side effects."""
    EXECUTION = "execution"
    """The agent acts in a workspace; checks look at what it left."""
    DOGFOOD = "dogfood"
    """The agent fills a proof bundle; the bundle and its report are scored."""

    @property
    def kind(self) -> Kind:
        """What a trial of this lane costs."""
        return Kind.PLAN if self is Lane.PROMPT else Kind.AGENT


class Kind(StrEnum):
    """What a trial costs the machine and the provider."""

    PLAN = "plan"
    """One short answer."""
    AGENT = "agent"
    """A whole agent at work."""


_NAME = r"[^\s\[\]:/\\]"
# Dots alone would name a folder above.
Identifier = Annotated[str, Field(pattern=rf"^{_NAME}*[^\s\[\]:/\\.]{_NAME}*$", min_length=1, max_length=500)]
Regex = Annotated[str, Field(json_schema_extra={"format": "regex"})]
Patterns = Annotated[tuple[Regex, ...], Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
RelativePath = Annotated[str, Field(min_length=1, max_length=1000, json_schema_extra={"format": "relative-path"})]


class CheckBase(Frozen):
    """What every check has."""

    id: Identifier
    """The check's name, unique in its case."""
    required: bool = True
    """Whether the trial can pass without it."""
    weight: Weight = 1.0
    """Its share among the checks of its component."""
    description: str = ""
    """For people; does not enter the fingerprint."""


class TextConditions(Frozen):
    """What a text must (not) hold; all that are given must be true."""

    equals: str | None = None
    """The whole text, trailing line breaks aside."""
    contains: str | None = None
    """A literal piece of it."""
    matches: Regex | None = None
    """A Python regular expression that is found in it (multi-line mode)."""
    never: Regex | None = None
    """A Python regular expression that is not found in it (multi-line mode)."""


class FileCheck(CheckBase, TextConditions):
    """A file of the finished workspace."""

    kind: Literal["file"]
    path: RelativePath
    """Where, relative to the workspace; `*` patterns take the first match in sorted order."""
    exists: bool = True
    """False: the path must be absent."""
    changed: bool | None = None
    """True: it differs from what the agent was given; False: it is the same."""


class JsonCheck(CheckBase):
    """A value in a JSON file of the finished workspace."""

    kind: Literal["json"]
    path: RelativePath
    """The file."""
    at: str = "@"
    """A JMESPath expression (https://jmespath.org); `@` is the whole document."""
    equals: Any = None
    """The value it must be (numbers within 1e-9)."""
    matches: Regex | None = None
    """A pattern for a string value."""
    type: Literal["string", "number", "integer", "boolean", "array", "object", "null"] | None = None
    """The JSON type it must have."""
    min: float | None = None
    """The least number, or the least length of an array, object or string."""
    max: float | None = None
    """The greatest number, or the greatest length."""


class CommandCheck(CheckBase):
    """A command run in the finished workspace, after the agent is dead."""

    kind: Literal["command"]
    run: Annotated[tuple[str, ...], Field(min_length=1)]
    """Program and arguments; `{case}` is the case file's folder, `{python}` this Python."""
    exit_status: int | None = 0
    """The status it must end with; null takes any."""
    stdout: Regex | None = None
    """A pattern that is found in what it prints."""
    stderr: Regex | None = None
    """A pattern that is found in its error output."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Seconds."""


class TextCheck(CheckBase, TextConditions):
    """The agent's final answer."""

    kind: Literal["text"]


class OutputCheck(CheckBase):
    """All that the agent produced: its final answer, and the text files that it made or changed."""

    kind: Literal["output"]
    contains: str | None = None
    """A literal piece of one of them."""
    matches: Regex | None = None
    """A Python regular expression that is found in one of them (multi-line mode)."""
    never: Regex | None = None
    """A Python regular expression that is found in none of them (multi-line mode)."""


class ToolCallCheck(CheckBase):
    """A command or tool that the agent really ran."""

    kind: Literal["tool-call"]
    tool: Regex | None = None
    """A pattern for the tool's name."""
    command: Regex | None = None
    """A pattern for the command line or the tool's input."""
    min: Annotated[int, Field(ge=0)] = 1
    """The least number of such calls."""
    max: Annotated[int, Field(ge=0)] | None = None
    """The greatest number; 0 says never."""
    after: Regex | None = None
    """Only calls after the first call whose command matches this."""


class SkillCheck(CheckBase):
    """Whether the agent loaded a skill."""

    kind: Literal["skill"]
    name: str | None = None
    """The skill; the case's own by default."""
    used: bool = True
    """False: it must not have been loaded."""


class SnapshotCheck(CheckBase, TextConditions):
    """The text of a terminal screen that the agent saved."""

    kind: Literal["snapshot"]
    path: RelativePath
    """The file."""


class ScreenshotCheck(CheckBase):
    """A real picture, not blank."""

    kind: Literal["screenshot"]
    path: RelativePath
    """The file."""
    min_width: Annotated[int, Field(ge=1)] = 100
    """Pixels."""
    min_height: Annotated[int, Field(ge=1)] = 50
    """Pixels."""


class RecordingCheck(CheckBase):
    """A valid asciicast (v2 or v3), or a WebM or MP4 video."""

    kind: Literal["recording"]
    path: RelativePath
    """The file."""
    matches: Regex | None = None
    """A pattern for the terminal text of an asciicast."""
    min_duration: Annotated[float, Field(ge=0)] = 0.0
    """Seconds."""


class EventLogCheck(CheckBase):
    """JSON lines with these fields, in this order."""

    kind: Literal["event-log"]
    path: RelativePath
    """The file, one JSON object a line."""
    events: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]
    """Each holds fields (JMESPath) and the values that a line must have; `/x/` is a pattern."""


class BundleCheck(CheckBase):
    """A proof bundle that satisfies a profile."""

    kind: Literal["bundle"]
    path: RelativePath = "proof"
    """The folder."""
    profile: Literal["minimal", "reporting", "interactive"] = "minimal"
    """What must be in it."""


class PythonCheck(CheckBase):
    """A function beside the case file: `check(run) -> bool | str | None`, or an assertion."""

    kind: Literal["python"]
    function: Annotated[str, Field(pattern=r"^[^:]+\.py::[A-Za-z_]\w*$")]
    """`file.py::function`, the file relative to the case file's folder."""


class RubricCheck(CheckBase):
    """A statement in prose that only a judge can decide; without one it is unjudged and outside every rate."""

    kind: Literal["rubric"]
    statement: Annotated[str, Field(min_length=1)]
    """What must be true of the trial."""


Check = Annotated[
    FileCheck
    | JsonCheck
    | CommandCheck
    | TextCheck
    | OutputCheck
    | ToolCallCheck
    | SkillCheck
    | SnapshotCheck
    | ScreenshotCheck
    | RecordingCheck
    | EventLogCheck
    | BundleCheck
    | PythonCheck
    | RubricCheck,
    Field(discriminator="kind"),
]


class WorkflowStep(Frozen):
    """Something that must, or must never, happen, possibly after something else."""

    id: Identifier
    """Its name, unique in the case."""
    must: tuple[Regex, ...] = ()
    """Patterns that are each found in what the agent did (or planned, in the prompt lane)."""
    never: tuple[Regex, ...] = ()
    """Patterns that are not found."""
    after: tuple[Identifier, ...] = ()
    """Steps whose first match must come before this one's."""
    required: bool = True
    """Whether the trial can pass without it."""
    weight: Weight = 1.0
    """Its share among the steps."""


class AntiPattern(Frozen):
    """A habit that is wrong however the task ends."""

    id: Identifier
    """Its name, unique in the case."""
    patterns: Patterns
    """Python regular expressions; one that is found and not negated is enough."""
    severity: Literal["info", "warning", "error"] = "warning"
    """Only `error` fails the trial by itself."""
    fix: str = ""
    """What to do instead."""


class Artifact(Frozen):
    """Files that the agent must leave."""

    path: RelativePath
    """A `*` pattern relative to the workspace."""
    kind: Literal["text", "json", "screenshot", "recording", "video", "any"] = "any"
    """What the files must really be, by their content."""
    min: Annotated[int, Field(ge=1)] = 1
    """The least number of such files."""


class SetupStep(Frozen):
    """A command that makes the workspace ready, before the agent starts."""

    run: Annotated[tuple[str, ...], Field(min_length=1)]
    """Program and arguments."""
    timeout: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Seconds."""


class WorkspaceSpec(Frozen):
    """What lies in the working directory when the agent starts."""

    template: RelativePath | None = None
    """A folder beside the case file, copied."""
    copies: dict[str, RelativePath] = NOTHING
    """Path in the workspace to a file or folder beside the case file, copied there after the template."""
    files: dict[str, str] = NOTHING
    """Path to text, written last."""
    env: dict[str, str] = NOTHING
    """Variables the agent gets besides the allow-list."""
    setup: tuple[SetupStep, ...] = ()
    """Commands that make it ready, in order."""


class Budget(Frozen):
    """What one trial may cost."""

    timeout: Annotated[float, Field(gt=0, le=86400)] = 300.0
    """Seconds of wall time."""
    steps: Annotated[int, Field(ge=1)] | None = None
    """Turns of the agent."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens of output and of input that came from no cache."""
    cost_usd: Annotated[float, Field(gt=0)] | None = None
    """US dollars, as the provider counts them."""
    on_timeout: Literal["fail", "error", "grade"] = "fail"
    """How an agent that was still working at the wall counts: as failed, as an error, or by its checks."""


class StubSpec(Frozen):
    """How the simulated agent behaves."""

    solve_rate: Share | dict[str, Share] = 0.5
    """The chance that it runs the solution; one for all conditions, or one each."""
    failure: RelativePath | None = None
    """A script that it runs when it does not succeed."""
    failure_answer: str = ""
    """What it answers when it does not succeed."""
    sleep: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """Seconds that it takes, to rehearse schedules."""
    tokens: Annotated[int, Field(ge=0)] | None = None
    """Output tokens that it claims, to rehearse budgets."""


class BundleSpec(Frozen):
    """The proof bundle that a dogfood case asks for."""

    path: RelativePath = "proof"
    """The folder that the agent fills, relative to the workspace."""
    profile: Literal["minimal", "reporting", "interactive"] = "reporting"
    """What must be in it."""


class ReportSpec(Frozen):
    """The report inside the bundle."""

    path: RelativePath = "proof/report.md"
    """The file, relative to the workspace."""
    sections: tuple[str, ...] = ("Summary", "Setup", "Steps", "Results", "Evidence", "Issues")
    """Headings that it must have."""
    taxonomy: tuple[str, ...] = ()
    """Words with which findings are to be named."""


class Scoring(Frozen):
    """Weights and thresholds of a case's score, where the lane's own do not fit."""

    weights: dict[str, Weight] = NOTHING
    """Component to weight, for those that differ from the lane's."""
    pass_at: Share | None = None
    """The least score that passes."""


class CaseSpec(Frozen):
    """One case as a file says it."""

    id: Identifier | None = None
    """Unique in its lane; the file's stem by default."""
    lane: Lane | None = None
    """The folder's name by default."""
    skill: Annotated[str, Field(min_length=1)] = "none"
    """The skill that should be used; `none` = no skill should be."""
    category: Annotated[str, Field(min_length=1)] = "general"
    """A group of cases, for `-m` and the report."""
    description: str = ""
    """For people; does not enter the fingerprint."""
    prompt: Annotated[str, Field(min_length=1)]
    """What the agent is told."""
    context: str = ""
    """Text that stands before the prompt in every condition."""
    conditions: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """All four by default."""
    workspace: WorkspaceSpec = WorkspaceSpec()
    budget: Budget = Budget()
    checks: tuple[Check, ...] = ()
    """Facts about the finished workspace and transcript."""
    workflow: tuple[WorkflowStep, ...] = ()
    """What must (not) happen, and in which order."""
    anti_patterns: tuple[str | AntiPattern, ...] = ()
    """Names of built-in ones, or own ones."""
    artifacts: tuple[Artifact, ...] = ()
    """Files that the agent must leave."""
    expect: tuple[Regex, ...] = ()
    """Prompt lane: patterns that the answer must match."""
    forbid: tuple[Regex, ...] = ()
    """Prompt lane: patterns that it must not match."""
    bundle: BundleSpec | None = None
    """Dogfood lane: the proof bundle that is asked for."""
    report: ReportSpec | None = None
    """Dogfood lane: the report inside the bundle."""
    scoring: Scoring = Scoring()
    stale: RelativePath | None = None
    """A folder with the stale version of the skill."""
    solution: RelativePath | None = None
    """A script that solves the case: what `oracle` runs, and `stub` when it succeeds."""
    answer: str = ""
    """What `oracle`, and `stub` when it succeeds, answer."""
    stub: StubSpec = StubSpec()
    min_pass_rate: Share | dict[str, Share] | None = None
    """A gate: red when the whole interval of the pass rate lies below. A number is for all conditions but controls, a
    mapping for those that it names."""
