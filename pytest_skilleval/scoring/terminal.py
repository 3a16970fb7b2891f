"""What a terminal showed: control sequences taken out of text, and recordings in asciicast format read."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

__all__ = ["Asciicast", "parse_asciicast", "plain_text"]

# ECMA-48 (5th edition) 5.4 and 8.3: control sequences, operating system commands and other strings, two-byte escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
SCREEN_CHARS = 2_000_000
"""Output of a recording that is kept for patterns."""


def plain_text(text: str) -> str:
    """Return the text of a terminal's output without colours, movements and other control characters."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text)).replace("\r\n", "\n").replace("\r", "\n")


class Asciicast(NamedTuple):
    """A recorded terminal session."""

    version: int
    columns: int
    rows: int
    duration: float
    """Seconds from the start to the last event."""
    text: str
    """All output, as plain text."""


def parse_asciicast(text: str) -> Asciicast:
    """Read a recording in asciicast v2 or v3 (https://docs.asciinema.org/manual/asciicast/v3/).

    Raises:
        ValueError: It is neither; the message names the line.
    """
    lines = text.splitlines()
    header = _json_line(1, lines[0]) if lines else None
    if not isinstance(header, dict):
        raise ValueError("line 1 is no asciicast header")  # noqa: TRY004 - the text is wrong, not an argument
    version = header.get("version")
    if version not in (2, 3):
        raise ValueError("line 1 is no header of asciicast version 2 or 3")
    columns, rows = _size(header)
    clock, output, kept = 0.0, [], 0
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip() or (version == 3 and line.startswith("#")):
            continue
        event_time, code, data = _event(number, line)
        # Version 2 counts from the start, version 3 from the event before.
        clock = max(clock, event_time) if version == 2 else clock + event_time
        if code == "o" and kept < SCREEN_CHARS:
            output.append(data)
            kept += len(data)
    if not output:
        raise ValueError("it holds no output")
    return Asciicast(version, columns, rows, clock, plain_text("".join(output)))


def _size(header: dict[str, Any]) -> tuple[int, int]:
    match header:
        case {"version": 2, "width": int() as columns, "height": int() as rows} if min(columns, rows) > 0:
            return columns, rows
        case {"version": 3, "term": {"cols": int() as columns, "rows": int() as rows}} if min(columns, rows) > 0:
            return columns, rows
    raise ValueError("line 1 gives no size of the terminal")


def _json_line(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"line {number} is no JSON") from None


def _event(number: int, line: str) -> tuple[float, str, str]:
    event = _json_line(number, line)
    match event:
        case [int() | float() as event_time, str() as code, str() as data] if (
            not isinstance(event_time, bool) and 0 <= event_time < 1e9
        ):
            return float(event_time), code, data
    raise ValueError(f"line {number} is no event of the form [time, code, data]")
