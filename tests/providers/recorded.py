"""Streams of real agents, recorded against a scripted model: what each run intended, and what its agent printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from pytest_skilleval.providers.base import ProcessOutput

DATA = Path(__file__).parent / "data"


class Recorded(NamedTuple):
    """One run of a real agent."""

    run: str
    scenario: str
    """The script that the model followed."""
    usage: dict[str, int]
    """Tokens of each of its answers, where the script sets none of its own."""
    turns: list[dict[str, Any]]
    exit_code: int
    timed_out: bool
    stdout: str
    stderr: str

    def output(self, folder: Path) -> ProcessOutput:
        """Lay the streams into files, as a supervisor would have left them."""
        stdout, stderr = folder / "stdout", folder / "stderr"
        stdout.write_text(self.stdout, encoding="utf-8")
        stderr.write_text(self.stderr, encoding="utf-8")
        status = self.exit_code if self.exit_code >= 0 else None
        return ProcessOutput(stdout, stderr, status, "timeout" if self.timed_out else "exited")

    def answers(self) -> list[dict[str, Any]]:
        """The turns in which the model answered, in order."""
        return [turn for turn in self.turns if not turn.keys() & {"error", "hang", "hang_mid", "cut", "stream_error"}]

    def tokens(self, key: str) -> int:
        """The sum that the script says over all answers."""
        default = {"input": 100, "cached": 0, "cache_write": 0, "output": 10, "reasoning": 0}
        return sum({**default, **self.usage, **turn.get("usage", {})}[key] for turn in self.answers())


def recorded(cli: str) -> dict[str, Recorded]:
    """All runs of an agent by name."""
    lines = (DATA / f"{cli}.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["run"]: Recorded(**row) for row in map(json.loads, lines)}
