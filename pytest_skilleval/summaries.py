"""Records to summaries: groups, lanes, lifts, routing, noise, and the sentence that reads the conditions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_skilleval.model import CONDITIONS
from pytest_skilleval.options import LANES
from pytest_skilleval.records import Outcome, PlannedTrial, Score, Tokens, TrialRecord
from pytest_skilleval.results import GroupSummary, LaneSummary, Lift, Noise, Rate, Reading, ScoreStats
from pytest_skilleval.stats import lifts as lift_numbers
from pytest_skilleval.stats import rates
from pytest_skilleval.stats.summary import summarise_group, summarise_lane_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = [
    "PAIRS",
    "Group",
    "Trials",
    "judge",
    "lane_summaries",
    "lifts",
    "noise",
    "order",
    "paired",
    "readings",
    "routing",
    "summarise",
]

GroupKey = tuple[str, str, str]


class Group(NamedTuple):
    """What came back of one case under one condition."""

    planned: tuple[PlannedTrial, ...]
    measured: tuple[TrialRecord, ...]
    """Passed and failed, in the order of trials."""
    errors: int
    missing: int
    not_needed: int = 0
    """Left out by early stopping."""
    unjudged: int = 0
    """Ran, but nothing could decide them."""

    @property
    def passes(self) -> list[bool]:
        """One bit a measured trial."""
        return [record.outcome is Outcome.PASSED for record in self.measured]

    @property
    def scores(self) -> list[float]:
        """One score a measured trial."""
        return [score_of(record) for record in self.measured]

    @property
    def pass_rate(self) -> float | None:
        """Share of measured trials that passed."""
        return sum(self.passes) / len(self.measured) if self.measured else None


Trials = dict[GroupKey, Group]


def score_of(record: TrialRecord) -> float:
    """Return a measured trial's score; one without components counts its outcome."""
    if record.score is not None:
        return record.score.total
    return float(record.outcome is Outcome.PASSED)


def order(key: GroupKey) -> tuple[int, str, int, str]:
    """Sort groups as every table shows them: lane, case, condition."""
    lane, case, condition = key
    conditions = list(CONDITIONS)
    place = conditions.index(condition) if condition in CONDITIONS else len(conditions)
    return (LANES.index(lane), case, place, condition)


def group_trials(planned: Sequence[PlannedTrial], records: Mapping[Any, TrialRecord]) -> Trials:
    """Gather planned trials and their records by group, in the order of every table."""
    gathered: dict[GroupKey, list[PlannedTrial]] = defaultdict(list)
    for trial in planned:
        gathered[trial.id.group].append(trial)
    groups: Trials = {}
    for key in sorted(gathered, key=order):
        trials = tuple(sorted(gathered[key], key=lambda trial: trial.trial))
        found = [records[trial.id] for trial in trials if trial.id in records]
        measured = tuple(one for one in found if one.outcome in (Outcome.PASSED, Outcome.FAILED))
        errors = sum(one.outcome is Outcome.ERROR for one in found)
        spared = sum(one.outcome is Outcome.NOT_NEEDED for one in found)
        unjudged = sum(one.outcome is Outcome.UNJUDGED for one in found)
        missing = len(trials) - len(measured) - errors - spared - unjudged
        groups[key] = Group(trials, measured, errors, missing, spared, unjudged)
    return groups


def summarise(key: GroupKey, group: Group) -> GroupSummary:
    """Summarise one group."""
    lane, case, condition = key
    first = group.planned[0]
    numbers = summarise_group(group.scores, group.passes)
    seen = {record.exposure.digest for record in group.measured} or {first.skill_digest}
    return GroupSummary(
        lane=lane,
        case=case,
        condition=condition,
        category=first.category,
        skill=first.skill,
        control=first.control,
        fingerprint=first.fingerprint,
        skill_digest=seen.pop() if len(seen) == 1 else first.skill_digest,
        seen=first.seen,
        n=len(group.measured),
        passed=sum(group.passes),
        failed=len(group.measured) - sum(group.passes),
        errors=group.errors,
        missing=group.missing,
        not_needed=group.not_needed,
        unjudged=group.unjudged,
        pass_rate=Rate.model_validate(numbers["pass_rate"]),
        score=ScoreStats.model_validate(numbers["score"]),
        pass_at_k=numbers["pass_at_k"],
        pass_hat_k=numbers["pass_hat_k"],
        flip_rate=numbers["flip_rate"],
        tokens=mean_tokens(group.measured),
        cost_usd=mean_cost(group.measured),
        min_pass_rate=first.min_pass_rate,
    )


def mean_tokens(records: Iterable[TrialRecord]) -> Tokens | None:
    """Return the mean token use of the trials that know theirs."""
    known = [record.tokens for record in records if record.tokens is not None]

    def mean(name: str) -> int | None:
        values = [value for tokens in known if (value := getattr(tokens, name)) is not None]
        return round(sum(values) / len(values)) if values else None

    return Tokens(**{name: mean(name) for name in Tokens.model_fields}) if known else None


def mean_cost(records: Iterable[TrialRecord]) -> float | None:
    """Return the mean cost, in US dollars, of the trials that know theirs."""
    known = [record.cost_usd for record in records if record.cost_usd is not None]
    return sum(known) / len(known) if known else None


def lane_summaries(groups: Trials) -> list[LaneSummary]:
    """Summarise each lane under each condition, clustered by case."""
    cells: dict[tuple[str, str], list[Group]] = defaultdict(list)
    for (lane, _, condition), group in groups.items():
        cells[lane, condition].append(group)
    return [
        _lane(lane, condition, cells[lane, condition])
        for lane, condition in sorted(cells, key=lambda cell: order((cell[0], "", cell[1])))
    ]


def _lane(lane: str, condition: str, groups: list[Group]) -> LaneSummary:
    measured = [group for group in groups if group.measured]
    n = sum(len(group.measured) for group in measured)
    passed = sum(sum(group.passes) for group in measured)
    case_rates = [sum(group.passes) / len(group.measured) for group in measured]
    case_scores = [sum(group.scores) / len(group.scores) for group in measured]
    records = [record for group in measured for record in group.measured]
    return LaneSummary(
        lane=lane,
        condition=condition,
        control=groups[0].planned[0].control,
        cases=len(measured),
        n=n,
        passed=passed,
        failed=n - passed,
        errors=sum(group.errors for group in groups),
        missing=sum(group.missing for group in groups),
        unjudged=sum(group.unjudged for group in groups),
        pass_rate=Rate.model_validate(rates.lane_rate(case_rates, n)),
        score=ScoreStats.model_validate(summarise_lane_scores(case_scores, n)),
        tokens=mean_tokens(records),
        cost_usd=mean_cost(records),
    )


# ------------------------------------------------------------------------------------------------------- lifts

PAIRS = {
    "realised": ("none", "self-load"),
    "oracle": ("none", "preloaded"),
    "stale_harm": ("stale", "none"),
    "routing_gap": ("self-load", "preloaded"),
}
"""Metric to (without, with): its value is with - without."""


def paired(groups: Trials, lane: str, metric: str, of: str) -> dict[str, tuple[float, float]]:
    """Return the two values, without and with, of each case of a lane that was measured under both conditions.

    Args:
        groups: What came back.
        lane: The lane.
        metric: One of `PAIRS`.
        of: `score`, over the components that apply in both, or `pass_rate`.
    """
    value = _shared_scores if of == "score" else _pass_rates
    first, second = PAIRS[metric]
    return {
        case: value(groups[lane, case, first], groups[lane, case, second])
        for case in sorted({case for one, case, _ in groups if one == lane})
        if _measured(groups, lane, case, first) and _measured(groups, lane, case, second)
    }


def lifts(groups: Trials) -> list[Lift]:
    """Return what the skill changes, for each lane that has the conditions for it."""
    found: list[Lift] = []
    for lane in LANES:
        cases = sorted({case for one, case, _ in groups if one == lane})
        for of, value in (("score", _shared_scores), ("pass_rate", _pass_rates)):
            found += _lane_lifts(lane, of, cases, groups, value)
    return found


def _lane_lifts(
    lane: str,
    of: str,
    cases: Sequence[str],
    groups: Trials,
    value: Callable[[Group, Group], tuple[float, float]],
) -> list[Lift]:
    def both(metric: str) -> tuple[list[float], list[float]]:
        pairs = paired(groups, lane, metric, of).values()
        return [one for one, _ in pairs], [two for _, two in pairs]

    def line(metric: str, number: lift_numbers.LiftNumber) -> Lift:
        return Lift(lane=lane, metric=metric, of=of, **number)

    found: list[Lift] = []
    for metric in ("realised", "oracle", "stale_harm"):
        without, with_ = both(metric)
        if without:
            found.append(line(metric, lift_numbers.lift(without, with_)))
    none, self_load = both("realised")
    if none:
        found.append(line("regression_rate", lift_numbers.regression_rate(none, self_load)))
        found.append(line("unlock_rate", lift_numbers.unlock_rate(none, self_load)))
    loaded, preloaded = both("routing_gap")
    if loaded:
        found.append(line("routing_gap", lift_numbers.lift(loaded, preloaded)))
    complete = [
        case
        for case in cases
        if all(_measured(groups, lane, case, name) for name in ("none", "self-load", "preloaded"))
    ]
    if complete:
        triples = [_triple(groups, lane, case, value) for case in complete]
        columns = [list(column) for column in zip(*triples, strict=True)]
        found.append(line("routing_efficiency", lift_numbers.routing_efficiency(*columns)))
    return found


def _triple(
    groups: Trials, lane: str, case: str, value: Callable[[Group, Group], tuple[float, float]]
) -> tuple[float, float, float]:
    none, loaded, preloaded = (groups[lane, case, name] for name in ("none", "self-load", "preloaded"))
    return value(none, preloaded)[0], value(none, loaded)[1], value(none, preloaded)[1]


def _measured(groups: Trials, lane: str, case: str, condition: str) -> bool:
    group = groups.get((lane, case, condition))
    return group is not None and bool(group.measured)


def _pass_rates(one: Group, two: Group) -> tuple[float, float]:
    return sum(one.passes) / len(one.passes), sum(two.passes) / len(two.passes)


def _shared_scores(one: Group, two: Group) -> tuple[float, float]:
    """Return both mean scores over the components that apply in both conditions."""
    kept = _applying(one) & _applying(two)
    means = [sum(_score_over(record, kept) for record in group.measured) / len(group.measured) for group in (one, two)]
    return means[0], means[1]


def _applying(group: Group) -> frozenset[str]:
    parts = [part for record in group.measured if record.score for part in record.score.components]
    left_out = {part.id for part in parts if part.value is None}
    return frozenset(part.id for part in parts) - left_out


def _score_over(record: TrialRecord, kept: frozenset[str]) -> float:
    score = record.score
    if score is None or all(part.id in kept for part in score.components):
        return score_of(record)
    shared = Score.of(score.components, only=kept)
    return score.total if shared is None else shared.total


# -------------------------------------------------------------------------------------------- routing and noise


def routing(groups: Trials) -> dict[str, Any] | None:
    """Return recall, false triggers and precision over the trials in which a skill could be discovered.

    Without a single load, nothing is known of false triggers: the set-up may be broken. `control` then says so.
    """
    trials = [
        record
        for (_, _, condition), group in groups.items()
        if condition in CONDITIONS and CONDITIONS[condition].installs == "current"
        for record in group.measured
    ]
    if not trials:
        return None
    numbers = rates.routing([(record.skill is not None, _loaded(record)) for record in trials])
    positive = [record for record in trials if record.skill is not None]
    fired = any(_loaded(record) for record in positive)
    control = (
        "fired"
        if fired
        else "no positive case loaded its skill: negatives prove nothing"
        if positive
        else "no positive case"
    )
    return {**numbers, "control": control}


def _loaded(record: TrialRecord) -> bool:
    wanted = record.skill
    if wanted is None:
        return record.selected_skill is not None or bool(record.skills_used)
    return record.selected_skill == wanted or any(use.name == wanted for use in record.skills_used)


def noise(groups: Trials) -> Noise:
    """Return how often two trials of the same case and condition disagree."""
    counts = [(sum(group.passes), len(group.measured)) for group in groups.values()]
    found = rates.flip_rate(counts)
    return Noise(flip_rate=found["rate"], ci=_pair(found["ci"]), cases=found["n"], n=sum(n for _, n in counts if n > 1))


def judge(groups: Trials, name: str | None) -> dict[str, Any] | None:
    """Return who decided statements in prose, how many, and how often it agrees with itself; None where nobody did.

    Args:
        groups: Their trials.
        name: The judge as the user typed it.
    """
    found = [
        check.judged
        for group in groups.values()
        for record in group.measured
        for check in record.checks
        if check.judged is not None
    ]
    if not found:
        return None
    flips = rates.flip_rate([(one.answers.count("yes"), len(one.answers)) for one in found])
    costs = [one.cost_usd for one in found if one.cost_usd is not None]
    return {
        "name": name,
        "provider": found[0].provider,
        "model": found[0].model,
        "simulated": found[0].simulated,
        "statements": len(found),
        "answers": sum(len(one.answers) for one in found),
        "agreement": {
            "rate": None if flips["rate"] is None else 1 - flips["rate"],
            "ci": None if flips["ci"] is None else [1 - flips["ci"][1], 1 - flips["ci"][0]],
            "n": flips["n"],
        },
        "cost_usd": sum(costs) if costs else None,
    }


def _pair(interval: list[float] | None) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])


# --------------------------------------------------------------------------------------------------- in a sentence


def readings(found: Sequence[Lift]) -> list[Reading]:
    """Read the four conditions of each lane for people: discovery, content, rot.

    Only an interval that excludes 0 is read as an effect; everything else is said to be unclear.
    """
    lines: list[Reading] = []
    for lane in LANES:
        by_metric = {lift.metric: lift for lift in found if lift.lane == lane and lift.of == "pass_rate"}
        if "realised" not in by_metric and "oracle" not in by_metric:
            continue
        diagnosis, text = _read(by_metric)
        lines.append(Reading(lane=lane, diagnosis=diagnosis, text=text))
    return lines


def _read(lift: Mapping[str, Lift]) -> tuple[str, str]:
    realised, oracle, gap, harm = (
        _sign(lift.get(name)) for name in ("realised", "oracle", "routing_gap", "stale_harm")
    )
    rot = ""
    if "stale_harm" in lift:
        rot = " A stale version does harm: keep it out." if harm > 0 else " A stale version does no measurable harm."
    if realised > 0 and gap <= 0:
        return "works", "The skill helps, and agents find it by themselves." + rot
    if oracle > 0 and gap > 0:
        how = "do not load it often enough" if realised > 0 else "do not load it"
        return (
            "discovery",
            f"Discovery fails: the text helps in the context, but agents {how}. Improve the description." + rot,
        )
    if realised < 0:
        return "harm", "The skill hurts where agents load it." + rot
    if "oracle" in lift and oracle <= 0 and (interval := lift["oracle"].ci) is not None and interval[1] < _SMALL:
        return (
            "content",
            "Content fails: even with its text in the context the skill adds less than 5 points. Improve the text."
            + rot,
        )
    if oracle > 0:
        what = "whether agents find it by themselves cannot be told from noise yet; see what more trials would show."
        if "realised" not in lift:
            what = "whether agents find it by themselves was not asked (condition self-load)."
        return "loaded", f"The skill helps once its text is in the context; {what}" + rot
    return "unclear", "No effect can be told from noise yet; see what more trials or cases would show." + rot


_SMALL = 0.05


def _sign(lift: Lift | None) -> int:
    if lift is None or lift.ci is None:
        return 0
    return 1 if lift.ci[0] > 0 else -1 if lift.ci[1] < 0 else 0
