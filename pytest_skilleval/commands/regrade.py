"""`skilleval regrade`: a finished run graded again by its cases as they are now, without running an agent."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_skilleval import store, verdicts
from pytest_skilleval.errors import RunFolderMistake, UserMistake
from pytest_skilleval.journal import is_held
from pytest_skilleval.model import BASE
from pytest_skilleval.records import Outcome, Plan
from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.writing import write_reports
from pytest_skilleval.skills import find_skills, is_skill_folder
from pytest_skilleval.store import Gathered

from .answer import FINE, INCOMPLETE, NOT_GOOD, Answer
from .place import SKILL_FOLDERS, Place, add_output, place_of
from .reference import run_folder, settings_of
from .regraded import Fate, Regraded, regradable, unite, write
from .session import run_pytest, stoppable, tell, workers

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  pytest --skilleval-provider=claude --trials 5 --skilleval-keep=all    keep what will be needed
  skilleval regrade latest                                             after a change of checks
  skilleval regrade latest --cases cases/execution/notes.yaml          the trials of these cases alone

A new run is written; the old one stays as it is. Trials of the prompt lane need no kept workspace. What cannot be
graded again is missing in the new run, with the reason; errors stay errors, but those of a check that broke.

exit status: 0 complete, 1 a report could not be written, 2 trials are missing, 4 nothing can be graded again
"""
FORMATS = ("json", "md", "html")
_NO_TESTS = 5
"""Pytest's exit status when it has collected nothing."""
_NAMED = 10
"""Trials that are named to people."""
_STANDIN = (
    "---\nname: {name}\ndescription: Stands in for a skill while a run is graded again.\n---\n\nNobody reads it.\n"
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run id, a run folder or `latest`")
    parser.add_argument(
        "--cases",
        metavar="PATH",
        nargs="+",
        type=Path,
        help="case files or folders with the checks as they are now (default: the files that the run was made of)",
    )
    parser.add_argument(
        "-n", type=int, metavar="N", help="workers (default: as many as there are cores, at most 4; 0 = none)"
    )
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Grade a run again."""
    place = place_of(arguments)
    folder = run_folder(place, arguments.run)
    if is_held(folder):
        raise RunFolderMistake(f"{arguments.run}: is still running; grade it again when it has ended")
    old = store.gather(folder)
    keys, reasons = regradable(old)
    if not keys:
        raise RunFolderMistake(f"{arguments.run}: nothing can be graded again: {_why_nothing(reasons)}")
    paths = _paths(place, arguments.cases, old.plan)
    argv = ["skilleval", "regrade", old.plan.run, *(["--cases", *map(str, arguments.cases)] if arguments.cases else [])]
    with stoppable(), tempfile.TemporaryDirectory(prefix="skilleval-regrade-") as scratch:
        tell(f"{numbers.count(len(keys), 'trial')} ...")
        session = _session(place, Path(scratch), old, keys, paths=paths, count=workers(arguments.n))
        regraded = unite(old, session, reasons, store.new_run_id(), argv)
        if not any(fate.how == "again" for fate in regraded.fates):
            found = {
                fate.planned.id.key: fate.record.reason for fate in regraded.fates if fate.how == "not" and fate.record
            }
            raise RunFolderMistake(f"{arguments.run}: nothing can be graded again: {_why_nothing(found)}")
        new = write(place.output, regraded, old, session)
    return _answer(place, new, regraded, old)


def _why_nothing(reasons: dict[str, str]) -> str:
    if not reasons:
        return "none of its trials came to a result"
    key, reason = next(iter(reasons.items()))
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{key}: {reason.removeprefix('not graded again: ')}{more}"


def _paths(place: Place, asked: Sequence[Path] | None, plan: Plan) -> list[Path]:
    """Return the case files that pytest is to collect.

    Raises:
        UserMistake: One that was asked for is not there, or none of the run's own is.
    """
    if asked:
        if gone := [str(path) for path in asked if not path.exists()]:
            raise UserMistake(f"--cases {gone[0]}: no such file or folder")
        return [path.resolve() for path in asked]
    names = dict.fromkeys(trial.nodeid.partition("::")[0] for trial in plan.trials)
    found = [place.root / name for name in names if (place.root / name).is_file()]
    if not found:
        raise UserMistake(f"{next(iter(names))}: is not in {place.root}; say where the cases are with --cases PATH")
    return found


# ---------------------------------------------------------------------------------------------------- the session


def _session(
    place: Place, scratch: Path, old: Gathered, keys: frozenset[str], *, paths: Sequence[Path], count: int
) -> Gathered | None:
    """Let pytest grade the trials, and return its run; None when it collected none of them.

    Raises:
        UserMistake: pytest refused to start; its own words are passed on.
        KeyboardInterrupt: The user has seen enough; pytest has stopped by then.
    """
    from pytest_skilleval.regrading import FLAG, PROVIDER, Order  # noqa: PLC0415 - loads pytest, and all that grades

    order, output = scratch / "order.json", scratch / "runs"
    Order(old.folder, keys).write(order)
    conditions = dict.fromkeys(trial.condition.removesuffix(BASE) for trial in old.plan.trials)
    said = run_pytest(place, [
        *map(str, paths), "-q", "-n", str(count), "-p", "no:cacheprovider", "-p", "pytest_skilleval.regrading",
        f"--rootdir={place.root}", f"{FLAG}={order}", f"--skilleval-provider={PROVIDER}",
        f"--skilleval-trials={max(trial.trial for trial in old.plan.trials)}", "--skilleval-lane=all",
        "--skilleval-case=*", *(f"--skilleval-condition={name}" for name in conditions),
        *_standins(place, scratch, old.plan, paths), f"--skilleval-output={output}", "--skilleval-keep=none",
        "--skilleval-gate=never", "--skilleval-max-errors=1", "--skilleval-report=json",
    ])  # fmt: skip
    folders = sorted(path.parent for path in output.glob("*/plan.json"))
    if folders:
        return store.gather(folders[-1])
    if said.status == _NO_TESTS:
        return None
    raise UserMistake(f"pytest graded nothing: {said.last_words}")


def _standins(place: Place, scratch: Path, plan: Plan, paths: Sequence[Path]) -> Iterator[str]:
    """Yield flags for skills that stand in for those the agents saw.

    Nobody reads a skill while trials are graded again, and what agents could see of it is on record. But a condition is
    collected only where there is a skill to install: the one that the run measured may be gone by now, and the version
    that was stale then may be the current one.
    """
    listed = [place.root / name for name in place.listed("skilleval_skills", SKILL_FOLDERS)]
    beside = [path.parent.parent for path in paths if is_skill_folder(path.parent.parent)]
    there = set(find_skills([*listed, *beside]))
    names = {skill.name for skill in plan.skills} | {trial.skill for trial in plan.trials if trial.skill}
    for kind, wanted in (("skills", names - there), ("stale", names | there)):
        for name in wanted:
            path = scratch / kind / name / "SKILL.md"
            path.parent.mkdir(parents=True)
            path.write_text(_STANDIN.format(name=name), encoding="utf-8")
    if names - there:
        yield from (f"--skilleval-skills={path}" for path in (*listed, scratch / "skills"))
    if names | there:
        yield f"--skilleval-stale={scratch / 'stale'}"
        if plan.judging.against is not None:
            yield f"--skilleval-against={scratch / 'stale'}"


# ----------------------------------------------------------------------------------------------------- the answer


def _answer(place: Place, folder: Path, regraded: Regraded, old: Gathered) -> Answer:
    gathered = store.gather(folder)
    report = verdicts.judge(gathered.plan, gathered.entries, settings_of(gathered.plan, place), finished=store.now())
    written = write_reports(FORMATS, report, folder)
    store.point_latest(place.output, report.run.id)
    changed = [_change(fate) for fate in regraded.fates if fate.how == "again" and _moved(fate)]
    not_graded = [
        {"key": fate.planned.id.key, "reason": fate.record.reason}
        for fate in regraded.fates
        if fate.how == "not" and fate.record is not None
    ]
    missing = [line.key for line in report.trials if line.outcome is Outcome.MISSING]
    value = {
        "run": report.run.id,
        "path": str(folder),
        "regraded_from": old.plan.run,
        "status": report.run.status,
        "counts": report.run.counts,
        "regraded": sum(fate.how == "again" for fate in regraded.fates),
        "changed": changed,
        "not_regraded": not_graded,
        "missing": missing,
        "reports": {name: str(path) for name, path in written.paths.items()},
        "problems": written.problems,
        "notes": list(report.run.notes),
    }
    counts = ", ".join(f"{number} {word}" for word, number in report.run.counts.items())
    total = numbers.count(len(regraded.fates), "trial")
    moved = numbers.count(len(changed), "outcome")
    lines = [f"{report.run.id}: {report.run.status}, {counts}"]
    lines += [f"graded again: {value['regraded']} of {total} of {old.plan.run}; {moved} changed"]
    lines += [f"  {row['key']}: {row['before']} -> {row['after']}: {row['reason']}" for row in changed[:_NAMED]]
    lines += [f"  and {len(changed) - _NAMED} more"] if len(changed) > _NAMED else []
    lines += [f"report: {path}" for path in written.paths.values()]
    notes = [f"{row['key']}: {row['reason']}" for row in not_graded[:_NAMED]]
    notes += [f"and {len(not_graded) - _NAMED} more could not be graded again"] if len(not_graded) > _NAMED else []
    status = INCOMPLETE if missing else NOT_GOOD if written.problems else FINE
    return Answer(value, lines, status, [*notes, *written.problems])


def _moved(fate: Fate) -> bool:
    return fate.before is not None and fate.record is not None and fate.before.outcome is not fate.record.outcome


def _change(fate: Fate) -> dict[str, Any]:
    before, after = fate.before, fate.record
    assert before is not None  # noqa: S101 - it was graded again
    assert after is not None  # noqa: S101 - the same
    return {
        "key": fate.planned.id.key,
        "before": before.outcome.value,
        "after": after.outcome.value,
        "reason": after.reason,
    }
