"""Two runs, group by group: did it get better, worse, or can nobody tell?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict
from typing import Any, Literal

from numpy.typing import NDArray

from .bootstrap import RESAMPLES
from .findings import Comparison, Family, Group, GroupFinding, plain
from .groups import compare_groups, missing_group, run_variance
from .intervals import unit_values
from .levels import DEFAULT_LEVELS, Levels
from .overall import compare_overall, nothing_to_compare
from .paired import compare_paired
from .permutation import RELABELLINGS
from .sides import Draws

__all__ = ["Method", "compare_arrays"]

Method = Literal["exact", "paired-bootstrap"]
Trials = Sequence[Sequence[float]] | NDArray[Any]


def compare_arrays(
    base_scores: Trials,
    cand_scores: Trials,
    base_passes: Trials,
    cand_passes: Trials,
    *,
    deciding: Sequence[bool] | None = None,
    case: Sequence[Hashable] | None = None,
    levels: Levels = DEFAULT_LEVELS,
    method: Method = "exact",
    relabellings: int = RELABELLINGS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare a candidate run with a baseline run.

    Each group gets an exact relabelling test, judged among all groups by discrete false discovery rates; all deciding
    groups together get one stratified relabelling test of score and pass rate. All verdicts share one error budget
    (`Levels`). Trials are never paired by index: their order, and that of the groups, changes nothing.

    Args:
        base_scores: For each group (case and condition) its baseline scores in [0, 1]. Numbers of trials may differ
            between groups and runs. Errors and missing trials are left out; an empty group is missing.
        cand_scores: The same of the candidate, group by group.
        base_passes: For each group its baseline pass bits (0, 1 or bools), as many as scores.
        cand_passes: The same of the candidate.
        deciding: For each group whether its agents could see what was changed; the others are negative controls. None
            (or nowhere true: nothing was changed) lets all groups decide.
        case: For each group an id; groups of one case are one unit. None takes each group for a case of its own.
        levels: Error levels and practical thresholds.
        method: `exact`, or `paired-bootstrap`, the rule of the first implementation, for comparison.
        relabellings: Random relabellings of the overall test.
        resamples: Of the bootstrap.
        seed: Of all that is drawn.

    Returns:
        A mapping of plain JSON values (see `findings.Comparison`): `per_case` holds one finding a group, in order, and
        `overall` the overall one, each with its `verdict`; floats have 12 significant digits.

    Raises:
        ValueError: Numbers of groups or trials do not match, or a value is not in [0, 1].
    """
    groups = _groups((base_scores, cand_scores, base_passes, cand_passes), deciding, case)
    draws = Draws(relabellings, resamples, seed)
    found = compare_paired(groups, levels) if method == "paired-bootstrap" else _compare(groups, levels, draws)
    plain_found: dict[str, Any] = plain(dict(found))
    return plain_found


def _groups(
    runs: tuple[Trials, Trials, Trials, Trials], deciding: Sequence[bool] | None, case: Sequence[Hashable] | None
) -> list[Group]:
    count = len(runs[0])
    roles = [True] * count if deciding is None or not any(deciding) else [bool(role) for role in deciding]
    cases: Sequence[Hashable] = range(count) if case is None else case
    sizes = [len(run) for run in runs] + [len(roles), len(cases)]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"scores, passes, deciding and case speak of different numbers of groups ({sizes}); each group needs all"
        )
    groups = []
    for index, (role, name) in enumerate(zip(roles, cases, strict=True)):
        base_scores, cand_scores = unit_values(runs[0][index]), unit_values(runs[1][index])
        base_passes, cand_passes = (unit_values(run[index], what="pass") for run in runs[2:])
        if len(base_scores) != len(base_passes) or len(cand_scores) != len(cand_passes):
            raise ValueError(
                f"group {index} has {len(base_scores)} and {len(cand_scores)} scores but {len(base_passes)} and "
                f"{len(cand_passes)} passes; each trial needs both"
            )
        if not {*base_passes, *cand_passes} <= {0.0, 1.0}:
            raise ValueError(f"group {index} has a pass that is neither 0 nor 1; give the degree as its score")
        groups.append(Group(name, role, base_scores, cand_scores, base_passes, cand_passes))
    return groups


def _compare(groups: Sequence[Group], levels: Levels, draws: Draws) -> Comparison:
    prior = run_variance([group for group in groups if group.measured])
    findings: dict[int, GroupFinding] = {}
    families: dict[str, Family | None] = {}
    measured: dict[bool, list[Group]] = {}
    for role, name, level in ((True, "deciding", levels.cases), (False, "controls", levels.controls)):
        indices = [i for i, group in enumerate(groups) if group.measured and group.deciding is role]
        measured[role] = [groups[i] for i in indices]
        families[name] = None
        if indices:
            found, families[name] = compare_groups(measured[role], level, levels, prior)
            findings.update(zip(indices, found, strict=True))
    family = families["deciding"]
    left = levels.left(sum(f["spent"] for f in families.values() if f is not None))
    overall = (
        nothing_to_compare(left, draws)
        if family is None
        else compare_overall(measured[True], measured[False], family, level=left, levels=levels, draws=draws)
    )
    return Comparison(
        method="exact",
        levels=asdict(levels),
        per_case=[findings.get(i) or missing_group(group) for i, group in enumerate(groups)],
        overall=overall,
        families=families,
    )
