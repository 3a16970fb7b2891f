"""Caps: who holds what, and what a rate limit does to them."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.caps import CAUTIOUS, CapChange, Caps, caps_of, resources_of
from pytest_skilleval.pauses import Pauses, read_waits, session_folder
from tests.scheduling.virtual import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project

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
    history: list[CapChange] = []
    caps = Caps({CLAUDE: 4}, history.append)
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
    assert history == [CapChange(CLAUDE, 3, "rate limit"), CapChange(CLAUDE, 4, "grown back")]


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
    return SimpleNamespace(nodeid=item, skilleval=text, failed=short.get("error") is not None)


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


def test_a_pause_that_a_provider_asks_for_holds_for_every_worker_of_the_session(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, "token")
    one, two = (Pauses(folder, worker, longest=120.0) for worker in ("gw0", "gw1"))
    assert two.left() == 0.0
    one.ask(30.0)
    assert 20.0 < two.left() <= 30.0
    two.ask(5.0)
    assert one.left() > 20.0, "the longest pause stands"
    one.ask(9999.0)
    assert 100.0 < two.left() <= 120.0, "no pause is longer than the longest"
    assert Pauses(session_folder(tmp_path, "resumed"), "gw0", longest=120.0).left() == 0.0


def test_what_workers_wait_for_is_seen_while_they_wait(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, "token")
    pauses = Pauses(folder, "gw0", longest=120.0)
    waiting = threading.Thread(target=pauses.wait, args=(0.5, "the provider (rate_limit)"))
    waiting.start()
    seen: list[tuple[int, str, float]] = []
    while waiting.is_alive() and not seen:
        seen = read_waits(folder)
    waiting.join()
    assert [(number, what) for number, what, _ in seen] == [(1, "the provider (rate_limit)")]
    assert read_waits(folder) == []


RATE_LIMITED = """
import pytest
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.providers.base import Answer
from pytest_skilleval.providers.stub import Stub
from pytest_skilleval.records import TrialError, Transcript

class Limited(Stub):
    id = "limited"

    def read(self, ask, output):
        flag = self.settings.rootpath / "refused"
        if ask.id.trial == 1 and not flag.exists():
            flag.touch()
            error = TrialError(error_class=ErrorClass.RATE_LIMIT, message="429: slow down", retry_after=1.0)
            return Answer(Transcript(), error)
        return super().read(ask, output)

@pytest.hookimpl
def pytest_skilleval_providers():
    return {"limited": Limited}
"""


def test_a_rate_limit_is_waited_out_cuts_the_cap_and_is_in_the_report(project: Project) -> None:
    project.write("conftest.py", RATE_LIMITED)
    project.case("one", stub={"solve_rate": 1.0, "sleep": 0.1})
    flags = ("--skilleval-provider=limited", "--skilleval-cap=provider:limited=2", "--trials", "6")
    assert project.run("-n2", *flags).ret == 0
    report = project.report()
    assert report["run"]["counts"]["passed"] == 6
    row = report["timing"]["trials"]["execution:one:none:1"]
    assert row["rate_limited"] == 1
    assert row["waited_s"] >= 1.0
    cut = report["timing"]["caps"][0]
    assert (cut["resource"], cut["cap"], cut["why"]) == ("provider:limited", 1, "rate limit")
    assert not list(project.path.glob(".skilleval/runs/*/halts/*/waiting/*"))


def test_a_cap_is_free_when_the_record_is_home_and_given_back_once() -> None:
    world = World([1.0] * 3, [(CLAUDE,)] * 3, workers=3, caps={CLAUDE: 1})
    for worker in world.workers:
        world.join(worker)
    assert len(world.starts) == 1
    world.scheduler.pytest_runtest_logreport(reported("item-0"))
    assert [start.index for start in world.starts] == [0, 1], "its worker still tidies up, another starts"
    world.scheduler.pytest_runtest_logreport(reported("item-0"))
    world.step()
    assert len(world.starts) == 2, "the cap was given back twice"
    assert world.scheduler.caps.in_use[CLAUDE] == 1
    dead = next(worker for worker in world.workers if worker.item == 1)
    world.scheduler.pytest_runtest_logreport(reported("item-1"))
    world.replace(dead)
    assert world.scheduler.caps.in_use[CLAUDE] == 1, "item-2 alone holds it"
