"""The stream of a declared agent, read by its own declaration."""

from __future__ import annotations

import re
from typing import Any

from pytest_skilleval.records import Tokens, TrialError

from .base import Ask
from .closing import Found, spoken_error
from .commandspec import Fields, ParseSpec, ToolEvents, UsageEvents
from .draft import Call, Draft
from .loads import known_skills, read_by_command, read_by_path
from .stream import at, compact, integer, number, text_of

__all__ = ["Reader"]


class Reader:
    """One pass over a stream.

    Args:
        spec: How it is read.
        ask: What was asked.
        draft: What is filled.
    """

    def __init__(self, spec: ParseSpec, ask: Ask, draft: Draft) -> None:
        self._spec = spec
        self._draft = draft
        self._skills = known_skills(ask)
        self._text = ""
        self._good = False
        self._error: TrialError | None = None
        self._waiting: dict[str, tuple[Call, object]] = {}
        self._usage: list[Tokens] = []
        self._costs: list[float] = []

    def read(self, event: dict[str, Any]) -> None:
        """Take the next event; one that nothing matches is nothing."""
        spec, draft = self._spec, self._draft
        if spec.session is not None and draft.session_id is None and _matches(event, spec.session.match):
            draft.session_id = text_of(_dotted(event, spec.session.path)) or None
        if spec.model is not None and draft.model is None and _matches(event, spec.model.match):
            draft.model = text_of(_dotted(event, spec.model.path)) or None
        if spec.turn is not None and _matches(event, spec.turn):
            draft.turns = (draft.turns or 0) + 1
        if spec.tools is not None:
            self._tool(event, spec.tools)
        if spec.usage is not None and _matches(event, spec.usage.match):
            self._spent(event, spec.usage)
        self._words(event)
        self._ending(event)

    def _words(self, event: dict[str, Any]) -> None:
        text = self._spec.text
        if text is None:
            return
        if text.restart is not None and _matches(event, text.restart):
            self._text = ""
        if _matches(event, text.match) and (said := text_of(_dotted(event, text.path))):
            self._text = self._text + said if text.join == "concat" else said

    def _ending(self, event: dict[str, Any]) -> None:
        if self._spec.success is not None and _matches(event, self._spec.success):
            self._good, self._error = True, None
        for rule in self._spec.errors:
            if _matches(event, rule.match):
                status = integer(_dotted(event, rule.status)) if rule.status else None
                self._good = False
                self._error = self._spoken(text_of(_dotted(event, rule.message)) or compact(event), status)

    def _spoken(self, said: str, status: int | None) -> TrialError:
        error = spoken_error(said, status)
        own = next((rule.error_class for rule in self._spec.words if re.search(rule.match, said)), None)
        return error if own is None else error.model_copy(update={"error_class": own})

    def _tool(self, event: dict[str, Any], rule: ToolEvents) -> None:
        if _matches(event, rule.match):
            given = _dotted(event, rule.input) if rule.input else None
            paths = (at(given, key) for key in ("file_path", "filePath", "absolute_path", "path"))
            call = Call(
                name=text_of(_dotted(event, rule.name)),
                command=text_of(at(given, "command")) or compact(given),
                path=next((path for path in paths if isinstance(path, str)), None),
            )
            self._draft.call(call)
            if rule.result is None:
                self._result(event, rule, call, given)
            elif rule.id is not None:
                self._waiting[text_of(_dotted(event, rule.id))] = (call, given)
        if rule.result is not None and rule.id is not None and _matches(event, rule.result):
            call_and_input = self._waiting.pop(text_of(_dotted(event, rule.id)), None)
            if call_and_input is not None:
                self._result(event, rule, *call_and_input)

    def _result(self, event: dict[str, Any], rule: ToolEvents, call: Call, given: object) -> None:
        code = _dotted(event, rule.exit_status) if rule.exit_status else None
        exit_status = code if isinstance(code, int) else None
        told_ok = rule.status is None or text_of(_dotted(event, rule.status)) in rule.ok
        ok = told_ok and not exit_status
        output = text_of(_dotted(event, rule.output)) if rule.output else ""
        self._draft.done(call, "ok" if ok else "error", output, exit_status)
        if ok:
            self._loads(call, given)

    def _loads(self, call: Call, given: object) -> None:
        for rule in self._spec.skill_tools:
            if re.search(rule.tool, call.name) and (name := text_of(at(given, rule.name))):
                self._draft.use(name, "tool", call, f"{call.name}: {call.command}")
                return
        if call.path is not None and (read := read_by_path(call.path, self._skills)):
            self._draft.use(read, "read", call, f"{call.name} of {call.path}")
        for name in read_by_command(call.command, call.output, self._skills):
            self._draft.use(name, "read", call, call.command)

    def _spent(self, event: dict[str, Any], rule: UsageEvents) -> None:
        def count(path: str | None) -> int | None:
            return None if path is None else integer(_dotted(event, path))

        given, cached = count(rule.input), count(rule.cached)
        output, reasoning = count(rule.output), count(rule.reasoning)
        if given is not None and not rule.input_includes_cached:
            given += cached or 0
        if output is not None and not rule.output_includes_reasoning:
            output += reasoning or 0
        tokens = Tokens(input=given, cached=cached, output=output, reasoning=reasoning)
        self._usage = [*self._usage, tokens] if rule.add else [tokens]
        if rule.cost is not None and (cost := number(_dotted(event, rule.cost))) is not None:
            self._costs = [*self._costs, cost] if rule.add else [cost]

    def ended(self) -> Found:
        """Return how the stream ended."""
        draft = self._draft
        draft.tokens = _sum(self._usage)
        draft.cost_usd = sum(self._costs) if self._costs else None
        if self._good:
            draft.final_text = self._text
        return Found(good=self._good, error=self._error)


def _sum(usage: list[Tokens]) -> Tokens | None:
    if not usage:
        return None

    def total(name: str) -> int | None:
        known = [value for value in (getattr(use, name) for use in usage) if value is not None]
        return sum(known) if known else None

    return Tokens(input=total("input"), cached=total("cached"), output=total("output"), reasoning=total("reasoning"))


def _dotted(event: object, path: str) -> Any:
    return at(event, *path.split("."))


def _matches(event: dict[str, Any], fields: Fields) -> bool:
    return all(_dotted(event, path) == value for path, value in fields.items())
