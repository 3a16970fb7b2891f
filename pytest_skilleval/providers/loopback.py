"""A model endpoint on the loopback interface that keeps what it is asked and always answers the same."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

__all__ = ["Loopback"]

BODY_BYTES = 64 * 1024 * 1024
_MESSAGE: dict[str, Any] = {
    "id": "msg_loopback",
    "type": "message",
    "role": "assistant",
    "model": "loopback",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
_EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
)


class Loopback:
    """An endpoint of the Anthropic Messages wire format, alive inside a `with` block."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        """The bodies of all requests for an answer."""
        handler = type("Handler", (_Handler,), {"owner": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def text(self) -> str:
        """Every string of the first request: what a model would have seen."""
        return "\n".join(strings_in(self.requests[0])) if self.requests else ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join(5)
        self._http.server_close()


def strings_in(value: object) -> Iterator[str]:
    """Yield every string of a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings_in(part)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ClassVar[Loopback]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer what is asked besides the model: there is nothing."""
        self._send(404, "application/json", b"{}")

    do_HEAD = do_GET  # noqa: N815 - the base class names it

    def do_POST(self) -> None:
        """Keep a request and answer it."""
        length = min(int(self.headers.get("content-length") or 0), BODY_BYTES)
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            body = {}
        if not self.path.split("?")[0].endswith("/messages"):
            self._send(200, "application/json", b'{"input_tokens": 1}')
            return
        self.owner.requests.append(body)
        if isinstance(body, dict) and body.get("stream"):
            data = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _EVENTS).encode()
            self._send(200, "text/event-stream", data)
        else:
            self._send(200, "application/json", json.dumps(_MESSAGE).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
