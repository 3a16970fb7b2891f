"""The streams of Codex, event by event: `exec --json` on stdout, and the session file in its home."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.model import Skill
from pytest_skilleval.records import Tokens

from .base import Ask
from .closing import Found, spoken_error
from .draft import Call, Draft
from .loads import known_skills, read_by_command
from .stream import at, compact, integer, items, text_of

__all__ = ["Reader", "Rollout"]

_LISTED = re.compile(r"^- (.+?): .*\(file: [^)]*\)\s*$", re.MULTILINE)
_IN_SCRIPT = re.compile(r"""["']?\bcmd["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)""")
_EXIT_CODE = re.compile(r'(?:exited with code |"exit_code":\s*)(-?\d+)')
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})


class Reader:
    """One pass over stdout.

    Args:
        ask: What was asked.
        draft: What is filled.
    """

    def __init__(self, ask: Ask, draft: Draft) -> None:
        self._draft = draft
        self._skills = known_skills(ask)
        self._started: dict[str, Call] = {}
        self._text = ""
        self._turns = 0
        self._good = False
        self._failed: str | None = None
        self._retrying = ""

    def read(self, event: dict[str, Any]) -> None:
        """Take the next event; types that are not known are nothing."""
        match event.get("type"):
            case "thread.started":
                self._draft.session_id = text_of(event.get("thread_id")) or None
            case "item.started":
                self._item(event.get("item"), finished=False)
            case "item.completed":
                self._item(event.get("item"), finished=True)
            case "turn.completed":
                self._good, self._failed = True, None
                self._draft.tokens = _tokens(event.get("usage"))
            case "turn.failed":
                self._good, self._failed = False, text_of(at(event, "error", "message")) or "turn.failed"
            case "error":
                # Not fatal: it says so of each retry, and turn.failed follows when it is the last.
                self._retrying = text_of(event.get("message"))
                if "econnecting" in self._retrying:
                    self._draft.attempts.append(f"codex: {self._retrying[:300]}")

    def _item(self, item: object, *, finished: bool) -> None:
        kind, key = text_of(at(item, "type")), text_of(at(item, "id"))
        if kind not in ("error", "reasoning"):
            self._retrying = ""
        if kind == "agent_message" and finished:
            self._text = text_of(at(item, "text"))
            self._turns += 1
        elif kind == "file_change":
            self._changes(item, finished=finished)
        elif kind in ("command_execution", "mcp_tool_call", "web_search"):
            call = self._started.get(key)
            if call is None:
                call = self._started[key] = self._draft.call(_call(kind, item))
                self._turns += 1
            if finished:
                self._finish(call, item)

    def _changes(self, item: object, *, finished: bool) -> None:
        if not finished:
            return
        ok = at(item, "status") == "completed"
        for change in items(at(item, "changes")):
            call = Call(name="file_change", command=compact(change), path=text_of(at(change, "path")) or None)
            self._draft.done(self._draft.call(call), "ok" if ok else "error")
        self._turns += 1

    def _finish(self, call: Call, item: object) -> None:
        status, code = text_of(at(item, "status")), at(item, "exit_code")
        exit_status = code if isinstance(code, int) else None
        output = text_of(at(item, "aggregated_output")) or text_of(at(item, "result", "content"))
        if status == "declined":
            self._draft.done(call, "denied", output, exit_status)
            return
        ok = status == "completed" and not exit_status
        self._draft.done(call, "ok" if ok else "error", output, exit_status)
        _loads(self._draft, call, self._skills)

    def ended(self) -> Found:
        """Return how the stream ended."""
        draft = self._draft
        draft.turns = self._turns or None
        if self._good:
            draft.final_text = self._text
            return Found(good=True)
        if self._failed is not None:
            return Found(error=spoken_error(self._failed))
        if self._retrying:
            return Found(waiting=spoken_error(self._retrying, default=ErrorClass.NETWORK))
        return Found()


class Rollout:
    """One pass over a session file, which holds all commands: stdout may lose some.

    https://github.com/openai/codex/issues/47433

    Args:
        ask: What was asked.
        draft: What stdout told; lost commands are put where they belong.
    """

    def __init__(self, ask: Ask, draft: Draft) -> None:
        self._draft = draft
        self._skills = known_skills(ask)
        self._told = [call for call in draft.calls if call.name == "command_execution"]
        self._position = 0
        self._lost: dict[str, Call] = {}
        self._answers = 0
        self._listed: set[str] = set(draft.visible or ())

    def read(self, event: dict[str, Any]) -> None:
        """Take the next event; types that are not known are nothing."""
        draft, payload = self._draft, event.get("payload")
        match event.get("type"):
            case "session_meta":
                draft.version = text_of(at(payload, "cli_version")) or draft.version
            case "turn_context":
                draft.model = text_of(at(payload, "model")) or draft.model
            case "token_usage_record":
                self._answers += 1
            case "response_item":
                self._item(payload)

    def _item(self, payload: object) -> None:
        match at(payload, "type"):
            case "message" if at(payload, "role") == "developer":
                self._listed.update(_listing(text_of(at(payload, "content"))))
            case "function_call":
                given = _object(text_of(at(payload, "arguments")))
                self._command(at(given, "cmd") or at(given, "command"), payload)
            case "custom_tool_call" if at(payload, "name") == "exec":
                # Newer models run commands from JavaScript; a command that is put together there is not found.
                for literal in _IN_SCRIPT.findall(text_of(at(payload, "input"))):
                    self._command(_string(literal), payload)
            case "function_call_output" | "custom_tool_call_output":
                self._output(text_of(at(payload, "call_id")), text_of(at(payload, "output")))

    def _command(self, given: object, payload: object) -> None:
        command = _unwrapped(given) if isinstance(given, list) else text_of(given)
        if not command or command.startswith("apply_patch"):  # stdout tells a patch as its files
            return
        told = next((call for call in self._told if call.command == command), None)
        if told is not None:
            self._told.remove(told)
            self._position = self._draft.calls.index(told) + 1
            return
        call = self._draft.call(Call(name="command_execution", command=command), self._position)
        self._position += 1
        self._lost[text_of(at(payload, "call_id"))] = call

    def _output(self, key: str, output: str) -> None:
        call = self._lost.pop(key, None)
        if call is None:
            return
        code = _EXIT_CODE.search(output)
        status = int(code[1]) if code else None
        self._draft.done(call, "ok" if status == 0 else "error", output.partition("Output:\n")[2] or output, status)
        _loads(self._draft, call, self._skills)

    def ended(self) -> None:
        """Note what only the whole file tells."""
        self._draft.visible = tuple(sorted(self._listed))
        self._draft.turns = self._answers or self._draft.turns


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _string(literal: str) -> str:
    value = _object(f'"{literal[1:-1]}"' if literal[0] != '"' else literal)
    return value if isinstance(value, str) else literal[1:-1]


def _listing(text: str) -> list[str]:
    block = re.search(r"<skills_instructions>(.*?)</skills_instructions>", text, re.DOTALL)
    return _LISTED.findall(block[1]) if block else []


def _loads(draft: Draft, call: Call, skills: tuple[Skill, ...]) -> None:
    if call.status == "ok":
        for name in read_by_command(call.command, call.output, skills):
            draft.use(name, "read", call, call.command)


def _call(kind: str, item: object) -> Call:
    match kind:
        case "command_execution":
            return Call(name=kind, command=_command(text_of(at(item, "command"))))
        case "web_search":
            return Call(name=kind, command=text_of(at(item, "query")), reads_only=True)
    name = f"{text_of(at(item, 'server'))}.{text_of(at(item, 'tool'))}"
    return Call(name=name, command=compact(at(item, "arguments")))


def _command(line: str) -> str:
    """Return what the model asked for, without the shell that codex puts around it."""
    try:
        return _unwrapped(shlex.split(line)) if line.startswith("/") else line
    except ValueError:
        return line


def _unwrapped(argv: list[Any]) -> str:
    parts = [str(part) for part in argv]
    if len(parts) == 3 and parts[0].rpartition("/")[2] in _SHELLS and parts[1] in ("-c", "-lc"):
        return parts[2]
    return shlex.join(parts)


def _tokens(usage: object) -> Tokens | None:
    """Return the use: input includes what came from the cache, output includes reasoning."""
    if not isinstance(usage, dict):
        return None
    return Tokens(
        input=integer(usage.get("input_tokens")),
        cached=integer(usage.get("cached_input_tokens")),
        output=integer(usage.get("output_tokens")),
        reasoning=integer(usage.get("reasoning_output_tokens")),
    )
