"""Case files to Case, each mistake with its file, line and key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_skilleval.casespec import CaseSpec, Lane
from pytest_skilleval.documents import Document, Loc, dotted, read_document
from pytest_skilleval.errors import CaseMistake
from pytest_skilleval.memory import collector_held
from pytest_skilleval.model import Case

from .namedfiles import NamedFiles
from .rules import broken_rules
from .spec import Problem, did_you_mean, problems_of, shown, validate_spec

__all__ = ["assert_unique", "build_case", "display_path", "lane_of", "load_case_file"]

_NO_MAPPING = {
    type(None): "is empty; a case needs at least `prompt:`",
    list: "is a list; put the cases under the key `cases:`",
}
_FILE_KEYS = ("cases", "defaults", "$schema")


def load_case_file(
    path: Path,
    *,
    root: Path,
    lane: Lane | None = None,
    conditions: Collection[str] | None = None,
    anti_patterns: Collection[str] | None = None,
) -> list[Case]:
    """Read a case file.

    Args:
        path: A YAML file, or a JSON file of the same shape.
        root: The project's folder: messages name files relative to it, and a `stale` folder may not lie outside.
        lane: The lane of cases that do not say theirs; by default that of the folder, below root, that bears its name.
        conditions: The conditions that exist, or None to take any name.
        anti_patterns: The names of the built-in anti-patterns, or None to take any name.

    Returns:
        The cases in the order of the file.

    Raises:
        CaseMistake: With file, line and key of the first thing that is wrong. Nothing of the file is used then.
    """
    with collector_held():
        cases = list(_read(path, root, lane or lane_of(path, root), conditions, anti_patterns))
    assert_unique(cases, root=root)
    return cases


def _read(
    path: Path,
    root: Path,
    lane: Lane | None,
    conditions: Collection[str] | None,
    anti_patterns: Collection[str] | None,
) -> Iterator[Case]:
    name = display_path(path, root)
    document = read_document(path, name=name)
    files = NamedFiles(path.parent, root)
    for place, data, line in _entries(document, name):
        spec = _spec(place, data)
        own_lane = spec.lane or lane
        if own_lane is None:
            allowed = ", ".join(known.value for known in Lane)
            raise place.mistake(
                ("lane",), f"is required outside of a folder that bears a lane's name; allowed: {allowed}"
            )
        problems = list(broken_rules(spec, own_lane, conditions=conditions, anti_patterns=anti_patterns))
        if problems:
            raise place.first(problems)
        digests, problems = files.look(spec)
        if problems:
            raise place.first(problems)
        yield build_case(spec, lane=own_lane, path=path, line=line, digests=digests)


def build_case(
    spec: CaseSpec,
    *,
    lane: Lane,
    path: Path,
    line: int,
    digests: dict[str, str] | None = None,
    python: bool = False,
    extra: dict[str, Any] | None = None,
) -> Case:
    """Return a resolved case.

    Args:
        spec: A valid case whose `id` is given, or else is the file's stem.
        lane: Its lane.
        path: The file that holds it.
        line: 1-based.
        digests: SHA-256 by relative path of each file that the fingerprint covers.
        python: Whether it is a test function.
        extra: Keys of foreign formats, kept.
    """
    return Case(
        lane=lane,
        id=spec.id or _stem(path),
        spec=spec,
        path=path,
        line=line,
        digests=digests or {},
        python=python,
        extra=extra or {},
    )


def assert_unique(cases: Iterable[Case], *, root: Path | None = None) -> None:
    """Refuse two cases with one lane and id: their results would be mixed.

    Args:
        cases: All cases of a run.
        root: What the paths in the message are relative to.

    Raises:
        CaseMistake: At the second place, naming the first.
    """
    seen: dict[tuple[Lane, str], Case] = {}
    for case in cases:
        first = seen.setdefault((case.lane, case.id), case)
        if first is not case:
            here, there = (display_path(one.path, root) for one in (case, first))
            message = f"the {case.lane.value} case {case.id!r} is already at {there}:{first.line}; rename one of them"
            raise CaseMistake(here, case.line, "id", message)


def lane_of(path: Path, root: Path) -> Lane | None:
    """Return the lane whose name the nearest folder between a file and root bears, or None."""
    for folder in path.parents:
        if folder == root:
            break
        if folder.name in Lane.__members__.values():
            return Lane(folder.name)
    return None


def display_path(path: Path, root: Path | None) -> str:
    """Return a path as messages name it: relative to root where it lies below, on one line."""
    shown_path = path.relative_to(root) if root is not None and path.is_relative_to(root) else path
    text = shown_path.as_posix()
    return text if text.isprintable() else ascii(text)[1:-1]


def _stem(path: Path) -> str:
    return path.stem.removesuffix(".case")


class _Place:
    """One case in its file: turns places of the merged data into lines of the file."""

    def __init__(self, document: Document, name: str, prefix: Loc) -> None:
        self.document = document
        self.name = name
        self.prefix = prefix

    def locate(self, loc: Loc) -> tuple[int, str]:
        """Return line and dotted key of a place, in the case itself or else in the defaults that gave it."""
        bases: list[Loc] = [self.prefix, ("defaults",)] if self.prefix else [()]
        for end in range(len(loc), -1, -1):
            for base in bases:
                line = self.document.line(base + loc[:end])
                if line is not None and (end or base == self.prefix):
                    return line, dotted((base if end == len(loc) else self.prefix) + loc)
        return 1, dotted(self.prefix + loc)

    def mistake(self, loc: Loc, message: str) -> CaseMistake:
        line, key = self.locate(loc)
        return CaseMistake(self.name, line, key, message)

    def first(self, problems: list[Problem]) -> CaseMistake:
        """Return the mistake that stands first in the file."""
        return min((self.mistake(*problem) for problem in problems), key=lambda mistake: mistake.line or 0)


def _entries(document: Document, name: str) -> list[tuple[_Place, dict[str, Any], int]]:
    """Return place, data (with the defaults merged in) and line of each case in a file."""
    data = document.data
    whole = _Place(document, name, ())
    if not isinstance(data, dict):
        raise whole.mistake((), _NO_MAPPING.get(type(data), f"must hold a mapping, not {shown(data)}"))
    if "cases" not in data:
        if "defaults" in data:
            raise whole.mistake(("defaults",), "needs `cases:` beside it")
        line = document.line(()) or 1
        return [(whole, {key: value for key, value in data.items() if key != "$schema"}, line)]
    for key in data:
        if key not in _FILE_KEYS:
            move = "; what all cases share goes under `defaults:`" if key in CaseSpec.model_fields else ""
            raise whole.mistake((key,), f"unknown key beside `cases`; {did_you_mean(key, _FILE_KEYS)}{move}")
    defaults, cases = data.get("defaults", {}), data["cases"]
    if not isinstance(defaults, dict):
        raise whole.mistake(("defaults",), f"must be a mapping, not {shown(defaults)}")
    if "id" in defaults:
        raise whole.mistake(("defaults", "id"), "cannot be shared; give each case its own")
    if not isinstance(cases, list) or not cases:
        raise whole.mistake(("cases",), f"must be a list of at least one case, not {shown(cases)}")
    return [_entry(document, name, index, line, defaults) for index, line in enumerate(document.item_lines(("cases",)))]


def _entry(
    document: Document, name: str, index: int, line: int, defaults: dict[str, Any]
) -> tuple[_Place, dict[str, Any], int]:
    place = _Place(document, name, ("cases", index))
    data = document.data["cases"][index]
    if not isinstance(data, dict):
        raise CaseMistake(
            name, line, f"cases[{index}]", f"must be a mapping with the keys of a case, not {shown(data)}"
        )
    if "id" not in data and len(document.data["cases"]) > 1:
        raise place.mistake(("id",), "is required in a file with several cases")
    return place, _merged(defaults, data), line


def _merged(defaults: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return defaults with a case's own values over them: mappings merge, lists and scalars replace."""
    data = dict(defaults)
    for key, value in own.items():
        below = data.get(key)
        data[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return data


def _spec(place: _Place, data: dict[str, Any]) -> CaseSpec:
    try:
        spec = validate_spec(data)
    except ValidationError as exc:
        raise place.first(problems_of(exc, data)) from None
    if spec.id is None:
        stem = _stem(Path(place.name))
        try:
            validate_spec({"id": stem, "prompt": "x"})
        except ValidationError:
            raise place.mistake(
                ("id",), f"the file's name gives the id {stem!r}, which has a space, bracket or colon; give `id:`"
            ) from None
    return spec
