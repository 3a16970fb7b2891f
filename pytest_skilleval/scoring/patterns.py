"""Regular expressions under a hard limit of time, on bounded text.

Who stops a pattern that backtracks for ever depends on the text's length:

1. Up to `IN_PROCESS_CHARS` and on the main thread: a CPU timer whose handler raises. `re` looks for signals once in
   4096 steps, and one step reads the text at most once, so a short text bounds the delay (half a second more).
2. Longer text, another thread, or a platform without that timer: a child process that the kernel ends.

The timer counts this process's CPU time, so a busy machine turns no match into an error, and SIGALRM, with its
handler and timer, stays with whoever uses it.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from types import FrameType
from typing import Any, NamedTuple

from pytest_skilleval.errors import ErrorClass, TrialFault

__all__ = [
    "IN_PROCESS_CHARS",
    "TEXT_CHARS",
    "TIME_LIMIT_S",
    "Hit",
    "bounded",
    "cut_note",
    "one_line",
    "search",
    "search_all",
]

TEXT_CHARS = 1_000_000
"""Text beyond this many characters is not matched."""
TIME_LIMIT_S = 1.0
"""CPU seconds that one pattern may take on one text."""
IN_PROCESS_CHARS = 20_000
"""Longer text is matched in a child process."""
LINE_CHARS = 200
START_UP_S = 20.0
"""Wall seconds that a child may take besides matching, on a machine that is short of processors."""


class Hit(NamedTuple):
    """A place where a pattern matched."""

    start: int
    """Offset of the match, in characters."""
    end: int
    line: str
    """The line of its first character, bounded."""


class _OutOfTime(Exception):
    """The timer ran out while a pattern was matched."""


def bounded(text: str) -> tuple[str, bool]:
    """Return at most `TEXT_CHARS` characters of a text, and whether something was cut off."""
    return (text[:TEXT_CHARS], True) if len(text) > TEXT_CHARS else (text, False)


def cut_note(text: str) -> str:
    """Return what to add to a reason when a text was too long to be matched whole, else nothing."""
    return f" (only its first {TEXT_CHARS} characters were matched)" if len(text) > TEXT_CHARS else ""


def one_line(text: str, limit: int = LINE_CHARS) -> str:
    """Return a text as one plain line for a reason: control characters and line breaks become spaces."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text[: limit * 4]).split())
    return plain if len(plain) <= limit else plain[: limit - 3] + "..."


def search(pattern: str, text: str, *, limit: float = TIME_LIMIT_S) -> Hit | None:
    """Return where a pattern first matches a text (multi-line mode), or None.

    Raises:
        TrialFault: Of class `check`, when the pattern runs out of time or is no regular expression.
    """
    hits = search_all(pattern, text, most=1, limit=limit)
    return hits[0] if hits else None


def search_all(pattern: str, text: str, *, most: int = 100, limit: float = TIME_LIMIT_S) -> list[Hit]:
    """Return the first `most` places where a pattern matches a text (multi-line mode).

    Args:
        pattern: A Python regular expression.
        text: What to search; only its first `TEXT_CHARS` characters are.
        most: How many places to keep.
        limit: CPU seconds.

    Raises:
        TrialFault: Of class `check`, when the pattern runs out of time or is no regular expression.
    """
    text, _ = bounded(text)
    match = _in_process if len(text) <= IN_PROCESS_CHARS and _timer_is_ours() else _in_child
    try:
        spans = match(pattern, text, most, limit)
    except _OutOfTime:
        message = f"pattern {one_line(pattern)!r} took longer than {limit:g} s on {len(text)} characters"
        raise TrialFault(ErrorClass.CHECK, message) from None
    except (re.error, RecursionError, OverflowError, MemoryError) as problem:
        message = f"pattern {one_line(pattern)!r} cannot be matched: {problem}"
        raise TrialFault(ErrorClass.CHECK, message) from problem
    return [Hit(start, end, _line_at(text, start)) for start, end in spans]


def _line_at(text: str, offset: int) -> str:
    begin = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[begin : end if end >= 0 else len(text)]
    if len(line) > LINE_CHARS:
        # A match far along a long line is shown, not the line's beginning.
        line = line[max(0, min(offset - begin, len(line)) - LINE_CHARS // 4) :]
    return one_line(line)


def _timer_is_ours() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        # A handler that was not set from Python cannot be put back.
        and signal.getsignal(signal.SIGVTALRM) is not None
    )


def _spans(pattern: str, text: str, most: int) -> list[tuple[int, int]]:
    found = []
    for match in re.compile(pattern, re.MULTILINE).finditer(text):
        found.append(match.span())
        if len(found) >= most:
            break
    return found


def _in_process(pattern: str, text: str, most: int, limit: float) -> list[tuple[int, int]]:
    armed = True

    def ring(_number: int, _frame: FrameType | None) -> None:
        # A late signal, between the match and the timer's end, must not break out of the clean-up.
        if armed:
            raise _OutOfTime

    old_handler: Any = signal.signal(signal.SIGVTALRM, ring)
    old_delay, old_interval = signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    started = time.process_time()
    try:
        return _spans(pattern, text, most)
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old_handler)
        if old_delay:
            left = old_delay - (time.process_time() - started)
            signal.setitimer(signal.ITIMER_VIRTUAL, max(left, 1e-6), old_interval)


_CHILD = """\
import json, re, signal, sys
ask = json.load(sys.stdin)
if hasattr(signal, "setitimer"):
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_VIRTUAL, ask["limit"])
found = []
try:
    for match in re.compile(ask["pattern"], re.MULTILINE).finditer(ask["text"]):
        found.append(match.span())
        if len(found) >= ask["most"]:
            break
except (re.error, RecursionError, OverflowError, MemoryError) as problem:
    found = str(problem) or type(problem).__name__
print(json.dumps(found))
"""


def _in_child(pattern: str, text: str, most: int, limit: float) -> list[tuple[int, int]]:
    ask = json.dumps({"pattern": pattern, "text": text, "most": most, "limit": limit})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input=ask.encode("ascii"),
            capture_output=True,
            timeout=limit + START_UP_S,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired:
        raise _OutOfTime from None
    if done.returncode == -signal.SIGVTALRM:
        raise _OutOfTime
    if done.returncode != 0:
        error = one_line(done.stderr.decode("utf-8", "replace"))
        raise TrialFault(ErrorClass.CHECK, f"the process that matches patterns ended with {done.returncode}: {error}")
    found = json.loads(done.stdout)
    if isinstance(found, str):
        raise re.error(found)
    return [(start, end) for start, end in found]
