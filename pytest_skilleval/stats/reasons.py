"""What qualifies an overall verdict, in words for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scipy import special

from .findings import ControlFinding, Family, OverallChange, Verdict

__all__ = ["reasons"]

OPPOSITE = 0.05
"""How unlikely so many signals both ways must be by chance before that is said."""


def _sign(ci: Sequence[float] | None) -> int:
    """On which side of 0 an interval lies; 0 when it holds 0 or is not there."""
    return 0 if ci is None else (ci[0] > 0) - (ci[1] < 0)


def _both_ways(family: Family) -> list[str]:
    up, down, each = family["signals_up"], family["signals_down"], family["signals_expected"] / 2
    fewer = min(up, down)
    # P(X >= fewer) of a Poisson variable: the rarer direction alone must be more than chance.
    if fewer and special.gammainc(fewer, each) <= OPPOSITE:
        return [f"groups moved in opposite directions: {up} up, {down} down ({each:.1f} each by chance)"]
    return []


def _of_metric(name: str, change: OverallChange, verdict: Verdict) -> list[str]:
    found = []
    shown, wide = _sign(change["ci"]), _sign((change["cases_like_these"] or {}).get("ci"))
    if shown and not wide:
        found.append(f"intervals and test disagree on the {name}: shown for these cases, not for cases like these")
    elif wide and not shown:
        found.append(f"intervals and test disagree on the {name}: the test, which decides, is not sure")
    if verdict == "inconclusive" and shown > 0:
        found.append(f"the gain of {name} ({change['delta']:.3g}) is below the practical threshold")
    return found


def reasons(
    verdict: Verdict, changes: Mapping[str, OverallChange], family: Family, controls: ControlFinding | None
) -> list[str]:
    """The reasons, most important first: drift, movements that cancel, intervals that disagree, thresholds."""
    found = []
    if controls is not None and controls["moved"]:
        found.append(
            "drift: the control groups, whose agents saw no change, moved too "
            f"(score {controls['score']['delta']:+.3f}, pass rate {controls['pass_rate']['delta']:+.3f})"
        )
    found += _both_ways(family)
    if {_sign(change["ci"]) for change in changes.values()} == {-1, 1}:
        found.append("score and pass rate moved in opposite directions")
    for metric, change in changes.items():
        found += _of_metric(metric.replace("_", " "), change, verdict)
    return found
