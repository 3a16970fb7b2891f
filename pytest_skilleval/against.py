"""The baseline side of `--skilleval-against`: each skill as it was, to run beside the current one in one session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_skilleval.errors import SkillMistake
from pytest_skilleval.frozen import digest_text
from pytest_skilleval.records import AgainstRef, SkillPair
from pytest_skilleval.skills import stale_skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_skilleval.model import Skill

__all__ = ["Against", "seen_digest"]


class Against:
    """The versions that the current skills are compared with.

    Args:
        reference: `git:REV`, or a folder: one skill, or a folder of skills.
        target: A folder for what comes out of git.
        root: What a relative folder starts from.
    """

    def __init__(self, reference: str, *, target: Path, root: Path) -> None:
        self.reference = reference
        self._target = target
        self._root = root
        self._found: dict[str, Skill | SkillMistake] = {}

    def of(self, skill: Skill) -> Skill:
        """Return a skill's baseline version.

        Raises:
            SkillMistake: There is none.
        """
        found = self._find(skill)
        if isinstance(found, SkillMistake):
            raise SkillMistake(f"--skilleval-against={self.reference}: {found}")
        return found

    def side(self, skills: Iterable[Skill]) -> tuple[Skill, ...]:
        """Return what the baseline side installs: a skill without a baseline version stays as it is."""
        versions = [(skill, self._find(skill)) for skill in skills]
        return tuple(skill if isinstance(found, SkillMistake) else found for skill, found in versions)

    def _find(self, skill: Skill) -> Skill | SkillMistake:
        if skill.name not in self._found:
            try:
                found = stale_skill(self.reference, skill.name, skill, target=self._target, root=self._root)
            except SkillMistake as mistake:
                self._found[skill.name] = mistake
            else:
                known = found is not None and found.name == skill.name
                self._found[skill.name] = found if found and known else SkillMistake(f"holds no skill {skill.name!r}")
        return self._found[skill.name]

    def check(self, skills: Mapping[str, Skill]) -> None:
        """Make sure that there is something to compare with.

        Raises:
            SkillMistake: No skill under test has a baseline version.
        """
        found = [self._find(skill) for skill in skills.values()]
        if not found:
            raise SkillMistake(f"--skilleval-against={self.reference}: there is no skill under test to compare")
        if all(isinstance(one, SkillMistake) for one in found):
            raise SkillMistake(f"--skilleval-against={self.reference}: {found[0]}")

    def ref(self, skills: Mapping[str, Skill]) -> AgainstRef:
        """Return names and digests of both sides, for plan and report."""
        pairs = []
        for name, skill in sorted(skills.items()):
            found = self._find(skill)
            base = None if isinstance(found, SkillMistake) else found.digest
            pairs.append(SkillPair(name=name, baseline=base, candidate=skill.digest))
        return AgainstRef(reference=self.reference, skills=tuple(pairs))

    def notes(self, skills: Mapping[str, Skill]) -> list[str]:
        """Return what a user must know of the two sides."""
        pairs = self.ref(skills).skills
        lost = [pair.name for pair in pairs if pair.baseline is None]
        notes = (
            [f"against {self.reference}: no such version of {', '.join(lost)}; both sides see it as it is"]
            if lost
            else []
        )
        if all(pair.baseline in (None, pair.candidate) for pair in pairs):
            notes.append(f"against {self.reference}: nothing differs; this is an A/A comparison, it measures noise")
        return notes


def seen_digest(skills: Iterable[Skill]) -> str:
    """Return one digest over all skills that an agent can see, 64 hex digits; empty where it sees none."""
    lines = sorted(f"{skill.name} {skill.digest}" for skill in skills)
    return digest_text("\n".join(lines)) if lines else ""
