"""One conversation with a chat endpoint, in a process of its own that the trial's supervisor can end.

1. The conversation comes on stdin as one JSON document.
2. Each answer of the model is an event `turn`; a call of `load_skill` is an event `skill`, and the text goes back.
3. The first answer without a call is an event `answer`, and `end` follows.
4. Whatever goes wrong is an event `error` with the sentence and, where there is one, the HTTP status.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

__all__ = ["main"]

TOOL = "load_skill"


def main() -> int:
    """Hold the conversation."""
    import openai  # noqa: PLC0415 - an extra: the parent has checked that it is there

    asked = json.load(sys.stdin)
    client = openai.OpenAI(
        api_key=os.environ.get(asked["key"]) or "none",
        base_url=asked["base_url"],
        timeout=asked["timeout"],
        max_retries=0,  # a retry is the runner's: it is counted and recorded there
    )
    try:
        _converse(client, asked)
    except openai.APIStatusError as error:
        after = error.response.headers.get("retry-after")
        _tell("error", message=error.message, status=error.status_code, retry_after=_seconds(after))
    except openai.APIConnectionError as error:
        _tell("error", message=f"{error}: {error.__cause__ or 'no answer'}", **{"class": "network"})
    except openai.OpenAIError as error:
        _tell("error", message=str(error))
    return 0


def _converse(client: Any, asked: dict[str, Any]) -> None:
    messages: list[dict[str, Any]] = list(asked["messages"])
    bodies = {skill["name"]: skill["body"] for skill in asked["skills"]}
    request: dict[str, Any] = {"model": asked["model"], **asked["parameters"]}
    if asked["effort"] is not None:
        request["reasoning_effort"] = asked["effort"]
    if bodies:
        request["tools"] = [_tool(asked["skills"])]
    for _ in range(asked["turns"]):
        answer = client.chat.completions.create(messages=messages, **request)
        usage = answer.usage.model_dump() if answer.usage is not None else None
        _tell("turn", id=answer.id, model=answer.model, usage=usage)
        choice = answer.choices[0]
        message = choice.message
        if message.refusal or choice.finish_reason == "content_filter":
            _tell("error", message=message.refusal or "the endpoint's content filter refused", **{"class": "refusal"})
            return
        if not message.tool_calls:
            if choice.finish_reason == "length":
                _tell("error", message="the answer was cut at the output limit", **{"class": "context_too_long"})
                return
            _tell("answer", text=message.content or "")
            _tell("end")
            return
        messages.append(message.model_dump(exclude_none=True))
        messages += [_load(call, bodies) for call in message.tool_calls]
    _tell("error", message=f"no answer within {asked['turns']} requests", **{"class": "max_turns"})


def _tool(skills: list[dict[str, str]]) -> dict[str, Any]:
    listing = "\n".join(f"- {skill['name']}: {skill['description']}" for skill in skills)
    names = [skill["name"] for skill in skills]
    return {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": f"Load a skill's instructions when the request fits its description. Skills:\n{listing}",
            "parameters": {
                "type": "object",
                "properties": {"name": {"type": "string", "enum": names}},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
    }


def _load(call: Any, bodies: dict[str, str]) -> dict[str, Any]:
    try:
        name = str(json.loads(call.function.arguments)["name"]) if call.function.name == TOOL else call.function.name
    except (ValueError, KeyError, TypeError):
        name = "?"
    known = call.function.name == TOOL and name in bodies
    _tell("skill", name=name, known=known)
    content = bodies[name] if known else f"There is no skill {name!r}; there are: {', '.join(bodies)}"
    return {"role": "tool", "tool_call_id": call.id, "content": content}


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _tell(kind: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"type": kind, **fields}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
