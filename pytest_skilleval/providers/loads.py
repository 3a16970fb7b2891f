"""What proves that an agent loaded a skill, besides its own load event: a read of SKILL.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from pytest_skilleval.model import Skill

from .base import Ask

__all__ = ["known_skills", "read_by_command", "read_by_path"]

SHORTEST_LINE = 8
"""Characters that a line of a skill needs to be told from chance."""


def known_skills(ask: Ask) -> tuple[Skill, ...]:
    """Return the skills that lie where the agent can read them: the installed ones and the one under test."""
    extra = () if ask.under_test is None or ask.under_test in ask.skills else (ask.under_test,)
    return (*ask.skills, *extra)


def read_by_path(path: str, skills: Iterable[Skill]) -> str | None:
    """Return the skill whose SKILL.md a path names, or None."""
    parts = PurePosixPath(path)
    if parts.name != "SKILL.md":
        return None
    return next((skill.name for skill in skills if parts.parent.name in (skill.name, skill.path.name)), None)


def read_by_command(command: str, output: str, skills: Iterable[Skill]) -> Iterator[str]:
    """Yield the skills whose SKILL.md a command showed.

    The command names a SKILL.md and its output holds a line that only that skill's body has: `cat`, `sed` and `head`
    do, `ls` and a search for file names do not. A name in the command alone is no load.
    """
    if "SKILL.md" not in command:
        return
    known = tuple(skills)
    lines = {skill.name: _lines(skill) for skill in known}
    for skill in known:
        others = set().union(*(lines[other.name] for other in known if other.name != skill.name))
        named = any(f"{name}/SKILL.md" in command for name in (skill.name, skill.path.name))
        telling = lines[skill.name] - others or (lines[skill.name] if named else set())
        if any(line in output for line in telling) or (named and not lines[skill.name]):
            yield skill.name


def _lines(skill: Skill) -> set[str]:
    return {line for line in map(str.strip, skill.body.splitlines()) if len(line) >= SHORTEST_LINE}
