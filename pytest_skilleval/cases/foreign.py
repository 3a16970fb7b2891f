"""Any file that may hold cases: what it is, and its cases."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_skilleval.casespec import CaseSpec, Lane
from pytest_skilleval.documents import Document, read_document
from pytest_skilleval.errors import CaseMistake
from pytest_skilleval.memory import collector_held
from pytest_skilleval.model import Case

from .adoption import skill_root_of
from .casefile import display_path, lane_of, load_case_file
from .evalsjson import read_evals
from .spec import shown
from .triggers import LISTS, SIDES, read_triggers

__all__ = ["CasesOfFile", "Sniffed", "load_cases", "load_evals_file", "load_trigger_file", "sniff"]

Kind = Literal["case", "evals", "triggers"]
_CASE_KEYS = frozenset(CaseSpec.model_fields) | {"cases", "defaults", "$schema"}
_EVAL_MARKS = frozenset(
    {"assertions", "expectations", "expected_output", "expected_behavior", "success_criteria", "expect", "fail"}
    | {"must_have", "must_not_have", "scenario_type", "eval_id", "eval_name", "prompt_baseline"}
)
"""Keys that only cases of an evals.json have."""
_ASKS = ("prompt", "query", "command")
_RESULTS = {
    "run_summary": "a benchmark.json",
    "assertion_results": "a grading.json",
    "execution_metrics": "a grading.json",
    "total_duration_seconds": "a timing.json",
}


_ENDINGS = frozenset({".json", ".yaml", ".yml"})


class Sniffed(NamedTuple):
    """What a file is."""

    kind: Kind | None
    """A case file of ours, an evals.json, a list of trigger queries, or None."""
    reason: str
    """What tells; for None, why it is none of them."""


class CasesOfFile(NamedTuple):
    """What a file holds."""

    kind: Kind
    cases: list[Case]
    notes: list[str]
    """What the user should hear of it, one line each."""
    skill_root: Path | None
    """The folder of the skill that a foreign file belongs to: a skill under test, wherever it lies."""


def sniff(path: Path) -> Sniffed:
    """Return what a file is, by its content.

    Raises:
        CaseMistake: It cannot be read, or is neither YAML nor JSON.
    """
    if path.suffix.lower() not in _ENDINGS:
        return Sniffed(None, f"holds no cases: {path.suffix or 'a file without ending'} is neither YAML nor JSON")
    return _sniff(read_document(path, strict=False).data)


def load_cases(
    path: Path,
    *,
    root: Path,
    lane: Lane | None = None,
    conditions: Collection[str] | None = None,
    anti_patterns: Collection[str] | None = None,
    others: Literal["refuse", "skip"] = "refuse",
) -> CasesOfFile:
    """Read a file of any kind that may hold cases.

    Args:
        path: A case file, an evals.json or a list of trigger queries.
        root: As for `load_case_file`.
        lane: The same.
        conditions: The same.
        anti_patterns: The same.
        others: Whether a file that holds something else is a mistake, or no cases.

    Raises:
        CaseMistake: It is none of them, with the reason; or with file, line and key of the first thing that is wrong.
    """
    name = display_path(path, root)
    is_ours = path.suffix.lower() != ".json" and (path.name.endswith(".case.yaml") or lane_of(path, root) is not None)
    if path.suffix.lower() not in _ENDINGS:
        raise CaseMistake(name, None, "", sniff(path).reason)
    with collector_held():
        document = None if is_ours else read_document(path, name=name, strict=False)
        found = Sniffed("case", "by its place") if document is None else _sniff(document.data)
        if found.kind is None and others == "skip":
            return CasesOfFile("case", [], [], None)
        if found.kind is None:
            raise CaseMistake(name, None, "", found.reason)
        if document is not None and found.kind != "case":
            return _foreign(document, path, name, found.kind, skill_root_of(path, root))
    cases = load_case_file(path, root=root, lane=lane, conditions=conditions, anti_patterns=anti_patterns)
    return CasesOfFile("case", cases, [], None)


def load_evals_file(path: Path, skill_root: Path | None = None) -> list[Case]:
    """Read an evals.json.

    Args:
        path: The file.
        skill_root: The skill's folder; the nearest one above the file that holds a SKILL.md by default.

    Raises:
        CaseMistake: It is something else, with the reason; or with line and key of what cannot be read.
    """
    return _load(path, "evals", skill_root)


def load_trigger_file(path: Path, skill_root: Path | None = None) -> list[Case]:
    """Read a list of trigger queries; arguments and errors as for `load_evals_file`."""
    return _load(path, "triggers", skill_root)


def _load(path: Path, kind: Kind, skill_root: Path | None) -> list[Case]:
    document = read_document(path, strict=False)
    found = _sniff(document.data)
    if found.kind != kind:
        raise CaseMistake(path, None, "", found.reason)
    return _foreign(document, path, str(path), kind, skill_root or skill_root_of(path)).cases


def _foreign(document: Document, path: Path, name: str, kind: Kind, skill_root: Path | None) -> CasesOfFile:
    read = read_evals if kind == "evals" else read_triggers
    cases, notes = read(document, path, name, skill_root)
    return CasesOfFile(kind, cases, notes, skill_root)


# ------------------------------------------------------------------------------------------------------------ sniffing


def _sniff(data: Any) -> Sniffed:
    if isinstance(data, list):
        return _sniff_list(data)
    if not isinstance(data, dict):
        return Sniffed(None, f"holds no cases: it is {'empty' if data is None else shown(data)}")
    if any(key in data and isinstance(data[key], list) for key in SIDES):
        return Sniffed("triggers", "it has lists of what should and should not trigger")
    for key in LISTS:
        if isinstance(data.get(key), list) and any(isinstance(i, dict) and "should_trigger" in i for i in data[key]):
            return Sniffed("triggers", f"its {key} have should_trigger")
    if isinstance(data.get("evals"), list):
        return Sniffed("evals", "it has a list of evals")
    for key, what in _RESULTS.items():
        if key in data:
            return Sniffed(None, f"holds results, not cases: it looks like {what}; name the evals.json instead")
    if "cases" in data or "defaults" in data:
        return Sniffed("case", "it has a list of cases")
    return _sniff_one(data)


def _sniff_one(data: dict[str, Any]) -> Sniffed:
    asks = any(isinstance(data.get(key), str) for key in _ASKS)
    if asks and _EVAL_MARKS & data.keys() and not ("expect" in data and data.keys() <= _CASE_KEYS):
        return Sniffed("evals", "it is one case with assertions")
    if "prompt" in data or len(_CASE_KEYS & data.keys()) >= 2:
        return Sniffed("case", "it has the keys of a case")
    return Sniffed(None, f"holds no cases: no prompt among its keys ({_keys(data)})")


def _sniff_list(data: list[Any]) -> Sniffed:
    items = [item for item in data if isinstance(item, dict)]
    if not items:
        return Sniffed(None, f"holds no cases: it is a list of {len(data)} items, none of them a mapping")
    if any("should_trigger" in item for item in items):
        return Sniffed("triggers", "its items have should_trigger")
    asking = [item for item in items if any(isinstance(item.get(key), str) for key in _ASKS)]
    if any(_EVAL_MARKS & item.keys() for item in asking):
        return Sniffed("evals", "its items have prompts and assertions")
    if asking:
        return Sniffed("case", "its items have prompts")
    return Sniffed(None, f"holds no cases: a list of {len(items)} mappings without prompt or query ({_keys(items[0])})")


def _keys(data: dict[str, Any]) -> str:
    names = [str(key)[:30] for key in data]
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
