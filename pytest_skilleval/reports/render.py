"""report.json from a judged run; same report, same bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_skilleval.results import Report

__all__ = ["as_json"]


def as_json(report: Report) -> str:
    """Render report.json: sorted keys, one group or trial a line, no NaN.

    The standard library writes indented JSON ten times slower; a line for each item can be read and compared as well.
    """
    value = report.model_dump(mode="json", by_alias=True)
    parts = (f"{json.dumps(key)}: {_block(value[key])}" for key in sorted(value))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _block(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {_line(item)}" for item in value) + "\n]"
    return _line(value)


def _line(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=True)
