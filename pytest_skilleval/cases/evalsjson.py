"""evals.json, in every shape that repositories hold, to execution cases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_skilleval.casespec import Lane
from pytest_skilleval.documents import Document, Loc
from pytest_skilleval.frozen import canonical_json
from pytest_skilleval.model import Case

from .adoption import Adoption, numbered, slug
from .assertions import Asserted, check_of, prose
from .rules import path_problem
from .spec import shown

__all__ = ["read_evals"]

_FILE_KEYS = frozenset({"evals", "skill_name", "$schema"})
_PROMPT = ("prompt", "query", "command")
_NAMES = ("id", "eval_id", "eval_name", "name")
_USED = frozenset(
    {*_NAMES, "prompt", "query", "expected_output", "files", "category", "description", "skill", "skills"}
    | {"assertions", "expectations", "expected_behavior", "success_criteria"}
    | {"expect", "fail", "must_have", "must_not_have"}
)
_FILE_NAMES = ("path", "name", "filename", "file")
_CONTENTS = ("content", "contents", "text")
_ABOUT_FILES = frozenset({*_FILE_NAMES, *_CONTENTS, "description", "type", "url", "source", "purpose", "note"})
"""Keys that say something of a file; no mapping that has one of them is one of names to texts."""
_LISTS = ("assertions", "expectations", "expected_behavior", "success_criteria")
"""Lists of assertions; the first two are one thing with two names."""
_MARKED = {
    "expect": "{}",
    "fail": "This must not happen: {}",
    "must_have": "This must be there: {}",
    "must_not_have": "This must not be there: {}",
}
"""Texts, or lists of texts, whose key says what they mean."""


def read_evals(document: Document, path: Path, name: str, skill_root: Path | None) -> tuple[list[Case], list[str]]:
    """Return the cases of an evals.json, and what the user should hear of it.

    Args:
        document: The file: an object with `evals`, a list of cases, or one case.
        path: Where it lies.
        name: What messages call it.
        skill_root: The skill's folder; paths of files start from it.

    Raises:
        CaseMistake: With the line and key of what cannot be read.
    """
    data = document.data
    adopted = Adoption(document, path, name, skill_root)
    whole = data if isinstance(data, dict) and "evals" in data else {}
    skill = adopted.skill_of_file(whole.get("skill_name"))
    beside = {key: value for key, value in whole.items() if key not in _FILE_KEYS}
    adopted.unused(beside)
    for loc, item in _items(adopted):
        if not isinstance(item, dict):
            raise adopted.mistake(loc, f"must be a mapping with a prompt, not {shown(item)}")
        _adopt(adopted, loc, item, skill, beside)
    return adopted.done()


def _items(adopted: Adoption) -> Iterator[tuple[Loc, Any]]:
    data: Any = adopted.document.data
    loc: Loc = ()
    if isinstance(data, dict):
        if "evals" not in data:
            yield (), data
            return
        data, loc = data["evals"], ("evals",)
    if not isinstance(data, list) or not data:
        raise adopted.mistake(loc, f"must be a list of at least one case, not {shown(data)}")
    for index, item in enumerate(data):
        yield (*loc, index), item


def _adopt(adopted: Adoption, loc: Loc, item: dict[str, Any], skill: str | None, beside: dict[str, Any]) -> None:
    found = adopted.text(item, _PROMPT, loc)
    if found is None:
        raise adopted.mistake(loc, f"has no prompt; its keys are {', '.join(map(str, item)) or 'none'}")
    prompt_key, prompt = found
    own = _skill(adopted, loc, item) or skill
    if own is None:
        raise adopted.mistake(loc, "says no skill; put the file into the skill's folder, or give skill_name")
    checks, kept = _checks(adopted, loc, item)
    extra = {key: value for key, value in item.items() if key not in _USED and key != prompt_key}
    adopted.unused(extra)
    if kept:
        extra["assertions"] = kept
    if isinstance(item.get("skills"), list) and len(item["skills"]) > 1:
        extra["skills"] = item["skills"]
    label = next((str(item[key]) for key in _NAMES if item.get(key) not in (None, "")), "")
    category = item.get("category")
    data: dict[str, Any] = {
        "id": adopted.identify(own, label, prompt, loc),
        "skill": own,
        "category": category if isinstance(category, str) and category.strip() else "general",
        "description": _description(item),
        "prompt": prompt,
        "checks": checks,
    }
    if item.get("files"):
        data["workspace"] = _workspace(adopted, loc, item["files"], prompt)
    adopted.add(Lane.EXECUTION, data, loc, {**extra, **({"file": beside} if beside else {})})


def _skill(adopted: Adoption, loc: Loc, item: dict[str, Any]) -> str | None:
    named = item.get("skills")
    if isinstance(named, list) and named and isinstance(named[0], str) and named[0].strip():
        return named[0]
    found = adopted.text(item, ("skill",), loc)
    return found[1] if found else None


def _description(item: dict[str, Any]) -> str:
    """Return what people are told: the case's name, its description and what is expected."""
    parts = [item.get(key) for key in ("eval_name", "name", "description", "expected_output")]
    return "\n\n".join(part if isinstance(part, str) else canonical_json(part) for part in parts if part)


# ---------------------------------------------------------------------------------------------------------- assertions


def _checks(adopted: Adoption, loc: Loc, item: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a case's checks, and by their ids what of the assertions is kept without being used."""
    checks: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    ids: set[str] = set()
    if item.get("assertions") and item.get("expectations"):
        adopted.note("assertions and expectations are both given: they are read as one list")
    for made, source, place in _asserted(adopted, loc, item):
        named_by = next((key for key in ("id", "name") if source.get(key) not in (None, "")), "")
        label = slug(source.get(named_by, ""))
        if label.isdigit() or not label:
            label = f"assertion-{label or len(checks) + 1}"
        check_id = next(name for name in numbered(label) if name not in ids)
        ids.add(check_id)
        checks.append({"id": check_id, **made.check})
        if made.note:
            adopted.note(f"{made.note} (first on line {adopted.line(place)})")
        left = {key: value for key, value in source.items() if key not in made.used and key != named_by}
        if left:
            kept[check_id] = left
            # A type that is not run has a note of its own.
            adopted.unused(f"assertions[].{key}" for key in left if key != "type")
    if not checks and (expected := item.get("expected_output")):
        statement = expected if isinstance(expected, str) else canonical_json(expected)
        checks.append({"id": "expected-output", "kind": "rubric", "statement": statement})
    if not checks:
        adopted.note(f"cases without any assertion pass when the agent finishes (first on line {adopted.line(loc)})")
    return checks, kept


def _asserted(adopted: Adoption, loc: Loc, item: dict[str, Any]) -> Iterator[tuple[Asserted, dict[str, Any], Loc]]:
    """Yield each assertion as a check, as its object, and with its place."""
    seen: list[tuple[str, Any]] = []
    for key in _LISTS:
        for index, entry in enumerate(_as_list(item.get(key))):
            place = (*loc, key, index) if isinstance(item[key], list) else (*loc, key)
            if any(entry == before for other, before in seen if {other, key} == {"assertions", "expectations"}):
                continue
            seen.append((key, entry))
            if isinstance(entry, str) and entry.strip():
                yield prose(entry), {}, place
            elif isinstance(entry, dict) and entry:
                yield check_of(entry), entry, place
            else:
                raise adopted.mistake(place, f"must be text or a mapping that is not empty, not {shown(entry)}")
    for key, words in _MARKED.items():
        for entry in _as_list(item.get(key)):
            yield prose(words.format(entry if isinstance(entry, str) else canonical_json(entry))), {}, (*loc, key)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, dict) and value and all(isinstance(text, str) for text in value.values()):
        keys = value.keys() & {"text", "description", "type", "check", "value", "statement"}
        return [value] if keys else [{"name": name, "description": text} for name, text in value.items()]
    return value if isinstance(value, list) else [value]


# --------------------------------------------------------------------------------------------------------------- files


def _workspace(adopted: Adoption, loc: Loc, files: Any, prompt: str) -> dict[str, Any]:
    """Return what lies in the workspace: files of the skill under the names that the prompt uses, and given texts.

    An empty `files` is not asked for here.
    """
    whole = (*loc, "files")
    entries = (
        [((*whole, index), one) for index, one in enumerate(files)] if isinstance(files, list) else [(whole, files)]
    )
    texts: dict[str, str] = {}
    sources: list[str] = []
    for place, entry in entries:
        given = _given(entry) if isinstance(entry, dict) else entry
        if isinstance(given, dict) and given:
            texts |= given
        elif isinstance(given, str) and given.strip():
            sources.append(_source(adopted, place, given.strip()))
        else:
            raise adopted.mistake(place, f"must be a path, or a mapping with path and content, not {shown(entry)}")
    return {"copies": _named_for(adopted, sources, prompt), "files": texts}


def _given(entry: dict[str, Any]) -> dict[str, str] | str | None:
    """Return the texts that a mapping gives, by name, or the path that it names; None where it is neither."""
    name = next((entry[key] for key in _FILE_NAMES if isinstance(entry.get(key), str)), None)
    contents = [entry[key] for key in _CONTENTS if key in entry]
    if name is not None:
        return name if not contents else {name: contents[0]} if isinstance(contents[0], str) else None
    if entry.keys() & _ABOUT_FILES or not all(isinstance(value, str) for value in entry.values()):
        return None
    return dict(entry)


def _source(adopted: Adoption, place: Loc, text: str) -> str:
    """Return a file's path relative to the skill's folder; it may be written relative to the evals file too."""
    if "://" in text:
        raise adopted.mistake(place, f"{shown(text)} is an address; put the file beside the evals and name its path")
    if problem := path_problem(text):
        raise adopted.mistake(place, problem)
    for base in (adopted.base, adopted.path.parent):
        if os.path.lexists(base / text):
            return PurePosixPath(os.path.relpath(base / text, adopted.base)).as_posix()
    raise adopted.mistake(place, f"{shown(text)} is not there; it is looked for in {adopted.base}")


def _named_for(adopted: Adoption, sources: list[str], prompt: str) -> dict[str, str]:
    """Return the place in the workspace of each source, and the source relative to the evals file.

    A file bears its bare name, as the prompts of such files speak of it, unless the prompt gives its path or two files
    share a name.
    """
    names = [PurePosixPath(source).name for source in sources]
    copies = {}
    for source, name in zip(sources, names, strict=True):
        as_written = source in prompt or names.count(name) > 1
        copies[source if as_written else name] = os.path.relpath(adopted.base / source, adopted.path.parent)
    return copies
