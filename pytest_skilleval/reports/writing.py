"""A judged run's reports, written into its folder: one that cannot be written is said, and the others are tried."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_skilleval import store
from pytest_skilleval.onerun import base_side
from pytest_skilleval.reports import html, junit, markdown, render
from pytest_skilleval.results import Report

__all__ = ["Beside", "Written", "beside", "report_texts", "write_reports", "write_step_summary"]


class Beside(NamedTuple):
    """The run that a report is shown beside: its baseline."""

    report: Report
    folder: Path | None = None
    """Its run folder, where it is at hand: its trials can then be read side by side."""


class Written(NamedTuple):
    """What became of the reports that were asked for."""

    paths: dict[str, Path]
    """Format to the file to open."""
    problems: list[str]
    """One line for each report that is not written."""


def beside(report: Report, output: Path) -> Beside:
    """Return a baseline to show a run beside.

    Args:
        report: The baseline, as it was judged.
        output: Where runs lie. The baseline's id comes from a file, so it must be a plain name to be looked for there.
    """
    name = report.run.id
    folder = output / name
    return Beside(report, folder if Path(name).name == name and name != ".." and folder.is_dir() else None)


def report_texts(
    name: str, report: Report, folder: Path | None, target: Path, other: Beside | None = None
) -> Iterator[tuple[Path, str]]:
    """Yield place and text of each file that makes a report in one format; the one to open comes last.

    Args:
        name: `json`, `md`, `html` or `junit`; another name yields nothing (`jsonl` is written while the run goes on).
        report: The judged run.
        folder: Its run folder, where transcripts and diffs are; None when only the report is at hand.
        target: Where the report goes.
        other: Its baseline.
    """
    if name == "json":
        yield target, render.as_json(report)
    elif name == "md":
        yield target, markdown.as_markdown(report)
    elif name == "junit":
        yield target, junit.as_junit(report)
    elif name == "html":
        against = _beside_it(report, folder) if other is None else (other.report, other.folder)
        for page, text in html.pages(report, folder, *against) if folder is not None else ():
            yield target.parent / page, text
        yield target, html.as_html(report, folder, *against)


def _beside_it(report: Report, folder: Path | None) -> tuple[Report | None, Path | None]:
    """Return what a run without a baseline is shown beside: its own other side, where it ran two versions."""
    side = base_side(report)
    return (None, None) if side is None else (side, folder)


def write_reports(names: Iterable[str], report: Report, folder: Path, other: Beside | None = None) -> Written:
    """Write reports into the run folder as `report.json`, `report.md`, `report.html`, or where `junit=PATH` says."""
    written = Written({}, [])
    for wanted in names:
        name, _, place = wanted.partition("=")
        target = Path(os.path.expanduser(place)) if place else folder / f"report.{name}"  # noqa: PTH111 - needs no home
        try:
            for path, text in report_texts(name, report, folder, target, other):
                path.parent.mkdir(parents=True, exist_ok=True)
                store.write_text(path, text)
                written.paths[name] = path
        except OSError as error:
            written.problems.append(f"{target}: {error.strerror or error}: this report is not written")
        except Exception as error:  # noqa: BLE001 - a defect of one format must not cost the others
            written.problems.append(f"{target}: {type(error).__name__}: {error}: this report is not written")
    return written


def write_step_summary(report: Report, place: str | None) -> list[str]:
    """Append report.md to the summary of a CI job's step.

    Args:
        report: The judged run.
        place: The value of `GITHUB_STEP_SUMMARY`; None or empty outside of such a job.

    Returns:
        What went wrong, in a line; an unwritten summary makes no run red.
    """
    if not place:
        return []
    try:
        with Path(place).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(markdown.as_markdown(report) + "\n")
    except OSError as error:
        return [f"GITHUB_STEP_SUMMARY={place}: {error.strerror or error}: the summary is not written"]
    return []
