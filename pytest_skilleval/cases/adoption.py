"""Cases of a foreign file made ours: ids, skill, what was not used, and the line of each mistake."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_skilleval.casespec import Lane
from pytest_skilleval.documents import Document, Loc, dotted
from pytest_skilleval.errors import CaseMistake, SkillMistake
from pytest_skilleval.frozen import digest_text
from pytest_skilleval.model import Case
from pytest_skilleval.skills.frontmatter import read_front_matter

from .casefile import build_case
from .namedfiles import NamedFiles
from .spec import problems_of, shown, validate_spec

__all__ = ["Adoption", "numbered", "skill_root_of", "slug"]

_EVALS_FOLDERS = frozenset({"evals", "evaluations", "eval", "tests"})
_USUAL = frozenset({"evals", "eval", "trigger-evals", "trigger-eval", "triggers", "eval-queries", "triggering"})
"""Stems that say nothing; another stem becomes part of the ids, since its file may lie beside one of these."""
_UNFIT = re.compile(r"[\s\[\]:/\\\x00-\x1f]+")
_LEVELS = 4
"""Folders above a file in which its skill is looked for."""


def slug(text: object, limit: int = 80) -> str:
    """Return a text as part of an id: no spaces, slashes, colons and brackets."""
    return _UNFIT.sub("-", str(text).strip())[:limit].strip("-")


def skill_root_of(path: Path, root: Path | None = None) -> Path | None:
    """Return the nearest folder above a file that holds a SKILL.md, not above root; None where there is none."""
    top = None if root is None else os.fspath(root.absolute())
    folder = os.fspath(path.absolute())
    for _ in range(_LEVELS):  # plain strings: a repository may hold a thousand of these files
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            break
        folder = above
        if os.path.isfile(f"{folder}/SKILL.md"):  # noqa: PTH113
            return Path(folder)
        if folder == top:
            break
    return None


class Adoption:
    """The cases of one foreign file.

    Args:
        document: The file.
        path: Where it lies.
        name: What messages call it.
        skill_root: The skill's folder, from which the paths of files start; None where no skill is above the file.
    """

    def __init__(self, document: Document, path: Path, name: str, skill_root: Path | None) -> None:
        self.document = document
        self.path = path
        self.name = name
        above = path.parent.parent if path.parent.name in _EVALS_FOLDERS else path.parent
        self.base = skill_root or above
        self.cases: list[Case] = []
        self.notes: list[str] = []
        self._skill_root = skill_root
        self._files = NamedFiles(path.parent, self.base, inside=self.base)
        self._lines: dict[str, int] = {}
        self._item_lines: dict[Loc, list[int]] = {}
        self._unused: Counter[str] = Counter()

    def skill_of_file(self, said: object) -> str | None:
        """Return the skill that a file's cases are for: by its SKILL.md, else by what the file says.

        Args:
            said: The file's own word, such as `skill_name`.
        """
        own = self._own_name()
        word = said if isinstance(said, str) and said.strip() else None
        if own is not None and word is not None and own != word:
            self.note(f"says the skill is {word!r}; its SKILL.md says {own!r}, which counts")
        return own or word or (self._skill_root.name if self._skill_root is not None else None)

    def _own_name(self) -> str | None:
        if self._skill_root is None:
            return None
        file = self._skill_root / "SKILL.md"
        try:
            front = read_front_matter(file.read_bytes(), str(file))
        except (OSError, SkillMistake):
            return None
        name = front.data.get("name")
        return name if isinstance(name, str) and name.strip() else None

    def line(self, loc: Loc) -> int:
        """Return the line of a place, or of the nearest place around it."""
        if loc and isinstance(loc[-1], int):
            # One walk for all items of a list: a walk for each would be quadratic.
            if loc[:-1] not in self._item_lines:
                self._item_lines[loc[:-1]] = self.document.item_lines(loc[:-1])
            lines = self._item_lines[loc[:-1]]
            if loc[-1] < len(lines):
                return lines[loc[-1]]
        for end in range(len(loc), -1, -1):
            line = self.document.line(loc[:end])
            if line is not None:
                return line
        return 1

    def mistake(self, loc: Loc, message: str) -> CaseMistake:
        """Return a mistake at a place of the file."""
        return CaseMistake(self.name, self.line(loc), dotted(loc), message)

    def note(self, message: str) -> None:
        """Remember something that the user should hear once."""
        text = f"{self.name}: {message}"
        if text not in self.notes:
            self.notes.append(text)

    def unused(self, keys: Iterable[str]) -> None:
        """Remember keys that are kept but not used."""
        self._unused.update(list(keys))

    def text(self, data: Mapping[str, Any], keys: tuple[str, ...], loc: Loc) -> tuple[str, str] | None:
        """Return key and value of the first of these keys that is there; it must be text that is not blank."""
        for key in keys:
            value = data.get(key)
            if value is None:
                continue
            if not isinstance(value, str) or not value.strip():
                raise self.mistake((*loc, key), f"must be text that is not empty, not {shown(value)}")
            return key, value
        return None

    def identify(self, skill: str | None, label: str, text: str, loc: Loc) -> str:
        """Return a case's id, unique in the file: skill, name of the file where it is an unusual one, and label.

        Args:
            skill: The skill of the file.
            label: What the file calls the case. Without one the label comes from the text: a place in a list is no
                identity, since one insertion would give each later case another's results.
            text: What is asked.
            loc: Its place.
        """
        stem = "" if self.path.stem.lower().replace("_", "-") in _USUAL else slug(self.path.stem)
        wanted = "-".join(part for part in (slug(skill or ""), stem, slug(label)) if part)
        if not slug(label):
            wanted = f"{wanted}-{slug(text, 40)}-{digest_text(text)[:6]}".lstrip("-")
            wanted = next(name for name in numbered(wanted) if name not in self._lines)
        elif wanted in self._lines:
            raise self.mistake(
                loc, f"has the id {label!r} of the case on line {self._lines[wanted]}; give each its own"
            )
        self._lines[wanted] = self.line(loc)
        return wanted

    def add(self, lane: Lane, data: dict[str, Any], loc: Loc, extra: dict[str, Any]) -> None:
        """Add a case.

        Args:
            lane: Its lane.
            data: The keys of a case file.
            loc: Its place in the foreign file.
            extra: What is kept of it without being used.

        Raises:
            CaseMistake: It is no valid case, or names a file that is not there.
        """
        try:
            spec = validate_spec(data)
        except ValidationError as exc:
            problem = problems_of(exc, data)[0]
            raise self.mistake(loc, f"gives no valid case: {dotted(problem.loc)} {problem.message}") from None
        digests, problems = self._files.look(spec)
        if problems:
            raise self.mistake((*loc, "files"), problems[0].message)
        self.cases.append(
            build_case(spec, lane=lane, path=self.path, line=self.line(loc), digests=digests, extra=extra)
        )

    def done(self) -> tuple[list[Case], list[str]]:
        """Return the cases, and what the user should hear of the file, once each."""
        if self._unused:
            listed = ", ".join(f"{key} ({count})" for key, count in sorted(self._unused.items()))
            self.note(f"keys that are kept and not used: {listed}")
        return self.cases, self.notes


def numbered(name: str) -> Iterator[str]:
    """Yield a name, then the name with 2, 3 and so on: for the first that is free."""
    yield name
    for number in itertools.count(2):
        yield f"{name}-{number}"
