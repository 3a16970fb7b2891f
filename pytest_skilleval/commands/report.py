"""`skilleval report`: a run shown again, or in another format, without running an agent."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_skilleval import store
from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.reports.terminal import closing_lines
from pytest_skilleval.reports.writing import Beside, beside, report_texts

from .answer import Answer
from .counterpart import counterpart, named_in
from .place import Place, add_output, place_of
from .reference import MEANING, Opened, judged

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval report latest                            what the terminal said at its end
  skilleval report latest --format html              report.html into the run's folder
  skilleval report main --format md=-                on stdout, as for a pull request
  skilleval report latest --format junit=evals.xml   a test case a group
"""
FORMATS = ("json", "md", "html", "junit")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help=MEANING)
    parser.add_argument(
        "--format",
        metavar="F[=PATH]",
        action="append",
        default=[],
        help="json, md, html or junit=PATH; =- is stdout, without a path it goes into the run's folder; repeatable "
        "(default: the terminal's summary)",
    )
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Show a run, or write reports of it."""
    wanted = [_format(text) for text in arguments.format]
    place = place_of(arguments)
    opened = judged(place, arguments.run, "a report")
    if arguments.json and any(target == "-" for _, target in wanted):
        raise OptionMistake("--format …=- and --json both need stdout; give a path")
    other = _other(place, opened) if any(name == "html" for name, _ in wanted) else None
    written = {name: _write(name, target, opened, other) for name, target in wanted}
    value = {"run": opened.report.run.id, "path": str(opened.path), "written": {k: v for k, v in written.items() if v}}
    if not wanted:
        return Answer(
            {**value, "report": opened.report.model_dump(mode="json", by_alias=True)},
            [line.text for line in closing_lines(opened.report, {"json": str(opened.path)})],
        )
    return Answer(value, notes=[f"report: {path}" for path in written.values() if path])


def _format(text: str) -> tuple[str, str]:
    name, equals, target = text.partition("=")
    if name not in FORMATS or (equals and not target):
        raise OptionMistake(f"--format {text}: choose from json, md, html, junit=PATH; PATH may be - for stdout")
    if name == "junit" and not target:
        raise OptionMistake("--format junit: say where, as in --format junit=evals.xml")
    return name, target


def _other(place: Place, opened: Opened) -> Beside | None:
    """Return the baseline to show each trial beside, when it is still what it was."""
    wanted = named_in(opened.report)
    found = None if wanted is None else counterpart(place, wanted)
    return None if found is None else beside(found.report, place.output)


def _write(name: str, target: str, opened: Opened, other: Beside | None) -> str | None:
    """Write one report, and return its path; None for stdout."""
    home = opened.path.parent
    path = home / f"report.{name}" if target in ("", "-") else Path(target)
    if target != "-" and path.absolute() == opened.path:
        return str(path)  # what was read is what is asked for
    for place, text in report_texts(name, opened.report, opened.folder, path, other):
        if target == "-":
            sys.stdout.write(text)
            return None
        place.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(place, text)
    return str(path)
