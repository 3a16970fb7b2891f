"""`skilleval doctor`: what a real agent would see of the skills in each condition, before anything is paid for."""

from __future__ import annotations

import os
import shutil
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from pytest_skilleval.errors import SkillMistake
from pytest_skilleval.model import Skill
from pytest_skilleval.providers.base import ProviderSettings
from pytest_skilleval.providers.doctor import CHECKED, check_exposure
from pytest_skilleval.providers.exposure import Finding
from pytest_skilleval.skills import find_skills, stale_skill
from pytest_skilleval.workbench import provider_table

from .answer import FINE, NOT_GOOD, Answer
from .place import SKILL_FOLDERS, Place, add_output, place_of

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval doctor                       each of claude and codex that is installed
  skilleval doctor --provider claude

The real program is started once a condition, against an endpoint of this machine or to print its own prompt: no model
is asked, no key is needed, and it costs nothing.

exit status: 0 all as the conditions promise, 1 something is not
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--provider", action="append", choices=CHECKED, help="repeatable (default: each that is installed)"
    )
    parser.add_argument(
        "--model", metavar="M", help="the model whose prompt is looked at (default: the provider's own)"
    )
    parser.add_argument(
        "--stale", metavar="REF", help="the stale version: a folder or git:REV (default: the skill's previous commit)"
    )
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Look at what agents would see."""
    place = place_of(arguments)
    folders = place.listed("skilleval_skills", SKILL_FOLDERS)
    skills = list(find_skills(place.root / text for text in folders).values())
    if not skills:
        raise SkillMistake(f"no skill lies in {', '.join(folders)} of {place.root}; `skilleval init` writes one")
    names = arguments.provider or [name for name in CHECKED if shutil.which(name)]
    if not names:
        raise SkillMistake(f"none of {', '.join(CHECKED)} is on PATH; install one, or name one with --provider")
    found: dict[str, list[Finding]] = {}
    with tempfile.TemporaryDirectory(prefix="skilleval-doctor-") as folder:
        stale = _stale(place, skills, arguments.stale, Path(folder))
        for name in names:
            settings = ProviderSettings(
                model=arguments.model,
                environ=dict(os.environ),
                rootpath=place.root,
                options=provider_table(place.root, name),
            )
            found[name] = list(check_exposure(name, settings, skills, stale))
    notes = [] if stale else ["no stale version is found, so that condition is not looked at; name one with --stale"]
    broken = sum(not finding.ok for findings in found.values() for finding in findings)
    value = {
        "skills": [{"name": skill.name, "digest": skill.digest} for skill in skills],
        "findings": [
            {"provider": name, **finding._asdict()} for name, findings in found.items() for finding in findings
        ],
        "broken": broken,
    }
    return Answer(value, _lines(found, broken), NOT_GOOD if broken else FINE, notes)


def _stale(place: Place, skills: Sequence[Skill], reference: str | None, target: Path) -> list[Skill]:
    """Return the stale versions that there are, as far as they differ from what lies on disk."""
    older = [stale_skill(reference, skill.name, skill, target=target, root=place.root) for skill in skills]
    digests = {skill.digest for skill in skills}
    return [skill for skill in older if skill is not None and skill.digest not in digests]


def _lines(found: dict[str, list[Finding]], broken: int) -> list[str]:
    lines = [
        f"{name}: {finding.condition}: {'ok' if finding.ok else 'NOT OK'}: {finding.message}"
        for name, findings in found.items()
        for finding in findings
    ]
    return [*lines, f"{broken} of {len(lines)} promises broken"]
