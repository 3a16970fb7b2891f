"""Text from an agent, made harmless wherever it is shown: what drives a reader's screen becomes an escape."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

__all__ = ["cut", "plain", "plain_line"]

_DRIVING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Controls (ESC, NUL, C1), invisible and bidirectional formatting, lone surrogates, private use, line separators."""


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    code = ord(char)
    driving = unicodedata.category(char) in _DRIVING or code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    if not driving:
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(text: str, keep: str = "\n\t") -> str:
    r"""Write control, formatting and bidi characters as escapes, such as `\x1b` and `\u202e`.

    The result holds no character that XML 1.0 forbids, and none that moves a cursor or reorders a line.

    Args:
        text: Anything that an agent, a case or a foreign report holds.
        keep: Characters that stay as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char in keep else _shown(char) for char in text)


def plain_line(text: str, limit: int | None = None) -> str:
    """Write text as one line: runs of white space become one space; what is longer than `limit` ends in `…`."""
    line = plain(" ".join(text.split()), keep="")
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def cut(text: str, limit: int) -> tuple[str, int]:
    """Return the head of a text, and how many characters are left out."""
    return (text, 0) if len(text) <= limit else (text[:limit], len(text) - limit)
