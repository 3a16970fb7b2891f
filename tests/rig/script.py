"""What the scripted model answers: a function from a question to a reply.

A script keeps no place of its own. How far a conversation has come is read from the conversation, so one server can hold
any number of them at once, in any order.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Wire = Literal["anthropic", "responses", "chat"]


@dataclass(frozen=True)
class Question:
    """A request for the next turn of a conversation."""

    wire: Wire
    body: dict[str, Any]
    headers: dict[str, str]
    conversation: str
    turn: int
    """Answers that the model has given in this conversation."""
    tries: int
    """Requests for this turn before this one."""

    @property
    def text(self) -> str:
        """Every string of the request: what a model would read."""
        return "\n".join(_strings(self.body))

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        """Name to definition of each tool that is offered."""
        found: dict[str, dict[str, Any]] = {}
        offered = list(self.body.get("tools") or [])
        for item in self.body.get("input") or []:
            # Newer codex models get their tools as an item of the input, in namespaces.
            if isinstance(item, dict) and item.get("type") == "additional_tools":
                offered += [inner for space in item["tools"] for inner in _members(space)]
        for tool in offered:
            definition = tool.get("function", tool) if self.wire == "chat" else tool
            found[definition.get("name") or definition.get("type")] = definition
        return found


@dataclass(frozen=True)
class Call:
    """A tool call, in the words of the agent that is to run it."""

    name: str
    given: dict[str, Any] | str
    namespace: str | None = None


@dataclass(frozen=True)
class Say:
    """An answer with text, tool calls, or both."""

    text: str = ""
    calls: tuple[Callable[[Question], Call] | Call, ...] = ()
    input: int = 100
    cached: int = 0
    output: int = 10
    stop: str | None = None
    delay: float = 0.0

    def resolved(self, question: Question) -> Say:
        """Return it with its calls in the words of the agent that asks."""
        return replace(self, calls=tuple(call if isinstance(call, Call) else call(question) for call in self.calls))


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    message: str = "scripted error"
    kind: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """Silence until the client leaves, the time is up or the server stops."""

    seconds: float = 600.0


@dataclass(frozen=True)
class Cut:
    """Half an answer, then the connection is closed."""

    text: str = "This answer is going to be cut in the middle of its stream."


Reply = Say | Fail | Hang | Cut
Script = Callable[[Question], Reply]


def by_turn(*replies: Reply | tuple[Reply, ...]) -> Script:
    """Answer each turn of every conversation in order; the last reply goes on for ever.

    A tuple is one turn that is asked for several times: its first reply, then its second, and so on.
    """

    def answer(question: Question) -> Reply:
        reply = replies[min(question.turn, len(replies) - 1)]
        return reply[min(question.tries, len(reply) - 1)] if isinstance(reply, tuple) else reply

    return answer


def shell(command: str) -> Callable[[Question], Call]:
    """Call whatever tool of the agent runs a command line."""

    def call(question: Question) -> Call:
        tools = question.tools
        if "Bash" in tools:
            return Call("Bash", {"command": command, "description": "scripted"})
        for name, key in (("exec_command", "cmd"), ("shell_command", "command"), ("bash", "command")):
            if name in tools:
                return Call(name, {key: command})
        if "exec" in tools:
            return Call("exec", f"text(await tools.exec_command({json.dumps({'cmd': command})}));")
        raise LookupError(f"no tool for a command among {sorted(tools)}")

    return call


def load(skill: str) -> Callable[[Question], Call]:
    """Load a skill: with the agent's own tool, else by reading the file that the request names."""

    def call(question: Question) -> Call:
        if "Skill" in question.tools:
            return Call("Skill", {"skill": skill})
        listed = re.search(rf"^- {re.escape(skill)}: .*\(file: ([^)]+)\)", question.text, re.MULTILINE)
        if listed is None:
            raise LookupError(f"the request lists no skill {skill!r}")
        path = listed[1]
        for alias, root in re.findall(r"`(r\d+)` = `([^`]+)`", question.text):
            path = re.sub(rf"^{alias}/", f"{root}/", path)
        return shell(f"cat {shlex.quote(path)}")(question)

    return call


def _members(tool: dict[str, Any]) -> list[dict[str, Any]]:
    if tool.get("type") != "namespace":
        return [tool]
    return [{**inner, "namespace": tool.get("name")} for inner in tool.get("tools") or []]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
