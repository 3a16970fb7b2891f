"""A transcript while a stream is being read: calls that wait for their results, within bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.records import SkillUse, Tokens, ToolCall, Transcript, TrialError

__all__ = ["Call", "Draft"]

CALLS = 10_000
"""Tool calls that are kept; an agent that makes more has run away, and that is its error."""
COMMAND_CHARS = 20_000
OUTPUT_CHARS = 20_000
OUTPUTS_CHARS = 4_000_000
"""Characters of all outputs together; later outputs are dropped, never later calls."""


@dataclass
class Call:
    """A tool call that may still be waiting for its result."""

    name: str
    command: str
    path: str | None = None
    reads_only: bool = False
    output: str = ""
    exit_status: int | None = None
    status: Literal["ok", "error", "denied", "unknown"] = "unknown"

    def done(self, status: Literal["ok", "error", "denied"], output: str, exit_status: int | None = None) -> None:
        """Note the result."""
        self.status, self.output, self.exit_status = status, output, exit_status


class Use(NamedTuple):
    """A skill that was loaded, and by which call."""

    name: str
    how: Literal["tool", "read", "choice", "forced"]
    call: Call | None
    evidence: str


@dataclass
class Draft:
    """What is known so far."""

    final_text: str = ""
    calls: list[Call] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    visible: tuple[str, ...] | None = None
    session_id: str | None = None
    model: str | None = None
    version: str | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None
    turns: int | None = None
    attempts: list[str] = field(default_factory=list)
    dropped: int = 0
    outputs: int = 0

    def call(self, call: Call, position: int | None = None) -> Call:
        """Add a tool call, last unless a position is given."""
        call.command = call.command[:COMMAND_CHARS]
        if len(self.calls) < CALLS:
            self.calls.insert(len(self.calls) if position is None else position, call)
        else:
            self.dropped += 1
        return call

    def done(
        self, call: Call, status: Literal["ok", "error", "denied"], output: str = "", exit_status: int | None = None
    ) -> None:
        """Note a call's result, its output cut to the bounds."""
        kept = output[: min(OUTPUT_CHARS, max(0, OUTPUTS_CHARS - self.outputs))]
        self.outputs += len(kept)
        call.done(status, kept, exit_status)

    def use(
        self, name: str, how: Literal["tool", "read", "choice", "forced"], call: Call | None, evidence: str
    ) -> None:
        """Note that a skill was loaded; the first evidence of each skill and way is kept."""
        if not any(use.name == name and use.how == how for use in self.uses):
            self.uses.append(Use(name, how, call, evidence[:500]))

    def ran_away(self) -> TrialError | None:
        """Return an error when there were more calls than can be kept: a check on what is missing would lie."""
        if not self.dropped:
            return None
        return TrialError(
            error_class=ErrorClass.DISK,
            message=f"{len(self.calls) + self.dropped} tool calls; at most {CALLS} can be kept and judged",
        )

    def transcript(self, *, finished: bool, unparsed: list[int]) -> Transcript:
        """Return what is known, as a transcript."""
        positions = {id(call): index for index, call in enumerate(self.calls)}
        uses = [
            SkillUse(
                name=use.name,
                how=use.how,
                position=positions.get(id(use.call), len(self.calls)),
                evidence=use.evidence,
            )
            for use in self.uses
        ]
        return Transcript(
            final_text=self.final_text,
            tool_calls=tuple(
                ToolCall(
                    name=call.name,
                    command=call.command,
                    output=call.output,
                    exit_status=call.exit_status,
                    status=call.status,
                    path=call.path,
                    reads_only=call.reads_only,
                )
                for call in self.calls
            ),
            skills_used=tuple(sorted(uses, key=lambda use: use.position)),
            skills_visible=self.visible,
            finished=finished,
            session_id=self.session_id,
            model=self.model,
            version=self.version,
            tokens=self.tokens,
            cost_usd=self.cost_usd,
            turns=self.turns,
            attempts=tuple(self.attempts[:100]),
            unparsed_lines=tuple(unparsed),
        )
