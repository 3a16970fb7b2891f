"""An unfinished run taken up again: exactly the planned trials that have no finished record run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_skilleval.errors import JournalDamage, RunFolderMistake
from pytest_skilleval.journal import Journal, read_plan
from pytest_skilleval.records import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_skilleval.journal import Entry
    from pytest_skilleval.model import TrialId
    from pytest_skilleval.records import Plan, PlannedTrial

__all__ = ["LATEST", "find_unfinished", "is_finished", "remaining", "unite"]

LATEST = "latest-unfinished"
"""What `--skilleval-resume` without a value means."""


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


def unite(folder: Path, old: Plan, new: Plan) -> Plan:
    """Return the plan of a resumed run.

    Trials are matched by their identity, never by position. Trials that were added since run now; those that are no
    longer collected keep their results, and are dropped where they have none.

    Args:
        folder: The run folder.
        old: Its plan.
        new: What this session has collected.

    Raises:
        RunFolderMistake: Provider, model, effort, seed, a case or a skill is not what it was; all are named.
    """
    before = {trial.id: trial for trial in old.trials}
    now = {trial.id: trial for trial in new.trials}
    changed = _changes(old, new, before, now)
    if changed:
        raise RunFolderMistake(
            f"--skilleval-resume={old.run}: {'; '.join(changed[:10])}; "
            "a run measures one thing: undo the change, or start a new run"
        )
    journal = Journal(folder, old.run)
    kept = [trial for trial in old.trials if trial.id in now or is_finished(journal.read(trial.id))]
    added = [trial for key, trial in now.items() if key not in before]
    gone = [trial.id.key for trial in old.trials if trial.id not in now]
    trials = (*kept, *added)
    todo = frozenset(key for key in now if key not in before or not is_finished(journal.read(key)))
    notes = [f"resumed: {len(todo)} of {len(trials)} trials run now"]
    notes += [f"in the journal, no longer collected: {', '.join(gone[:5])}"] if gone else []
    notes += [f"added since the run started: {len(added)} trials"] if added else []
    keys = tuple(trial.id.key for trial in trials if trial.id in todo)
    events = (*old.events, *notes)
    return old.model_copy(
        update={"token": new.token, "judging": new.judging, "trials": trials, "todo": keys, "events": events}
    )


def _reference(plan: Plan) -> str | None:
    return plan.judging.against.reference if plan.judging.against is not None else None


def _changes(
    old: Plan, new: Plan, before: Mapping[TrialId, PlannedTrial], now: Mapping[TrialId, PlannedTrial]
) -> list[str]:
    changed = [
        f"{word} was {was or 'default'} and is {now_ or 'default'}"
        for word, was, now_ in (
            ("provider", old.provider.id, new.provider.id),
            ("model", old.provider.model, new.provider.model),
            ("effort", old.provider.effort, new.provider.effort),
            ("seed", str(old.seed), str(new.seed)),
            ("--skilleval-against", _reference(old), _reference(new)),
            ("--skilleval-judge", old.judging.judge, new.judging.judge),
        )
        if was != now_
    ]
    shared = [(before[key], now[key]) for key in now if key in before]
    changed += sorted({f"case {a.lane}:{a.case} changed" for a, b in shared if a.fingerprint != b.fingerprint})
    changed += sorted(
        {f"skill {b.skill} under {b.condition} changed" for a, b in shared if a.skill_digest != b.skill_digest}
    )
    return changed
