from __future__ import annotations

from typing import Any

import pytest

from pytest_skilleval.reports.headline import headline
from pytest_skilleval.reports.versus import power_lines, versus

from .made import compared, made


def shown(**more: Any) -> Any:
    return versus(made(comparison=compared(**more)))


def test_without_a_comparison_there_is_nothing_to_show() -> None:
    assert versus(made()) is None
    assert versus(made(comparison={})) is None


def test_groups_are_sorted_by_what_is_said_about_them() -> None:
    found = shown()
    assert [row.name for row in found.regressed] == ["execution:greet:self-load"]
    assert found.improved == ()
    assert [row.name for row in found.signals] == ["execution:greet:none"]
    assert found.groups[0].text == "score -0.600; n=3 and 3"


def test_what_would_see_more_is_said_in_numbers() -> None:
    assert shown().outlook == (
        "pass rate: a change of 0.20 would be found in 80% of such comparisons; to find 0.05: 50 trials for each case or 131 cases",
    )


def test_signals_stand_beside_what_chance_would_show() -> None:
    families = {"deciding": {"signals_up": 1, "signals_down": 0, "signals_expected": 0.312}}
    assert shown(families=families).chance == "signals: 1 up and 0 down; chance alone would show 0.31"
    assert shown().chance == ""


def test_the_versions_of_a_skill_are_told_apart() -> None:
    rows = [
        {"skill": "greeter", "condition": "stale", "baseline": "a" * 64, "candidate": "a" * 64},
        {"skill": "greeter", "condition": "none", "baseline": None, "candidate": "b" * 64},
    ]
    assert shown(skills=rows).skills == (
        "greeter (stale): aaaaaaaaaaaa, the same in both runs",
        "greeter (none): none in the baseline, bbbbbbbbbbbb here",
    )


def test_controls_that_moved_point_at_the_world() -> None:
    overall = compared()["overall"]
    assert shown(overall={**overall, "controls": {"groups": 4, "moved": True}}).controls == (
        "negative controls (4 groups) moved: the provider or the world changed too"
    )


@pytest.mark.parametrize(
    "comparison",
    [
        {"comparable": True},
        {"overall": None, "groups": None, "baseline": None, "families": None},
        {
            "overall": {"score": {"delta": float("nan"), "ci": [1]}, "controls": 3, "bootstrap": []},
            "groups": [None, {}],
            "added": [["a", "b"], "c"],
        },
        {"groups": [{"ci": ["x", "y"], "delta": True, "p": "no"}]},
    ],
)
def test_a_comparison_with_missing_or_odd_keys_is_shown_as_unknown(comparison: dict[str, Any]) -> None:
    report = made(comparison=comparison)
    found = versus(report)
    assert found is not None
    assert found.pass_rate.delta is None
    assert found.verdict == "inconclusive"
    assert headline(report, found).text == "no group was measured in both runs"


def test_the_power_of_a_run_is_said_once() -> None:
    reasons = {
        "reasons": ["3 trials cannot give a group a verdict of its own; 6 would"],
        "detectable_change": 0.196,
        "least_trials": 6,
        "group_verdicts": False,
    }
    assert power_lines(reasons) == (
        "3 trials cannot give a group a verdict of its own; 6 would",
        "Against a run of this size, an overall change of 0.20 would be found in 80% of comparisons.",
    )
    assert power_lines({"least_trials": 6, "group_verdicts": True}) == (
        "Single groups get verdicts of their own from 6 trials on.",
    )
    assert power_lines({}) == ()
