"""The three wire formats: an answer as one JSON document, and as the events of a stream."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

from .script import Call, Fail, Question, Say

Event = tuple[str | None, dict[str, Any] | str]
"""Name, and data: JSON or the literal text of the last one."""

MODEL = "scripted-model"


def encode(question: Question, say: Say) -> tuple[dict[str, Any], list[Event]]:
    """Return an answer as a document, and the same as a stream."""
    calls = [call for call in say.resolved(question).calls if isinstance(call, Call)]
    encoder = {"anthropic": _anthropic, "responses": _responses, "chat": _chat}[question.wire]
    return encoder(question, say, calls)


def encode_error(question: Question, fail: Fail) -> dict[str, Any]:
    """Return an error's document."""
    if question.wire == "anthropic":
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            403: "permission_error",
            404: "not_found_error",
        }
        kinds |= {429: "rate_limit_error", 529: "overloaded_error"}
        kind = fail.kind or kinds.get(fail.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": fail.message}, "request_id": _id("req")}
    kinds = {401: "invalid_request_error", 429: "rate_limit_exceeded"}
    kind = fail.kind or kinds.get(fail.status, "server_error")
    return {"error": {"message": fail.message, "type": kind, "param": None, "code": kind}}


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:24]}"


def _halves(text: str) -> Iterator[str]:
    middle = (len(text) + 1) // 2
    yield from filter(None, (text[:middle], text[middle:]))


def _anthropic(question: Question, say: Say, calls: list[Call]) -> tuple[dict[str, Any], list[Event]]:
    usage = {
        "input_tokens": say.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": say.cached,
        "output_tokens": say.output,
    }
    blocks: list[dict[str, Any]] = [{"type": "text", "text": say.text}] if say.text else []
    blocks += [{"type": "tool_use", "id": _id("toolu"), "name": call.name, "input": call.given} for call in calls]
    message = {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": question.body.get("model", MODEL),
        "content": blocks,
        "stop_reason": say.stop or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": usage,
    }
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: list[Event] = [("message_start", {"type": "message_start", "message": start})]
    for index, block in enumerate(blocks):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        events.append(("content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}))
        deltas = (
            [{"type": "text_delta", "text": part} for part in _halves(block["text"])]
            if block["type"] == "text"
            else [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        )
        events += [
            ("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas
        ]
        events.append(("content_block_stop", {"type": "content_block_stop", "index": index}))
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append(("message_delta", {"type": "message_delta", "delta": end, "usage": usage}))
    events.append(("message_stop", {"type": "message_stop"}))
    return message, events


def _responses(question: Question, say: Say, calls: list[Call]) -> tuple[dict[str, Any], list[Event]]:
    items: list[dict[str, Any]] = []
    if say.text:
        content = [{"type": "output_text", "text": say.text, "annotations": []}]
        items.append(
            {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": content}
        )
    for call in calls:
        item: dict[str, Any] = {"call_id": _id("call"), "name": call.name, "status": "completed"}
        if isinstance(call.given, str):
            item |= {"type": "custom_tool_call", "id": _id("ctc"), "input": call.given}
        else:
            item |= {"type": "function_call", "id": _id("fc"), "arguments": json.dumps(call.given)}
        if (space := question.tools.get(call.name, {}).get("namespace")) is not None:
            item["namespace"] = space
        items.append(item)
    response = {
        "id": _id("resp"),
        "object": "response",
        "created_at": 0,
        "model": question.body.get("model", MODEL),
        "status": "completed",
        "output": items,
        "usage": {
            "input_tokens": say.input,
            "input_tokens_details": {"cached_tokens": say.cached},
            "output_tokens": say.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": say.input + say.output,
        },
    }
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[Event] = [("response.created", {"type": "response.created", "response": begun})]
    for index, item in enumerate(items):
        blank = {key: "" for key in ("arguments", "input") if key in item}
        started = {**item, "status": "in_progress", **blank} | ({"content": []} if "content" in item else {})
        added = {"type": "response.output_item.added", "output_index": index, "item": started}
        events.append(("response.output_item.added", added))
        if item["type"] == "message":
            for part in _halves(say.text):
                delta = {"item_id": item["id"], "output_index": index, "content_index": 0, "delta": part}
                events.append(("response.output_text.delta", {"type": "response.output_text.delta", **delta}))
        done = {"type": "response.output_item.done", "output_index": index, "item": item}
        events.append(("response.output_item.done", done))
    events.append(("response.completed", {"type": "response.completed", "response": response}))
    return response, events


def _chat(question: Question, say: Say, calls: list[Call]) -> tuple[dict[str, Any], list[Event]]:
    tool_calls = [
        {
            "id": _id("call"),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.given)},
        }
        for call in calls
    ]
    usage = {
        "prompt_tokens": say.input,
        "completion_tokens": say.output,
        "total_tokens": say.input + say.output,
        "prompt_tokens_details": {"cached_tokens": say.cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    finish = say.stop or ("tool_calls" if calls else "stop")
    head = {"id": _id("chatcmpl"), "created": 0, "model": question.body.get("model", MODEL)}
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    if tool_calls:
        message["tool_calls"] = tool_calls
    choice = {"index": 0, "message": message, "finish_reason": finish}
    document = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> Event:
        piece = {"index": 0, "delta": delta, "finish_reason": reason}
        return (None, {**head, "object": "chat.completion.chunk", "choices": [piece]})

    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": part}) for part in _halves(say.text))]
    events += [chunk({"tool_calls": [{"index": index, **call}]}) for index, call in enumerate(tool_calls)]
    events.append(chunk({}, finish))
    events.append((None, {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}))
    events.append((None, "[DONE]"))
    return document, events
