"""An agent's stream of JSON lines, read as bytes and within bounds: one odd line never costs the others."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["Stream", "at", "compact", "integer", "items", "number", "open_regular", "read_object", "text_of"]

LINE_BYTES = 16 * 1024 * 1024
"""A longer line is no event: it is skipped and numbered, and what follows it is still read."""
PIECE_BYTES = 64 * 1024
UNPARSED_KEPT = 100
_BOM = b"\xef\xbb\xbf"


class Stream:
    """The events of a file: every line that is a JSON object.

    Iterating again reads the file again. A file that is not there has no events.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unparsed: list[int] = []
        """1-based numbers of the other lines that are not blank, the first 100; complete once iterated."""
        self.events = 0
        """How many events there were; complete once iterated."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.unparsed = []
        self.events = 0
        for number, line in enumerate(_lines(self.path), 1):
            event = None if line is None else _event(line)
            if event is not None:
                self.events += 1
                yield event
            elif (line is None or line.strip()) and len(self.unparsed) < UNPARSED_KEPT:
                self.unparsed.append(number)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file that an agent may have made: a link is not followed, and a pipe does not block.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return os.fdopen(number, "rb")


def read_object(path: Path) -> object:
    """Return the JSON document in a file that an agent may have made, None where there is none that can be read."""
    try:
        with open_regular(path) as file:
            return _event(file.read(LINE_BYTES))
    except OSError:
        return None


def _lines(path: Path) -> Iterator[bytes | None]:
    """Yield each line, or None for one that is too long to hold."""
    try:
        file = open_regular(path)
    except OSError:
        return
    with file:
        first = True
        while line := file.readline(LINE_BYTES):
            whole = line.endswith(b"\n") or len(line) < LINE_BYTES
            if first:
                line, first = line.removeprefix(_BOM), False
            if whole:
                yield line
                continue
            while (piece := file.readline(PIECE_BYTES)) and not piece.endswith(b"\n"):
                pass
            yield None


def _event(line: bytes) -> dict[str, Any] | None:
    # Constants that are no JSON, nesting beyond the parser's depth and bytes that are no UTF-8 must not end the stream.
    try:
        value = json.loads(line.decode("utf-8", "replace"), parse_constant=_refuse)
        value = _whole(value) if rb"\ud" in line.lower() else value
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _whole(value: object) -> object:
    """Replace half surrogate pairs, which JSON can escape and no text file can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole(part) for part in value]
    if isinstance(value, dict):
        return {str(_whole(key)): _whole(part) for key, part in value.items()}
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def at(value: object, *path: str) -> Any:
    """Return what lies at a path of keys, None where it does not exist or a step is no object."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def compact(value: object) -> str:
    """Return a value as JSON in one line, for people and patterns: sorted keys, letters as they are."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def items(value: object) -> list[Any]:
    """Return a list as it is, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return a string as it is, the texts of a list of content blocks joined by newlines, else ""."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(
            block["text"] for block in value if isinstance(block, dict) and isinstance(block.get("text"), str)
        )
    return ""


def integer(value: object) -> int | None:
    """Return a count that is there and not negative, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def number(value: object) -> float | None:
    """Return a number that is there and not negative, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return float(value)
