"""`skilleval noise` and `skilleval plan`: what chance alone does, and what would see through it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.commands.conftest import Shell


def test_flip_rates_within_and_between_two_runs(shell: Shell) -> None:
    shell.judged("a", {"one:self-load": "ppff", "two:self-load": "pppp"})
    shell.judged("b", {"one:self-load": "pff", "two:self-load": "ppp"}, seed=1)
    value = shell("noise", "a", "b", "--json").json
    # Pairs of a case's trials that disagree. Within a: 4 of 6 and 0 of 6; within b: 2 of 3 and 0 of 3.
    assert value["within_a"]["rate"] == pytest.approx((4 / 6 + 0) / 2)
    assert value["within_b"]["rate"] == pytest.approx((2 / 3 + 0) / 2)
    # Between, of 4 x 3 pairs: 2 passes meet 2 failures, 2 failures meet 1 pass: 6 of 12; and 0 of 12.
    assert value["between"]["rate"] == pytest.approx((6 / 12 + 0) / 2)
    for key in ("within_a", "within_b", "between"):
        low, high = value[key]["ci"]
        assert 0 <= low < value[key]["rate"] < high <= 1
        assert value[key]["n"] == 2
    assert value["notes"] == []
    out = shell("noise", "a", "b").out
    assert "33.3%" in out
    assert "25%" in out


def test_noise_says_what_else_lies_between_the_runs(shell: Shell) -> None:
    shell.judged("a", {"one:self-load": "pf"})
    shell.judged("b", {"one:self-load": "pf"})
    shell.judged("c", {"one:self-load": "pf"}, skill="c" * 64, seed=1)
    assert "the same draws" in shell("noise", "a", "b").out
    assert "1 group the skill differs" in shell("noise", "a", "c").out


def test_noise_of_single_trials_is_unknown_within_and_known_between(shell: Shell) -> None:
    shell.judged("a", {"one:self-load": "p", "two:self-load": "f"})
    shell.judged("b", {"one:self-load": "f", "two:self-load": "f"}, seed=1)
    value = shell("noise", "a", "b", "--json").json
    assert value["within_a"] == {"rate": None, "ci": None, "n": 0, "method": "none"}
    assert value["between"]["rate"] == 0.5


def test_noise_needs_a_case_in_common(shell: Shell) -> None:
    shell.judged("a", {"one:self-load": "pf"})
    shell.judged("b", {"two:self-load": "pf"})
    said = shell("noise", "a", "b")
    assert said.status == 4
    assert "share no unchanged case" in said.err


# 24 cases of 5 trials: a case with 1 of 5 flips in 2·1·4 / (5·4) = 0.4 of its pairs; half of the cases are like that.
RUN = {f"c{number}:self-load": "pffff" if number % 2 else "fffff" for number in range(24)}
FLIP = 0.2


def smallest(level: float, flip: float, cases: int, trials: float, power: float = 0.8) -> float:
    """The closed form with Student's quantiles, worked out by scipy."""
    from scipy import stats

    quantiles = stats.t.ppf(1 - level / 2, cases - 1) + stats.t.ppf(power, cases - 1)
    return float(quantiles * math.sqrt(flip / trials / cases))


@pytest.mark.parametrize("power", [0.8, 0.95])
def test_plan_tells_the_smallest_change_that_the_run_could_have_seen(shell: Shell, power: float) -> None:
    shell.judged("r", RUN)
    value = shell("plan", "r", "--json", "--power", str(power)).json
    assert value["flip_rate"] == {"rate": pytest.approx(FLIP), "measured": True}
    assert value["smallest_detectable"] == pytest.approx(smallest(value["level"], FLIP, 24, 5, power), abs=1e-4)


@pytest.mark.parametrize("change", [0.05, 0.1, 0.2])
def test_plan_names_the_fewest_trials_and_the_fewest_cases_that_find_a_change(shell: Shell, change: float) -> None:
    shell.judged("r", RUN)
    value = shell("plan", "r", "--detect", str(change), "--json").json
    level, trials, cases = value["level"], value["trials_needed"], value["cases_needed"]

    assert smallest(level, FLIP, 24, trials) <= change
    assert trials == 1 or smallest(level, FLIP, 24, trials - 1) > change
    assert smallest(level, FLIP, cases, 5) <= change < smallest(level, FLIP, cases - 1, 5)


def test_plan_counts_the_conditions_of_a_case_together_and_leaves_controls_out(shell: Shell) -> None:
    both = {
        name.replace("self-load", condition): text
        for name, text in RUN.items()
        for condition in ("self-load", "preloaded")
    }
    shell.judged("r", both | {f"c{number}:none": "fffff" for number in range(24)})
    value = shell("plan", "r", "--json").json
    assert value["design"] == {"cases": 24, "groups": 48, "trials": 5.0}
    assert value["smallest_detectable"] == pytest.approx(smallest(value["level"], FLIP, 24, 10), abs=1e-4)


def test_plan_without_repeated_trials_says_that_it_assumes_the_noise(shell: Shell) -> None:
    shell.judged("r", {name: text[:1] for name, text in RUN.items()})
    assert shell("plan", "r", "--json").json["flip_rate"] == {"rate": 0.16, "measured": False}
    assert "assumed" in shell("plan", "r").out


def test_plan_without_any_noise_is_limited_by_the_test_itself(shell: Shell) -> None:
    shell.judged("r", {f"c{number}:self-load": "ppp" for number in range(24)})
    # k failures, all in one run, have p = 2^-k: 6 are needed for a level between 1/64 and 1/32, of 72 trials a run.
    value = shell("plan", "r", "--json", "--detect", "0.01").json
    assert 1 / 64 < value["level"] < 1 / 32
    assert value["smallest_detectable"] == pytest.approx(6 / 72)
    assert value["trials_needed"] == 25
    assert value["cases_needed"] == 200


def test_plan_tells_the_price_where_the_run_knows_its_own(shell: Shell) -> None:
    shell.judged("r", RUN, provider="claude", cost=0.5)
    value = shell("plan", "r", "--json").json
    assert value["cost_usd_per_trial"] == pytest.approx(0.5)
    total = value["trials_needed"] * 24
    assert f"{total} trials, about ${total * 0.5:,.2f}" in shell("plan", "r").out
    shell.judged("free", RUN)
    assert "$" not in shell("plan", "free").out


@pytest.mark.parametrize(
    "words", [("--detect", "0"), ("--detect", "1.5"), ("--detect", "nan"), ("--power", "1"), ("--power", "0.2")]
)
def test_plan_refuses_what_is_no_change_and_no_power(shell: Shell, words: tuple[str, str]) -> None:
    shell.judged("r", RUN)
    said = shell("plan", "r", *words)
    assert said.status == 4
    assert said.err.count("\n") == 1
    assert words[0] in said.err


def test_plan_needs_something_measured(shell: Shell) -> None:
    shell.judged("r", {"one:self-load": "ee"})
    said = shell("plan", "r")
    assert said.status == 4
    assert "has measured nothing" in said.err
