"""`skilleval bless`: a run's report kept under a name, as the baseline that a team compares with."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace

from pytest_skilleval.errors import OptionMistake, RunFolderMistake
from pytest_skilleval.journal import write_aside

from .answer import Answer
from .place import Place, add_output, place_of
from .reference import MEANING, judged

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval bless latest main
  pytest --trials 5 --compare-baseline main
  skilleval bless latest main --force    after a change that improved it
"""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TAKEN = ("latest", "runs", "blessed")
"""Words that a reference already means otherwise."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help=MEANING)
    parser.add_argument("name", metavar="NAME", help="lower-case letters, digits, dots, hyphens and underscores")
    parser.add_argument("--force", action="store_true", help="replace the run that bears the name now")
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Keep a report under a name."""
    place, name = place_of(arguments), arguments.name
    _check_name(place, name)
    opened = judged(place, arguments.run, "a baseline")
    run_info = opened.report.run
    if run_info.status != "finished":
        raise RunFolderMistake(
            f"{arguments.run}: is {run_info.status} ({'; '.join(run_info.reasons[:2])}), so it is no baseline; "
            f"`pytest --skilleval-resume={run_info.id}` runs what is missing"
        )
    if not run_info.counts["passed"] + run_info.counts["failed"]:
        raise RunFolderMistake(f"{arguments.run}: has measured nothing, so it is no baseline")
    data = opened.path.read_bytes()
    target = place.blessed / name / "report.json"
    before = target.read_bytes() if target.is_file() else None
    if before is not None and before != data and not arguments.force:
        raise OptionMistake(f"{name}: is taken ({target}); choose another name, or add --force to replace it")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_aside(target, data)
    value = {"name": name, "run": run_info.id, "path": str(target), "replaced": before is not None and before != data}
    return Answer(
        value,
        [
            f"{name} is now {run_info.id} ({target})",
            f"next: pytest --trials {run_info.trials} --compare-baseline {name}",
        ],
    )


def _check_name(place: Place, name: str) -> None:
    """Refuse a name that could not be found again.

    Raises:
        OptionMistake: It is no name, or a reference of that name already means something else.
    """
    if not _NAME.fullmatch(name):
        raise OptionMistake(
            f"{name!r}: is no name; use up to 64 lower-case letters, digits, dots, hyphens and underscores"
        )
    if name in _TAKEN or (place.output / name).exists() or (place.root / name).is_file():
        raise OptionMistake(f"{name}: already means something else as a baseline; choose another name")
