"""Each group of a comparison by itself: its changes, its exact test, and its verdict among its family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from .differences import Difference, moderated_t, moderated_variance, newcombe, pooled_variance, win_loss_tie
from .fdr import attainable_level, discrete_step_up, expected_by_chance
from .findings import Change, Family, Group, GroupFinding, Verdict, decide, reconcile
from .intervals import ROUNDING, mean
from .levels import Levels
from .permutation import relabelling_tests
from .planning import least_visible_change, min_trials_for_case_verdict, smallest_detectable

__all__ = ["change", "compare_groups", "missing_group", "run_variance"]


class _Test(NamedTuple):
    """A group's values and what their test says."""

    metric: Literal["score", "pass_rate"]
    base: list[float]
    cand: list[float]
    p: float = 1.0
    expected: float | None = None
    q: float = 1.0

    @property
    def delta(self) -> float:
        """Candidate mean minus baseline mean, rounding taken for nothing."""
        difference = mean(self.cand) - mean(self.base)
        return difference if abs(difference) >= ROUNDING else 0.0

    def decided(self, level: float, case_p: float) -> bool:
        """Whether chance is ruled out, for this group and among its family."""
        return self.delta != 0 and self.p <= case_p * (1 + ROUNDING) and self.q <= level * (1 + ROUNDING)


def run_variance(groups: Sequence[Group]) -> float:
    """Mean variance of scores within the runs of a group, over all measured groups; 0 where none has two trials."""
    variances = [v for g in groups if (v := pooled_variance(g.base_scores, g.cand_scores)) is not None]
    return mean(variances) if variances else 0.0


def change(base: Sequence[float], cand: Sequence[float], found: Difference | None, method: str) -> Change:
    """One metric in both runs; without a difference only the means that there are."""
    return Change(
        base=mean(base) if base else None,
        cand=mean(cand) if cand else None,
        delta=None if found is None else found.delta,
        ci=None if found is None else list(found.interval),
        method=method,
    )


def missing_group(group: Group) -> GroupFinding:
    """What is said about a group that one of the runs did not measure."""
    absent = [
        name for name, trials in (("baseline", group.base_scores), ("candidate", group.cand_scores)) if not trials
    ]
    return GroupFinding(
        verdict="inconclusive",
        reason=f"no measured trial in the {' and the '.join(absent)}",
        deciding=group.deciding,
        n=[len(group.base_scores), len(group.cand_scores)],
        tested="score",
        delta=None,
        ci=None,
        score=change(group.base_scores, group.cand_scores, None, "none"),
        pass_rate=change(group.base_passes, group.cand_passes, None, "none"),
        p=None,
        expected=None,
        q=None,
        signal=None,
        wins=0,
        losses=0,
        ties=0,
        detectable=None,
    )


def _values(group: Group) -> _Test:
    """What is tested: the score, or the pass bit where all scores are equal.

    Relabelling cannot change this choice, so that the test stays exact.
    """
    scores, passes = group.base_scores + group.cand_scores, group.base_passes + group.cand_passes
    if max(scores) - min(scores) < ROUNDING and len(set(passes)) > 1:
        return _Test("pass_rate", group.base_passes, group.cand_passes)
    return _Test("score", group.base_scores, group.cand_scores)


def _reversible(test: _Test) -> bool:
    """Whether some relabelling separates the runs completely."""
    pooled = sorted(test.base + test.cand)
    return any(pooled[cut] - pooled[cut - 1] >= ROUNDING for cut in (len(test.base), len(test.cand)))


def compare_groups(
    groups: Sequence[Group], level: float, levels: Levels, prior_variance: float
) -> tuple[list[GroupFinding], Family]:
    """Judge the groups of one family.

    A group is decided when the p of its relabelling test is at most `levels.case_p` and its q among the family is at
    most `level`. Its score interval is a moderated t, its pass rate interval Newcombe's, both 95 %; that of the tested
    metric is reconciled with the test, and no interval of an undecided group excludes 0.

    Args:
        groups: Groups that both runs measured.
        level: Of the family's discrete step-up.
        levels: The other levels and the practical thresholds.
        prior_variance: `run_variance` of the whole comparison.
    """
    tests = [_values(group) for group in groups]
    p, chance = relabelling_tests([t.base for t in tests], [t.cand for t in tests], horizon=levels.horizon)
    steps = discrete_step_up(p, chance, levels.horizon)
    tests = [
        test._replace(p=own, expected=expected, q=q)
        for test, own, expected, q in zip(tests, p, steps.expected, steps.q, strict=True)
    ]
    reach = attainable_level(chance, level, levels.case_p)
    reversible = sum(_reversible(test) for test in tests)
    signals = [test.delta for test in tests if test.p <= levels.signal * (1 + ROUNDING)]
    family = Family(
        groups=len(groups),
        level=level,
        p_needed=reach.p,
        spent=reach.expected,
        reversible=reversible,
        least_trials=min_trials_for_case_verdict(max(1, reversible), levels, level),
        signals_up=sum(delta > 0 for delta in signals),
        signals_down=sum(delta < 0 for delta in signals),
        signals_expected=expected_by_chance(levels.signal, chance),
    )
    judged = [_judge(group, test, family, levels, prior_variance) for group, test in zip(groups, tests, strict=True)]
    return judged, family


def _judge(group: Group, test: _Test, family: Family, levels: Levels, prior_variance: float) -> GroupFinding:
    decided = test.decided(family["level"], levels.case_p)
    score = moderated_t(group.base_scores, group.cand_scores, prior_variance)
    pass_rate = newcombe(
        math.fsum(group.base_passes), len(group.base_passes), math.fsum(group.cand_passes), len(group.cand_passes)
    )
    if test.metric == "score" or not decided:
        score = score._replace(interval=reconcile(score.interval, test.delta, decided=decided))
    if test.metric == "pass_rate" or not decided:
        pass_rate = pass_rate._replace(interval=reconcile(pass_rate.interval, test.delta, decided=decided))
    interval, threshold = (
        (score.interval, levels.score_threshold)
        if test.metric == "score"
        else (pass_rate.interval, levels.pass_threshold)
    )
    verdict = decide([(interval, test.delta, threshold)])
    small = test.p <= levels.signal * (1 + ROUNDING) and test.delta != 0
    tally = win_loss_tie(group.base_scores, group.cand_scores)
    return GroupFinding(
        verdict=verdict,
        reason=_reason(verdict, test, family, threshold, decided=decided, signal=small),
        deciding=group.deciding,
        n=[len(group.base_scores), len(group.cand_scores)],
        tested=test.metric,
        delta=test.delta,
        ci=list(interval),
        score=change(group.base_scores, group.cand_scores, score, "moderated t"),
        pass_rate=change(group.base_passes, group.cand_passes, pass_rate, "newcombe"),
        p=test.p,
        expected=test.expected,
        q=test.q,
        signal=("up" if test.delta > 0 else "down") if small else None,
        wins=tally.wins,
        losses=tally.losses,
        ties=tally.ties,
        detectable=_detectable(test, prior_variance, family["p_needed"]),
    )


def _reason(verdict: Verdict, test: _Test, family: Family, threshold: float, *, decided: bool, signal: bool) -> str:
    if verdict != "inconclusive":
        return ""
    trials = min(len(test.base), len(test.cand))
    if decided:
        return f"a gain of {test.delta:.3g} is below the practical threshold of {threshold:g}"
    if trials < family["least_trials"]:
        return f"{trials} trials cannot give this group a verdict of its own; {family['least_trials']} would"
    if signal:
        return f"{test.expected or 0:.2g} groups as extreme as this are expected by chance"
    return ""


def _detectable(test: _Test, prior_variance: float, p_needed: float | None) -> float | None:
    """The smallest change found in 80 % of runs at the p that a lone changed group needs."""
    if p_needed is None:
        return None
    visible = least_visible_change(len(test.base), len(test.cand), p_needed)
    error = math.sqrt(
        moderated_variance(test.base, test.cand, prior_variance) * (1 / len(test.base) + 1 / len(test.cand))
    )
    likely = smallest_detectable(error, 1, alpha=p_needed)
    return None if visible is None or likely is None else max(visible, likely)
