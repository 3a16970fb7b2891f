"""Runs that are to become one: whether they measure the same thing, and how their trials are united."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_skilleval import store
from pytest_skilleval.errors import RunFolderMistake
from pytest_skilleval.journal import Entry
from pytest_skilleval.model import TrialId
from pytest_skilleval.records import Plan, PlannedTrial, SkillDigest

__all__ = ["Part", "Shard", "United", "unite"]


class Shard(NamedTuple):
    """One of the runs."""

    folder: Path
    plan: Plan
    entries: dict[TrialId, Entry]

    @classmethod
    def read(cls, folder: Path) -> Shard:
        """Read a run.

        Raises:
            RunFolderMistake: Its plan cannot be trusted.
        """
        gathered = store.gather(folder)
        return cls(folder, gathered.plan, gathered.entries)


class Part(NamedTuple):
    """One trial on its way into the united run."""

    shard: Shard
    old: TrialId
    new: TrialId

    @property
    def entry(self) -> Entry:
        """What the shard's journal holds of it."""
        return self.shard.entries[self.old]


class United(NamedTuple):
    """The run that the shards make."""

    plan: Plan
    parts: list[Part]
    lost: list[str]
    """Shares of the cases that are in none of the runs, a sentence each."""


def unite(shards: Sequence[Shard], run: str, *, repeats: bool) -> United:
    """Unite runs.

    Args:
        shards: Two or more.
        run: The id of the new run.
        repeats: Whether they repeat the same trials, which are then numbered on; else a trial may be in one run only.

    Raises:
        RunFolderMistake: They do not measure the same thing, or hold the same trials.
    """
    _refuse(shards, repeats=repeats)
    parts = list(_renumbered(shards) if repeats else _distinct(shards))
    planned = {id(shard): {trial.id: trial for trial in shard.plan.trials} for shard in shards}
    trials = [planned[id(part.shard)][part.old].model_copy(update={"trial": part.new.trial}) for part in parts]
    plan = _plan(shards, run, trials, repeats=repeats)
    return United(plan, parts, [_loss(share) for share in plan.shards_lost])


def _held(plan: Plan) -> set[tuple[int, int]]:
    """Return the shares that a run holds: its own, or those that were merged into it."""
    return {*plan.shards, *((plan.shard,) if plan.shard else ())}


def _lost(plans: Sequence[Plan]) -> list[tuple[int, int]]:
    """Return the shares that hold cases and are in none of the runs: without a word n would be smaller."""
    held = {share for plan in plans for share in _held(plan)}
    known = {share for plan in plans for share in plan.shards_lost}
    known |= {(number, plan.shard[1]) for plan in plans if plan.shard for number in plan.shards_with_cases}
    return sorted(known - held, key=lambda share: (share[1], share[0]))


def _loss(share: tuple[int, int]) -> str:
    return f"share {share[0]}/{share[1]} holds cases and is in none of the runs: its trials are not counted"


def _refuse(shards: Sequence[Shard], *, repeats: bool) -> None:
    """Refuse runs that cannot be one.

    Raises:
        RunFolderMistake: All reasons are named.
    """
    if len(shards) < 2:
        raise RunFolderMistake("one run alone: give two or more to merge")
    folders = [shard.folder.resolve() for shard in shards]
    if len(set(folders)) < len(folders):
        raise RunFolderMistake("one run is named twice; its trials would be counted twice")
    first, reasons = shards[0].plan, []
    for shard in shards[1:]:
        reasons += [f"{shard.plan.run}: {reason}" for reason in _differences(first, shard.plan)]
        if not repeats and shard.plan.seed != first.seed:
            reasons.append(f"{shard.plan.run}: seed {first.seed} in {first.run}, {shard.plan.seed} here")
    seeds = [shard.plan.seed for shard in shards]
    if repeats and first.provider.simulated and len(set(seeds)) < len(seeds):
        reasons.append(
            f"simulated runs with one seed draw the same trials, so they repeat nothing (seeds: {seeds}); "
            "run them again, each with a --skilleval-seed of its own"
        )
    reasons += _changes(shards)
    if reasons:
        raise RunFolderMistake(f"not one measurement: {'; '.join(reasons[:10])}")


def _differences(first: Plan, other: Plan) -> Iterator[str]:
    for word, one, two in (
        ("provider", first.provider.id, other.provider.id),
        ("model", first.provider.model, other.provider.model),
        ("effort", first.provider.effort, other.provider.effort),
        ("method", first.method, other.method),
        ("judge", first.judging.judge, other.judging.judge),
        ("judge repeats", str(first.judging.judge_repeats), str(other.judging.judge_repeats)),
    ):
        if one != two:
            yield f"{word} {one or 'default'} in {first.run}, {two or 'default'} here"


def _changes(shards: Iterable[Shard]) -> Iterator[str]:
    """Yield what the runs share by name and not by content: skills, cases, and what agents could see of a skill."""
    seen: dict[tuple[str, ...], tuple[str | None, str]] = {}
    for shard in shards:
        facts: dict[tuple[str, ...], str | None] = {("skill", skill.name): skill.digest for skill in shard.plan.skills}
        facts |= {("case", f"{trial.lane}:{trial.case}"): trial.fingerprint for trial in shard.plan.trials}
        facts |= {("the skill seen by", ":".join(trial.id.group)): trial.skill_digest for trial in shard.plan.trials}
        for key, digest in facts.items():
            before, run = seen.setdefault(key, (digest, shard.plan.run))
            if before != digest:
                yield f"{' '.join(key)} differs between {run} and {shard.plan.run}"


def _distinct(shards: Iterable[Shard]) -> Iterator[Part]:
    """Yield each trial once: where it was recorded, else where it was planned first.

    Raises:
        RunFolderMistake: It was recorded twice.
    """
    found: dict[TrialId, Part] = {}
    twice: list[str] = []
    for shard in shards:
        for trial in shard.plan.trials:
            part, before = Part(shard, trial.id, trial.id), found.get(trial.id)
            if before is None or before.entry.record is None:
                found[trial.id] = part
            elif part.entry.record is not None:
                twice.append(f"{trial.id.key} (in {before.shard.plan.run} and {shard.plan.run})")
    if twice:
        more = f" and {len(twice) - 5} more" if len(twice) > 5 else ""
        raise RunFolderMistake(
            f"these trials are in two of the runs: {', '.join(twice[:5])}{more}; "
            "add --repeats if the runs repeat the same trials"
        )
    yield from found.values()


def _renumbered(shards: Iterable[Shard]) -> Iterator[Part]:
    """Yield all trials, those of a group numbered on from run to run."""
    count: dict[tuple[str, str, str], int] = {}
    for shard in shards:
        for trial in sorted(shard.plan.trials, key=lambda trial: trial.trial):
            number = count[trial.id.group] = count.get(trial.id.group, 0) + 1
            yield Part(shard, trial.id, trial.id._replace(trial=number))


def _damage(shard: Shard) -> Iterator[str]:
    """Yield what of a shard's journal cannot be trusted: its trials are missing in the united run."""
    for entry in shard.entries.values():
        yield from (f"journal of {shard.plan.run}: {line}" for line in entry.damage)


def _plan(shards: Sequence[Shard], run: str, trials: Sequence[PlannedTrial], *, repeats: bool) -> Plan:
    plans = [shard.plan for shard in shards]
    first = plans[0]
    skills = {skill.name: skill for plan in plans for skill in plan.skills}
    lost, before = _lost(plans), {_loss(share) for plan in plans for share in plan.shards_lost}
    notes = dict.fromkeys(note for plan in plans for note in plan.notes if note not in before)
    merged = ", ".join(f"{plan.run} ({len(plan.trials)} trials)" for plan in plans)
    notes[f"merged from {merged}"] = None
    notes |= dict.fromkeys(map(_loss, lost))
    seeds = [plan.seed for plan in plans]
    if len(set(seeds)) > 1:
        notes[f"seeds of the merged runs: {', '.join(map(str, seeds))}"] = None
    for plan_damage in (line for shard in shards for line in _damage(shard)):
        notes[plan_damage] = None
    for word, values in (
        ("provider's versions", [plan.provider.version for plan in plans]),
        ("environments", [plan.environment for plan in plans]),
        ("commits", [plan.commit for plan in plans]),
    ):
        if any(value != values[0] for value in values):
            notes[f"the {word} of the merged runs differ; the first one's is shown"] = None
    return Plan(
        run=run,
        token=os.urandom(8).hex(),
        started=min(plan.started for plan in plans),
        argv=("skilleval", "merge", *(plan.run for plan in plans), *(("--repeats",) if repeats else ())),
        provider=first.provider,
        seed=first.seed,
        trials_each=max(trial.trial for trial in trials) if trials else 1,
        method=first.method,
        shards=tuple(sorted({share for plan in plans for share in _held(plan)})),
        shards_lost=tuple(lost),
        judging=first.judging.model_copy(update={"baseline": None}),
        skills=tuple(SkillDigest(name=name, digest=skills[name].digest) for name in sorted(skills)),
        trials=tuple(trials),
        environment=first.environment,
        commit=first.commit,
        notes=tuple(notes),
        events=tuple(event for plan in plans for event in plan.events),
    )
