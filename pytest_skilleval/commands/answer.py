"""What a command answers: one JSON object for programs, lines for people, and an exit status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

__all__ = ["FINE", "INCOMPLETE", "NOT_GOOD", "Answer", "table"]

FINE, NOT_GOOD, INCOMPLETE = 0, 1, 2
"""Exit statuses, as pytest's: all good; found something bad; something planned is missing. 4 is a user's mistake."""


class Answer(NamedTuple):
    """What a command found."""

    value: dict[str, Any]
    """What `--json` prints."""
    lines: Sequence[str] = ()
    """What people read on stdout."""
    status: int = FINE
    notes: Sequence[str] = ()
    """What is said on stderr, with and without `--json`."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> list[str]:
    """Lay out a table for the terminal.

    Args:
        head: Names of the columns.
        rows: Their cells.
        right: Names of the columns that are aligned to the right.
    """
    body = [list(row) for row in rows]
    widths = [max(len(row[column]) for row in [list(head), *body]) for column in range(len(head))]
    lines = []
    for row in [list(head), ["-" * width for width in widths], *body]:
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
