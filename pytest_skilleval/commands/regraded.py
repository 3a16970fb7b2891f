"""A run whose trials were graded again: what its agents did, united with what a later session found of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pytest_skilleval import kept, store
from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.evidence import copy_into
from pytest_skilleval.journal import Journal
from pytest_skilleval.model import TrialId
from pytest_skilleval.records import Outcome, Plan, PlannedTrial, TrialRecord
from pytest_skilleval.store import Gathered

from .runfolder import write_run

__all__ = ["Fate", "Regraded", "regradable", "unite", "write"]

How = Literal["again", "stays", "not"]
_OF_GRADING = ("artifacts", "intent.json", "record.json")
"""What of a trial's folder is no evidence of its agent."""
_OF_AGENT = (
    "exposure", "isolation", "tokens", "cost_usd", "attempts", "provider", "skills_used", "transcript", "stdout",
    "stderr", "final_text", "timing",
)  # fmt: skip
"""What of a record is about its agent, and stays."""
_STAYS = (Outcome.MISSING, Outcome.NOT_NEEDED)


class Fate(NamedTuple):
    """What becomes of one trial."""

    planned: PlannedTrial
    how: How
    """`again`: graded again; `stays`: an error, or never run; `not`: it could not be graded again."""
    before: TrialRecord | None
    record: TrialRecord | None


class Regraded(NamedTuple):
    """The new run."""

    plan: Plan
    fates: list[Fate]


def regradable(run: Gathered) -> tuple[frozenset[str], dict[str, str]]:
    """Return the keys of the trials that can be graded again, and of those that cannot be with the reason."""
    keys, reasons = set(), {}
    journal = Journal(run.folder, run.plan.run)
    for trial, entry in run.entries.items():
        record = entry.record
        if record is None or _stays(record):
            continue
        try:
            kept.read_kept(journal.folder(trial), record)
        except TrialFault as fault:
            reasons[trial.key] = fault.message
        else:
            keys.add(trial.key)
    return frozenset(keys), reasons


def _stays(record: TrialRecord) -> bool:
    """Tell whether new checks say nothing of a trial: it did not run, or could not be measured.

    A check that broke is no fault of the agent: that trial is graded again.
    """
    if record.outcome is Outcome.ERROR:
        return record.error is None or record.error.error_class is not ErrorClass.CHECK
    return record.outcome in _STAYS


def unite(
    run: Gathered, session: Gathered | None, reasons: Mapping[str, str], new: str, argv: Sequence[str]
) -> Regraded:
    """Return the new run.

    Args:
        run: The finished run.
        session: What graded it again; None when pytest collected none of its trials.
        reasons: Key to why a trial could not be graded again.
        new: The id of the new run.
        argv: How it was asked for.
    """
    found = {} if session is None else {trial.id: trial for trial in session.plan.trials}
    fingerprints = {(trial.lane, trial.case): trial.fingerprint for trial in found.values()}
    floors = {trial.id.group: trial.min_pass_rate for trial in found.values()}
    fates = []
    for planned in run.plan.trials:
        key = planned.id
        trial = planned.model_copy(
            update={
                "fingerprint": fingerprints.get((key.lane, key.case), planned.fingerprint),
                "min_pass_rate": floors.get(key.group, planned.min_pass_rate),
            }
        )
        if (again := found.get(key)) is not None:
            fields = {name: getattr(again, name) for name in ("nodeid", "category", "skill", "timeout_s")}
            trial = trial.model_copy(update=fields)
        fates.append(_fate(run, session, trial, reasons.get(key.key), new))
    return Regraded(_plan(run.plan, fates, new, argv), fates)


def _fate(run: Gathered, session: Gathered | None, trial: PlannedTrial, reason: str | None, new: str) -> Fate:
    before = run.entries[trial.id].record
    names = {"run": new, "regraded_from": run.plan.run, "fingerprint": trial.fingerprint}
    if before is None:
        return Fate(trial, "stays", None, None)
    if _stays(before):
        return Fate(trial, "stays", before, before.model_copy(update=names))
    after = None if session is None or trial.id not in session.entries else session.entries[trial.id].record
    if reason is None and after is None:
        reason = "the cases that pytest collected no longer hold it"
    if after is not None and after.error is not None and after.error.error_class is ErrorClass.REPLAY:
        reason = after.error.message
    if after is None or reason is not None:
        return Fate(trial, "not", before, _not_graded(before, names, f"not graded again: {reason}"))
    done = {name: getattr(before, name) for name in _OF_AGENT}
    notes = tuple(dict.fromkeys((*before.notes, *after.notes)))
    return Fate(trial, "again", before, after.model_copy(update={**done, **names, "notes": notes}))


def _not_graded(before: TrialRecord, names: dict[str, str], reason: str) -> TrialRecord:
    gone = {"outcome": Outcome.MISSING, "reason": reason, "score": None, "checks": (), "error": None, "artifacts": ()}
    files = {"transcript": None, "stdout": None, "stderr": None}
    return before.model_copy(update={**names, **gone, **files})


def _plan(old: Plan, fates: Sequence[Fate], new: str, argv: Sequence[str]) -> Plan:
    counts = {how: sum(fate.how == how for fate in fates) for how in ("again", "stays", "not")}
    note = f"regraded from {old.run}: {counts['again']} of {len(fates)} trials by the checks as they are now"
    note += f", {counts['stays']} as they were (errors, or not run)" if counts["stays"] else ""
    note += f", {counts['not']} could not be graded again" if counts["not"] else ""
    return old.model_copy(
        update={
            "run": new,
            "token": os.urandom(8).hex(),
            "started": store.now(),
            "argv": tuple(argv),
            "judging": old.judging.model_copy(update={"baseline": None, "judge": None, "judge_repeats": 1}),
            "trials": tuple(fate.planned for fate in fates),
            "notes": (*old.notes, note),
            "events": (),
            "todo": None,
        }
    )


def write(output: Path, regraded: Regraded, run: Gathered, session: Gathered | None) -> Path:
    """Write the new run's folder whole or not at all.

    Raises:
        OSError: The disk is full, or the folder cannot be made.
    """

    def fill(journal: Journal) -> None:
        for fate in regraded.fates:
            _copy(fate, journal, run, session)

    return write_run(output, regraded.plan, fill)


def _copy(fate: Fate, journal: Journal, run: Gathered, session: Gathered | None) -> None:
    """Copy what a trial's agent left, and what was found of it last, and write its record."""
    trial = fate.planned.id
    folder = journal.folder(trial)
    folder.mkdir()
    if fate.how != "not":
        graded = run if fate.how == "stays" or session is None else session
        for source, name in _files(trial, run.folder, graded.folder):
            copy_into(source, journal.run_folder / name)
    intent = run.entries[trial].intent
    if intent is not None:
        journal.write_intent(intent.model_copy(update={"run": journal.run, "fingerprint": fate.planned.fingerprint}))
    if fate.record is not None:
        journal.write_record(fate.record)


def _files(trial: TrialId, agent: Path, graded: Path) -> Iterator[tuple[Path, str]]:
    """Yield what is copied, and where to: both runs give the same trial the same folders.

    Args:
        trial: Whose files.
        agent: The run folder that holds what the agent did.
        graded: The run folder that holds what the grading made: artifacts and bundle.
    """
    home = f"trials/{trial.folder}"
    for path in sorted((agent / home).iterdir()) if (agent / home).is_dir() else ():
        if path.name not in _OF_GRADING:
            yield path, f"{home}/{path.name}"
    for name in (f"{home}/artifacts", trial.bundle):
        if (graded / name).is_dir():
            yield graded / name, name
