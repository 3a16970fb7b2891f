"""The case files and skills of a project, read as they lie, with every mistake in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple

from pytest_skilleval.cases import dotted, leaks, load_cases
from pytest_skilleval.casespec import Lane
from pytest_skilleval.documents import Loc, read_document
from pytest_skilleval.errors import CaseMistake, SkillMistake
from pytest_skilleval.model import Case, Skill
from pytest_skilleval.scoring.antipatterns import BUILT_IN
from pytest_skilleval.scoring.patterns import search
from pytest_skilleval.skills import load_skill, skill_folders

from .place import CASE_FOLDERS, SKILL_FOLDERS, Place

__all__ = ["Finding", "Kind", "Suite", "read_suite"]

Kind = Literal["mistake", "broken", "impossible", "cannot fail", "leak", "skill", "unproven"]
"""What is wrong: the first four spoil the measurement, the others are warnings."""
_SUFFIXES = (".yaml", ".yml", ".json")


class Finding(NamedTuple):
    """Something that is wrong with a case or a skill."""

    kind: Kind
    where: str
    """`file:line: key`, as far as there is one."""
    message: str
    case: str = ""
    """`lane:id`, or "" for a file or skill."""
    check: str = ""
    """The check or component, or ""."""

    @property
    def spoils(self) -> bool:
        """Whether what is measured cannot be trusted."""
        return self.kind in ("mistake", "broken", "impossible", "cannot fail")


class Suite(NamedTuple):
    """What a project measures."""

    cases: list[Case]
    skills: dict[str, Skill]
    findings: list[Finding]


def read_suite(place: Place, paths: Sequence[Path], ids: Sequence[str]) -> Suite:
    """Read case files and skills.

    Args:
        place: The project.
        paths: Case files, or folders that hold them; none = the project's own.
        ids: Patterns of case ids; none = all.
    """
    skills, findings = _skills(place)
    cases: list[Case] = []
    for path in _case_files(place, paths):
        try:
            cases += load_cases(path, root=place.root, anti_patterns=BUILT_IN).cases
        except CaseMistake as mistake:
            findings.append(Finding("mistake", "", str(mistake)))
    wanted = [case for case in cases if not ids or any(fnmatchcase(case.id, pattern) for pattern in ids)]
    findings += [finding for case in wanted for finding in _leaks(place, case, skills)]
    return Suite(wanted, skills, findings)


def _case_files(place: Place, paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that pytest would collect as case files."""
    folders = [place.root / text for text in place.listed("skilleval_paths", CASE_FOLDERS)]
    yield from (path.resolve() for path in paths if path.is_file())
    for folder in folders:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            inside = not paths or any(path.resolve().is_relative_to(one.resolve()) for one in paths if one.is_dir())
            if inside and path.is_file() and _is_case_file(path, folder):
                yield path


def _is_case_file(path: Path, folder: Path) -> bool:
    if path.suffix not in _SUFFIXES:
        return False
    in_lane = path.parent.parent == folder and path.parent.name in Lane.__members__.values()
    return in_lane or path.name.endswith((".case.yaml", ".case.yml"))


def _skills(place: Place) -> tuple[dict[str, Skill], list[Finding]]:
    """Read each skill under test, as far as it can be read."""
    found: dict[str, Skill] = {}
    findings: list[Finding] = []
    for folder in _skill_folders(place):
        try:
            skill = load_skill(folder)
        except SkillMistake as mistake:
            findings.append(Finding("mistake", "", str(mistake)))
            continue
        findings += [Finding("skill", "", warning) for warning in skill.warnings]
        found.setdefault(skill.name, skill)
    return found, findings


def _skill_folders(place: Place) -> Iterator[Path]:
    for text in place.listed("skilleval_skills", SKILL_FOLDERS):
        yield from skill_folders(place.root / text)


def _leaks(place: Place, case: Case, skills: Mapping[str, Skill]) -> Iterator[Finding]:
    """Yield what a case gives away before the agent has done anything."""
    skill = skills.get(case.skill) if case.skill is not None else None
    for loc, message in leaks(case, skill, search=search):
        path = case.path.relative_to(place.root) if case.path.is_relative_to(place.root) else case.path
        yield Finding("leak", f"{path.as_posix()}:{_line(case, loc)}: {dotted(loc)}", message, f"{case.lane}:{case.id}")


def _line(case: Case, loc: Loc) -> int:
    """Return the line of a key of a case, or of the nearest key above it."""
    document = read_document(case.path)
    entries = document.data.get("cases") if isinstance(document.data, dict) else None
    prefix: Loc = ()
    if isinstance(entries, list):
        index = next(
            (i for i, entry in enumerate(entries) if isinstance(entry, dict) and entry.get("id") == case.id), 0
        )
        prefix = ("cases", index)
    for end in range(len(loc), 0, -1):
        if (line := document.line(prefix + loc[:end])) is not None:
            return line
    return case.line
