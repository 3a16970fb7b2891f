"""The HTTP side: requests become questions, replies become bytes, and every request is kept."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import socket
import threading
import time
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

from .script import Cut, Fail, Hang, Question, Reply, Say, Script, Wire
from .wire import encode, encode_error

LIFETIME_SECONDS = 900.0
"""A server that nobody stopped stops itself."""

_WIRES: dict[str, Wire] = {"/messages": "anthropic", "/responses": "responses", "/chat/completions": "chat"}


class ModelServer:
    """A scripted model on 127.0.0.1, alive inside a `with` block.

    Args:
        script: What it answers; may be replaced while it runs.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.questions: list[Question] = []
        """Every request for an answer, in the order of arrival."""
        self.other_paths: list[str] = []
        """Every other request."""
        self.broken: list[str] = []
        """What the script or the server itself raised."""
        self._tries: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._timer = threading.Timer(LIFETIME_SECONDS, self._stop)
        self._timer.daemon = True

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def seen(self) -> str:
        """Every string that reached the model."""
        return "\n".join(question.text for question in self.questions)

    def __enter__(self) -> Self:
        self._thread.start()
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._stop()
        self._thread.join(5)
        self._http.server_close()

    def _stop(self) -> None:
        self._stopping.set()
        self._http.shutdown()

    def ask(self, question: Question) -> Reply:
        """Keep a question and return the script's reply."""
        with self._lock:
            key = (question.conversation, question.turn)
            question = replace(question, tries=self._tries[key])
            self._tries[key] += 1
            self.questions.append(question)
        try:
            reply = self.script(question)
            return reply.resolved(question) if isinstance(reply, Say) else reply
        except Exception as error:  # noqa: BLE001 - a broken script must fail its test, not hang its client
            self.broken.append(f"{type(error).__name__}: {error}")
            return Fail(400, f"broken script: {error}")

    def wait(self, seconds: float, connection: socket.socket) -> None:
        """Be silent until the client leaves, the time is up or the server stops."""
        until = time.monotonic() + seconds
        connection.settimeout(0.1)
        while time.monotonic() < until and not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                if connection.recv(1, socket.MSG_PEEK) == b"":
                    return
                self._stopping.wait(0.1)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ClassVar[ModelServer]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Say nothing."""

    def do_GET(self) -> None:
        self.owner.other_paths.append(self.path)
        if self.path.split("?")[0].endswith("/models"):
            self._document(200, {"object": "list", "data": [], "models": [], "has_more": False})
        else:
            self._document(404, {"error": {"message": "not here", "type": "not_found_error"}})

    do_HEAD = do_GET  # noqa: N815 - the base class names it

    def do_POST(self) -> None:
        path = self.path.split("?")[0]
        body = self._body()
        wire = next((wire for end, wire in _WIRES.items() if path.endswith(end)), None)
        if wire is None:
            self.owner.other_paths.append(self.path)
            self._document(200 if path.endswith("/count_tokens") else 404, {"input_tokens": 100})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        question = Question(wire, body, headers, _conversation(body, headers), _answers(body), 0)
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._reply(question, self.owner.ask(question))

    def _reply(self, question: Question, reply: Reply) -> None:
        match reply:
            case Fail():
                self._document(reply.status, encode_error(question, reply), reply.headers)
            case Hang():
                self.owner.wait(reply.seconds, self.connection)
                self.close_connection = True
            case Cut():
                _, events = encode(question, Say(reply.text))
                self._stream_head()
                for name, data in events[: len(events) // 2]:
                    self._event(name, data)
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            case Say():
                if reply.delay:
                    self.owner.wait(reply.delay, self.connection)
                    self.connection.settimeout(None)
                document, events = encode(question, reply)
                if not question.body.get("stream"):
                    self._document(200, document)
                    return
                self._stream_head()
                for name, data in events:
                    self._event(name, data)
                self.wfile.write(b"0\r\n\r\n")

    def _body(self) -> dict[str, Any]:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        value = json.loads(data or b"{}")
        return value if isinstance(value, dict) else {}

    def _document(self, status: int, value: object, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream_head(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _event(self, name: str | None, data: dict[str, Any] | str) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        raw = f"event: {name}\ndata: {text}\n\n".encode() if name else f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        self.wfile.flush()


def _conversation(body: dict[str, Any], headers: dict[str, str]) -> str:
    """Return what all requests of one conversation share: the agent's session, else its first words."""
    for name in ("x-claude-code-session-id", "session-id", "session_id"):
        if name in headers:
            return headers[name]
    first = json.dumps((body.get("messages") or body.get("input") or [None])[:2], sort_keys=True)
    return hashlib.sha256(first.encode()).hexdigest()


def _answers(body: dict[str, Any]) -> int:
    """Count the model's answers so far: runs of items that came from it."""
    answers, before = 0, False
    for item in body.get("messages") or body.get("input") or []:
        mine = item.get("role") == "assistant" or item.get("type") in ("function_call", "custom_tool_call", "reasoning")
        answers += mine and not before
        before = mine
    return answers
