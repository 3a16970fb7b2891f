"""report.html: one self-contained page, and for large runs one more page a case beside it.

What an agent wrote can do nothing here: every expression of every template is made plain and escaped, links hold
digests only, and the page's own policy forbids every style and script but the two whose SHA-256 it names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.drawing import difference_axis, share_axis
from pytest_skilleval.reports.headline import headline, lift_word, provider_name, simulated
from pytest_skilleval.reports.plain import cut, plain
from pytest_skilleval.reports.tokens import token_warnings
from pytest_skilleval.reports.trialfiles import evidence_size
from pytest_skilleval.reports.versus import power_lines, versus
from pytest_skilleval.reports.views import GroupView, error_kinds, group_views, lane_views
from pytest_skilleval.results import Report

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["as_html", "is_large", "pages"]

INLINE_BYTES = 3_000_000
"""Transcripts, diffs and error streams up to this many bytes in all stay in the one page."""
INLINE_TRIALS = 1_500
"""More trials than this get pages of their own beside the report."""
CROWD = 3_000
"""More groups than this are one line each, which leads to its case's page."""
TEXT_LIMIT = 20_000
"""Characters of one text in the one page; the file beside it holds the rest."""
PAGE_TEXT_LIMIT = 200_000
"""The same on a page of its own."""


def as_html(
    report: Report, folder: Path | None, baseline: Report | None = None, baseline_folder: Path | None = None
) -> str:
    """Render report.html; the same report over the same run folder gives the same bytes.

    Args:
        report: The judged run.
        folder: Its run folder, where transcripts and diffs are read; None shows what the report alone holds.
        baseline: The run it was compared with, to show its trials side by side.
        baseline_folder: The baseline's run folder, when it is at hand.
    """
    compared = versus(report)
    groups = group_views(report, baseline, compared)
    large = is_large(report, folder)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            **_frame(report),
            versus=compared,
            headline=headline(report, compared),
            groups=groups,
            lanes=lane_views(report, groups),
            errors=error_kinds(report),
            power=power_lines(report.power),
            token_warnings=token_warnings(report),
            large=large,
            trials_of=_reader(report, folder, baseline_folder),
            text_limit=TEXT_LIMIT,
            crowd=CROWD,
        )
    )


def pages(
    report: Report, folder: Path, baseline: Report | None = None, baseline_folder: Path | None = None
) -> Iterator[tuple[str, str]]:
    """Yield path (relative to the run folder) and text of each page beside a large report; none for a small one."""
    if not is_large(report, folder):
        return
    template = _environment().get_template("case.html.j2")
    frame = _frame(report) | {"trials_of": _reader(report, folder, baseline_folder), "text_limit": PAGE_TEXT_LIMIT}
    for page, groups in groupby(group_views(report, baseline, versus(report)), key=lambda group: group.page):
        yield page, template.render(**frame, groups=list(groups))


def is_large(report: Report, folder: Path | None) -> bool:
    """Tell whether trials get pages of their own: the one page must stay quick to open."""
    if folder is None:
        return False
    if len(report.trials) > INLINE_TRIALS:
        return True
    return sum(evidence_size(folder, trial) for trial in report.trials) > INLINE_BYTES


def _reader(report: Report, folder: Path | None, baseline_folder: Path | None) -> Any:
    timing = report.timing.get("trials", {})

    def trials_of(group: GroupView) -> Any:
        return group.trials(folder, baseline_folder, timing)

    return trials_of


def _frame(report: Report) -> dict[str, Any]:
    environment = _environment()
    return {
        "report": report,
        "run": report.run,
        "provider": provider_name(report.run.provider),
        "simulated": simulated(report.run.provider),
        "style_hash": _hash(environment.get_template("report.css").render()),
        "script_hash": _hash(environment.get_template("report.js").render()),
    }


def _hash(text: str) -> str:
    """Return a text's digest as a content-security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _finalize(value: object) -> object:
    """Make every text that a template prints plain; markup is what a macro has escaped already."""
    return plain(value) if type(value) is str else value


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pytest_skilleval.reports", "templates"),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ci": numbers.ci,
        "cut": cut,
        "lift_word": lift_word,
        "money": numbers.money,
        "p_value": numbers.p_value,
        "percent": numbers.percent,
        "points": numbers.points,
        "score": numbers.score,
        "seconds": numbers.seconds,
        "size": numbers.size,
        "tokens": numbers.tokens,
    }
    environment.globals |= {"count": numbers.count, "difference_axis": difference_axis, "share_axis": share_axis}
    return environment
