"""`skilleval export`: a run in another tool's layout."""

from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from pytest_skilleval import store
from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.skillcreator import Exported, benchmark, exported, sides_of

from .answer import Answer
from .place import add_output, place_of
from .reference import MEANING, judged

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval export latest --format skill-creator greeter-workspace/iteration-1
  skilleval export latest --with preloaded --without none DIR

skill-creator: DIR/eval-<case>/{with_skill,without_skill}/run-<trial>/{outputs/,grading.json,timing.json} and
DIR/benchmark.json; against an older version the two are called new_skill and old_skill. Deltas are with - without.
"""
FORMATS = ("skill-creator",)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help=MEANING)
    parser.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="the layout (default: skill-creator)")
    parser.add_argument(
        "--with", dest="first", metavar="C", help="the condition with the skill (default: self-load, else preloaded)"
    )
    parser.add_argument(
        "--without",
        dest="second",
        metavar="C",
        help="what it is compared with (default: the older version in the same run, else none, else stale)",
    )
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Write a run in another layout."""
    opened = judged(place_of(arguments), arguments.run, "an export")
    target: Path = arguments.folder
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OptionMistake(
            f"{target}: is there and not empty; name a new folder, so that no result is mixed with another"
        )
    sides = sides_of(opened.report, arguments.first, arguments.second)
    trials = exported(opened.report, opened.folder, sides)
    if not trials:
        raise OptionMistake(f"{arguments.run}: no trial was measured under {sides.first} or {sides.second}")
    for trial in trials:
        _write_trial(target, trial, opened.folder)
    found = benchmark(opened.report, sides, trials)
    _write(target / "benchmark.json", found)
    value = {
        "run": opened.report.run.id,
        "path": str(target),
        "trials": len(trials),
        "run_summary": found["run_summary"],
    }
    lines = [f"{numbers.count(len(trials), 'trial')}: {target / 'benchmark.json'}"]
    if "delta" in found["run_summary"]:
        lines.append(
            f"pass rate of expectations, {' - '.join(sides.names)}: {found['run_summary']['delta']['pass_rate']}"
        )
    return Answer(value, [*lines, *found["notes"]])


def _write_trial(target: Path, trial: Exported, folder: Path | None) -> None:
    place = target / trial.place
    outputs = place / "outputs"
    outputs.mkdir(parents=True)
    _write(place / "grading.json", trial.grading)
    _write(place / "timing.json", trial.timing)
    # The viewer looks beside the outputs, the aggregator in the folder of the eval.
    for where in (place, place.parent.parent):
        _write(where / "eval_metadata.json", trial.metadata)
    answer = "\n\n".join(step.text for step in trial.files.steps if step.kind == "answer")
    if answer:
        store.write_text(outputs / "answer.md", answer)
    if trial.files.diff:
        store.write_text(outputs / "workspace.diff", trial.files.diff)
    for artifact in trial.line.artifacts if folder is not None else ():
        _copy(folder, artifact.path, outputs, artifact.name)


def _copy(folder: Path | None, path: str, outputs: Path, name: str) -> None:
    """Copy a kept artifact; names and paths that leave their folders are passed over."""
    if folder is None:
        return
    source, to = folder / path, outputs / name
    inside = source.resolve().is_relative_to(folder.resolve()) and to.resolve().is_relative_to(outputs.resolve())
    if inside and source.is_file() and not source.is_symlink() and not to.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to)


def _write(path: Path, value: dict[str, Any]) -> None:
    store.write_text(path, json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n")
