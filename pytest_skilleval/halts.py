"""Reasons not to start a trial: its provider has stopped, the run's budget is spent, its group is decided.

The processes of a session agree through small files in the run folder, each written whole by one process:

    halts/<session>/halted.json           the first error that stops the provider (no login, no credit, no such model)
    halts/<session>/spent/<worker>.json   what this worker's trials have cost so far
    trials/                               what the other trials of a group have come to

A session that resumes the run has a budget of its own, and tries a provider anew.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.journal import write_aside
from pytest_skilleval.records import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_skilleval.journal import Journal
    from pytest_skilleval.model import TrialId
    from pytest_skilleval.records import Tokens, TrialError, TrialRecord

__all__ = ["Budget", "Decision", "Halts", "parse_budget"]


class Budget(NamedTuple):
    """Limits of a whole run; None is no limit."""

    usd: float | None = None
    tokens: float | None = None
    seconds: float | None = None


_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_budget(texts: Sequence[str]) -> Budget:
    """Read `usd=5`, `tokens=2M`, `time=30m`.

    Raises:
        OptionMistake: A limit is not one of these.
    """
    found: dict[str, float] = {}
    for text in texts:
        match = re.fullmatch(
            r"(?:(usd)=(\d+(?:\.\d+)?)()|(tokens)=(\d+(?:\.\d+)?)([kM]?)|(time)=(\d+(?:\.\d+)?)([smh]))", text
        )
        if match is None:
            raise OptionMistake(f"--skilleval-budget={text}: write usd=5, tokens=2M (or 500k) or time=30m (s, m or h)")
        name, number, unit = (part for part in match.groups() if part is not None)
        found["seconds" if name == "time" else name] = float(number) * _UNITS[unit]
    return Budget(**found)


class Decision(NamedTuple):
    """When a group's gate can no longer change."""

    trials: int
    red_up_to: int
    """With at most so many passes of all trials the gate is red; -1 = it never is."""

    def of(self, passed: int, failed: int) -> bool | None:
        """Return whether the gate will be red, or None while it can still go both ways."""
        if self.trials - failed <= self.red_up_to:
            return True
        return False if passed > self.red_up_to else None


class Halts:
    """Asked before each trial, told after each.

    Args:
        folder: The session's own below the run folder.
        worker: The name of this process.
        budget: Limits of the whole session.
        began: When the session began: workers start at different moments. By `time.monotonic`, which all processes of a
            machine share, so that no step of the clock ends a run.
        decisions: Group to when its gate is decided; empty without early stopping.
    """

    def __init__(
        self,
        folder: Path,
        worker: str,
        budget: Budget,
        began: float,
        decisions: Mapping[tuple[str, str, str], Decision],
    ) -> None:
        self._folder = folder
        self._worker = worker
        self._budget = budget
        self._began = began
        self._decisions = decisions
        self._spent = {"usd": 0.0, "tokens": 0.0, "unknown_usd": 0.0, "unknown_tokens": 0.0}

    def reason(self, trial: TrialId, journal: Journal) -> tuple[Outcome, str] | None:
        """Return the outcome and reason of a trial that is not to start, or None."""
        return self._halted() or self._over_budget() or self._decided(trial, journal)

    def _halted(self) -> tuple[Outcome, str] | None:
        try:
            what = json.loads((self._folder / "halted.json").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return Outcome.MISSING, f"not run: {what['class']}: {what['message']}"

    def _over_budget(self) -> tuple[Outcome, str] | None:
        budget = self._budget
        if budget.seconds is not None and time.monotonic() - self._began >= budget.seconds:
            return Outcome.MISSING, f"not run: budget: time={budget.seconds:g}s is over"
        if budget.usd is None and budget.tokens is None:
            return None
        total = dict.fromkeys(self._spent, 0.0)
        for path in (self._folder / "spent").glob("*.json"):
            for name, value in json.loads(path.read_text()).items():
                total[name] += value
        for name, limit in (("usd", budget.usd), ("tokens", budget.tokens)):
            if limit is not None and total[name] >= limit:
                unknown = total[f"unknown_{name}"]
                more = f", and {unknown:g} trials did not say" if unknown else ""
                return Outcome.MISSING, f"not run: budget: {name}={limit:g} is spent ({total[name]:g}{more})"
        return None

    def _decided(self, trial: TrialId, journal: Journal) -> tuple[Outcome, str] | None:
        decision = self._decisions.get(trial.group)
        if decision is None:
            return None
        siblings = (journal.read(trial._replace(trial=number)).record for number in range(1, decision.trials + 1))
        outcomes = [record.outcome for record in siblings if record is not None]
        passed, failed = outcomes.count(Outcome.PASSED), outcomes.count(Outcome.FAILED)
        red = decision.of(passed, failed)
        if red is None:
            return None
        word = "red" if red else "not red"
        return (
            Outcome.NOT_NEEDED,
            f"not needed: with {passed} passed and {failed} failed the gate is {word} whatever comes",
        )

    def told(self, record: TrialRecord) -> None:
        """Count what a trial's agent has cost; each answer of its judge is counted when it comes."""
        self._spent["unknown_usd"] += record.cost_usd is None
        self._spent["unknown_tokens"] += record.tokens is None
        self.spend(record.tokens, record.cost_usd)

    def spend(self, tokens: Tokens | None, cost_usd: float | None) -> None:
        """Count tokens and cost; what is unknown counts as nothing."""
        if self._budget.usd is None and self._budget.tokens is None:
            return
        self._spent["usd"] += cost_usd or 0.0
        self._spent["tokens"] += 0 if tokens is None else (tokens.input or 0) + (tokens.output or 0)
        folder = self._folder / "spent"
        folder.mkdir(parents=True, exist_ok=True)
        write_aside(folder / f"{self._worker}.json", json.dumps(self._spent).encode())

    def halt(self, error: TrialError) -> None:
        """Let the provider's remaining trials not run: they would only burn money or hours."""
        path = self._folder / "halted.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            what = {"class": error.error_class.value, "message": error.message[:500]}
            write_aside(path, json.dumps(what).encode())
