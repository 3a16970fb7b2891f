"""Summaries of one group, and lifts over the cases of one run."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_skilleval.stats.lifts import lift, regression_rate, routing_efficiency, unlock_rate
from pytest_skilleval.stats.summary import summarise_group, summarise_lane_scores, summarise_scores

from .reference import rows

TRIALS = st.lists(st.tuples(st.sampled_from([0, 0.3, 1 / 3, 1]), st.booleans()), max_size=8)


def test_a_group_is_summed_up_by_published_formulas():
    found = summarise_group([1, 0.4, 0.9], [True, False, True])
    assert found["pass_rate"]["ci"] == pytest.approx([0.2076596008020477, 0.9385080552796037], abs=1e-9)  # Wilson 2/3
    assert found["pass_rate"]["rate"] == pytest.approx(2 / 3)
    assert found["score"]["ci"] == pytest.approx([0.0, 1.0])  # t: -0.03 to 1.57 (scipy), clipped
    assert (found["score"]["min"], found["score"]["max"], found["score"]["n"]) == (0.4, 1.0, 3)
    assert found["pass_at_k"] == pytest.approx({"1": 2 / 3, "2": 1.0, "3": 1.0})
    assert found["pass_hat_k"] == pytest.approx({"1": 2 / 3, "2": 1 / 3, "3": 0.0})
    assert found["flip_rate"] == pytest.approx(2 / 3)


def test_a_group_without_trials_has_unknown_numbers_and_not_zeros():
    found = summarise_group([], [])
    assert found["pass_rate"] == {"rate": None, "ci": None, "n": 0, "method": "none"}
    assert found["score"]["mean"] is None
    assert found["flip_rate"] is None
    assert found["pass_at_k"] == {}


@given(TRIALS.flatmap(lambda t: st.tuples(st.just(t), st.permutations(t))))
def test_the_order_of_trials_changes_no_byte_of_a_summary(pair):
    dumped = [
        json.dumps(summarise_group([s for s, _ in t], [p for _, p in t]), allow_nan=False, sort_keys=True) for t in pair
    ]
    assert dumped[0] == dumped[1]


def test_scores_and_passes_must_be_as_many():
    with pytest.raises(ValueError, match="2 scores and 1 passes"):
        summarise_group([1, 0], [True])


def test_lane_scores_are_clustered_by_case():
    given_, expected, tol = rows("lane_rate")[0].values
    found = summarise_lane_scores(given_["case_rates"], given_["trials"])
    assert found["ci"] == pytest.approx(expected["ci"], abs=tol)
    assert found["n"] == given_["trials"]
    assert summarise_lane_scores([], 0)["mean"] is None
    assert summarise_scores([])["n"] == 0


def test_a_lift_is_the_paired_difference_over_cases():
    given_, expected, tol = rows("paired_case_t")[0].values
    without = [max(0.0, -d) for d in given_["case_differences"]]
    with_skill = [max(0.0, d) for d in given_["case_differences"]]
    found = lift(without, with_skill)
    assert found["value"] == pytest.approx(expected["mean"], abs=tol)
    assert found["ci"] == pytest.approx(expected["ci"], abs=tol)
    assert found["cases"] == 10
    # Of the row's ten differences two are below 0 and three above.
    assert regression_rate(without, with_skill)["value"] == pytest.approx(0.2)
    assert unlock_rate(without, with_skill)["value"] == pytest.approx(0.3)


def test_no_case_under_both_conditions_gives_no_number():
    for function in (lift, regression_rate, unlock_rate):
        found = function([], [])
        assert (found["value"], found["ci"], found["cases"]) == (None, None, 0)
        assert "no case" in found["note"]
    assert "no case" in routing_efficiency([], [], [])["note"]


def test_routing_efficiency_is_the_ratio_of_lifts_with_fiellers_interval():
    given_, expected, tol = rows("fieller")[0].values
    zeros = [0.0] * len(given_["num"])
    found = routing_efficiency(zeros, given_["num"], given_["den"])
    assert found["value"] == pytest.approx(expected["ratio"], abs=tol)
    assert found["ci"] == pytest.approx(expected["ci"], abs=tol)


@pytest.mark.parametrize(
    ("without", "discovered", "preloaded", "why"),
    [
        ([0.5, 0.4, 0.6], [0.5, 0.6, 0.5], [0.5, 0.3, 0.7], "not clearly above 0"),
        ([0.9, 0.8, 0.9], [0.5, 0.4, 0.3], [0.1, 0.0, 0.2], "not clearly above 0"),  # the skill harms
        ([0.0] * 6, [1.0] * 6, [1.0] * 6, "same ratio"),
    ],
)
def test_routing_efficiency_says_why_it_is_not_estimable(without, discovered, preloaded, why):
    found = routing_efficiency(without, discovered, preloaded)
    assert (found["value"], found["ci"]) == (None, None)
    assert why in found["note"]
