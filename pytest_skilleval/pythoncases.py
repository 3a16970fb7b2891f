"""Cases that are test functions: what the marker says, their ids, and a fingerprint of what they ask."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from pytest_skilleval.cases import broken_rules, build_case, dotted, problems_of, validate_spec
from pytest_skilleval.casespec import Lane
from pytest_skilleval.collection import WorkItem, adopt, mark_node
from pytest_skilleval.errors import CaseMistake
from pytest_skilleval.frozen import digest_text
from pytest_skilleval.scoring.antipatterns import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from pytest_skilleval.collection import Evals
    from pytest_skilleval.model import Case

__all__ = ["adopt_function", "parametrize"]


def parametrize(metafunc: pytest.Metafunc, evals: Evals) -> None:
    """Parametrize a test function that bears `@pytest.mark.skilleval` and takes the `skilleval` fixture."""
    case = _python_case(metafunc, evals.bench.conditions)
    work = list(evals.work(case)) if evals.selects(case) else []
    metafunc.parametrize("skilleval", work, indirect=True, ids=[f"{one.condition.name}-{one.trial}" for one in work])


def adopt_function(item: pytest.Function) -> bool:
    """Tell whether an item is a Python case, and make its work item known."""
    spec: Any = getattr(item, "callspec", None)
    work = spec.params.get("skilleval") if spec is not None else None
    if not isinstance(work, WorkItem):
        return False
    _refuse_repeats(item, work)
    if len(spec.params) > 1:
        case = work.case.model_copy(update={"id": f"{work.case.id}-{_other_parameters(spec.id, work)}"})
        work = WorkItem.of(case, work.condition, work.trial)
    adopt(item, work)
    for name in (work.case.lane.value, work.case.spec.category, work.case.spec.skill):
        mark_node(item, name)
    return True


def _other_parameters(given: str, work: WorkItem) -> str:
    """Return what tells a function's other parameters apart, as part of an id.

    It is pytest's own id of them, which is the same in every process (a value's repr may hold an address) and which
    `ids=` sets. What an id may not hold is replaced, and a digest keeps apart what has become alike.

    Args:
        given: Pytest's id of all parameters.
        work: The work item, whose own part is left out.
    """
    own = f"{work.condition.name}-{work.trial}"
    text = given.removeprefix(f"{own}-") if given.startswith(f"{own}-") else given.removesuffix(f"-{own}")
    name = re.sub(r"[^\w.-]+", "_", text)[:60]
    return name if name == text else f"{name}-{digest_text(text)[:6]}"


def _refuse_repeats(item: pytest.Function, work: WorkItem) -> None:
    """Refuse marks of other plugins that would run a trial again.

    Raises:
        CaseMistake: The function bears one, and its plugin is there to act on it.
    """
    plugins = item.config.pluginmanager
    for name, plugin, why in (
        ("flaky", "rerunfailures", "reruns turn misses into passes; use --trials N, which counts each trial"),
        ("repeat", "repeat", "repeats would count as other cases; use --trials N, which keeps trials apart"),
    ):
        if item.get_closest_marker(name) is not None and plugins.hasplugin(plugin):
            raise CaseMistake(work.case.path, work.case.line, f"@pytest.mark.{name}", why)


_MARK_KEYS = ("lane", "case", "skill", "category", "conditions", "min_pass_rate", "budget")


def _python_case(metafunc: pytest.Metafunc, conditions: Collection[str]) -> Case:
    marker = metafunc.definition.get_closest_marker("skilleval")
    assert marker is not None  # noqa: S101 - asked by the hook
    function = metafunc.function
    path = metafunc.definition.path
    line = inspect.unwrap(function).__code__.co_firstlineno
    unknown = sorted(set(marker.kwargs) - set(_MARK_KEYS))
    if marker.args or unknown:
        raise CaseMistake(
            path,
            line,
            "@pytest.mark.skilleval",
            f"unknown {', '.join(unknown) or 'positional argument'}; choose from {', '.join(_MARK_KEYS)}",
        )
    values = dict(marker.kwargs)
    lane = values.pop("lane", "execution")
    name = values.pop("case", None) or function.__name__.removeprefix("test_").replace("_", "-")
    if lane not in list(Lane):
        raise CaseMistake(path, line, "lane", f"{lane!r}; choose from {', '.join(Lane)}")
    if "conditions" in values:
        values["conditions"] = list(values["conditions"])
    data = {"id": name, "prompt": "(asked by the test function)", **values}
    try:
        spec = validate_spec(data)
    except ValidationError as error:
        problem = problems_of(error, data)[0]
        raise CaseMistake(path, line, dotted(problem.loc), problem.message) from None
    broken = next(broken_rules(spec, Lane(lane), conditions=conditions, anti_patterns=BUILT_IN), None)
    if broken is not None:
        raise CaseMistake(path, line, dotted(broken.loc), broken.message)
    return build_case(
        spec,
        lane=Lane(lane),
        path=path,
        line=line,
        digests=_source_digests(function, path),
        python=True,
    )


def _source_digests(function: Callable[..., object], path: Path) -> dict[str, str]:
    """Return digests of a test function, and of all in its file that it may share with others: what it asks is there.

    Other tests of the file are left out: a change to one of them changes no other case.
    """
    return {
        "function": digest_text(inspect.getsource(function)),
        "module": _shared_digest(path, path.stat().st_mtime_ns),
    }


@functools.lru_cache(maxsize=64)
def _shared_digest(path: Path, _changed: int) -> str:
    """Return the digest of a file of tests without its test functions and methods, comments and empty lines."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    tests = {
        number
        for node in (*tree.body, *(inner for one in classes for inner in one.body))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
        for number in range(
            min([node.lineno, *(one.lineno for one in node.decorator_list)]), (node.end_lineno or 0) + 1
        )
    }
    lines = [line.rstrip() for number, line in enumerate(text.splitlines(), 1) if number not in tests]
    return digest_text("\n".join(line for line in lines if line and not line.lstrip().startswith("#")))
