"""Where cases lie: which files a session collects, found without importing what reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_skilleval import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from pytest_skilleval.options import Settings

__all__ = ["case_files", "is_case_file", "named_places"]

_SUFFIXES = (".yaml", ".yml", ".json")


def is_case_file(path: Path, settings: Settings, *, named: bool) -> bool:
    """Tell whether a file is collected as a case file.

    In a lane folder, `*.case.yaml` below, JSON in an `evals` folder below, or named by the user.
    """
    if path.suffix not in _SUFFIXES:
        return False
    if named:
        return True
    for folder in settings.paths:
        if path.parent.parent == folder and path.parent.name in options.LANES:
            return True
        below = path.is_relative_to(folder)
        if below and (path.name.endswith((".case.yaml", ".case.yml")) or _is_foreign_place(path) or path == folder):
            return True
    return False


def _is_foreign_place(path: Path) -> bool:
    """Tell whether a file lies where skills keep their evals."""
    return path.suffix == ".json" and path.parent.name in ("evals", "evaluations")


def case_files(config: pytest.Config) -> Iterator[Path]:
    """Yield the case files that the session's arguments reach, without importing what reads them."""
    settings = config.stash[options.SETTINGS]
    roots = named_places(config)
    for root in roots:
        if root.is_file() and is_case_file(root, settings, named=True):
            yield root
    for folder in settings.paths:
        for path in sorted(_data_files(folder)) if folder.is_dir() else [folder]:
            reached = any(path.is_relative_to(root) and path != root for root in roots)
            if reached and is_case_file(path, settings, named=False) and not _ignored(config, path):
                yield path


def _data_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML and JSON files below a folder; links to folders are not followed."""
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(_SUFFIXES):
                yield Path(place, name)


def named_places(config: pytest.Config) -> list[Path]:
    """Return what the session's arguments name, in order."""
    places = ((config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args)
    return list(dict.fromkeys(places))


def _ignored(config: pytest.Config, path: Path) -> bool:
    return bool(config.hook.pytest_ignore_collect(collection_path=path, config=config))
