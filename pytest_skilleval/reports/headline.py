"""The first thing that a report says: one word, its tone, and the sentence that carries the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_skilleval.reports import numbers

if TYPE_CHECKING:
    from pytest_skilleval.records import ProviderInfo
    from pytest_skilleval.reports.versus import Versus
    from pytest_skilleval.results import Report

__all__ = ["LIFT_WORDS", "Headline", "headline", "lift_word", "provider_name", "simulated"]

LIFT_WORDS = {
    "realised": "realised lift (self-load - none)",
    "oracle": "oracle lift (preloaded - none)",
    "routing_gap": "routing gap (preloaded - self-load)",
    "stale_harm": "stale harm (none - stale)",
    "regression_rate": "cases that got worse",
    "unlock_rate": "cases that got better",
    "routing_efficiency": "routing efficiency (realised / oracle)",
}
"""What each lift is called for people."""

_DIAGNOSES = {
    "works": ("Works", "good"),
    "discovery": ("Discovery fails", "warn"),
    "loaded": ("Helps once loaded", "calm"),
    "content": ("Content fails", "warn"),
    "harm": ("Hurts", "bad"),
    "unclear": ("Unclear", "calm"),
}
_VERDICTS = {"improved": "good", "regressed": "bad", "inconclusive": "calm", "not comparable": "warn"}


class Headline(NamedTuple):
    """What stands first."""

    word: str
    tone: str
    """`good`, `bad`, `warn` or `calm`."""
    text: str


def headline(report: Report, versus: Versus | None) -> Headline:
    """Return the first thing to say: why a run cannot be trusted, else its verdict, else what its conditions say."""
    run = report.run
    if run.status != "finished":
        return Headline(run.status.capitalize(), "bad", "; ".join(run.reasons) or "this run gives no verdict")
    if versus is not None:
        return Headline(versus.verdict.capitalize(), _VERDICTS.get(versus.verdict, "calm"), _against(versus))
    if len(report.readings) == 1:
        word, tone = _DIAGNOSES.get(report.readings[0].diagnosis, (report.readings[0].diagnosis.capitalize(), "calm"))
        return Headline(word, tone, report.readings[0].text)
    if report.readings:
        return Headline("Measured", "calm", " ".join(f"{reading.lane}: {reading.text}" for reading in report.readings))
    return Headline("Measured", "calm", "No baseline was given: rates with their intervals, no verdict.")


def _against(versus: Versus) -> str:
    if not versus.comparable:
        return "; ".join(versus.reasons) or "the two runs do not measure the same thing"
    parts = [
        f"{word} {numbers.points(change.delta)} {numbers.ci(change.ci, signed=True)}".rstrip()
        for word, change in (("pass rate", versus.pass_rate), ("mean score", versus.score))
        if change.delta is not None
    ]
    if versus.p is not None:
        p = numbers.p_value(versus.p)
        parts.append(f"p {p}" if p.startswith("<") else f"p = {p}")
    if versus.wins is not None and versus.losses is not None:
        parts.append(
            f"{numbers.count(versus.wins, 'case')} up, {versus.losses} down"
            + (f", {versus.ties} level" if versus.ties is not None else "")
        )
    return "; ".join(parts) or "no group was measured in both runs"


def lift_word(metric: str) -> str:
    """Return what a lift is called."""
    return LIFT_WORDS.get(metric, metric.replace("_", " "))


def provider_name(provider: ProviderInfo) -> str:
    """Name who answered: provider, version, model and effort, as far as they are known."""
    parts = (provider.id, provider.version, provider.model, f"effort {provider.effort}" if provider.effort else None)
    return " ".join(part for part in parts if part)


def simulated(provider: ProviderInfo) -> str:
    """Return what must stand wherever results of a simulation are shown; empty for a real agent."""
    return f"{provider.id}: simulated, no agent was run" if provider.simulated else ""
