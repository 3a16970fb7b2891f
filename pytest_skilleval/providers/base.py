"""What a provider is: it turns a question into a command, and what the command left into an answer.

The life of one question, whoever answers it:

1. `detect` once a session, in a throw-away home: is it there, and which version?
2. `credentials` names the variables of the user's environment that the agent may see; their values are redacted
   everywhere.
3. The trial installs skills below `skill_root`, as the condition says.
4. `prepare` writes what the agent needs into the home and returns the command to run, or None when there is nothing
   to run.
5. A supervisor runs the command and proves its process tree dead.
6. `read` turns the recorded stream into a Transcript and, when the trial could not be measured or ended badly, an
   error. The agent's terminal event decides, never the exit status alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from pytest_skilleval.casespec import Budget, Kind
from pytest_skilleval.model import Case, Condition, Skill, TrialId
from pytest_skilleval.records import ProviderInfo, Transcript, TrialError

__all__ = ["Answer", "Ask", "Detected", "Launch", "ProcessOutput", "Provider", "ProviderSettings"]


@dataclass(frozen=True)
class ProviderSettings:
    """What the user chose for all questions of a session."""

    model: str | None = None
    effort: str | None = None
    seed: int = 0
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The user's whole environment: providers pick the names they need."""
    rootpath: Path = Path()
    options: Mapping[str, object] = field(default_factory=dict)
    """The provider's own table from `[tool.skilleval.providers.NAME]`."""
    record: Path | None = None
    replay: Path | None = None


@dataclass(frozen=True)
class Ask:
    """One question: prompt, place, condition and limits."""

    id: TrialId
    case: Case
    kind: Kind
    condition: Condition
    prompt: str
    system: str
    """Text for the context: the case's own, and in `preloaded` the skill's."""
    skills: tuple[Skill, ...]
    """Skills that lie installed below `skill_root`."""
    under_test: Skill | None
    """The version of the case's skill that the agent can see, installed or preloaded."""
    home: Path
    workspace: Path
    tmp: Path
    scratch: Path
    """A folder for the provider's own files (prompts, configs); the agent is not pointed at it."""
    env: Mapping[str, str]
    """The allow-listed environment, without the provider's additions."""
    budget: Budget
    sandboxed: bool = False
    """Whether the command will run inside a sandbox of the runner's, in which an agent's own may not work."""


@dataclass(frozen=True)
class Launch:
    """A command to run in the workspace."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Additions to the allow-listed environment."""
    stdin: Path | None = None
    """A file; the agent reads /dev/null without one, never an inherited pipe."""
    secrets: tuple[str, ...] = ()
    """Values that are redacted from all that is written."""
    result_markers: tuple[bytes, ...] = ()
    """A stdout line that holds all of them is the final event; the process then has `linger` seconds to exit."""
    reads: tuple[Path, ...] = ()
    """What the command reads outside its home, workspace, tmp and scratch; a sandbox shows it read-only."""


@dataclass(frozen=True)
class ProcessOutput:
    """What a finished command left."""

    stdout: Path
    stderr: Path
    exit_status: int | None
    """None when it was ended by a signal or could not be started."""
    reason: str
    """exited, timeout, cancelled, quota, lingered or spawn_failed."""
    message: str = ""
    duration_s: float = 0.0
    signal: int | None = None
    """The signal that ended it; 9 is also what the kernel sends when memory runs out."""


class Answer(NamedTuple):
    """What came of a question."""

    transcript: Transcript
    error: TrialError | None = None


class Detected(NamedTuple):
    """What is installed."""

    info: ProviderInfo
    warnings: tuple[str, ...] = ()


@runtime_checkable
class Provider(Protocol):
    """Who answers. Third parties implement this and name it through `pytest_skilleval_providers`.

    A provider may also have `objection(case) -> str | None`: why it cannot be asked that case honestly, such as a
    prompt that its agent takes as a command. And `tells_cost: bool`: whether its answers say what they cost in US
    dollars; only then a budget in dollars can stop a run.
    """

    id: str
    """Its name on the command line."""
    simulated: bool
    """Whether no agent is run; every place that shows results then says so."""
    paid: bool
    """Whether a question costs money or quota."""

    def detect(self) -> Detected:
        """Find the program and its version, without touching the user's home.

        Raises:
            UserMistake: It is not there, or its settings are wrong.
        """

    def credentials(self) -> Mapping[str, str]:
        """Return the variables of the user's environment that the agent needs; the values are secrets."""

    def skill_root(self, home: Path) -> Path | None:
        """Return the folder below `home` where this agent discovers skills; None when it discovers none."""

    def prepare(self, ask: Ask) -> Launch | None:
        """Write what the agent needs and return its command; None when nothing is to be run."""

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:
        """Turn what the command left into an answer; `output` is None when nothing was run."""
