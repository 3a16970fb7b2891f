"""What is known of a finished trial: Facts, the only input of checks, scores and lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pytest_skilleval.casespec import RubricCheck
from pytest_skilleval.model import Case, Condition
from pytest_skilleval.records import Transcript, TrialError

from .finding import Finding

__all__ = ["CommandResult", "Facts", "RunCommand"]


class CommandResult(NamedTuple):
    """What a check's command left."""

    exit_status: int | None
    """None when it was ended by a signal, ran out of time, or could not be started."""
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False


RunCommand = Callable[[Sequence[str], float], CommandResult]
"""Runs a program with its arguments in the finished workspace; the second argument is its time limit in seconds."""


@dataclass(frozen=True)
class Facts:
    """A trial after its process tree is dead. Nothing in here changes while it is judged."""

    case: Case
    condition: Condition
    transcript: Transcript
    workspace: Path
    """The finished workspace."""
    run_command: RunCommand
    python: str
    """The Python that runs the session, for `{python}` in commands."""
    error: TrialError | None = None
    """What the provider said went wrong."""
    before: Mapping[str, str] | None = None
    """Relative path to SHA-256 of each file that the agent was given; None = not known."""
    bundle: Path | None = None
    """The collected proof bundle in the run folder."""
    judge: Callable[[RubricCheck, Facts], Finding] | None = None
    """Decides a statement in prose; None = no judge was asked for."""
    selected: str | None = None
    """The skill that the agent chose, where the caller knows it; None = read it from the transcript."""

    @property
    def provider_finished(self) -> bool:
        """Whether the agent ended by itself, and well."""
        return self.transcript.finished and self.error is None
