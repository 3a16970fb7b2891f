"""What a declared provider says of its agent: `[tool.skilleval.providers.NAME]` of `command:NAME`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from pytest_skilleval.casespec import Regex
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.frozen import Frozen

__all__ = ["CommandSpec", "Fields", "Pattern", "ToolEvents", "UsageEvents", "merged"]

Scalar = str | int | float | bool | None


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return pattern


Pattern = Annotated[Regex, AfterValidator(_compiles)]
Fields = dict[str, Scalar]
"""Dotted path to the value that an event must have there."""
Argument = str | tuple[str, ...]
"""One argument, or several that are left out together when a variable in them is empty."""


class TextEvents(Frozen):
    """Where the answer is."""

    match: Fields = Field(default_factory=dict)
    path: str
    join: Literal["last", "concat"] = "last"
    """The last such text, or all of them put together."""
    restart: Fields | None = None
    """An event that begins the answer anew, such as a tool's result."""


class ValueEvents(Frozen):
    """Where a single value is."""

    match: Fields = Field(default_factory=dict)
    path: str


class UsageEvents(Frozen):
    """Where tokens and cost are, and how they are counted."""

    match: Fields = Field(default_factory=dict)
    add: bool = False
    """Whether each event counts for itself (else the last one counts for all)."""
    input: str | None = None
    cached: str | None = None
    output: str | None = None
    reasoning: str | None = None
    cost: str | None = None
    input_includes_cached: bool = True
    output_includes_reasoning: bool = True


class ToolEvents(Frozen):
    """Where tool calls are."""

    match: Fields = Field(default_factory=dict)
    name: str
    input: str | None = None
    """The tool's input; its `command`, else all of it as JSON, is what patterns are matched with."""
    id: str | None = None
    result: Fields | None = None
    """The event that brings a call's result, found by `id`; by default the call's own event has it."""
    status: str | None = None
    ok: tuple[str, ...] = ("completed", "success")
    output: str | None = None
    exit_status: str | None = None


class ErrorEvents(Frozen):
    """Where errors are."""

    match: Fields
    message: str
    status: str | None = None
    """An HTTP status."""


class ErrorWords(Frozen):
    """What an error sentence means, where the built-in table does not know."""

    match: Pattern
    error_class: ErrorClass = Field(alias="class")


class SkillTool(Frozen):
    """A tool of the agent that loads a skill."""

    tool: Pattern
    name: str = "name"
    """The key of its input that names the skill."""


class ParseSpec(Frozen):
    """How the stream is read."""

    format: Literal["jsonl", "text"] = "jsonl"
    """JSON lines, or plain text: then all of stdout is the answer, and exit status 0 its end."""
    success: Fields | None = None
    """The terminal event of a good ending."""
    result_marker: tuple[str, ...] = ()
    """Texts that the line of the terminal event holds: an agent that stays alive after it is ended."""
    text: TextEvents | None = None
    session: ValueEvents | None = None
    model: ValueEvents | None = None
    usage: UsageEvents | None = None
    tools: ToolEvents | None = None
    turn: Fields | None = None
    """An event of which each model answer has one."""
    errors: tuple[ErrorEvents, ...] = ()
    words: tuple[ErrorWords, ...] = ()
    exit_codes: dict[int, ErrorClass] = Field(default_factory=dict)
    skill_tools: tuple[SkillTool, ...] = ()


class CommandSpec(Frozen):
    """A whole declared provider."""

    preset: str | None = None
    """`opencode` or `gemini`, whose keys these go over; a provider of such a name has it without saying so."""
    command: Annotated[tuple[Argument, ...], Field(min_length=1)]
    """Program and arguments, with variables in braces."""
    plan_command: tuple[Argument, ...] | None = None
    """The same for the prompt lane, where the agent has a mode that changes nothing."""
    version_command: tuple[str, ...] | None = None
    """What prints the version; `PROGRAM --version` by default."""
    needs: dict[str, str] = Field(default_factory=dict)
    """Other programs that should be on PATH, and what happens without them; a missing one is a warning."""
    tested: tuple[str, ...] = ()
    """Versions that this was tried with; another one is a warning."""
    prompt_via: Literal["stdin", "arg", "file"] = "stdin"
    """stdin, or `{prompt}` or `{prompt_file}` in the command."""
    preload_via: Literal["prompt", "file"] = "prompt"
    """In front of the prompt, or `{system_prompt_file}` in the command."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables, with variables in braces."""
    keys: tuple[str, ...] = ()
    """Names of secrets that pass from the user's environment; one of them must be set."""
    pass_env: tuple[str, ...] = ()
    """Further names that pass."""
    files: dict[str, str] = Field(default_factory=dict)
    """Path below the home to text, with variables in braces."""
    skill_root: str | None = "{home}/.agents/skills"
    """Where the agent discovers skills; null when it discovers none."""
    paid: bool = True
    """Whether a question costs money or quota."""
    base_url: str | None = None
    """Where the model is asked: `{base_url}`."""
    parse: ParseSpec = ParseSpec()


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return one table laid over another: tables are merged key by key, everything else is replaced."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
