"""report.json and report.md from a judged run; same report, same bytes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_skilleval.reports import numbers

if TYPE_CHECKING:
    from pytest_skilleval.records import Report

__all__ = ["as_json", "as_markdown", "markdown_cell"]


def as_json(report: Report) -> str:
    """Render report.json: sorted keys, two spaces, no NaN."""
    value = report.model_dump(mode="json", by_alias=True)
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=True) + "\n"


def as_markdown(report: Report) -> str:
    """Render report.md for people and pull requests."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only the controller pays for it

    # No HTML autoescape: Markdown has rules of its own, kept by the `cell` filter on everything a case or agent wrote.
    environment = Environment(  # noqa: S701
        loader=PackageLoader("pytest_skilleval.reports", "templates"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cell": markdown_cell,
        "percent": numbers.percent,
        "score": numbers.score,
        "points": numbers.points,
    }
    environment.globals |= {"ci": numbers.ci, "count": numbers.count}
    return environment.get_template("report.md.j2").render(report=report)


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$@-])")


def markdown_cell(value: object, limit: int = 300) -> str:
    """Write foreign text so that it cannot leave its cell: one line, no markup, no control characters."""
    text = "".join(char if char.isprintable() else " " for char in str(value))
    text = " ".join(text.split())
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return _SPECIAL.sub(r"\\\1", text).replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
