"""What pyproject.toml says below `[tool.skilleval]`: tables of providers, of error classes and of waits."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pytest_skilleval.errors import OptionMistake

__all__ = ["provider_table", "skilleval_table"]


def provider_table(root: Path, name: str) -> dict[str, Any]:
    """Return `[tool.skilleval.providers.<name>]` of pyproject.toml, or nothing."""
    found = skilleval_table(root, "providers").get(name, {}) if re.fullmatch(r"[\w.-]+", name) else {}
    return dict(found) if isinstance(found, dict) else {}


def skilleval_table(root: Path, name: str) -> dict[str, Any]:
    """Return `[tool.skilleval.<name>]` of pyproject.toml, or nothing.

    Raises:
        OptionMistake: The file is no TOML.
    """
    path = root / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise OptionMistake(f"{path}: {error}") from None
    found = table.get("tool", {}).get("skilleval", {}).get(name, {})
    return dict(found) if isinstance(found, dict) else {}
