"""The stream of Claude Code, event by event: `--output-format stream-json`."""

from __future__ import annotations

from typing import Any

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.records import Tokens, TrialError

from .base import Ask
from .closing import Found, spoken_error
from .draft import Call, Draft
from .loads import known_skills, read_by_command, read_by_path
from .stream import at, compact, integer, items, number, text_of

__all__ = ["Reader"]

_READS = frozenset({"Read", "Glob", "Grep", "LS", "WebFetch", "WebSearch", "Skill", "NotebookRead", "ToolSearch"})

_SPOKEN: dict[str, ErrorClass] = {
    "authentication_failed": ErrorClass.AUTH,
    "oauth_org_not_allowed": ErrorClass.AUTH,
    "account_on_hold": ErrorClass.AUTH,
    "verification_required": ErrorClass.AUTH,
    "cloud_credential_error": ErrorClass.AUTH,
    "billing_error": ErrorClass.QUOTA,
    "rate_limit": ErrorClass.RATE_LIMIT,
    "overloaded": ErrorClass.OVERLOADED,
    "invalid_request": ErrorClass.BAD_REQUEST,
    "model_not_found": ErrorClass.MODEL_NOT_FOUND,
    "server_error": ErrorClass.SERVER_ERROR,
    "max_output_tokens": ErrorClass.CONTEXT_TOO_LONG,
}
"""The words of `assistant.error` and `api_retry.error`."""


class Reader:
    """One pass over a stream.

    Args:
        ask: What was asked.
        draft: What is filled.
    """

    def __init__(self, ask: Ask, draft: Draft) -> None:
        self._draft = draft
        self._skills = known_skills(ask)
        self._calls: dict[str, Call] = {}
        self._asked: dict[str, str] = {}
        """Id of a Skill call to the name it asked for."""
        self._turns: set[str] = set()
        self._last_text = ""
        self._synthetic = ""
        """The error word of the last message, when no model wrote it."""
        self._retrying: TrialError | None = None
        self._rejected = False
        self._result: dict[str, Any] | None = None

    def read(self, event: dict[str, Any]) -> None:
        """Take the next event; types that are not known are nothing."""
        match event.get("type"):
            case "system":
                self._system(event)
            case "assistant":
                self._assistant(event)
            case "user":
                self._user(event)
            case "rate_limit_event":
                self._rejected = at(event, "rate_limit_info", "status") == "rejected"
            case "result":
                self._result = event

    def _system(self, event: dict[str, Any]) -> None:
        draft = self._draft
        if event.get("subtype") == "init":
            draft.session_id = text_of(event.get("session_id")) or None
            draft.model = text_of(event.get("model")) or None
            draft.version = text_of(event.get("claude_code_version")) or None
            if isinstance(skills := event.get("skills"), list):
                draft.visible = tuple(sorted(name for name in skills if isinstance(name, str)))
        elif event.get("subtype") == "api_retry":
            status, word = integer(event.get("error_status")), text_of(event.get("error")) or "unknown"
            said = word if status is None else f"{word} (status {status})"
            draft.attempts.append(f"claude retry {event.get('attempt')}/{event.get('max_retries')}: {said}")
            error = spoken_error(said, status, ErrorClass.NETWORK)
            self._retrying = error.model_copy(
                update={
                    "error_class": _SPOKEN.get(word, error.error_class),
                    "message": f"claude was still retrying: {said}",
                }
            )

    def _assistant(self, event: dict[str, Any]) -> None:
        message = event.get("message")
        synthetic = at(message, "model") == "<synthetic>" or event.get("is_api_error_message") is True
        self._synthetic = (text_of(event.get("error")) or "unknown") if synthetic else ""
        if synthetic:
            return
        self._retrying = None
        blocks = items(at(message, "content"))
        if event.get("parent_tool_use_id") is None:  # else a sub-agent speaks
            self._turns.add(text_of(at(message, "id")))
            self._last_text = text_of([block for block in blocks if at(block, "type") == "text"]) or self._last_text
        for block in blocks:
            if at(block, "type") == "tool_use":
                self._tool_use(block)

    def _tool_use(self, block: dict[str, Any]) -> None:
        name, given = text_of(block.get("name")), block.get("input")
        paths = (at(given, key) for key in ("file_path", "notebook_path", "path"))
        call = Call(
            name=name,
            command=text_of(at(given, "command")) or compact(given),
            path=next((path for path in paths if isinstance(path, str)), None),
            reads_only=name in _READS,
        )
        self._calls[text_of(block.get("id"))] = self._draft.call(call)
        self._asked[text_of(block.get("id"))] = text_of(at(given, "skill"))
        self._last_text = ""

    def _user(self, event: dict[str, Any]) -> None:
        for block in items(at(event, "message", "content")):
            key = text_of(at(block, "tool_use_id"))
            if at(block, "type") != "tool_result" or key not in self._calls:
                continue
            call, failed = self._calls[key], block.get("is_error") is True
            self._draft.done(call, "error" if failed else "ok", text_of(block.get("content")))
            if not failed:
                self._loads(call, text_of(at(event, "tool_use_result", "commandName")) or self._asked[key])

    def _loads(self, call: Call, asked: str) -> None:
        if call.name == "Skill":
            self._draft.use(asked, "tool", call, f"Skill tool: {call.output}")
        elif call.name == "Read" and (read := read_by_path(call.path or "", self._skills)):
            self._draft.use(read, "read", call, f"Read of {call.path}")
        elif call.name == "Bash":
            for name in read_by_command(call.command, call.output, self._skills):
                self._draft.use(name, "read", call, f"Bash: {call.command}")

    def ended(self) -> Found:
        """Return how the stream ended: by its last result, since a sub-agent in the background makes two."""
        draft, result = self._draft, self._result
        draft.turns = len(self._turns) or None
        if result is None:
            return Found(waiting=self._retrying)
        for denial in items(result.get("permission_denials")):
            if (call := self._calls.get(text_of(at(denial, "tool_use_id")))) is not None:
                call.status = "denied"
        draft.cost_usd = number(result.get("total_cost_usd"))
        draft.tokens = _tokens(result)
        if self._bad(result):
            return Found(error=self._why(result))
        # Some versions leave `result` empty although the model answered.
        draft.final_text = text_of(result.get("result")) or self._last_text
        return Found(good=True)

    def _bad(self, result: dict[str, Any]) -> bool:
        flag = result.get("is_error")
        said_well = flag is False or (flag is None and result.get("subtype") == "success")
        silent = self._draft.tokens is None or not self._draft.tokens.output
        return not said_well or bool(self._synthetic) or (self._rejected and silent)

    def _why(self, result: dict[str, Any]) -> TrialError:
        text = text_of(result.get("result")) or "; ".join(map(str, items(result.get("errors"))))
        message = " ".join(text.split())[:500]
        match result.get("subtype"):
            case "error_max_turns" | "error_max_budget_usd":
                return TrialError(error_class=ErrorClass.MAX_TURNS, message=message)
            case "error_during_execution":
                return TrialError(error_class=ErrorClass.NO_RESULT, message=f"interrupted: {message}")
        if result.get("stop_reason") == "refusal":
            return TrialError(error_class=ErrorClass.REFUSAL, message=message)
        if result.get("terminal_reason") == "prompt_too_long":
            return TrialError(error_class=ErrorClass.CONTEXT_TOO_LONG, message=message)
        status = integer(result.get("api_error_status"))
        error = spoken_error(text, status, _SPOKEN.get(self._synthetic, ErrorClass.SERVER_ERROR))
        if self._rejected or self._synthetic == "billing_error":
            return error.model_copy(update={"error_class": ErrorClass.QUOTA})
        return error


def _tokens(result: dict[str, Any]) -> Tokens | None:
    """Add up all models: unlike `usage`, `modelUsage` of the last result holds the sub-agents' use too."""
    usage = result.get("modelUsage")
    models = list(usage.values()) if isinstance(usage, dict) else []

    def total(*names: str) -> int:
        return sum(integer(at(use, name)) or 0 for use in models for name in names)

    if not models:
        return None
    return Tokens(
        input=total("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"),
        cached=total("cacheReadInputTokens"),
        output=total("outputTokens"),
        reasoning=total("thinkingTokens")
        if any(isinstance(at(use, "thinkingTokens"), int) for use in models)
        else None,
    )
