"""A trial with a fake agent: a script written by the test, run under a supervisor, and a cookie to find what it leaves."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_skilleval.workspace.command import Command, Ended
from pytest_skilleval.workspace.spawn import Spawner
from pytest_skilleval.workspace.trial_lease import TrialLease


def alive(cookie: str) -> list[int]:
    """Return the living processes that have the cookie in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if cookie.encode() not in (entry / "environ").read_bytes():
                continue
            state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if state not in {b"Z", b"X"}:
            found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Wait for something that happens elsewhere; False when it has not."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class Bench:
    """Runs scripts in a home, and shows what they have printed."""

    def __init__(self, spawner: Spawner, folder: Path) -> None:
        self.spawner = spawner
        self.folder = folder
        self.base = folder / "homes"
        self.home = self.base / "run" / "one"
        self.cookie = f"cookie-{uuid.uuid4().hex}"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "COOKIE": self.cookie, "LANG": "C.UTF-8"}

    def lease(self) -> TrialLease:
        lease = self.spawner.lease(self.home, self.base)
        self.home.mkdir()
        return lease

    def command(self, *argv: str, **settings: object) -> Command:
        given: dict[str, object] = {
            "cwd": self.home,
            "env": self.env,
            "stdout": self.folder / "stdout",
            "stderr": self.folder / "stderr",
            "timeout": 20.0,
            "stop": ((2, 0.3), (15, 0.3)),
        }
        return Command(argv=argv, **(given | settings))  # type: ignore[arg-type]

    def run(self, *argv: str, **settings: object) -> Ended:
        with self.lease() as lease:
            return lease.run(self.command(*argv, **settings))

    def sh(self, script: str, **settings: object) -> Ended:
        return self.run("/bin/sh", "-c", script, **settings)

    def python(self, script: str, **settings: object) -> Ended:
        return self.run(sys.executable, "-I", "-S", "-c", script, **settings)

    @property
    def stdout(self) -> bytes:
        return (self.folder / "stdout").read_bytes()

    @property
    def stderr(self) -> bytes:
        return (self.folder / "stderr").read_bytes()

    def alive(self) -> list[int]:
        """Return the living processes that this bench has started."""
        return alive(self.cookie)

    def dies(self) -> bool:
        """Tell whether all of them end within a few seconds."""
        return wait_until(lambda: not self.alive())

    def another(self, name: str) -> Bench:
        """Return a bench of its own for the same spawner."""
        folder = self.folder / name
        folder.mkdir()
        return Bench(self.spawner, folder)

    def left(self) -> list[str]:
        """Return what is still there of homes and leases."""
        return sorted(str(path.relative_to(self.base)) for path in self.base.rglob("*") if path != self.base / "run")


@pytest.fixture(scope="session")
def shared_spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


@pytest.fixture(scope="session")
def shared_portable_spawner() -> Iterator[Spawner]:
    with Spawner(portable=True) as spawner:
        yield spawner


@pytest.fixture
def bench(shared_spawner: Spawner, tmp_path: Path) -> Bench:
    return Bench(shared_spawner, tmp_path)


@pytest.fixture
def portable_bench(shared_portable_spawner: Spawner, tmp_path: Path) -> Bench:
    return Bench(shared_portable_spawner, tmp_path)
