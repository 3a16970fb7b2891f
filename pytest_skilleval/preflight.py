"""Before the first trial: read every case, leave ordinary tests out, take the run folder."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval import collection, pythoncases, resume
from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.journal import claim_run, read_plan, take_over, write_plan
from pytest_skilleval.records import ExpectedGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_skilleval.collection import Evals
    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import AgainstRef, Plan

__all__ = ["claim", "expected", "floors", "groups", "planned", "preflight", "select", "sides", "take_up"]


def preflight(evals: Evals, paths: Sequence[Path]) -> dict[str, Any]:
    """Read all case files, find the skills and the provider.

    Returns:
        What is handed to the workers: the provider as detected.

    Raises:
        UserMistake: Something cannot be used; nothing has started yet.
    """
    evals.bench.sweep()
    evals.preflight(paths)
    return evals.bench.info.model_dump(mode="json")


def take_up(settings: Settings) -> tuple[str, int, Settings]:
    """Find the run to resume and wait until nobody works on it any more.

    Returns:
        Its id, the descriptor that holds it for this session, and the settings with its number of trials.

    Raises:
        RunFolderMistake: There is none, somebody works on it, it cannot be trusted, or fewer trials are asked for.
    """
    folder = resume.find_unfinished(settings.output, settings.resume or resume.LATEST)
    descriptor = take_over(folder)
    try:
        return folder.name, descriptor, resume.as_planned(settings, folder)
    except BaseException:
        os.close(descriptor)
        raise


def planned(items: Sequence[pytest.Item]) -> Counter[tuple[str, str]]:
    """Return how many trials were collected, by lane and condition."""
    works = (collection.eval_item(item) for item in items)
    return Counter((work.id.lane, work.id.condition) for work in works if work is not None)


def expected(items: Sequence[pytest.Item]) -> list[ExpectedGroup]:
    """Return the groups that were collected, and what each trial of them may take."""
    works = [work for item in items if (work := collection.eval_item(item)) is not None]
    counts = Counter(work.id.group for work in works)
    budgets = {work.id.group: work.case.spec.budget for work in works}
    return [
        ExpectedGroup(*group, counts[group], budget.timeout, budget.tokens, budget.cost_usd)
        for group, budget in budgets.items()
    ]


def floors(evals: Evals) -> dict[tuple[str, str, str], float]:
    """Return the pass rate that each gated group must be able to reach."""
    found = {}
    for case in evals.selected():
        for condition in evals.bench.conditions_of(case):
            if (floor := case.floor(condition)) is not None:
                found[case.lane.value, case.id, condition.name] = floor
    return found


def sides(evals: Evals) -> AgainstRef | None:
    """Return both versions of each skill, where they run beside each other."""
    against = evals.bench.against
    return None if against is None else against.ref(evals.bench.skills)


def groups(evals: Evals) -> list[tuple[str, str, str]]:
    """Return lane, case and condition of everything that the case files will run."""
    found = (work.id.group for case in evals.selected() for work in evals.work(case) if work.trial == 1)
    return list(found)


def select(config: pytest.Config, items: list[pytest.Item], settings: Settings) -> None:
    """Make Python cases known, refuse twins, and leave ordinary tests out when a flag selects evals.

    Raises:
        UserMistake: Two items are the same work item, or an option would bend the numbers.
    """
    for item in items:
        if collection.eval_item(item) is None and isinstance(item, pytest.Function):
            pythoncases.adopt_function(item)
    evals = [item for item in items if collection.eval_item(item) is not None]
    if evals:
        _refuse(config)
        collection.assert_distinct(evals)
    if settings.selects_evals and len(evals) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if collection.eval_item(item) is None])
        items[:] = evals


def _refuse(config: pytest.Config) -> None:
    """Refuse what would bend the numbers."""
    why = "reruns turn misses into passes; use --trials N, which counts each trial"
    for flag in ("reruns", "force_reruns"):
        if config.getoption(flag, None):
            raise OptionMistake(f"--{flag.replace('_', '-')}: {why}")
    # In the other mode the mark on each trial goes before the ini key.
    if config.getoption("reruns_mode", None) == "append" and config.getini("reruns"):
        raise OptionMistake(f"the ini key reruns with --reruns-mode=append: {why}")
    if (config.getoption("count", None) or 1) > 1 and config.pluginmanager.hasplugin("repeat"):
        raise OptionMistake("--count: repeats share one work item; use --trials N, which keeps trials apart")


def claim(session: pytest.Session, evals: Evals, baseline: dict[str, str] | None = None) -> None:
    """Take the run folder and write the plan, when there is something to run.

    Args:
        session: The session, its items collected.
        evals: Those of this process.
        baseline: Path and digest of what the run will be compared with.

    Raises:
        UserMistake: The folder is taken, or cannot be made.
    """
    config = session.config
    items = [item for item in session.items if collection.eval_item(item) is not None]
    if not items or config.getoption("collectonly", default=False):
        return
    started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    bench = evals.bench
    facts = {"environment": _environment(), "commit": _commit(bench.settings.rootpath), "baseline": baseline}
    plan = evals.plan(items, started, [str(part) for part in config.invocation_params.args], facts)
    if not bench.ready:
        bench.make_ready()  # a session of Python cases alone: no case file was read before
    try:
        if bench.settings.resume is not None:
            _keep(config, session.items, resumed_plan(bench.folder, plan))
        else:
            claim_run(bench.folder, plan)
        bench.hold_run()
    except OSError as error:
        raise OptionMistake(f"{bench.folder}: {error.strerror or error}; choose another --skilleval-output") from None


def resumed_plan(folder: Path, new: Plan) -> Plan:
    """Return the plan of a resumed run; the first process of the session to come writes it."""
    old = read_plan(folder)
    if old.token == new.token:
        return old
    united = resume.unite(folder, old, new)
    write_plan(folder, united)
    return united


def _keep(config: pytest.Config, items: list[pytest.Item], plan: Plan) -> None:
    """Leave out the trials that have their result."""
    todo = set(plan.todo or ())
    done = {item for item in items if (work := collection.eval_item(item)) is not None and work.id.key not in todo}
    if done:
        config.hook.pytest_deselected(items=list(done))
        items[:] = [item for item in items if item not in done]


def _environment() -> dict[str, Any]:
    packages = ("pytest-skilleval", "pytest", "pytest-xdist")
    return {
        "python": platform.python_version(),
        "platform": sys.platform,
        "machine": platform.machine(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }


def _commit(root: Path) -> dict[str, Any] | None:
    """Return the commit that is measured, and whether files differ from it; None outside a repository."""
    git = ("git", "-c", "core.fsmonitor=false", "-C", str(root))
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False)
        if head.returncode != 0:
            return None
        status = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return {"sha": head.stdout.strip(), "dirty": bool(status.stdout.strip())}
