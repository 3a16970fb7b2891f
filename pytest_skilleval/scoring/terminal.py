"""What a terminal shows: control sequences taken out of text."""

from __future__ import annotations

import re

__all__ = ["plain_text"]

# ECMA-48 (5th edition) 5.4 and 8.3: control sequences, operating system commands and other strings, two-byte escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    """Return the text of a terminal's output without colours, movements and other control characters."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text)).replace("\r\n", "\n").replace("\r", "\n")
