"""Cases as pytest items: a Module a file, a Class a case, a Function a condition and trial.

    cases/execution/greet.yaml            CaseFile   (pytest.Module)
      greet                               CaseNode   (pytest.Class)
        self-load-2                       TrialItem  (pytest.Function)

Names hold neither brackets nor `::`: pytest's cache, IDEs and reruns parse node ids. Only pytest's public classes are
used, so that fixtures of every scope, `--lf`, `-k`, `--pdb` and IDE trees work as for any test.
"""

from __future__ import annotations

import fnmatch
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_skilleval import cases as case_files
from pytest_skilleval.against import seen_digest
from pytest_skilleval.errors import CaseMistake, UserMistake
from pytest_skilleval.frozen import digest_text
from pytest_skilleval.model import CONDITIONS, Case, Condition, TrialId
from pytest_skilleval.records import Judging, Plan, PlannedTrial, SkillDigest
from pytest_skilleval.scoring.antipatterns import BUILT_IN
from pytest_skilleval.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_skilleval.workbench import Workbench

__all__ = ["CaseFile", "Evals", "TrialItem", "WorkItem", "adopt", "eval_item", "mark_node"]

EVALS: pytest.StashKey[Evals] = pytest.StashKey()
WORK: pytest.StashKey[WorkItem] = pytest.StashKey()


class WorkItem(NamedTuple):
    """What one item runs."""

    case: Case
    condition: Condition
    trial: int
    id: TrialId
    """Its identity; made once, since every table and check of a session asks for it."""

    @classmethod
    def of(cls, case: Case, condition: Condition, trial: int) -> WorkItem:
        """Return the work item of a case, condition and trial."""
        return cls(case, condition, trial, TrialId(case.lane.value, case.id, condition.name, trial))

    def __repr__(self) -> str:
        """Return its key: reports of other plugins show a parameter, and tell tests apart by it."""
        return self.id.key


class Evals:
    """The evals of one process: cases read once, work items found, the plan made of them.

    Args:
        bench: What all trials of this process share.
        named: Files that the user named.
    """

    def __init__(self, bench: Workbench, named: Collection[Path] = ()) -> None:
        self.bench = bench
        self.named = frozenset(named)
        self._cases: dict[Path, list[Case]] = {}
        self._seen: dict[tuple[str | None, Path | None, str], tuple[str | None, str]] = {}
        self.shards_with_cases: set[int] = set()
        """The shares, of those that `--skilleval-shard` makes, in which a case has been seen; empty without it."""

    def cases(self, path: Path) -> list[Case]:
        """Return the cases of a file that are selected.

        Raises:
            UserMistake: The file, or the skill that it names, cannot be used.
        """
        if path not in self._cases:
            self._cases[path] = self._load(path)
        return [case for case in self._cases[path] if self.selects(case)]

    def _load(self, path: Path) -> list[Case]:
        bench = self.bench
        found = case_files.load_cases(
            path,
            root=bench.settings.rootpath,
            conditions=bench.conditions,
            anti_patterns=BUILT_IN,
            others="skip" if self._may_be_anything(path) else "refuse",
        )
        bench.notes.update(dict.fromkeys(found.notes))
        if found.skill_root is not None:
            bench.add_skill_folder(found.skill_root)
        return found.cases

    def _may_be_anything(self, path: Path) -> bool:
        """Tell whether a file is JSON in somebody's `evals` folder: only what the user named must be cases."""
        lane = case_files.lane_of(path, self.bench.settings.rootpath)
        return path not in self.named and path.suffix == ".json" and lane is None

    def names(self) -> list[str]:
        """Return the markers that the cases read so far will bear."""
        found = {
            name: None for case in self.selected() for name in (case.lane.value, case.spec.category, case.spec.skill)
        }
        return [*found, *self.bench.conditions]

    def selected(self) -> list[Case]:
        """Return the cases of all files that were read, as far as they are asked for."""
        return [case for cases in self._cases.values() for case in cases if self.selects(case)]

    def selects(self, case: Case) -> bool:
        """Tell whether lane, id and share are asked for."""
        settings = self.bench.settings
        if case.lane.value not in settings.lanes:
            return False
        if not self._is_named(case):
            return False
        if settings.shard is None:
            return True
        number, count = settings.shard
        own = _shard_of(case, count)
        self.shards_with_cases.add(own)
        return own == number

    def _is_named(self, case: Case) -> bool:
        return any(fnmatch.fnmatchcase(case.id, pattern) for pattern in self.bench.settings.cases or ("*",))

    def why_nothing(self) -> str | None:
        """Return which flag fits no case of the files that were read, and what there is; None where each fits one."""
        settings = self.bench.settings
        cases = [case for cases in self._cases.values() for case in cases]
        of_lane = [case for case in cases if case.lane.value in settings.lanes]
        named = [case for case in of_lane if self._is_named(case)]
        if not cases:
            return None
        if not of_lane:
            lanes = dict.fromkeys(case.lane.value for case in cases)
            return f"--skilleval-lane={','.join(settings.lanes)}: no case is of it; there are: {', '.join(lanes)}"
        if not named:
            ids = [case.id for case in of_lane]
            more = f" and {len(ids) - 10} more" if len(ids) > 10 else ""
            return f"--skilleval-case={','.join(settings.cases)}: fits no case; there are: {', '.join(ids[:10])}{more}"
        if not any(self.bench.conditions_of(case) for case in named):
            own = dict.fromkeys(name for case in named for name in case.spec.conditions or CONDITIONS)
            asked = ",".join(settings.conditions)
            return f"--skilleval-condition={asked}: no case runs under it; there are: {', '.join(own)}"
        return None

    def preflight(self, paths: Iterable[Path]) -> list[Case]:
        """Read all case files before anything starts.

        Raises:
            UserMistake: A case, skill, provider or flag cannot be used.
        """
        found = [case for path in paths for case in self.cases(path)]
        case_files.assert_unique([case for cases in self._cases.values() for case in cases])
        for case in found:
            for condition in self.bench.conditions_of(case):
                if condition.installs != "nothing" or condition.preloads:
                    skill = self.bench.skill_of(case)
                    if condition.base and skill is not None and self.bench.against is not None:
                        self.bench.against.of(skill)
        if found and self.bench.against is not None:
            self.bench.against.check(self.bench.skills)
        self.bench.make_ready()
        for case in filter(self.selects, found):
            self.bench.refuse(case)
        return found

    def work(self, case: Case) -> Iterator[WorkItem]:
        """Yield a case's work items, conditions interleaved and every second round reversed.

        Over two rounds each condition stands in the middle of the same place: a drift during the run, of the machine or
        of a provider, must not become a lift.
        """
        conditions = self.bench.conditions_of(case)
        for trial in range(1, self.bench.settings.trials + 1):
            for condition in conditions if trial % 2 else reversed(conditions):
                yield WorkItem.of(case, condition, trial)

    def plan(self, items: Sequence[pytest.Item], started: str, argv: Sequence[str], facts: Mapping[str, Any]) -> Plan:
        """Return what this run sets out to do.

        Raises:
            CaseMistake: Two items are the same work item.
        """
        bench = self.bench
        trials = [self._planned(item, item.stash[WORK]) for item in items if WORK in item.stash]
        against = bench.against
        return Plan(
            run=bench.run,
            token=bench.token,
            started=started,
            argv=tuple(argv),
            provider=bench.info,
            seed=bench.settings.seed,
            trials_each=bench.settings.trials,
            shard=bench.settings.shard,
            shards_with_cases=tuple(sorted(self.shards_with_cases)),
            method=bench.settings.method,
            judging=Judging(
                gate=bench.settings.gate,
                max_errors=bench.settings.max_errors,
                thresholds=bench.settings.thresholds,
                baseline=facts.get("baseline"),
                against=None if against is None else against.ref(bench.skills),
                judge=bench.settings.judge,
                judge_repeats=bench.settings.judge_repeats,
            ),
            skills=tuple(
                SkillDigest(name=skill.name, digest=skill.digest) for _, skill in sorted(bench.skills.items())
            ),
            trials=tuple(trials),
            environment=facts["environment"],
            commit=facts["commit"],
            notes=(*bench.notes, *(against.notes(bench.skills) if against is not None else ()), *bench.warnings),
            events=tuple(bench.events),
        )

    def _sees(self, case: Case, condition: Condition) -> tuple[str | None, str]:
        """Return the digest of a case's skill and that of all skills, as agents see them under a condition."""
        key = (case.skill, case.folder / case.spec.stale if case.spec.stale else None, condition.name)
        if key not in self._seen:  # with a thousand skills each look costs as many steps
            visible = self.bench.visible(case, condition)
            own = next((skill.digest for skill in visible if skill.name == case.skill), None)
            self._seen[key] = (own, seen_digest(visible))
        return self._seen[key]

    def _planned(self, item: pytest.Item, work: WorkItem) -> PlannedTrial:
        case, condition = work.case, work.condition
        digest, seen = self._sees(case, condition)
        return PlannedTrial(
            lane=work.id.lane,
            case=work.id.case,
            condition=work.id.condition,
            trial=work.trial,
            nodeid=item.nodeid,
            control=condition.control,
            category=case.spec.category,
            skill=case.skill,
            fingerprint=case.fingerprint,
            skill_digest=digest,
            base=condition.base,
            seen=seen,
            min_pass_rate=case.floor(condition),
            timeout_s=case.spec.budget.timeout,
        )


def _shard_of(case: Case, count: int) -> int:
    """Return the share that a case belongs to; its lane and id alone decide, so that other cases move nothing."""
    return int(digest_text(f"{case.lane.value}:{case.id}"), 16) % count + 1


def assert_distinct(items: Sequence[pytest.Item]) -> None:
    """Refuse two items that are the same work item.

    Raises:
        CaseMistake: Both places are named.
    """
    seen: dict[TrialId, pytest.Item] = {}
    for item in items:
        work = eval_item(item)
        if work is None:
            continue
        other = seen.setdefault(work.id, item)
        if other is not item:
            first = other.stash[WORK].case
            raise CaseMistake(
                work.case.path,
                work.case.line,
                "id",
                f"{work.id.lane}:{work.id.case} is taken by {first.path}:{first.line}; rename one",
            )


def eval_item(item: pytest.Item) -> WorkItem | None:
    """Return what an item runs, or None for an ordinary test."""
    return item.stash.get(WORK, None)


class CaseFile(pytest.Module):
    """A case file: a Module, so that module-scoped fixtures have their node."""

    obj = None
    fixtures: Any = None
    """What pytest found of the trials' fixtures: most of the cost of an item, and the same for all of a file."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return a node for each case."""
        evals = self.config.stash[EVALS]
        if _MARKS not in self.config.stash:
            # All at once: naming a marker that pytest has not seen makes it read all registered ones again.
            names = [name for name in evals.names() if _can_be_marker(name)]
            _register(self.config, names)
            for name in names:
                _kept(self.config, name)
        try:
            return [CaseNode.of(self, case) for case in evals.cases(self.path)]
        except UserMistake as mistake:
            raise self.CollectError(str(mistake)) from None


class CaseNode(pytest.Class):
    """A case: a Class, so that IDEs fold its trials and class-scoped fixtures live as long as the case."""

    case: Case
    function: Callable[[Trial], None]

    @classmethod
    def of(cls, parent: CaseFile, case: Case) -> CaseNode:
        """Make the node of a case."""
        node: CaseNode = cls.from_parent(parent, name=case.id)
        node.case = case
        node.obj = SimpleNamespace(__doc__=case.spec.description or None)
        node.function = _test_function(case.spec.description)
        for name in (case.lane.value, case.spec.category, case.spec.skill):
            mark_node(node, name)
        return node

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return an item for each condition and trial."""
        evals = self.config.stash[EVALS]
        file = self.parent
        assert isinstance(file, CaseFile)  # noqa: S101 - made by it
        for work in evals.work(self.case):
            item = TrialItem.of(self, work, file.fixtures)
            file.fixtures = item._fixtureinfo  # noqa: SLF001 - the public argument `fixtureinfo` takes just this
            yield item

    def newinstance(self) -> None:
        """Return nothing: a trial's function is no method."""

    def reportinfo(self) -> tuple[Path, int, str]:
        """Point at the case's line."""
        return self.path, self.case.line - 1, self.name


def _test_function(description: str) -> Callable[[Trial], None]:
    """Return the test function of a case's trials; other plugins show its docstring as what the test is about."""

    def run_case(skilleval: Trial) -> None:
        skilleval.run_case()

    run_case.__doc__ = description or None
    return run_case


class TrialItem(pytest.Function):
    """One trial of a data case under one condition."""

    cls = None

    @classmethod
    def of(cls, parent: CaseNode, work: WorkItem, fixtureinfo: object) -> TrialItem:
        """Make the item of a work item."""
        name = f"{work.condition.name}-{work.trial}"
        item: TrialItem = cls.from_parent(parent, name=name, callobj=parent.function, fixtureinfo=fixtureinfo)
        adopt(item, work)
        return item

    def reportinfo(self) -> tuple[Path, int, str]:
        """Point at the case's line, not at this package."""
        work = self.stash[WORK]
        return self.path, work.case.line - 1, f"{work.case.id} [{work.condition.name} #{work.trial}]"

    # Like Function's own, narrower than Node's: pytest calls it with one argument.
    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]
        """Say why the trial failed; a traceback into this package would help nobody."""
        if isinstance(excinfo.value, AssertionError) or type(excinfo.value).__name__ == "TrialErrored":
            return str(excinfo.value)
        return super().repr_failure(excinfo)


def adopt(item: pytest.Item, work: WorkItem) -> None:
    """Make an item the trial of a work item, with the markers that tell of it."""
    item.stash[WORK] = work
    spec, trial = work.case.spec, work.id
    mark = _kept(item.config, "skilleval")
    item.add_marker(
        mark(
            lane=trial.lane,
            case=trial.case,
            condition=trial.condition,
            trial=trial.trial,
            category=spec.category,
            skill=spec.skill,
        )
    )
    mark_node(item, work.condition.name)
    if item.config.pluginmanager.hasplugin("rerunfailures"):
        # A rerun would replace a miss by a pass. The first mark counts, and a category may be named `flaky`, too.
        item.add_marker(pytest.mark.flaky(reruns=0), append=False)


def mark_node(node: pytest.Collector | pytest.Item, name: str) -> None:
    """Add a plain marker, registered first since pytest's strict mode refuses others."""
    config = node.config
    if name not in _known(config):
        if not _can_be_marker(name):
            return
        _register(config, [name])
    node.add_marker(_kept(config, name))


def _can_be_marker(name: str) -> bool:
    return re.fullmatch(r"[\w-]+", name) is not None


def _register(config: pytest.Config, names: Iterable[str]) -> None:
    for name in names:
        config.addinivalue_line("markers", f"{name}: evals with this lane, condition, category or skill")


def _known(config: pytest.Config) -> dict[str, pytest.MarkDecorator]:
    """Return the markers so far, kept: pytest looks through all registered ones whenever one is named."""
    return config.stash.setdefault(_MARKS, {})


def _kept(config: pytest.Config, name: str) -> pytest.MarkDecorator:
    known = _known(config)
    if name not in known:
        known[name] = getattr(pytest.mark, name)
    return known[name]


_MARKS: pytest.StashKey[dict[str, pytest.MarkDecorator]] = pytest.StashKey()
