"""The lines before the first agent starts: what will run, against what, and what it could not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_skilleval.model import BASE
from pytest_skilleval.reports import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_skilleval.comparison import Baseline
    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import AgainstRef, ProviderInfo
    from pytest_skilleval.results import Report

__all__ = ["header_lines", "plan_lines"]


def header_lines(
    settings: Settings,
    provider: ProviderInfo,
    groups: Sequence[tuple[str, str, str]],
    baseline: Baseline | None,
    against: AgainstRef | None = None,
) -> list[str]:
    """Return the lines of pytest's header."""
    if not groups:
        return []
    cases = len({group[:2] for group in groups})
    who = (
        f"{provider.id} (simulated, no agent is run)"
        if provider.simulated
        else f"{provider.id} {provider.version or ''}".rstrip()
    )
    each = f"{numbers.count(settings.trials, 'trial')} each"
    size = f"{numbers.count(cases, 'case')}, {numbers.count(len(groups), 'group')}, {each}"
    lines = [f"skilleval: {who}: {size} = {numbers.count(len(groups) * settings.trials, 'trial')}"]
    if against is not None:
        pairs = ", ".join(f"{pair.name} {_version(pair.baseline)} -> {pair.candidate[:8]}" for pair in against.skills)
        lines.append(f"skilleval: against {against.reference}, both sides in this run: {pairs}")
        twins = {group for group in groups if group[2].endswith(BASE)}
        sides = [(lane, case, name) for lane, case, name in groups if (lane, case, f"{name}{BASE}") in twins]
        lines += [f"skilleval: {reason}" for reason in _forecast(None, sides, settings.trials)]
    if baseline is None:
        return lines
    run = baseline.report.run
    lines.append(f"skilleval: baseline {run.id} of {run.started}, {numbers.count(run.trials, 'trial')} each")
    lines += [f"skilleval: not comparable, but allowed: {reason}" for reason in baseline.allowed]
    lines += [f"skilleval: {reason}" for reason in _forecast(baseline.report, groups, settings.trials)]
    return lines


def _forecast(report: Report | None, groups: Sequence[tuple[str, str, str]], trials: int) -> list[str]:
    """Say what a comparison could not tell; only here numbers are computed before the first trial."""
    from pytest_skilleval import comparison  # noqa: PLC0415 - the numeric libraries are most of a session's start

    return list(comparison.forecast(report, groups, trials))


def _version(digest: str | None) -> str:
    return "as it is" if digest is None else digest[:8]


def plan_lines(counts: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Yield the plan that `--collect-only` shows: trials by lane and condition.

    Args:
        counts: Lane and condition to trials.
    """
    if not counts:
        return
    yield "skilleval: the plan"
    wide = max(len(" ".join(key)) for key in counts)
    for lane, condition in counts:
        yield f"  {f'{lane} {condition}':<{wide}}  {numbers.count(counts[lane, condition], 'trial')}"
    yield f"  {'in all':<{wide}}  {numbers.count(sum(counts.values()), 'trial')}"
