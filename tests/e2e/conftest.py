"""Real agents against a scripted model: `make e2e`. Without SKILLEVAL_E2E=1 nothing here is collected."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import ModelServer, Say, by_turn
from running import connected, marked, supervised

from pytest_skilleval.providers.base import Answer, Ask, Provider

if os.environ.get("SKILLEVAL_E2E") != "1":
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(params=["claude", "codex"])
def agent(request: pytest.FixtureRequest) -> str:
    """Each real agent."""
    return str(request.param)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A scripted model; a test sets its script."""
    with ModelServer(by_turn(Say("unscripted"))) as running:
        yield running
    assert running.broken == []


@pytest.fixture
def provider(agent: str, server: ModelServer, tmp_path: Path) -> Provider:
    """The provider of a real agent, pointed at the scripted model."""
    return connected(agent, server, tmp_path)


@pytest.fixture
def go(provider: Provider) -> Callable[..., Answer]:
    """Ask, run the real agent, and return its answer; no process may be left."""

    def run(ask: Ask) -> Answer:
        launch = provider.prepare(ask)
        assert launch is not None
        cookie = uuid.uuid4().hex
        output = supervised(ask, launch, cookie)
        assert marked(cookie) == []
        return provider.read(ask, output)

    return run
