"""What Claude Code and Codex will really load of a project's skills, as `skilleval check` shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_skilleval.errors import SkillMistake
from pytest_skilleval.skills import Listing, Load, Loads, exposure, exposures, is_skill_folder, listings

from .answer import table
from .place import SKILL_FOLDERS, Place
from .suite import Finding

__all__ = ["Loading", "loading"]

_CLIENTS = (("claude", "Claude Code"), ("codex", "Codex"))


class Loading(NamedTuple):
    """What the two clients make of the skills under test."""

    root: Path
    skills: tuple[Loads, ...]
    lists: tuple[tuple[str, Listing], ...]
    """`claude` and `codex`, for each folder of skills."""

    @property
    def value(self) -> list[dict[str, Any]]:
        """Return it for programs."""
        return [
            {
                "folder": self._name(one.folder),
                **{key: _load(one, key)._asdict() for key, _ in _CLIENTS},
                "specification": [finding._asdict() for finding in one.specification],
                "fix": list(one.fix),
            }
            for one in self.skills
        ]

    @property
    def lines(self) -> list[str]:
        """Return a table for people; nothing without skills."""
        rows = [[self._name(one.folder), *(_cell(_load(one, key)) for key, _ in _CLIENTS)] for one in self.skills]
        return [*table(("skill", *(name for _, name in _CLIENTS)), rows), ""] if rows else []

    @property
    def findings(self) -> list[Finding]:
        """Return what is not loaded as its author wrote it, with the fix."""
        return [*self._of_skills(), *self._of_lists()]

    def _of_skills(self) -> Iterator[Finding]:
        for one in self.skills:
            reasons: dict[str, list[str]] = {}
            for key, name in _CLIENTS:
                load = _load(one, key)
                if load.reason:
                    reasons.setdefault(load.reason, []).append(name if load.loaded else f"not loaded by {name}")
            for reason, clients in reasons.items():
                fix = f"; {one.fix[0]}" if one.fix else ""
                yield Finding("skill", self._name(one.folder), f"{' and '.join(clients)}: {reason}{fix}")

    def _of_lists(self) -> Iterator[Finding]:
        names = dict(_CLIENTS)
        for key, listing in self.lists:
            if listing.reason:
                yield Finding("skill", "", f"{names[key]}: {listing.reason}")

    def _name(self, folder: Path) -> str:
        return (folder.relative_to(self.root) if folder.is_relative_to(self.root) else folder).as_posix()


def _load(one: Loads, client: str) -> Load:
    return one.claude if client == "claude" else one.codex


def _cell(load: Load) -> str:
    if not load.loaded:
        return "not loaded"
    name = load.name or "?"
    return f"{name}{'' if load.listed else ', hidden from the model'}{' (!)' if load.reason else ''}"


def loading(place: Place) -> Loading:
    """Look at every skill under test, as both clients would if its folder were theirs."""
    skills: list[Loads] = []
    lists: list[tuple[str, Listing]] = []
    for text in place.listed("skilleval_skills", SKILL_FOLDERS):
        top = place.root / text
        found = _below(top) if top.is_dir() else []
        skills += found
        lists += listings(list(found)).items()
    return Loading(place.root, tuple(skills), tuple(lists))


def _below(top: Path) -> Sequence[Loads]:
    try:
        return [exposure(top)] if is_skill_folder(top) else exposures(top)
    except SkillMistake:
        return []  # it is said where the skills are read
