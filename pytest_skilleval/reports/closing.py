"""The closing lines, through pytest's own writer: it knows colours, width and what the console can show."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from pytest_skilleval.reports.line import Line
from pytest_skilleval.reports.terminal import closing_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from pytest_skilleval.results import Report

__all__ = ["shown", "write"]


def write(terminal: pytest.TerminalReporter, report: Report, paths: Mapping[str, str], problems: Sequence[str]) -> None:
    """Write what a person reads at the end of a run."""
    verbosity = terminal.verbosity
    if verbosity < -1:
        return
    writer = terminal.config.get_terminal_writer()
    encoding = getattr(writer._file, "encoding", None)  # noqa: SLF001 - the writer does not say what it can show
    terminal.write_sep("=", "skill evals")
    lines = [
        *closing_lines(report, dict(paths), quiet=verbosity < 0, width=writer.fullwidth),
        *(Line(problem, "red") for problem in problems),
    ]
    for line in lines:
        terminal.write_line(shown(line.text, encoding), **({line.colour: True} if line.colour else {}))


def shown(text: str, encoding: str | None) -> str:
    """Write what a console cannot show as escapes; one that does not say can show ASCII."""
    try:
        name = codecs.lookup(encoding or "ascii").name
    except LookupError:
        name = "ascii"
    return text if name.startswith("utf") else text.encode(name, "backslashreplace").decode(name)
