"""Who runs what next across xdist's workers: caps hold, longest first, and nothing waits behind a running trial.

xdist hands each worker its next test early, so that a worker with a long test holds back a short one. This scheduler
hands out one trial at a time:

1. Each worker's collection ends with an idle item that does nothing and makes no report.
2. The scheduler sends a trial together with the idle item. A worker starts a test only when it knows the one after it;
   so the trial starts at once, and the worker then waits on the idle item.
3. The next pair wakes it.

Which trial comes next: of those whose caps have room, the bottleneck's first (what makes the rest of the run last
longest: a capped resource, one long trial, or the workers as a whole), then the longest expected, then as planned.
A case's trials share one expected duration, so that its conditions stay interleaved: a drift during the run must not
become a lift.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_skilleval.caps import Caps, resources_of
from pytest_skilleval.tally import REPORT_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_skilleval.records import Plan

__all__ = ["SCHEDULER", "CapScheduler", "Work", "recorded_durations", "works"]

SCHEDULER = "skilleval-scheduler"
"""Its name among pytest's plugins."""
PRIOR = {"plan": 10.0, "agent": 120.0}
"""Expected seconds of a trial that never ran, by kind: agents take far longer than plans."""
_TEST = 1.0
"""Expected seconds of an ordinary test beside the evals."""


class Work(NamedTuple):
    """What the scheduler knows of one item."""

    seconds: float = _TEST
    """How long it is expected to take."""
    resources: tuple[str, ...] = ()
    """What it takes one of, such as `provider:claude` and `kind:agent`."""


def works(plan: Plan, durations: Mapping[str, float]) -> dict[str, Work]:
    """Return what is known of each planned trial, by node id.

    Args:
        plan: What the run sets out to do.
        durations: Seconds by `lane:case`, from earlier runs.
    """
    found = {}
    for trial in plan.trials:
        kind, provider = resources_of(trial.lane, plan.provider.id)
        prior = min(PRIOR[kind.partition(":")[2]], trial.timeout_s)
        seconds = durations.get(f"{trial.lane}:{trial.case}", prior)
        found[trial.nodeid] = Work(seconds, (kind, provider))
    return found


class CapScheduler:
    """A scheduler for xdist (`xdist.scheduler.protocol.Scheduling`), and the pytest plugin that hears of rate limits.

    Args:
        config: Pytest's.
        count: Workers that xdist starts.
        caps: What may run at once.
        known: Returns what is known of each node id; asked once, when all workers have collected.
    """

    def __init__(self, config: Any, count: int, caps: Caps, known: Callable[[], Mapping[str, Work]]) -> None:
        self.config = config
        self.numnodes = count
        self.caps = caps
        self.collection: list[str] | None = None
        self._known = known
        self._collected: dict[Any, list[str]] = {}
        self._running: dict[Any, int | None] = {}
        self._tickets: dict[str, tuple[int, int]] = {}
        """Node id of what was handed out to its ticket and index."""
        self._holding: set[int] = set()
        self._work: list[Work] = []
        self._queues: dict[tuple[str, ...], list[tuple[float, int]]] = {}
        self._waiting: dict[str, float] = defaultdict(float)
        self._seconds_left = 0.0

    # ------------------------------------------------------------------------------------------ xdist's protocol

    @property
    def nodes(self) -> list[Any]:
        """All workers."""
        return list(self._running)

    @property
    def collection_is_completed(self) -> bool:
        """Whether every worker has collected; workers that die later change nothing about that."""
        return self.collection is not None or len(self._collected) >= self.numnodes

    @property
    def tests_finished(self) -> bool:
        """Whether nothing waits or runs any more."""
        return self.collection is not None and not self.has_pending

    @property
    def has_pending(self) -> bool:
        """Whether something waits or runs."""
        return any(self._queues.values()) or any(item is not None for item in self._running.values())

    def add_node(self, node: Any) -> None:
        """Learn of a worker."""
        self._running[node] = None

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Learn what a worker has collected; one that replaces a dead worker must have collected the same."""
        if self.collection is None or list(collection) == self.collection:
            self._collected[node] = list(collection)
            return
        self._refuse([self.collection, list(collection)], f"{node.gateway.id} replaces a worker that died, but")
        node.shutdown()
        if not self._collected:
            self._queues.clear()  # nobody is left who could run them: they are missing

    def schedule(self) -> None:
        """Start, or let a new worker join."""
        if self.collection is None:
            collections = list(self._collected.values())
            if any(other != collections[0] for other in collections[1:]):
                self.collection = []
                self._refuse(collections, ", ".join(str(node.gateway.id) for node in self._collected))
                return
            self._open(collections[0])
        self._hand_out()

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002 - xdist's
        """Learn that a worker has finished an item."""
        if self.collection is None or item_index >= len(self.collection):
            return  # the idle item
        self._let_go(item_index)
        self._running[node] = None
        self._hand_out()

    def mark_test_pending(self, item: str) -> None:
        """Run an item once more."""
        if self.collection is not None:
            self._push(self.collection.index(item))
            self._hand_out()

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Refuse: a worker never holds more than it runs."""
        raise NotImplementedError

    def remove_node(self, node: Any) -> str | None:
        """Forget a worker; return the item that it was running when it died."""
        item = self._running.pop(node)
        self._collected.pop(node, None)
        if item is None or self.collection is None:
            return None
        self._let_go(item)
        self._hand_out()
        return self.collection[item]

    # ------------------------------------------------------------------------------------------------ rate limits

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Give back what a trial held once its record is home, and hear whether its provider refused it.

        The agent is proven dead by then; its worker still tidies up. Other errors of a server than a rate limit cut
        nothing.
        """
        text = getattr(report, REPORT_KEY, None)
        if text is None or (found := self._tickets.pop(report.nodeid, None)) is None:
            return
        ticket, index = found
        short = json.loads(text)
        name = short.get("resource")
        if name is not None and short.get("rate_limited"):
            self.caps.refused(name, ticket)
        elif name is not None and short["error"] is None:
            self.caps.answered(name, ticket)
        self._let_go(index)
        if not report.failed:  # a failed one may be the session's last: `-x`
            self._hand_out()

    def held_back(self) -> dict[str, int]:
        """Return how many items each full resource keeps from starting although a worker is free."""
        found: Counter[str] = Counter()
        if all(item is not None for item in list(self._running.values())):
            return {}
        for resources, queue in [pair for pair in list(self._queues.items()) if pair[1]]:
            for name in self.caps.full(resources):
                found[name] += len(queue)
        return dict(found)

    # -------------------------------------------------------------------------------------------------- the choice

    def _refuse(self, collections: list[list[str]], who: str) -> None:
        import pytest  # noqa: PLC0415 - only for this

        first = collections[0]
        other = next(other for other in collections if other != first)
        here, there = next(pair for pair in zip_longest(first, other, fillvalue="nothing") if pair[0] != pair[1])
        text = (
            f"{who} collected different tests: {here} in one place, {there} in another; a case or parameter depends "
            "on time, chance or the order of a set. Make it the same in every process, or run without -n"
        )
        report = pytest.CollectReport(nodeid="skilleval", outcome="failed", longrepr=text, result=[])
        self.config.hook.pytest_collectreport(report=report)

    def _open(self, collection: list[str]) -> None:
        known = self._known()
        self.collection = collection
        self._work = [known.get(nodeid, Work()) for nodeid in collection]
        for index in range(len(collection)):
            self._push(index)

    def _push(self, index: int) -> None:
        work = self._work[index]
        heapq.heappush(self._queues.setdefault(work.resources, []), (-work.seconds, index))
        self._seconds_left += work.seconds
        for name in work.resources:
            self._waiting[name] += work.seconds

    def _pop(self) -> int | None:
        """Take the next item whose caps have room, or None.

        One heap for each set of resources: a choice costs the few sets, not the many items.
        """
        limits = self.caps.limits
        each = self._seconds_left / max(1, len(self._running))
        best: tuple[float, float, int] | None = None
        chosen: tuple[str, ...] = ()
        for resources, queue in self._queues.items():
            if not queue or not self.caps.room(resources):
                continue
            seconds, index = queue[0]
            # How long the rest of the run must last because of this queue.
            bounds = (self._waiting[name] / limits[name] for name in resources if name in limits)
            key = (-max(each, -seconds, *bounds), seconds, index)
            if best is None or key < best:
                best, chosen = key, resources
        if best is None:
            return None
        _, index = heapq.heappop(self._queues[chosen])
        work = self._work[index]
        self._seconds_left -= work.seconds
        for name in work.resources:
            self._waiting[name] -= work.seconds
        return index

    def _let_go(self, index: int) -> None:
        if index in self._holding:
            self._holding.discard(index)
            self.caps.release(self._work[index].resources)

    def _hand_out(self) -> None:
        if self.collection is None:
            return
        for node, item in self._running.items():
            if item is not None or node not in self._collected or node.shutting_down:
                continue
            index = self._pop()
            if index is None:
                return
            self._running[node] = index
            self._holding.add(index)
            self._tickets[self.collection[index]] = self.caps.take(self._work[index].resources), index
            node.send_runtest_some([index, len(self.collection)])


def recorded_durations(trials: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the longest mean of a case's recorded trials, by `lane:case`.

    Args:
        trials: Key of a work item and its seconds.
    """
    groups: dict[str, list[float]] = {}
    for key, seconds in trials:
        groups.setdefault(key.rpartition(":")[0], []).append(seconds)
    found: dict[str, float] = {}
    for group, values in groups.items():
        case = group.rpartition(":")[0]
        found[case] = max(found.get(case, 0.0), sum(values) / len(values))
    return found
