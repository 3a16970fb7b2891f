"""The scheduler in virtual time: caps, order, deaths, latecomers."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_skilleval.records import Plan, PlannedTrial, ProviderInfo
from pytest_skilleval.scheduler import Work, recorded_durations, works
from tests.scheduling.virtual import Worker, World

if TYPE_CHECKING:
    from pytest_skilleval.collection import Evals

AGENT, PLAN = ("kind:agent", "provider:stub"), ("kind:plan", "provider:stub")
ITEMS = st.lists(
    st.tuples(st.floats(0.01, 100), st.sampled_from([(), AGENT, PLAN, ("provider:stub",)]), st.floats(0.01, 100)),
    min_size=1,
    max_size=40,
)
CAPS = st.dictionaries(st.sampled_from(["kind:agent", "kind:plan", "provider:stub"]), st.integers(1, 5))


@given(ITEMS, CAPS, st.integers(1, 6), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=4))
@settings(deadline=None)
def test_every_item_runs_once_within_the_caps_whatever_dies(
    items: list[tuple[float, tuple[str, ...], float]],
    caps: dict[str, int],
    workers: int,
    deaths: list[tuple[int, int]],
) -> None:
    world = World(
        [item[0] for item in items],
        [item[1] for item in items],
        workers=workers,
        caps=caps,
        expected=[item[2] for item in items],
    )
    for worker in world.workers:
        world.join(worker)
    steps = 0
    while True:
        for when, which in deaths:
            if when == steps:
                world.join(world.replace(world.workers[which % workers]))
        steps += 1
        if not world.step():
            break
    assert world.scheduler.tests_finished
    ran = Counter(start.index for start in world.starts)
    assert ran == Counter(range(world.size))
    assert sorted([world.ids[index] for index in world.complete] + world.lost) == sorted(world.ids)
    for name, most in caps.items():
        assert world.most.get(name, 0) <= most
        assert world.scheduler.caps.in_use[name] == 0


@given(ITEMS, st.integers(1, 6))
@settings(deadline=None)
def test_known_durations_without_caps_stay_within_grahams_bound(
    items: list[tuple[float, tuple[str, ...], float]], workers: int
) -> None:
    # R. L. Graham, "Bounds on multiprocessing timing anomalies" (1969), theorem 2: longest first needs at most
    # 4/3 - 1/(3m) of the optimum. The optimum is unknown; any list order needs at most sum/m + (1 - 1/m) max.
    world = World([item[0] for item in items], workers=workers)
    total, longest = sum(world.seconds), max(world.seconds)
    assert world.run() <= (total / workers + (1 - 1 / workers) * longest) * (1 + 1e-9)


def test_longest_first_solves_grahams_example() -> None:
    # Graham's worst case for two machines: 3 3 2 2 2 has optimum 6, longest first needs 7 = (4/3 - 1/6) x 6.
    assert World([2, 3, 2, 3, 2], workers=2).run() == 7


def test_the_longest_start_first_and_nothing_long_is_left_for_the_end() -> None:
    world = World([1.0] * 30 + [20.0], workers=4)
    assert world.run() == 20.0
    assert world.starts[0].index == 30


def test_a_worker_is_never_idle_while_a_cap_lets_something_run() -> None:
    # 4 agents of 10 s under a cap of 1 last 40 s whatever happens; 20 plans of 1 s must all run beside them.
    world = World([1.0] * 20 + [10.0] * 4, [PLAN] * 20 + [AGENT] * 4, workers=3, caps={"kind:agent": 1})
    assert world.run() == 40.0
    assert world.most["kind:agent"] == 1
    assert max(start.at for start in world.starts if start.index < 20) < 10.0


def test_the_bottleneck_goes_before_longer_items() -> None:
    # Agents of 2 s under a cap of 1 need 40 s, the workers as a whole only 24 s: an agent that waits delays the run.
    seconds = [3.0] * 24 + [2.0] * 20
    world = World(seconds, [()] * 24 + [AGENT] * 20, workers=4, caps={"kind:agent": 1})
    assert world.run() == 40.0
    assert world.starts[0].index >= 24


def test_one_item_longer_than_the_bottleneck_goes_first() -> None:
    # The agents need 10 s together, one free item 30 s alone; two workers.
    world = World([1.0] * 10 + [30.0], [AGENT] * 10 + [()], workers=2, caps={"kind:agent": 1})
    assert world.run() == 30.0


@pytest.mark.parametrize(("workers", "long_ones"), [(8, 4), (20, 8)])
def test_log_normal_durations_with_some_ten_times_longer_reach_the_bound(workers: int, long_ones: int) -> None:
    worst = 0.0
    for seed in range(20):
        draw = random.Random(seed)
        seconds = [draw.lognormvariate(0, 0.7) for _ in range(160)]
        for index in draw.sample(range(160), long_ones):
            seconds[index] *= 10
        world = World(seconds, workers=workers)
        worst = max(worst, world.run() / world.bound())
    assert worst <= 1.05


def test_two_mixes_of_plans_and_agents_reach_their_bounds() -> None:
    caps = {"kind:agent": 2}
    even = World([0.1] * 80 + [1.0] * 80, [PLAN] * 80 + [AGENT] * 80, workers=8, caps=caps)
    assert even.run() <= 1.05 * even.bound(caps)
    uneven = World([0.5] * 240 + [0.8] * 30, [PLAN] * 240 + [AGENT] * 30, workers=8, caps=caps)
    assert uneven.run() <= 1.10 * uneven.bound(caps)


def test_a_dead_workers_item_is_reported_and_its_caps_are_free() -> None:
    world = World([5.0] * 3, [AGENT] * 3, workers=2, caps={"kind:agent": 1})
    for worker in world.workers:
        world.join(worker)
    assert [start.index for start in world.starts] == [0]
    dead = next(worker for worker in world.workers if worker.item == 0)
    world.replace(dead)
    assert world.lost == ["item-0"]
    assert [start.index for start in world.starts] == [0, 1], "the other worker takes the freed cap at once"


def test_nothing_starts_before_the_slowest_worker_has_collected() -> None:
    world = World([1.0] * 4, workers=2)
    world.join(world.workers[0])
    assert not world.scheduler.collection_is_completed
    assert world.starts == []
    world.join(world.workers[1])
    assert len(world.starts) == 2


def test_a_worker_that_joins_late_takes_work_at_once() -> None:
    world = World([10.0] * 4, workers=1)
    world.join(world.workers[0])
    world.workers.append(Worker(world, "gw1"))
    world.join(world.workers[1])
    assert [start.worker for start in world.starts] == ["gw0", "gw1"]


def test_a_worker_that_is_shutting_down_gets_nothing() -> None:
    world = World([1.0] * 4, workers=1)
    world.workers[0].shutting_down = True
    world.join(world.workers[0])
    assert world.starts == []


def test_different_collections_are_refused_with_the_first_difference() -> None:
    world = World([1.0] * 2, workers=2)
    world.join(world.workers[0])
    world.join(world.workers[1], ["item-0", "item-9"])
    assert world.starts == []
    assert world.scheduler.tests_finished
    (report,) = world.reports
    assert report.failed
    assert "gw0, gw1 collected different tests: item-1 in one place, item-9 in another" in report.longrepr
    assert "time, chance or the order of a set" in report.longrepr


def test_a_replacement_that_collects_something_else_is_refused_and_the_session_ends() -> None:
    world = World([1.0] * 2, workers=1)
    world.join(world.workers[0])
    other = world.replace(world.workers[0])
    world.join(other, ["item-0"])
    assert other.shutting_down
    assert world.scheduler.tests_finished
    assert "item-1 in one place, nothing in another" in world.reports[0].longrepr


def test_an_item_that_is_to_run_once_more_runs_once_more() -> None:
    world = World([1.0] * 3, workers=2)
    for worker in world.workers:
        world.join(worker)
    world.scheduler.mark_test_pending("item-2")
    while world.step():
        pass
    assert sorted(world.complete) == [0, 1, 2, 2]


# -------------------------------------------------------------------------------------------- order and fairness


def planned(case: str, condition: str, trial: int, lane: str = "execution", timeout: float = 300.0) -> PlannedTrial:
    return PlannedTrial(
        lane=lane,
        case=case,
        condition=condition,
        trial=trial,
        nodeid=f"{case}::{condition}-{trial}",
        fingerprint="0" * 16,
        timeout_s=timeout,
    )


def plan_of(trials: list[PlannedTrial]) -> Plan:
    return Plan(
        run="r", token="t", started="2026-01-01T00:00:00Z", provider=ProviderInfo(id="stub"), trials=tuple(trials)
    )


def test_expectations_come_from_earlier_runs_else_from_kind_and_budget() -> None:
    plan = plan_of(
        [
            planned("seen", "none", 1),
            planned("agent", "none", 1),
            planned("short", "none", 1, timeout=20.0),
            planned("plan", "none", 1, lane="prompt"),
        ]
    )
    found = works(plan, {"execution:seen": 3.5})
    assert found["seen::none-1"] == Work(3.5, ("kind:agent", "provider:stub"))
    assert found["short::none-1"].seconds == 20.0, "a budget is the most it can take"
    assert found["plan::none-1"].resources == ("kind:plan", "provider:stub")
    assert found["agent::none-1"].seconds > 5 * found["plan::none-1"].seconds


def test_a_cases_expectation_is_that_of_its_slowest_condition() -> None:
    rows = [("execution:a:none:1", 1.0), ("execution:a:none:2", 3.0), ("execution:a:self-load:1", 5.0)]
    assert recorded_durations(rows) == {"execution:a": 5.0}


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("recorded", [True, False])
def test_a_linear_drift_during_the_run_makes_no_lift(project_of: Evals, workers: int, recorded: bool) -> None:
    # Each trial's score falls with the place of its start; all conditions are equally good.
    cases = project_of.selected()
    trials = [
        planned(work.case.id, work.condition.name, work.trial) for case in cases for work in project_of.work(case)
    ]
    assert len({trial.condition for trial in trials}) == 4
    durations = {f"execution:{case.id}": 1.0 + number for number, case in enumerate(cases)} if recorded else {}
    known = works(plan_of(trials), durations)
    world = World([known[trial.nodeid].seconds for trial in trials], workers=workers)
    world.run()
    places: dict[tuple[str, str], list[int]] = {}
    for place, start in enumerate(world.starts):
        trial = trials[start.index]
        places.setdefault((trial.case, trial.condition), []).append(place)
    for case in cases:
        means = {sum(found) / len(found) for (name, _), found in places.items() if name == case.id}
        assert len(means) == 1, f"{case.id}: the conditions' mean places differ: {means}"
