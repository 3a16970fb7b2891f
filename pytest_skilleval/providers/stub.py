"""Simulated agents that need no model: `stub` draws success, `oracle` always solves, `noop` never does anything."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pytest_skilleval.errors import UserMistake
from pytest_skilleval.model import BASE, Skill
from pytest_skilleval.records import ProviderInfo, SkillUse, Tokens, ToolCall, Transcript

from .base import Answer, Ask, Detected, Launch, ProcessOutput, ProviderSettings
from .ending import ended_badly
from .script import commands_in

__all__ = ["Noop", "Oracle", "Stub"]

DEFAULT_RATE = 0.5
"""For a condition that the case's `solve_rate` does not name."""


@dataclass(frozen=True)
class _Act:
    """What a simulated agent does in one trial."""

    script: Path | None
    answer: str
    skill: str | None
    """The installed skill that it uses."""
    sleep: float = 0.0
    tokens: int | None = None


class _Simulated:
    """What the three share: an act, run by a real command in the workspace where there is something to run."""

    id = "simulated"
    simulated = True
    paid = False

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings

    def act(self, ask: Ask) -> _Act:
        """Decide what happens in this trial, from its work item and the seed alone."""
        raise NotImplementedError

    def detect(self) -> Detected:
        """Return the plugin's own version: there is no program to find."""
        return Detected(ProviderInfo(id=self.id, version=version("pytest-skilleval"), simulated=True))

    def credentials(self) -> Mapping[str, str]:
        """Return nothing: no one is asked."""
        return {}

    def skill_root(self, home: Path) -> Path | None:
        """Return the folder that most agents share."""
        return home / ".agents" / "skills"

    def prepare(self, ask: Ask) -> Launch | None:
        """Return the script's command, or None when nothing is to be run.

        The script stays where it lies (it may read files beside it), so its folder is named as one that is read.

        Raises:
            UserMistake: The script that the case names is gone.
        """
        act = self.act(ask)
        if act.script is None:
            return Launch(("sh", "-c", 'sleep "$1"', "sh", f"{act.sleep:g}")) if act.sleep else None
        if not act.script.is_file():
            raise UserMistake(f"{ask.case.path}: {act.script} is not a file: correct `solution` or `stub.failure`")
        command = (*_interpreter(act.script), str(act.script))
        if act.sleep:
            command = ("sh", "-c", 'sleep "$1" && shift && exec "$@"', "sh", f"{act.sleep:g}", *command)
        return Launch(command, reads=(act.script.parent,))

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:
        """Return the act as a transcript.

        A script that ended with status 0 is reported as the commands it consists of, one tool call each. Another status
        is the agent's own failure, not an error: it finished, and the checks look at what it left.
        """
        act = self.act(ask)
        tokens = None if act.tokens is None else Tokens(output=act.tokens)
        if output is not None and (error := ended_badly(output, ask.budget.timeout)) is not None:
            return Answer(Transcript(tokens=tokens), error)
        calls: tuple[ToolCall, ...] = ()
        text = act.answer
        if output is not None and act.script is not None:
            if output.exit_status == 0:
                calls = _calls(act.script)
            else:
                text = f"{act.script.name} ended with exit status {output.exit_status}"
        uses: tuple[SkillUse, ...] = ()
        if act.skill is not None:
            uses = (SkillUse(name=act.skill, how="tool", position=0, evidence=f"simulated by {self.id}"),)
        transcript = Transcript(
            final_text=text,
            tool_calls=calls,
            skills_used=uses,
            skills_visible=tuple(sorted(skill.name for skill in ask.skills)),
            finished=True,
            tokens=tokens,
        )
        return Answer(transcript)


class Stub(_Simulated):
    """Succeeds with the case's `solve_rate`, so that rates, intervals and verdicts look like those of a real agent.

    The draw comes from the seed and the work item's key alone: serial and parallel runs are equal. Where skills are
    installed, a success uses the case's skill and a failure none; where none should be used, a failure uses one.
    """

    id = "stub"

    def act(self, ask: Ask) -> _Act:
        """Draw the trial."""
        draw = random.Random(f"{self.settings.seed}:{ask.id.key}")  # noqa: S311 - a simulation, and it must repeat
        spec, stub = ask.case.spec, ask.case.spec.stub
        rates = stub.solve_rate
        name = ask.condition.name
        own = DEFAULT_RATE if not isinstance(rates, dict) else rates.get(name.removesuffix(BASE), DEFAULT_RATE)
        rate = rates.get(name, own) if isinstance(rates, dict) else rates
        solved = draw.random() < rate
        wrong = sorted(skill.name for skill in ask.skills)
        if ask.case.skill is not None:
            skill = _installed(ask.case.skill, ask.skills) if solved else None
        else:
            skill = draw.choice(wrong) if wrong and not solved else None
        return _Act(
            script=_beside(ask, spec.solution if solved else stub.failure),
            answer=spec.answer if solved else stub.failure_answer,
            skill=skill,
            sleep=stub.sleep,
            tokens=stub.tokens,
        )


class Oracle(_Simulated):
    """Always runs the solution: a case that fails for it is broken."""

    id = "oracle"

    def act(self, ask: Ask) -> _Act:
        """Solve the case, with its skill where that is installed."""
        spec = ask.case.spec
        return _Act(_beside(ask, spec.solution), spec.answer, _installed(ask.case.skill, ask.skills))


class Noop(_Simulated):
    """Never does anything: a check that passes for it measures nothing."""

    id = "noop"

    def act(self, ask: Ask) -> _Act:  # noqa: ARG002 - that is the point of it
        """Do nothing, whatever is asked."""
        return _Act(script=None, answer="", skill=None)


def _beside(ask: Ask, relative: str | None) -> Path | None:
    return None if relative is None else (ask.case.folder / relative).absolute()


def _installed(name: str | None, skills: tuple[Skill, ...]) -> str | None:
    return name if any(skill.name == name for skill in skills) else None


def _calls(script: Path) -> tuple[ToolCall, ...]:
    shell = script.suffix != ".py"
    commands = commands_in(script.read_text("utf-8", "replace"), shell=shell)
    return tuple(ToolCall(name="sh" if shell else "python", command=command, status="ok") for command in commands)


def _interpreter(script: Path) -> tuple[str, ...]:
    return (sys.executable,) if script.suffix == ".py" else ("sh",)
