"""What a valid case also keeps, beyond its types: names that exist, patterns that compile, paths that stay inside."""

from __future__ import annotations

import functools
import re
import typing
import warnings
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from pydantic import BaseModel

from pytest_skilleval.casespec import (
    AntiPattern,
    CaseSpec,
    Check,
    JsonCheck,
    Lane,
    TextConditions,
    ToolCallCheck,
    WorkflowStep,
    WorkspaceSpec,
)
from pytest_skilleval.documents import Loc
from pytest_skilleval.model import BASE
from pytest_skilleval.variables import HOME_VARIABLES

from .spec import Problem, did_you_mean, shown

__all__ = ["broken_rules", "path_problem", "placing_problems", "regex_problem"]

_LANE_KEYS = {"expect": Lane.PROMPT, "forbid": Lane.PROMPT, "bundle": Lane.DOGFOOD, "report": Lane.DOGFOOD}
"""Keys that only one lane reads: elsewhere they would be ignored in silence."""


def broken_rules(
    spec: CaseSpec, lane: Lane, *, conditions: Collection[str] | None, anti_patterns: Collection[str] | None
) -> Iterator[Problem]:
    """Yield what is wrong with a case whose types are right.

    Args:
        spec: The case.
        lane: Its lane.
        conditions: The names that exist, or None where they are not known.
        anti_patterns: The names of the built-in ones, or None where they are not known.
    """
    for key, only in _LANE_KEYS.items():
        if getattr(spec, key) and lane is not only:
            yield Problem((key,), f"is read in the {only.value} lane only; this case is in {lane.value}")
    for loc, form, text in _marked(spec, ()):
        message = regex_problem(text) if form == "regex" else path_problem(text, up=loc == ("stale",))
        if message:
            yield Problem(loc, message)
    yield from _workspace(spec.workspace)
    yield from _names(spec, conditions, anti_patterns)
    yield from _twice(("checks",), [check.id for check in spec.checks])
    for index, check in enumerate(spec.checks):
        for place, why in _check_problems(check, spec):
            yield Problem(("checks", index, *place), why)
    yield from _workflow(spec.workflow)


# ----------------------------------------------------------------------------------------------------------- workspace


def _workspace(workspace: WorkspaceSpec) -> Iterator[Problem]:
    for loc, message in placing_problems(workspace.files, workspace.copies):
        yield Problem(("workspace", *loc), message)
    for place, source in workspace.copies.items():
        if bad := path_problem(source):
            yield Problem(("workspace", "copies", place), bad)
    for name, value in workspace.env.items():
        if not name or "=" in name or "\0" in name:
            why = f"{shown(name)} is no name of a variable; write a name without '='"
            yield Problem(("workspace", "env", name), why)
        elif "\0" in value:
            yield Problem(("workspace", "env", name), "holds a NUL, which no variable can; leave it out")
        elif name in HOME_VARIABLES:
            why = "belongs to the trial's isolated home, so that no case may set it; leave it out"
            yield Problem(("workspace", "env", name), why)


# -------------------------------------------------------------------------------------------------- patterns and paths


@functools.lru_cache(maxsize=65536)
def regex_problem(pattern: str) -> str | None:
    """Return why a pattern does not compile, or None."""
    try:
        with warnings.catch_warnings():
            # Python warns of sets that a later version may read otherwise; today they compile.
            warnings.simplefilter("ignore")
            re.compile(pattern, re.MULTILINE)
    except re.error as exc:
        at = f" at position {exc.pos}" if exc.pos is not None else ""
        return f"bad regular expression: {exc.msg}{at} in {pattern[:60]!r}"
    except (OverflowError, RecursionError, ValueError) as exc:
        return f"bad regular expression: {str(exc)[:60]} in {pattern[:60]!r}"
    return None


@functools.lru_cache(maxsize=65536)
def path_problem(text: str, *, up: bool = False) -> str | None:
    """Return why a text is no relative path that stays where it starts, or None.

    Args:
        text: What a case says.
        up: Whether `..` is allowed (a stale skill lies beside the lanes' folders, and is held to the project's folder).
    """
    path, windows = PurePosixPath(text), PureWindowsPath(text)
    if path.is_absolute() or windows.drive or windows.root:
        return f"{text[:60]!r} is absolute; write a path relative to the folder"
    if "\0" in text or "\n" in text:
        return f"{text[:60]!r} is no path"
    if ".." in windows.parts and not up:
        return f"{text[:60]!r} leaves its folder; write a path without '..'"
    if not path.parts:
        return f"{text[:60]!r} names the folder itself; name something in it"
    return None


def placing_problems(
    files: Collection[str], copies: Collection[str], copied_files: Collection[str] = ()
) -> Iterator[tuple[Loc, str]]:
    """Yield what is wrong with the places that a workspace's files get: key and name, and why.

    Args:
        files: Places of texts.
        copies: Places of copied files and folders; something else may be placed in a copied folder.
        copied_files: Those of the copies that are files, as far as that is known.
    """
    known = {PurePosixPath(name).parts: name for name in (*files, *copied_files)}
    for key, names in (("files", files), ("copies", copies)):
        for name in names:
            parts = PurePosixPath(name).parts
            if message := path_problem(name):
                yield (key, name), message
            elif parts[0].casefold() == ".git":
                yield (key, name), f"{name[:60]!r} lies in the workspace's own repository; run git in workspace.setup"
            elif above := next((known[parts[:end]] for end in range(1, len(parts)) if parts[:end] in known), None):
                yield (key, name), f"{name[:60]!r} needs a folder where {above[:60]!r} is a file; rename one of them"


@functools.lru_cache
def _plan(model: type[BaseModel]) -> tuple[tuple[str, str | None], ...]:
    """Return the fields of a model that hold patterns or paths (with their form) or further models (None)."""
    plan: list[tuple[str, str | None]] = []
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        form = extra.get("format") if isinstance(extra, dict) else _form(field.annotation)
        if form is not None:
            plan.append((name, str(form)))
        elif _holds_model(field.annotation):
            plan.append((name, None))
    return tuple(plan)


def _form(annotation: Any) -> Any:
    for part in typing.get_args(annotation):
        extra = getattr(part, "json_schema_extra", None)
        form = extra.get("format") if isinstance(extra, dict) else _form(part)
        if form is not None and not _holds_model(annotation):
            return form
    return None


def _holds_model(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(_holds_model(part) for part in typing.get_args(annotation))


def _marked(value: BaseModel, loc: Loc) -> Iterator[tuple[Loc, str, str]]:
    """Yield each pattern and path that was given, with its place."""
    for name, form in _plan(type(value)):
        if name not in value.model_fields_set:
            continue
        field = getattr(value, name)
        items = enumerate(field) if isinstance(field, tuple) else [(None, field)]
        for index, item in items:
            here = (*loc, name) if index is None else (*loc, name, index)
            if form is None and isinstance(item, BaseModel):
                yield from _marked(item, here)
            elif form is not None and isinstance(item, str):
                yield here, form, item


# --------------------------------------------------------------------------------------------------------------- names


def _names(
    spec: CaseSpec, conditions: Collection[str] | None, anti_patterns: Collection[str] | None
) -> Iterator[Problem]:
    given: list[tuple[Loc, str]] = [(("conditions", i), name) for i, name in enumerate(spec.conditions or ())]
    yield from _twice(("conditions",), list(spec.conditions or ()), key=())
    if isinstance(spec.stub.solve_rate, dict):
        # A baseline side of its own rate rehearses `--skilleval-against`.
        given += [(("stub", "solve_rate", name), name.removesuffix(BASE)) for name in spec.stub.solve_rate]
    if isinstance(spec.min_pass_rate, dict):
        given += [(("min_pass_rate", name), name) for name in spec.min_pass_rate]
    if conditions is not None:
        for loc, name in given:
            if name not in conditions:
                yield Problem(loc, f"{name!r} is no condition; {did_you_mean(name, conditions)}")
    yield from _unasked_gates(spec)
    yield from _twice(("anti_patterns",), [a.id if isinstance(a, AntiPattern) else a for a in spec.anti_patterns], ())
    for index, item in enumerate(spec.anti_patterns):
        if isinstance(item, str) and anti_patterns is not None and item not in anti_patterns:
            message = f"{item!r} is no built-in anti-pattern; {did_you_mean(item, anti_patterns)}"
            yield Problem(("anti_patterns", index), message)


def _unasked_gates(spec: CaseSpec) -> Iterator[Problem]:
    if not isinstance(spec.min_pass_rate, dict) or spec.conditions is None:
        return
    own = ", ".join(spec.conditions)
    for name in spec.min_pass_rate:
        if name not in spec.conditions:
            message = f"{name!r} is none of this case's conditions ({own}), so that nothing is gated"
            yield Problem(("min_pass_rate", name), f"{message}; add it there, or leave it out here")


def _twice(loc: Loc, names: list[str], key: Loc = ("id",)) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            index = names.index(name, names.index(name) + 1)
            first = f"{loc[0]}[{names.index(name)}]"
            yield Problem((*loc, index, *key), f"{name!r} is taken by {first}; each must be named once")


# -------------------------------------------------------------------------------------------------------------- checks


def _check_problems(check: Check, spec: CaseSpec) -> Iterator[tuple[Loc, str]]:
    given = check.model_fields_set
    if check.kind in {"text", "output"} and not given & _TEXT_CONDITIONS:
        also = "equals, " if check.kind == "text" else ""
        yield (), f"can never fail; give {also}contains, matches or never"
    elif check.kind == "file" and not check.exists:
        for key in sorted(given & (_TEXT_CONDITIONS | {"changed"})):
            yield (key,), "cannot hold for a file that must be absent (exists: false)"
    elif check.kind == "skill" and check.name is None and spec.skill == "none":
        yield (), "this case has no skill; give name"
    elif isinstance(check, JsonCheck | ToolCallCheck):
        yield from _limits(check, given)
    elif check.kind == "event-log":
        yield from _event_patterns(check.events)


_TEXT_CONDITIONS = frozenset(TextConditions.model_fields)


def _limits(check: JsonCheck | ToolCallCheck, given: set[str]) -> Iterator[tuple[Loc, str]]:
    # `max: 0` alone says never, though the least number is 1 by default.
    if check.min is not None and check.max is not None and check.max < check.min and {"min", "max"} <= given:
        yield ("max",), f"{check.max:g} is less than min {check.min:g}"


def _event_patterns(events: tuple[dict[str, Any], ...]) -> Iterator[tuple[Loc, str]]:
    for index, event in enumerate(events):
        for key, value in event.items():
            if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == "/":
                message = regex_problem(value[1:-1])
                if message:
                    yield ("events", index, key), message


def _workflow(steps: tuple[WorkflowStep, ...]) -> Iterator[Problem]:
    known = [step.id for step in steps]
    yield from _twice(("workflow",), known)
    waits = {step.id: set(step.after) for step in steps}
    for index, step in enumerate(steps):
        if not step.must and not step.never:
            yield Problem(("workflow", index), "asks for nothing; give must or never")
        for position, name in enumerate(step.after):
            if name not in waits:
                message = f"{name!r} is no step of this workflow; {did_you_mean(name, known)}"
                yield Problem(("workflow", index, "after", position), message)
    while ready := {name for name, after in waits.items() if not after & waits.keys()}:
        for name in ready:
            del waits[name]
    for index, step in enumerate(steps):
        if step.id in waits:
            yield Problem(("workflow", index, "after"), f"the steps {', '.join(sorted(waits))} wait for each other")
            return
