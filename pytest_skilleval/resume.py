"""An unfinished run taken up again: exactly the planned trials that have no finished record run."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_skilleval.errors import JournalDamage, RunFolderMistake
from pytest_skilleval.journal import Journal, read_plan
from pytest_skilleval.records import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_skilleval.journal import Entry
    from pytest_skilleval.model import TrialId
    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import Plan, PlannedTrial

__all__ = ["LATEST", "as_planned", "find_unfinished", "is_finished", "remaining", "unite"]

LATEST = "latest-unfinished"
"""What `--skilleval-resume` without a value means."""
_LEFT = "planned, not collected any more, and without a result: "
"""How a note begins."""


def is_finished(entry: Entry) -> bool:
    """Tell whether a trial needs no further run: passed and failed are results, errors and missing are not."""
    return entry.record is not None and entry.record.outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.UNJUDGED)


def remaining(folder: Path, plan: Plan) -> list[TrialId]:
    """Return the planned trials without a finished record, in the order of the plan."""
    journal = Journal(folder, plan.run)
    return [trial.id for trial in plan.trials if not is_finished(journal.read(trial.id))]


def find_unfinished(output: Path, reference: str) -> Path:
    """Return the folder of the run to resume.

    Args:
        output: Where runs lie.
        reference: A run id, a run folder, or `LATEST`: the newest unfinished run, else the newest, which has nothing
            left to do.

    Raises:
        RunFolderMistake: There is none, or it cannot be trusted.
    """
    if reference != LATEST:
        for folder in (output / reference, output.parent / reference):
            if (folder / "plan.json").is_file():
                return folder.resolve()
        known = ", ".join(path.name for path in _runs(output)[:5]) or "none"
        raise RunFolderMistake(f"--skilleval-resume={reference}: no such run in {output} (there are: {known})")
    runs = _runs(output)
    for folder in runs:
        try:
            if remaining(folder, read_plan(folder)):
                return folder
        except JournalDamage:
            continue
    if not runs:
        raise RunFolderMistake(f"--skilleval-resume: there is no run in {output}; start without it")
    return runs[0]


def _runs(output: Path) -> list[Path]:
    """Return run folders, newest first."""
    if not output.is_dir():
        return []
    names = (entry.name for entry in os.scandir(output) if entry.is_dir(follow_symlinks=False))
    return [output / name for name in sorted(names, reverse=True) if (output / name / "plan.json").is_file()]


def as_planned(settings: Settings, folder: Path) -> Settings:
    """Return the settings of a session that resumes a run: as many trials as were planned, unless more are asked for.

    Raises:
        RunFolderMistake: Fewer are asked for, or the plan cannot be trusted.
    """
    try:
        plan = read_plan(folder)
    except (JournalDamage, OSError) as error:
        raise RunFolderMistake(f"--skilleval-resume={folder.name}: {error}; start a new run without it") from None
    if not settings.trials_given:
        return replace(settings, trials=plan.trials_each)
    if settings.trials < plan.trials_each:
        raise RunFolderMistake(
            f"--trials={settings.trials} --skilleval-resume={plan.run}: {plan.trials_each} were planned; "
            f"leave --trials out, or give at least {plan.trials_each}"
        )
    return settings


def unite(folder: Path, old: Plan, new: Plan) -> Plan:
    """Return the plan of a resumed run.

    Trials are matched by their identity, never by position, and described as they were collected now. Trials that were
    added since run now; those that are no longer collected stay: with their result, or as missing.

    Args:
        folder: The run folder.
        old: Its plan.
        new: What this session has collected.

    Raises:
        RunFolderMistake: Provider, model, effort, seed, method, share, judge, a case or a skill is not what it was; all
            are named.
    """
    before = {trial.id: trial for trial in old.trials}
    now = {trial.id: trial for trial in new.trials}
    changed = list(_changes(old, new, before, now))
    if changed:
        raise RunFolderMistake(
            f"--skilleval-resume={old.run}: {'; '.join(changed[:10])}; "
            "a run measures one thing: undo the change, or start a new run"
        )
    journal = Journal(folder, old.run)
    added = [trial for key, trial in now.items() if key not in before]
    trials = (*(now.get(key, trial) for key, trial in before.items()), *added)
    todo = frozenset(key for key in now if key not in before or not is_finished(journal.read(key)))
    gone = [key for key in before if key not in now]
    left = [key.key for key in gone if not is_finished(journal.read(key))]
    kept = [key.key for key in gone if key.key not in left]
    events = [f"resumed: {len(todo)} of {len(trials)} trials run now"]
    events += [f"in the journal, no longer collected: {', '.join(kept[:5])}"] if kept else []
    events += [f"added since the run started: {len(added)} trials"] if added else []
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    notes = [note for note in old.notes if not note.startswith(_LEFT)]
    notes += [f"{_LEFT}{', '.join(left[:5])}{more}"] if left else []
    if old.provider.version != new.provider.version:
        # Agents update themselves in the middle of a run; what was paid for is not to be lost by that.
        versions = f"{old.provider.version or 'unknown'} and is {new.provider.version or 'unknown'}"
        notes.append(f"the provider's version was {versions}: trials of both are in this run")
    larger = new.trials_each > old.trials_each
    return old.model_copy(
        update={
            "token": new.token,
            # The options to go on with: those of the run, unless they ask for fewer trials than it now has.
            "argv": new.argv if larger else old.argv,
            "trials_each": max(old.trials_each, new.trials_each),
            "judging": new.judging,
            "trials": trials,
            "todo": tuple(trial.id.key for trial in trials if trial.id in todo),
            "notes": tuple(notes),
            "events": (*old.events, *events),
        }
    )


def _reference(plan: Plan) -> str | None:
    return plan.judging.against.reference if plan.judging.against is not None else None


def _share(plan: Plan) -> str | None:
    return None if plan.shard is None else f"{plan.shard[0]}/{plan.shard[1]}"


def _changes(
    old: Plan, new: Plan, before: Mapping[TrialId, PlannedTrial], now: Mapping[TrialId, PlannedTrial]
) -> Iterator[str]:
    for word, was, now_ in (
        ("provider", old.provider.id, new.provider.id),
        ("model", old.provider.model, new.provider.model),
        ("effort", old.provider.effort, new.provider.effort),
        ("seed", str(old.seed), str(new.seed)),
        ("--skilleval-method", old.method, new.method),
        ("--skilleval-shard", _share(old), _share(new)),
        ("--skilleval-against", _reference(old), _reference(new)),
        ("--skilleval-judge", old.judging.judge, new.judging.judge),
    ):
        if was != now_:
            yield f"{word} was {was or 'default'} and is {now_ or 'default'}"
    shared = [(before[key], now[key]) for key in now if key in before]
    yield from sorted({f"case {a.lane}:{a.case} changed" for a, b in shared if a.fingerprint != b.fingerprint})
    # All skills under test, also those of trials that are not collected now: agents see every one of them.
    were, are = ({skill.name: skill.digest for skill in plan.skills} for plan in (old, new))
    for name in sorted(were.keys() | are.keys()):
        if were.get(name) != are.get(name):
            yield f"skill {name} " + ("is new" if name not in were else "is gone" if name not in are else "changed")
    seen = {(b.skill, b.condition) for a, b in shared if a.skill_digest != b.skill_digest}
    told = {name for name in were if were[name] != are.get(name)}
    yield from sorted(f"skill {skill} under {condition} changed" for skill, condition in seen if skill not in told)
