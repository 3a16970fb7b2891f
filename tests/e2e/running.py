"""A real agent, pointed at a scripted model and run to its end with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from installed import install
from rig import ModelServer

from pytest_skilleval.providers import make_provider
from pytest_skilleval.providers.base import Ask, Launch, ProcessOutput, Provider, ProviderSettings

KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY"}
MODELS = {"claude": "sonnet", "codex": "gpt-5.5"}


def connected(agent: str, server: ModelServer, root: Path, **options: object) -> Provider:
    """Make a provider whose agent asks the scripted model."""
    base = server.url + ("/v1" if agent == "codex" else "")
    environ = {**os.environ, KEYS[agent]: f"sk-{agent}-0123456789abcdef"}
    settings = ProviderSettings(
        model=MODELS[agent],
        environ=environ,
        rootpath=root,
        options={"program": str(install(agent)), "base_url": base, **options},
    )
    return make_provider(agent, settings, {})


def supervised(ask: Ask, launch: Launch, cookie: str) -> ProcessOutput:
    """Run a command, stop it at its budget, and end all that it started."""
    stdout, stderr = ask.scratch / "stdout", ask.scratch / "stderr"
    env = {**ask.env, **launch.env, "E2E_COOKIE": cookie}
    with (launch.stdin or Path(os.devnull)).open("rb") as given, stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(
            launch.argv, cwd=ask.workspace, env=env, stdin=given, stdout=out, stderr=err, start_new_session=True
        )
        reason = "exited"
        try:
            process.wait(ask.budget.timeout)
        except subprocess.TimeoutExpired:
            reason = "timeout"
            for number, grace in ((signal.SIGINT, 5), (signal.SIGTERM, 3), (signal.SIGKILL, 5)):
                os.killpg(process.pid, number)
                try:
                    process.wait(grace)
                    break
                except subprocess.TimeoutExpired:
                    continue
        for pid in marked(cookie):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 5
    while marked(cookie) and time.monotonic() < until:
        time.sleep(0.05)
    status = process.returncode if process.returncode is not None and process.returncode >= 0 else None
    return ProcessOutput(stdout, stderr, status, reason)


def marked(cookie: str) -> list[int]:
    """Return the processes that carry a cookie in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            alive = b"E2E_COOKIE=" + cookie.encode() in (entry / "environ").read_bytes()
        except OSError:
            continue
        if alive:
            found.append(int(entry.name))
    return found
