"""Where the runs of a project lie, seen from any folder below it."""

from __future__ import annotations

import configparser
import shlex
import tomllib
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CASE_FOLDERS", "SKILL_FOLDERS", "Place", "add_output", "place_of"]

RUNS = Path(".skilleval/runs")
CASE_FOLDERS = ("cases",)
"""Where cases lie unless `skilleval_paths` says otherwise."""
SKILL_FOLDERS = ("skills", ".claude/skills", ".agents/skills")
"""Where skills under test lie unless `skilleval_skills` says otherwise."""
_MARKS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml")
"""The files that make a folder a project, the first that is there being the one pytest reads."""


class Place(NamedTuple):
    """Where a command looks."""

    root: Path
    """The project."""
    output: Path
    """Where its runs go."""

    def listed(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Return an ini key that holds a list, as pytest would read it."""
        value = _configured(self.root, key)
        if isinstance(value, str):
            value = shlex.split(value)
        return tuple(str(one) for one in value) if isinstance(value, list) and value else default

    @property
    def configured(self) -> bool:
        """Whether the project has a file that pytest reads."""
        return any((self.root / name).is_file() for name in _MARKS)

    @property
    def blessed(self) -> Path:
        """Where blessed reports lie."""
        return self.output.parent / "blessed"


def add_output(parser: ArgumentParser) -> None:
    """Add `--output`."""
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help="where the runs are (default: the project's skilleval_output, else .skilleval/runs)",
    )


def place_of(arguments: Namespace) -> Place:
    """Return where a command looks.

    The project is the current folder or its nearest parent that holds runs or a pytest configuration.
    """
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if _is_project(folder)), here)
    given: Path | None = arguments.output
    if given is not None:
        return Place(root, here / given)
    configured = _configured(root, "skilleval_output")
    return Place(root, root / (configured if isinstance(configured, str) and configured else RUNS))


def _is_project(folder: Path) -> bool:
    return (folder / RUNS).is_dir() or any((folder / name).is_file() for name in _MARKS)


def _configured(root: Path, key: str) -> object:
    """Return an ini key, or None; a file that cannot be read is pytest's to complain about."""
    for name in _MARKS:
        path = root / name
        if not path.is_file():
            continue
        try:
            return _sections(path).get(key)
        except (OSError, ValueError, configparser.Error):
            return None
    return None


def _sections(path: Path) -> dict[str, Any]:
    """Return what a configuration file says to pytest."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".toml":
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(text)
        return dict(parser["pytest"]) if parser.has_section("pytest") else {}
    data: dict[str, Any] = tomllib.loads(text)
    if path.name == "pyproject.toml":
        data = data.get("tool", {})
    pytest_table = data.get("pytest", {})
    return {**pytest_table, **pytest_table.get("ini_options", {})}
