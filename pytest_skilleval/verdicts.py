"""A run's journal, judged once: plan and records in, report out; same records, same bytes."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from pytest_skilleval import onerun, summaries
from pytest_skilleval.comparison import power
from pytest_skilleval.options import LANES
from pytest_skilleval.records import Outcome, PlannedTrial, TrialRecord
from pytest_skilleval.results import GateResult, GroupSummary, Report, RunInfo, TrialLine
from pytest_skilleval.stats.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_skilleval.journal import Entry
    from pytest_skilleval.model import TrialId
    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import Plan

__all__ = ["VOLATILE", "decisions", "gate", "judge", "red_gates", "run_status"]

VOLATILE = ("id", "started", "finished", "argv")
"""Keys of `run` that differ between two equal runs, as `timing` does."""


def judge(
    plan: Plan,
    entries: Mapping[TrialId, Entry],
    settings: Settings,
    *,
    finished: str,
    strangers: Sequence[str] = (),
    caps: Sequence[Mapping[str, Any]] = (),
    compare: Callable[[summaries.Trials, Sequence[GroupSummary], str, str], dict[str, Any]] | None = None,
) -> Report:
    """Judge a run.

    Args:
        plan: What it set out to do.
        entries: What its journal holds of each planned trial.
        settings: Gate and limits.
        finished: ISO 8601, UTC.
        strangers: Trial folders that nothing planned owns.
        caps: How rate limits changed the caps, in order.
        compare: From trials, summaries, status and run id to a comparison with the baseline.
    """
    records = {trial: entry.record for trial, entry in entries.items() if entry.record is not None}
    groups = summaries.group_trials([trial for trial in plan.trials if not trial.base], records)
    beside = summaries.group_trials([trial for trial in plan.trials if trial.base], records)
    group_rows = [summaries.summarise(key, group) for key, group in groups.items()]
    damage = [line for entry in entries.values() for line in entry.damage]
    counts = _counts(plan.trials, records)
    status, reasons = run_status(counts, settings.max_errors)
    reasons += _not_run(records.values())
    reasons += [f"journal: {line}" for line in damage]
    reasons += [f"journal: trials/{name} belongs to no planned trial" for name in strangers]
    lift_rows = summaries.lifts(groups)
    comparison = compare(groups, group_rows, status, plan.run) if compare is not None else None
    if comparison is None and beside:
        comparison = onerun.compare(plan, groups, beside, settings, status)
    noise = summaries.noise(groups)
    conditions = dict.fromkeys(
        row.condition for row in sorted(group_rows, key=lambda row: summaries.order(("prompt", "", row.condition)))
    )
    return Report(
        run=RunInfo(
            id=plan.run,
            status=status,
            started=plan.started,
            finished=finished,
            argv=plan.argv,
            provider=plan.provider,
            lanes=tuple(lane for lane in LANES if any(row.lane == lane for row in group_rows)),
            conditions=tuple(conditions),
            trials=plan.trials_each,
            seed=plan.seed,
            method=plan.method,
            planned=len(plan.trials),
            counts=counts,
            skills=plan.skills,
            environment=plan.environment,
            commit=plan.commit,
            notes=plan.notes + _unjudged(counts.get(Outcome.UNJUDGED.value, 0)),
            reasons=tuple(reasons),
        ),
        groups=tuple(group_rows),
        lanes=tuple(summaries.lane_summaries(groups)),
        lift=tuple(lift_rows),
        readings=tuple(summaries.readings(lift_rows)),
        routing=summaries.routing(groups),
        noise=noise,
        power=power(groups, plan.trials_each, noise.flip_rate),
        comparison=comparison,
        judge=summaries.judge(groups, plan.judging.judge),
        baseline_groups=tuple(summaries.summarise(key, group) for key, group in beside.items()),
        gate=gate(settings, counts, group_rows, comparison),
        trials=tuple(_line(trial, entries[trial.id]) for trial in _sorted(plan.trials)),
        timing={**_timing(plan.trials, records), "events": list(plan.events), "caps": list(caps)},
    )


def _sorted(trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    return sorted(trials, key=lambda trial: (summaries.order(trial.id.group), trial.trial))


def _counts(planned: Sequence[PlannedTrial], records: Mapping[TrialId, TrialRecord]) -> dict[str, int]:
    counts = {outcome.value: 0 for outcome in Outcome}
    for trial in planned:
        record = records.get(trial.id)
        counts[(record.outcome if record else Outcome.MISSING).value] += 1
    for rare in (Outcome.NOT_NEEDED, Outcome.UNJUDGED):
        if not counts[rare.value]:
            del counts[rare.value]  # only runs that have such trials know the word
    return counts


def _unjudged(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    what = "1 trial is" if count == 1 else f"{count} trials are"
    return (f"{what} unjudged, outside every rate: what decides is stated in prose; --skilleval-judge P asks a judge",)


def _not_run(records: Iterable[TrialRecord]) -> list[str]:
    """Return why trials were not started on purpose, with how many: a spent budget, a provider that is out."""
    said = (record.reason for record in records if record.outcome is Outcome.MISSING)
    # What stands in brackets is how much was spent by then, which differs from trial to trial.
    why = Counter(reason.partition(" (")[0] for reason in said if reason.startswith("not run: "))
    return [f"{count} {reason}" for reason, count in sorted(why.items())]


def run_status(
    counts: Mapping[str, int], max_errors: float
) -> tuple[Literal["finished", "interrupted", "invalid"], list[str]]:
    """Return whether a run can be trusted, and why not."""
    planned = sum(counts.values())
    reasons: list[str] = []
    share = counts["error"] / (planned - counts["missing"]) if planned > counts["missing"] else 0.0
    if counts["missing"]:
        reasons.append(f"{counts['missing']} of {planned} planned trials have no result")
    if share > max_errors:
        reasons.append(
            f"{counts['error']} of {planned - counts['missing']} trials are errors ({share:.0%}); "
            f"at most {max_errors:.0%} are allowed"
        )
        return "invalid", reasons
    return ("interrupted" if counts["missing"] else "finished"), reasons


def gate(
    settings: Settings, counts: Mapping[str, int], groups: Sequence[GroupSummary], comparison: Mapping[str, Any] | None
) -> GateResult:
    """Decide what makes the run red, besides single trials that are tests.

    An error is always red: the run did not measure what it was asked to. So is a planned trial without a result.
    """
    reasons: list[str] = []
    if counts["error"]:
        reasons.append(f"{counts['error']} trials could not be measured")
    if counts["missing"]:
        reasons.append(f"{counts['missing']} planned trials have no result")
    reasons += [f"{name}: {reason}" for name, reason in _red(settings.gate, groups, comparison)]
    return GateResult(passed=not reasons, mode=settings.gate, reasons=tuple(reasons))


def red_gates(report: Report, settings: Settings) -> list[tuple[str, str]]:
    """Return name and reason of each gate that is red: pass rates below their floor, and regressions."""
    return _red(settings.gate, report.groups, report.comparison)


def _red(mode: str, groups: Sequence[GroupSummary], comparison: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if mode == "never":
        return []
    red = []
    for row in groups:
        floor, rate = row.min_pass_rate, row.pass_rate
        if floor is not None and rate.ci is not None and _best_case(row) < floor:
            interval = f"95% interval {rate.ci[0]:.2f} to {rate.ci[1]:.2f}, n={rate.n}"
            reason = f"pass rate {rate.rate:.2f} ({interval}) lies below min_pass_rate {floor:g}"
            red.append((f"{row.lane}:{row.case}:{row.condition}", reason))
    if comparison is not None and comparison["comparable"] and mode in ("auto", "regression"):
        red += _regressions(comparison)
    return red


def _best_case(row: GroupSummary) -> float:
    """Return the upper end of the pass rate's interval, had every trial that was not needed passed."""
    return wilson(row.passed + row.not_needed, row.n + row.not_needed).upper


def _red_up_to(floor: float, trials: int) -> int:
    """Return the most passes of all trials with which a gate is red; -1 when it never is."""
    return max((k for k in range(trials + 1) if wilson(k, trials).upper < floor), default=-1)


def decisions(
    floors: Mapping[tuple[str, str, str], float], trials: int
) -> tuple[dict[tuple[str, str, str], int], list[str]]:
    """Return for each group the most passes with which its gate is red, for early stopping, and what is to be noted.

    A gate that cannot be red with so few trials decides nothing: all its group's trials run.

    Args:
        floors: Group to the pass rate that its gate asks for.
        trials: Of each group.
    """
    found = {group: _red_up_to(floor, trials) for group, floor in floors.items()}
    notes = [
        f"--skilleval-stop spares no trial of {':'.join(group)}: its min_pass_rate {floors[group]:g} cannot be red "
        f"with {trials}, only with {_least_trials(floors[group])} or more"
        for group, most in found.items()
        if most < 0 and floors[group] > 0
    ]
    return {group: most for group, most in found.items() if most >= 0}, notes


def _least_trials(floor: float) -> int:
    """Return the fewest trials with which a gate can be red: when all of them are missed."""
    return next(trials for trials in itertools.count(1) if wilson(0, trials).upper < floor)


def _regressions(comparison: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [(f"{row['lane']}:{row['case']}:{row['condition']}", row) for row in comparison["groups"]]
    rows.insert(0, ("overall", comparison["overall"]))
    return [(name, row["text"]) for name, row in rows if row["verdict"] == "regressed"]


def _line(trial: PlannedTrial, entry: Entry) -> TrialLine:
    record = entry.record
    if record is None:
        reason = "started, but never finished" if entry.intent is not None else "never started"
        return TrialLine(
            key=trial.id.key, lane=trial.lane, case=trial.case, condition=trial.condition, trial=trial.trial,
            outcome=Outcome.MISSING, reason=reason, score=None, checks=(), selected_skill=None, error=None, tokens=None,
            cost_usd=None, transcript=None,
        )  # fmt: skip
    return TrialLine(
        key=trial.id.key,
        lane=trial.lane,
        case=trial.case,
        condition=trial.condition,
        trial=trial.trial,
        outcome=record.outcome,
        reason=record.reason,
        score=record.score,
        checks=record.checks,
        selected_skill=record.selected_skill,
        error=record.error,
        tokens=record.tokens,
        cost_usd=record.cost_usd,
        transcript=record.transcript,
        artifacts=record.artifacts,
        exposure=record.exposure,
        isolation=record.isolation,
        notes=record.notes,
    )


def _timing(planned: Sequence[PlannedTrial], records: Mapping[TrialId, TrialRecord]) -> dict[str, Any]:
    """Gather what differs between two equal runs."""
    rows: dict[str, dict[str, Any]] = {
        trial.id.key: {
            "started": record.timing.started,
            "duration_s": round(record.timing.duration_s, 6),
            "agent_s": round(record.timing.agent_s, 6),
            "agent_started": record.timing.agent_started,
            "waited_s": round(record.timing.waited_s, 6),
            "rate_limited": record.timing.rate_limited,
            "worker": record.timing.worker,
            "attempt": record.timing.attempt,
        }
        for trial in _sorted(planned)
        if (record := records.get(trial.id)) is not None
    }
    starts = [row["started"] for row in rows.values()]
    ends = [row["started"] + row["duration_s"] for row in rows.values()]
    return {
        "wall_s": round(max(ends) - min(starts), 3) if rows else 0.0,
        "trial_s": round(sum(row["duration_s"] for row in rows.values()), 3),
        "workers": sorted({row["worker"] for row in rows.values()}),
        "trials": rows,
    }
