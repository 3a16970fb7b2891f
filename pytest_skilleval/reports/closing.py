"""The closing lines, through pytest's own writer: it knows colours, width and what the console can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_skilleval.reports.terminal import closing_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from pytest_skilleval.records import Report

__all__ = ["write"]


def write(terminal: pytest.TerminalReporter, report: Report, paths: Mapping[str, str], problems: Sequence[str]) -> None:
    """Write what a person reads at the end of a run."""
    verbosity = terminal.verbosity
    if verbosity < -1:
        return
    terminal.write_sep("=", "skill evals")
    for line in closing_lines(report, dict(paths), quiet=verbosity < 0):
        terminal.write_line(plain(line.text), **({line.colour: True} if line.colour else {}))
    for problem in problems:
        terminal.write_line(plain(problem), red=True)


def plain(text: str) -> str:
    """Write control and bidi characters as escapes: text from an agent must not drive the terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
