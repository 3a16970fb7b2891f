"""Caps: who holds what, and what a rate limit does to them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_skilleval.caps import CAUTIOUS, CapChange, Caps, caps_of, resources_of
from tests.scheduling.virtual import World

CLAUDE = "provider:claude"


def test_a_paid_provider_has_a_careful_cap_unless_the_user_says_otherwise() -> None:
    assert caps_of((), "claude", paid=True) == {CLAUDE: CAUTIOUS}
    assert caps_of([(CLAUDE, 9), ("kind:agent", 2)], "claude", paid=True) == {CLAUDE: 9, "kind:agent": 2}
    assert caps_of((), "stub", paid=False) == {}


@pytest.mark.parametrize(("lane", "kind"), [("prompt", "plan"), ("execution", "agent"), ("dogfood", "agent")])
def test_a_trial_takes_one_of_its_kind_and_one_of_its_provider(lane: str, kind: str) -> None:
    assert resources_of(lane, "claude") == (f"kind:{kind}", CLAUDE)


# 0.8 x 10 = 8; 0.8 x 8 = 6.4; 0.8 x 4 = 3.2; 0.8 x 2 = 1.6; a cap of one stays.
@pytest.mark.parametrize(("before", "after"), [(10, 8), (8, 6), (4, 3), (2, 1), (1, 1)])
def test_a_rate_limit_cuts_a_cap_to_four_fifths_and_never_below_one(before: int, after: int) -> None:
    caps = Caps({CLAUDE: before})
    caps.refused(CLAUDE, caps.take((CLAUDE,)))
    assert caps.limits[CLAUDE] == after


def test_refusals_of_trials_that_ran_together_are_one_episode() -> None:
    caps = Caps({CLAUDE: 10})
    tickets = [caps.take((CLAUDE,)) for _ in range(10)]
    for ticket in tickets:
        caps.refused(CLAUDE, ticket)
    assert caps.limits[CLAUDE] == 8
    caps.refused(CLAUDE, caps.take((CLAUDE,)))
    assert caps.limits[CLAUDE] == 6, "a trial that started after the cut is news"


def test_a_cut_cap_grows_back_to_what_it_was_and_no_further() -> None:
    caps = Caps({CLAUDE: 4})
    old = caps.take((CLAUDE,))
    caps.refused(CLAUDE, caps.take((CLAUDE,)))
    caps.answered(CLAUDE, old)
    assert caps.limits[CLAUDE] == 3, "an answer from before the cut says nothing"
    for _ in range(2):
        caps.answered(CLAUDE, caps.take((CLAUDE,)))
    assert caps.limits[CLAUDE] == 3
    for _ in range(40):
        caps.answered(CLAUDE, caps.take((CLAUDE,)))
    assert caps.limits[CLAUDE] == 4
    assert caps.history == [CapChange(CLAUDE, 3, "rate limit"), CapChange(CLAUDE, 4, "grown back")]


def test_a_provider_without_a_cap_gets_one_for_as_long_as_it_refuses() -> None:
    caps = Caps({})
    tickets = [caps.take((CLAUDE,)) for _ in range(5)]
    caps.refused(CLAUDE, tickets[0])
    assert caps.limits == {CLAUDE: 4}
    for _ in range(20):
        caps.answered(CLAUDE, caps.take((CLAUDE,)))
    assert caps.limits == {}


def reported(item: str, **short: Any) -> Any:
    text = json.dumps({"error": None, "rate_limited": 0, "resource": CLAUDE} | short)
    return SimpleNamespace(nodeid=item, skilleval=text)


def test_the_scheduler_starts_fewer_after_a_rate_limit_and_as_many_after_a_server_error() -> None:
    for short, wanted in (({"rate_limited": 1}, 3), ({"error": "server_error"}, 4), ({"error": "overloaded"}, 4)):
        world = World([1.0] * 40, [(CLAUDE,)] * 40, workers=8, caps={CLAUDE: 4})
        for worker in world.workers:
            world.join(worker)
        assert len(world.starts) == 4
        world.scheduler.pytest_runtest_logreport(reported("item-0", **short))
        for _ in range(4):
            world.step()
        assert sum(worker.item is not None for worker in world.workers) == wanted


def test_what_waits_for_a_full_cap_is_told_only_while_a_worker_is_free() -> None:
    world = World([1.0] * 5, [(CLAUDE,)] * 5, workers=2, caps={CLAUDE: 1})
    for worker in world.workers:
        world.join(worker)
    assert world.scheduler.held_back() == {CLAUDE: 4}
    busy = World([1.0] * 5, [(CLAUDE,)] * 5, workers=1, caps={CLAUDE: 1})
    busy.join(busy.workers[0])
    assert busy.scheduler.held_back() == {}
