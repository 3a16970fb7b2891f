"""report.md, for people, pull requests and a CI job's summary.

Whatever a template prints is foreign text unless it is a number's own form: it becomes one line that starts no markup,
no link and no mention, and that no table cell lets out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.headline import headline, lift_word, provider_name, simulated
from pytest_skilleval.reports.plain import plain_line
from pytest_skilleval.reports.tokens import token_notes, token_warnings
from pytest_skilleval.reports.versus import power_lines, versus
from pytest_skilleval.reports.views import error_kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment

    from pytest_skilleval.results import Report

__all__ = ["as_markdown", "markdown_cell"]

ROWS = 500
"""Groups in the table; report.json holds them all, and a CI job's summary must stay below 1 MiB."""
CELL = 300
"""Characters of one cell."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]|~$]|:(?=\S)|^[-+#=]|(?<=www)\.|(?<=^\d)[.)]|(?<=^\d\d)[.)])", re.IGNORECASE)
"""What starts markup: anywhere, and at the start of a text. A colon may start an emoji, or a link after `https`."""
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


class Raw(str):
    """Text that this program made itself, such as a number with its interval."""

    __slots__ = ()


def as_markdown(report: Report) -> str:
    """Render report.md; the same report gives the same bytes."""
    compared = versus(report)
    return (
        _environment()
        .get_template("report.md.j2")
        .render(
            report=report,
            run=report.run,
            provider=provider_name(report.run.provider),
            simulated=simulated(report.run.provider),
            headline=headline(report, compared),
            versus=compared,
            power=power_lines(report.power),
            errors=error_kinds(report),
            token_warnings=token_warnings(report),
            token_notes=list(token_notes(report)),
            rows=ROWS,
        )
    )


def markdown_cell(value: object, limit: int = CELL) -> str:
    """Write foreign text so that it cannot leave its cell: one line, no markup, no link, no control characters."""
    if isinstance(value, Raw):
        return value
    text = _SPECIAL.sub(r"\\\1", plain_line(str(value), limit))
    text = re.sub("[<>&]", lambda match: _ENTITIES[match[0]], text)
    # A mention is found in the rendered text, where an escape is gone: an invisible joiner keeps it apart.
    return Raw(text.replace("@", "@\u2060"))


def _raw(function: Callable[..., str]) -> Callable[..., Raw]:
    def written(*args: Any, **kwargs: Any) -> Raw:
        return Raw(function(*args, **kwargs))

    return written


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Markdown's rules, not HTML's: `finalize` writes each text as a cell.
    environment = Environment(
        loader=PackageLoader("pytest_skilleval.reports", "templates"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - HTML's own escaping would show as text in a cell
        finalize=lambda value: markdown_cell(value, 2000) if isinstance(value, str) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    written = {
        name: _raw(getattr(numbers, name))
        for name in ("ci", "money", "p_value", "percent", "points", "score", "tokens")
    }
    environment.filters |= {"cell": markdown_cell, "lift_word": lift_word, **written}
    environment.globals["count"] = _raw(numbers.count)
    return environment
