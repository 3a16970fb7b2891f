"""Whole comparisons: verdicts, what stands beside them, and what must not change them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_skilleval.stats.compare import compare_arrays
from pytest_skilleval.stats.levels import DEFAULT_LEVELS

from .reference import rows

TRIAL = st.sampled_from([(0.0, False), (0.4, False), (0.9, True), (1.0, True), (1.0, False)])
RUN = st.lists(TRIAL, max_size=5)
GROUPS = st.lists(st.tuples(RUN, RUN, st.booleans(), st.sampled_from("abcd")), max_size=6)


def compare(groups, **options):
    """Compare groups given as (baseline trials, candidate trials), a trial being (score, pass)."""
    return compare_arrays(
        [[s for s, _ in g[0]] for g in groups],
        [[s for s, _ in g[1]] for g in groups],
        [[p for _, p in g[0]] for g in groups],
        [[p for _, p in g[1]] for g in groups],
        **options,
    )


def bits(text):
    """Trials from a string of 1 and 0: score and pass alike."""
    return [(float(c), c == "1") for c in text]


def group(base, cand):
    return bits(base), bits(cand)


STILL = group("11111", "11111")


def numbers(value):
    """All floats of a result."""
    if isinstance(value, dict):
        return [n for part in value.values() for n in numbers(part)]
    if isinstance(value, list):
        return [n for part in value for n in numbers(part)]
    return [value] if isinstance(value, float) else []


def intervals(value):
    """All intervals of a result."""
    if isinstance(value, dict):
        own = [value["ci"]] if value.get("ci") is not None else []
        return own + [i for key, part in value.items() if key != "ci" for i in intervals(part)]
    if isinstance(value, list):
        return [i for part in value for i in intervals(part)]
    return []


@settings(max_examples=60)
@given(GROUPS)
def test_any_result_is_plain_json_without_nan_points_or_impossible_ends(groups):
    found = compare(
        groups, deciding=[g[2] for g in groups], case=[g[3] for g in groups], relabellings=400, resamples=200
    )
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert all(math.isfinite(n) for n in numbers(found))
    for lower, upper in intervals({key: found[key] for key in ("per_case", "overall")}):
        assert lower < upper
        assert lower >= -2
        assert upper <= 2
    for finding in (*found["per_case"], found["overall"]["score"], found["overall"]["pass_rate"]):
        if finding["ci"] is not None:
            assert -1 <= finding["ci"][0] <= finding["delta"] <= finding["ci"][1] <= 1


@settings(max_examples=40)
@given(GROUPS, st.randoms(use_true_random=False))
def test_the_order_of_groups_and_trials_changes_no_byte(groups, random):
    options = {"relabellings": 300, "resamples": 100}
    found = compare(groups, deciding=[g[2] for g in groups], case=[g[3] for g in groups], **options)
    order = random.sample(range(len(groups)), len(groups))
    mixed = [
        (random.sample(b, len(b)), random.sample(c, len(c)), role, case)
        for b, c, role, case in (groups[i] for i in order)
    ]
    again = compare(mixed, deciding=[g[2] for g in mixed], case=[g[3] for g in mixed], **options)
    again["per_case"] = [again["per_case"][order.index(i)] for i in range(len(groups))]
    assert json.dumps(again) == json.dumps(found)


@settings(max_examples=30)
@given(GROUPS)
def test_a_verdict_is_what_its_interval_says(groups):
    found = compare(groups, relabellings=400, resamples=100)
    for finding in found["per_case"]:
        if finding["ci"] is None:
            assert finding["verdict"] == "inconclusive"
            continue
        lower, upper = finding["ci"]
        expected = (
            "improved" if lower > 0 and finding["delta"] >= 0.05 else "regressed" if upper < 0 else "inconclusive"
        )
        assert finding["verdict"] == expected
    changes = [found["overall"][metric] for metric in ("score", "pass_rate") if found["overall"]["cases"]]
    if any(change["ci"][1] < 0 for change in changes):
        assert found["overall"]["verdict"] == "regressed"
    elif any(change["ci"][0] > 0 and change["delta"] >= 0.05 for change in changes):
        assert found["overall"]["verdict"] == "improved"
    else:
        assert found["overall"]["verdict"] == "inconclusive"


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("case_family"))
def test_families_of_groups_get_the_verdicts_that_arithmetic_gives(given_, expected, tol):
    passes = [[[bool(x) for x in trials] for trials in given_[run]] for run in ("baseline", "candidate")]
    found = compare_arrays(given_["baseline"], given_["candidate"], *passes, relabellings=500, resamples=50)
    first = found["per_case"][0]
    verdicts = [finding["verdict"] for finding in found["per_case"]]
    assert verdicts.count("regressed") == expected["n_regressed_at_0.025"]
    assert verdicts.count("improved") == 0
    assert first["expected"] == pytest.approx(expected["expected_by_chance_first"], abs=1e-11)
    assert tol <= 1e-11
    if "signal_first" in expected:
        assert first["signal"] == expected["signal_first"]
        assert first["reason"] == "3 trials cannot give this group a verdict of its own; 5 would"


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("float_trap"))
def test_float_rounding_is_never_a_verdict(given_, expected, tol):
    assert (given_["baseline"], given_["candidate"]) == ("five times 0.1+0.2", "five times 0.3")
    for method in ("exact", "paired-bootstrap"):
        found = compare_arrays([[0.1 + 0.2] * 5], [[0.3] * 5], [[True] * 5], [[True] * 5], method=method)
        assert found["per_case"][0]["verdict"] == expected["required_verdict"]
        assert found["overall"]["verdict"] == expected["required_verdict"]
        assert found["per_case"][0]["delta"] == tol


def test_a_lone_complete_reversal_is_found_and_named():
    found = compare([group("111111", "000000"), *[group("111111", "111111")] * 23])
    first = found["per_case"][0]
    assert (first["verdict"], first["delta"]) == ("regressed", -1.0)
    assert first["p"] == pytest.approx(2 / 924)
    assert (first["wins"], first["losses"], first["ties"]) == (0, 36, 0)
    assert {finding["verdict"] for finding in found["per_case"][1:]} == {"inconclusive"}
    assert found["overall"]["verdict"] == "regressed"  # all 6 failures are the candidate's: mid-p 1/924
    assert found["overall"]["exact"]
    assert found["overall"]["p"] == pytest.approx(1 / 924)
    back = compare([group("000000", "111111"), *[group("111111", "111111")] * 23])
    assert back["per_case"][0]["verdict"] == "improved"
    # One case in 24 is 4 points: surely more than nothing, and less than what counts.
    assert back["overall"]["verdict"] == "inconclusive"
    assert any("below the practical threshold" in reason for reason in back["overall"]["reasons"])


def test_the_practical_thresholds_can_be_set():
    groups = [group("000000", "111111"), *[group("111111", "111111")] * 23]
    found = compare(groups, levels=replace(DEFAULT_LEVELS, pass_threshold=0.04))
    assert found["overall"]["verdict"] == "improved"
    small = [([(0.5, True)] * 8, [(0.53, True)] * 8)]
    assert compare(small)["per_case"][0]["verdict"] == "inconclusive"
    assert "practical threshold" in compare(small)["per_case"][0]["reason"]
    assert compare(small, levels=replace(DEFAULT_LEVELS, score_threshold=0.02))["per_case"][0]["verdict"] == "improved"


def test_equal_runs_are_inconclusive_and_say_what_would_have_been_seen():
    found = compare([group("11101", "10111")] * 24)
    assert {finding["verdict"] for finding in found["per_case"]} == {"inconclusive"}
    overall = found["overall"]
    assert (overall["verdict"], overall["ties"], overall["reasons"]) == ("inconclusive", 24, [])
    assert 0.05 < overall["pass_rate"]["detectable"] < 0.4
    assert overall["pass_rate"]["needed"]["cases"] > 24
    assert overall["pass_rate"]["needed"]["trials"] > 5


def test_runs_without_any_variation_have_intervals_all_the_same():
    found = compare([STILL] * 4)
    assert found["overall"]["score"]["method"] == "newcombe"
    assert found["overall"]["score"]["ci"][0] < -0.3
    assert found["overall"]["bootstrap"]["score"]["ci"] is None


def test_controls_that_move_are_called_drift_and_do_not_decide():
    moved, still = group("11111", "00000"), STILL
    groups = [still] * 6 + [moved] * 6
    found = compare(groups, deciding=[True] * 6 + [False] * 6, case=list("abcdef") * 2)
    assert found["overall"]["verdict"] == "inconclusive"
    assert found["overall"]["drift"]
    assert found["overall"]["reasons"][0].startswith("drift: ")
    assert found["overall"]["controls"]["score"]["delta"] == -1
    both = found["overall"]["controls"]["difference_of_differences"]
    assert (both["cases"], both["score"]["delta"]) == (6, 1.0)
    assert both["score"]["ci"][0] > 0
    steady = compare(groups, deciding=[False] * 6 + [True] * 6, case=list("abcdef") * 2)
    assert steady["overall"]["verdict"] == "regressed"
    assert not steady["overall"]["drift"]


def test_only_the_deciding_groups_decide():
    changed, noise = [group("00000", "11111")] * 5, [group("10101", "01011")] * 20
    alone = compare(changed + noise, deciding=[True] * 5 + [False] * 20)
    assert alone["overall"]["groups"] == 5
    assert alone["overall"]["pass_rate"]["delta"] == 1
    diluted = compare(changed + noise)
    assert diluted["overall"]["groups"] == 25
    assert diluted["families"]["controls"] is None
    nothing_changed = compare(changed + noise, deciding=[False] * 25)
    assert nothing_changed == diluted


def test_conditions_of_one_case_are_one_unit_and_weigh_alike():
    groups = [group("1111", "0000"), group("1111", "1111"), group("11", "11"), group("11", "11")]
    found = compare(groups, case=["a", "a", "b", "b"])
    overall = found["overall"]
    assert (overall["cases"], overall["groups"]) == (2, 4)
    assert overall["pass_rate"]["delta"] == pytest.approx(-0.25)
    assert (overall["wins"], overall["losses"], overall["ties"]) == (0, 1, 1)


def test_trials_may_be_unequal_and_missing_groups_are_named():
    found = compare([group("11111", "000"), group("", "11"), group("1", ""), group("", "")])
    assert found["per_case"][0]["n"] == [5, 3]
    assert found["per_case"][0]["p"] == pytest.approx(1 / math.comb(8, 3))
    assert [finding["reason"] for finding in found["per_case"][1:]] == [
        "no measured trial in the baseline",
        "no measured trial in the candidate",
        "no measured trial in the baseline and the candidate",
    ]
    assert found["overall"]["groups"] == 1
    assert found["per_case"][1]["pass_rate"]["cand"] == 1


def test_nothing_in_common_is_inconclusive():
    for groups in ([], [group("", "1")]):
        overall = compare(groups)["overall"]
        assert (overall["verdict"], overall["p"], overall["cases"]) == ("inconclusive", None, 0)
        assert "measured in both runs" in overall["reasons"][0]


def test_a_pass_that_flips_under_equal_scores_is_tested_too():
    found = compare([([(0.9, True)] * 6, [(0.9, False)] * 6)])
    assert found["per_case"][0]["tested"] == "pass_rate"
    assert found["per_case"][0]["verdict"] == "regressed"


def test_groups_that_move_both_ways_are_told():
    found = compare([group("11111", "00000")] * 4 + [group("00000", "11111")] * 5 + [STILL] * 15)
    assert any(
        reason.startswith("groups moved in opposite directions: 5 up, 4 down") for reason in found["overall"]["reasons"]
    )


def test_a_change_of_two_cases_only_is_not_claimed_for_cases_like_these():
    found = compare([group("111111", "000000")] * 2 + [group("111111", "111111")] * 10)
    assert found["overall"]["verdict"] == "regressed"
    assert any("not for cases like these" in reason for reason in found["overall"]["reasons"])


def test_the_first_rule_finds_in_noise_what_the_exact_one_does_not():
    # Three trials that agree by luck: the paired bootstrap has a point for an interval.
    groups = [group("111", "000")] + [group("111", "111")] * 7
    first = compare(groups, method="paired-bootstrap")
    assert (first["method"], first["per_case"][0]["verdict"]) == ("paired-bootstrap", "regressed")
    assert first["per_case"][0]["ci"] == [-1.0, -1.0]
    assert compare(groups)["per_case"][0]["verdict"] == "inconclusive"


def test_the_first_rule_pairs_trials_by_index_and_says_what_it_leaves_out():
    found = compare([group("1010", "01"), group("", "1")], method="paired-bootstrap")
    assert found["per_case"][0]["reason"] == "trials are paired by index: 2 without a partner left out"
    assert found["per_case"][0]["delta"] == 0
    assert found["per_case"][1]["verdict"] == "inconclusive"
    assert found["overall"]["reasons"] == ["trials are paired by index: 2 without a partner left out"]
    assert compare([], method="paired-bootstrap")["overall"]["verdict"] == "inconclusive"


def test_numpy_arrays_are_taken_and_give_the_same_bytes():
    rng = np.random.default_rng(1)
    base, cand = rng.random((3, 4)).round(2), rng.random((3, 4)).round(2)
    found = compare_arrays(base, cand, base > 0.5, (cand > 0.5).astype(int))
    lists = compare_arrays(base.tolist(), cand.tolist(), (base > 0.5).tolist(), (cand > 0.5).tolist())
    assert json.dumps(found) == json.dumps(lists)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([[1]], [[1]], [[1]], []), "different numbers of groups"),
        (([[1]], [[1]], [[1, 0]], [[1]]), "each trial needs both"),
        (([[1.5]], [[1]], [[1]], [[1]]), "outside"),
        (([[math.nan]], [[1]], [[1]], [[1]]), "nan"),
        (([[1]], [[1]], [[0.5]], [[1]]), "neither 0 nor 1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_with_what_is_wrong(arrays, message):
    with pytest.raises(ValueError, match=message):
        compare_arrays(*arrays)


def test_roles_and_cases_must_be_as_many_as_groups():
    with pytest.raises(ValueError, match="different numbers of groups"):
        compare([STILL], deciding=[True, True])
    with pytest.raises(ValueError, match="different numbers of groups"):
        compare([STILL], case=[])


def test_in_simulated_runs_without_a_change_few_verdicts_are_given():
    # 24 cases of 5 trials as in `make calibrate`, 150 runs: at most 5 % may have a verdict; 15 is 5 % plus 2.8
    # standard errors.
    rng = np.random.default_rng(20)
    wrong = 0
    for _ in range(150):
        rates = rng.beta(0.43, 0.18, 24)
        base, cand = (rng.random((24, 5)) < rates[:, None] for _ in range(2))
        found = compare_arrays(base, cand, base, cand, relabellings=2000, resamples=10)
        verdicts = [finding["verdict"] for finding in found["per_case"]] + [found["overall"]["verdict"]]
        wrong += any(verdict != "inconclusive" for verdict in verdicts)
    assert wrong <= 15


def test_in_simulated_runs_with_a_change_the_verdict_is_the_right_one():
    rng = np.random.default_rng(21)
    right = wrong = 0
    for _ in range(60):
        rates = rng.beta(0.43, 0.18, 24)
        base = rng.random((24, 5)) < rates[:, None]
        cand = rng.random((24, 5)) < np.clip(rates - 0.2, 0, 1)[:, None]
        found = compare_arrays(base, cand, base, cand, relabellings=2000, resamples=10)
        right += found["overall"]["verdict"] == "regressed"
        wrong += found["overall"]["verdict"] == "improved"
    assert right >= 54  # 97 % in long simulations
    assert wrong == 0
