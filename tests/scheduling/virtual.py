"""Workers in virtual time: what xdist's controller and its workers do to a scheduler, without processes."""

from __future__ import annotations

import heapq
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_skilleval.caps import Caps
from pytest_skilleval.scheduler import CapScheduler, Work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Start(NamedTuple):
    """One item that was handed out."""

    at: float
    index: int
    worker: str


class Worker:
    """What a scheduler sees of an xdist worker: it holds at most one item and the idle item."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.item: int | None = None

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        first, idle = indices
        assert idle == self.world.size, "not followed by the idle item: the worker would not start it"
        assert self.item is None, "handed out to a worker that still runs"
        self.item = first
        self.world.started(self, first)

    def shutdown(self) -> None:
        self.shutting_down = True


class World:
    """A run in virtual time.

    Args:
        seconds: How long each item really takes.
        resources: What each item takes one of.
        workers: How many there are.
        caps: Resource to the most items at once.
        expected: What the scheduler is told of the durations; the true ones by default.
    """

    def __init__(
        self,
        seconds: Sequence[float],
        resources: Sequence[tuple[str, ...]] | None = None,
        *,
        workers: int,
        caps: Mapping[str, int] | None = None,
        expected: Sequence[float] | None = None,
    ) -> None:
        self.size = len(seconds)
        self.seconds = list(seconds)
        self.resources = list(resources or [()] * self.size)
        self.now = 0.0
        self.starts: list[Start] = []
        self.complete: list[int] = []
        self.most: dict[str, int] = {}
        self.lost: list[str] = []
        self.reports: list[Any] = []
        self._ends: list[tuple[float, int, Worker]] = []
        self._count = 0
        self.ids = [f"item-{index}" for index in range(self.size)]
        known = expected or seconds
        works = {name: Work(known[index], self.resources[index]) for index, name in enumerate(self.ids)}
        hook = SimpleNamespace(pytest_collectreport=self.refused)
        self.scheduler = CapScheduler(SimpleNamespace(hook=hook), workers, Caps(caps or {}), lambda: works)
        self.workers = [Worker(self, f"gw{number}") for number in range(workers)]

    def started(self, worker: Worker, index: int) -> None:
        self.starts.append(Start(self.now, index, worker.gateway.id))
        self._count += 1
        heapq.heappush(self._ends, (self.now + self.seconds[index], self._count, worker))
        running = [one.item for one in self.workers if one.item is not None]
        for name in {name for item in running for name in self.resources[item]}:
            in_use = sum(name in self.resources[item] for item in running)
            self.most[name] = max(self.most.get(name, 0), in_use)

    def refused(self, report: Any) -> None:
        self.reports.append(report)

    def join(self, worker: Worker, ids: Sequence[str] | None = None) -> None:
        """A worker has collected, as xdist's controller tells it."""
        self.scheduler.add_node(worker)
        self.scheduler.add_node_collection(worker, list(self.ids if ids is None else ids))
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()

    def replace(self, worker: Worker) -> Worker:
        """A worker dies and another takes its place."""
        worker.item = None
        self.workers.remove(worker)
        lost = self.scheduler.remove_node(worker)
        if lost is not None:
            self.lost.append(lost)
        other = Worker(self, f"{worker.gateway.id}b")
        self.workers.append(other)
        return other

    def step(self) -> bool:
        """Go on to the next end of an item; False when nothing runs."""
        while self._ends:
            self.now, _, worker = heapq.heappop(self._ends)
            if worker not in self.workers:
                continue  # it died meanwhile
            assert worker.item is not None
            index, worker.item = worker.item, None
            self.complete.append(index)
            self.scheduler.mark_test_complete(worker, index)
            self.scheduler.mark_test_complete(worker, self.size)  # the idle item, which may be told too
            return True
        return False

    def run(self) -> float:
        """Let all workers collect and run to the end; return the makespan."""
        for worker in self.workers:
            self.join(worker)
        while self.step():
            pass
        assert self.scheduler.tests_finished
        return self.now

    def bound(self, caps: Mapping[str, int] | None = None) -> float:
        """Return the makespan that no order can beat."""
        each = [sum(self.seconds) / len(self.workers), max(self.seconds)]
        for name, most in (caps or {}).items():
            each.append(sum(s for s, taken in zip(self.seconds, self.resources, strict=True) if name in taken) / most)
        return max(each)
