"""What an agent did, in order, and whether it holds the steps of a workflow.

What counts is what the agent did: the commands of its tool calls, the paths that it wrote, then its final answer. The
prompt, the skill's text, the output of tools and the content of files that it only read satisfy nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pytest_skilleval.casespec import Lane, WorkflowStep
from pytest_skilleval.records import ToolCall, Transcript

from .negation import is_negated
from .patterns import TEXT_CHARS, Hit, search, search_all

__all__ = ["Deeds", "StepResult", "WorkflowResult", "follow"]

ANSWER_CHARS = 200_000
COMMAND_CHARS = 50_000


@dataclass(frozen=True)
class Deeds:
    """What an agent did, as one text in the order of doing, one deed below the other."""

    text: str
    answer_start: int
    """Offset where the final answer begins."""
    cut: bool = False
    """Whether something had to be left out, because there was too much of it."""

    @classmethod
    def of(cls, transcript: Transcript, lane: Lane) -> Deeds:
        """Collect what counts in a lane: in the prompt lane only the answer is a plan."""
        answer = transcript.final_text[:ANSWER_CHARS]
        cut = len(transcript.final_text) > ANSWER_CHARS
        pieces: list[str] = []
        room = TEXT_CHARS - len(answer)
        for call in () if lane is Lane.PROMPT else transcript.tool_calls:
            if call.status == "denied":
                continue
            piece = deed(call)
            cut = cut or len(piece) > min(COMMAND_CHARS, room)
            piece = piece[: min(COMMAND_CHARS, room)]
            room -= len(piece) + 1
            if piece:
                pieces.append(piece)
            if room <= 0:
                break
        done = "".join(f"{piece}\n" for piece in pieces)
        return cls(done + answer, len(done), cut)

    @property
    def nothing(self) -> bool:
        """Whether the agent neither did nor said anything."""
        return not self.text.strip()

    def in_answer(self, offset: int) -> bool:
        """Return whether an offset lies in the final answer."""
        return offset >= self.answer_start


def deed(call: ToolCall) -> str:
    """Return the text of one tool call: its command, and the path that it wrote."""
    if call.path and not call.reads_only and call.path not in call.command:
        return f"{call.command}\n{call.path}" if call.command else call.path
    return call.command or (call.path or "")


class StepResult(NamedTuple):
    """Whether one step was done, and why."""

    step: WorkflowStep
    done: bool
    reason: str


class WorkflowResult(NamedTuple):
    """All steps of a workflow."""

    steps: tuple[StepResult, ...]
    share: float | None
    """Weight of the steps done among all; None without steps."""
    holds: bool
    """Whether every required step was done."""


def follow(steps: tuple[WorkflowStep, ...], deeds: Deeds) -> WorkflowResult:
    """Look for each step in what was done.

    A step happens when the last of its `must` patterns has first matched. Its `never` patterns must not match, after
    the steps it names if it names some; a denial in the answer ("I did not push") is no match.

    Raises:
        TrialFault: A pattern runs out of time.
    """
    happened = {step.id: _happens(step, deeds) for step in steps}
    results = tuple(_judge(step, deeds, happened) for step in steps)
    total = sum(result.step.weight for result in results)
    share = sum(result.step.weight for result in results if result.done) / total if total > 0 else None
    return WorkflowResult(results, share, all(result.done for result in results if result.step.required))


class _Event(NamedTuple):
    """When a step happened, or what of it did not."""

    position: int | None
    missing: str | None


def _happens(step: WorkflowStep, deeds: Deeds) -> _Event:
    last = -1
    for pattern in step.must:
        hit = search(pattern, deeds.text)
        if hit is None:
            return _Event(None, pattern)
        last = max(last, hit.start)
    return _Event(last if step.must else None, None)


def _judge(step: WorkflowStep, deeds: Deeds, happened: Mapping[str, _Event]) -> StepResult:
    cut = " (only the first part was looked at)" if deeds.cut else ""
    position, missing = happened[step.id]
    if missing is not None:
        return StepResult(step, done=False, reason=f"nothing that was done matches {missing!r}{cut}")
    earlier = {name: happened[name].position if name in happened else None for name in step.after}
    for name, before in earlier.items() if position is not None else ():
        if before is None:
            return StepResult(step, done=False, reason=f"step {name}, which must come first, was not done{cut}")
        if position is not None and before >= position:
            return StepResult(step, done=False, reason=f"done before step {name}")
    if None in earlier.values():
        return StepResult(step, done=True, reason="the step after which it must not happen was not done")
    start = max((place for place in earlier.values() if place is not None), default=0)
    for pattern in step.never:
        hit = _forbidden(pattern, deeds, start)
        if hit:
            return StepResult(step, done=False, reason=f"must never happen, and did: {hit.line!r}")
    return StepResult(step, done=True, reason=f"done{cut}" if step.must else f"did not happen{cut}")


def _forbidden(pattern: str, deeds: Deeds, start: int) -> Hit | None:
    for hit in search_all(pattern, deeds.text):
        denied = deeds.in_answer(hit.start) and is_negated(deeds.text, hit.start, hit.end)
        if hit.start >= start and not denied:
            return hit
    return None
