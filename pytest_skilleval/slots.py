"""Slots: caps held by the workers themselves, where another scheduler hands out the trials.

A slot is a lock file in the run folder. The kernel frees it when its holder dies, however it dies. Waiting costs a
worker; the plugin's own scheduler needs none of this, but for a judge that is not the agent.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["Slots"]

_PAUSE = (0.02, 0.08)
"""Seconds between two tries, drawn so that waiting workers do not move in step."""


class Slots:
    """The slots of one run.

    Args:
        folder: The run folder.
        caps: Resource to the most trials at once; empty when a scheduler holds them.
    """

    def __init__(self, folder: Path, caps: Mapping[str, int]) -> None:
        self._folder = folder / "slots"
        self._caps = caps

    @contextmanager
    def held(self, resources: Sequence[str]) -> Iterator[float]:
        """Hold one slot of each capped resource; yield the seconds that were waited.

        Resources are taken in sorted order, so that two workers never wait for each other.
        """
        started = time.monotonic()
        with ExitStack() as stack:
            for name in sorted(set(resources) & set(self._caps)):
                self._take(stack, name)
            yield time.monotonic() - started

    def _take(self, stack: ExitStack, name: str) -> None:
        from filelock import FileLock, Timeout  # noqa: PLC0415 - only runs with caps and another scheduler need it

        self._folder.mkdir(exist_ok=True)
        while True:
            for number in range(self._caps[name]):
                lock = FileLock(self._folder / f"{name.replace(':', '-')}-{number}.lock")
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    continue
                stack.callback(lock.release)
                return
            time.sleep(random.uniform(*_PAUSE))  # noqa: S311 - a pause
