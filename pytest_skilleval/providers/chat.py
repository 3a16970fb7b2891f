"""Any OpenAI-compatible chat endpoint, for the prompt lane: it can answer, and load a skill, but not act."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import Field

import pytest_skilleval
from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import ErrorClass, TrialFault, UserMistake
from pytest_skilleval.frozen import Frozen
from pytest_skilleval.model import Case
from pytest_skilleval.records import ProviderInfo, Tokens

from .base import Answer, Ask, Detected, Launch, ProcessOutput, ProviderSettings
from .closing import Found, close, spoken_error
from .draft import Call, Draft
from .program import read_options
from .stream import Stream, at, integer, number, text_of

__all__ = ["Chat", "ChatOptions"]

TURNS = 4
"""Requests of one trial, where the case sets no budget: a skill or two, and the answer."""


class ChatOptions(Frozen):
    """`[tool.skilleval.providers.chat]`."""

    base_url: str | None = None
    """The endpoint, up to and with `/v1`; OPENAI_BASE_URL by default, else OpenAI's own."""
    key: str = "OPENAI_API_KEY"
    """The variable that holds the key."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Further fields of each request, such as `temperature`."""


class Chat:
    """A chat endpoint.

    Skills that are installed are offered by name and description with a tool that loads their text, the way agents do
    it; a load is evidence of a choice. A preloaded skill stands in the system text.
    """

    id = "chat"
    simulated = False
    paid = True

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self.options = read_options(ChatOptions, "chat", settings.options)

    @property
    def _url(self) -> str | None:
        return self.options.base_url or self.settings.environ.get("OPENAI_BASE_URL")

    def detect(self) -> Detected:
        """Find the package and check that a model and a key are named.

        Raises:
            UserMistake: Something is missing.
        """
        try:
            installed = version("openai")
        except PackageNotFoundError:
            raise UserMistake("chat: the openai package is missing; pip install 'pytest-skilleval[chat]'") from None
        chosen = self.settings
        if chosen.model is None:
            raise UserMistake("chat: no model is named; add --skilleval-model MODEL")
        if not self.credentials() and self._url is None:
            raise UserMistake(
                f"chat: {self.options.key} is not set; set it, or name another variable in "
                "[tool.skilleval.providers.chat] key"
            )
        info = ProviderInfo(
            id=self.id, version=f"openai {installed}", model=chosen.model, effort=chosen.effort, path=self._url
        )
        return Detected(info)

    def credentials(self) -> Mapping[str, str]:
        """Return the key."""
        found = self.settings.environ.get(self.options.key)
        return {self.options.key: found} if found else {}

    def skill_root(self, home: Path) -> Path | None:
        """Return a folder that is never read: skills reach the model through the tool."""
        return home / ".agents" / "skills"

    def objection(self, case: Case) -> str | None:
        """Object to lanes in which something has to be done."""
        if case.lane is Lane.PROMPT:
            return None
        return (
            f"{case.path}:{case.line}: chat can only answer, and lane {case.lane.value} needs an agent; "
            "add --skilleval-lane prompt"
        )

    def prepare(self, ask: Ask) -> Launch:
        """Write the conversation and return the command that holds it."""
        if (objection := self.objection(ask.case)) is not None:
            raise TrialFault(ErrorClass.SETUP, objection)
        messages = [{"role": "system", "content": ask.system}] if ask.system else []
        conversation = {
            "model": self.settings.model,
            "effort": self.settings.effort,
            "messages": [*messages, {"role": "user", "content": ask.prompt}],
            "skills": [
                {"name": skill.name, "description": skill.description, "body": skill.body} for skill in ask.skills
            ],
            "turns": ask.budget.steps or TURNS,
            "timeout": ask.budget.timeout,
            "key": self.options.key,
            "base_url": self._url,
            "parameters": self.options.parameters,
        }
        prompt = ask.scratch / "conversation.json"
        prompt.write_text(json.dumps(conversation), encoding="utf-8")
        # -I: a file of the workspace must not be imported in place of a module.
        return Launch(
            argv=(sys.executable, "-I", "-m", "pytest_skilleval.providers.chatchild"),
            env=dict(self.credentials()),
            stdin=prompt,
            secrets=tuple(self.credentials().values()),
            result_markers=(b'"type":"end"',),
            reads=_python_folders(),
        )

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:
        """Turn the conversation's events into an answer."""
        if output is None:
            raise TrialFault(ErrorClass.INTERNAL, "chat always runs a command; none was run")
        stream, draft = Stream(output.stdout), Draft()
        draft.visible = tuple(sorted(skill.name for skill in ask.skills))
        found = Found()
        for event in stream:
            found = _event(event, draft, found)
        return close(ask, output, stream, draft, found)


def _event(event: dict[str, Any], draft: Draft, found: Found) -> Found:
    match event.get("type"):
        case "turn":
            draft.turns = (draft.turns or 0) + 1
            draft.model = text_of(event.get("model")) or draft.model
            draft.session_id = text_of(event.get("id")) or draft.session_id
            draft.tokens = _added(draft.tokens, event.get("usage"))
        case "skill":
            name, known = text_of(event.get("name")), event.get("known") is True
            call = draft.call(Call(name="load_skill", command=name, reads_only=True))
            draft.done(call, "ok" if known else "error")
            if known:
                draft.use(name, "tool", call, f"load_skill {name}")
        case "answer":
            draft.final_text = text_of(event.get("text"))
        case "end":
            return Found(good=True)
        case "error":
            word = event.get("class")
            error = spoken_error(text_of(event.get("message")), integer(event.get("status")), ErrorClass.NETWORK)
            update: dict[str, object] = {"retry_after": number(event.get("retry_after")) or error.retry_after}
            if isinstance(word, str) and word in set(ErrorClass):
                update["error_class"] = ErrorClass(word)
            return Found(error=error.model_copy(update=update))
    return found


def _added(tokens: Tokens | None, usage: object) -> Tokens | None:
    if not isinstance(usage, dict):
        return tokens
    before = tokens or Tokens()

    def total(old: int | None, *path: str) -> int | None:
        new = integer(at(usage, *path))
        return old if new is None else (old or 0) + new

    return Tokens(
        input=total(before.input, "prompt_tokens"),
        cached=total(before.cached, "prompt_tokens_details", "cached_tokens"),
        output=total(before.output, "completion_tokens"),
        reasoning=total(before.reasoning, "completion_tokens_details", "reasoning_tokens"),
    )


def _python_folders() -> tuple[Path, ...]:
    package = Path(os.fspath(pytest_skilleval.__file__)).parents[1]
    return tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), package)))
