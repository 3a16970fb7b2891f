"""What must hold after every fault: the six invariants, looked up in the run folders, in /proc and in the temp directory."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pytest_skilleval import store, verdicts
from pytest_skilleval.errors import JournalDamage, UserMistake
from pytest_skilleval.journal import read_sealed
from pytest_skilleval.options import Settings
from pytest_skilleval.records import Outcome
from pytest_skilleval.results import Report

from .bed import Bed, Session, wait_for

GONE = 3.0
"""Seconds in which every process of a run must have ended."""


@dataclass
class Totals:
    """The numbers at the foot of the board; all but the first must be 0."""

    points: int = 0
    """Faults injected."""
    lost: int = 0
    """Finished trials that are gone or changed."""
    twice: int = 0
    """Trials that count twice, or were bought again although they had their result."""
    corrupt: int = 0
    """Files under a final name that are not whole."""
    alive: int = 0
    """Processes that lived three seconds later."""
    homes: int = 0
    """Folders left in the temp directory."""

    def add(self, other: Totals) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Account:
    """Follows one bed from fault to fault."""

    bed: Bed
    totals: Totals
    finished: dict[str, bytes] = field(default_factory=dict)
    """Every record that was ever seen in its place."""
    bought: Counter[str] = field(default_factory=Counter)
    """How often the agents of those had been started by then."""
    intended: set[str] = field(default_factory=set)
    """Damage that the board made itself: run and trial folder."""

    def see(self) -> None:
        """Take in what is finished now; call it whenever a fault is about to strike, and afterwards."""
        starts = self.bed.starts()
        for key, data in self.bed.records().items():
            if b'"outcome":"missing"' in data:
                continue  # it was left out on purpose
            if key not in self.finished or self._may_change(key, data):
                self.finished[key] = data
                self.bought[key] = starts[key]

    def _may_change(self, key: str, data: bytes) -> bool:
        """An error is no result: a resumed run replaces it."""
        return data != self.finished[key] and b'"outcome":"error"' in self.finished[key]

    def settle(self, session: Session | None = None) -> list[str]:
        """Look at everything a fault may have broken; return what is wrong, a line each, and count it."""
        return [*self._dead(session), *self._whole(), *self._kept(), *self._judged(session)]

    def _dead(self, session: Session | None) -> list[str]:
        """Nothing lives on."""
        if session is not None and session.running:
            return []
        started = time.monotonic()
        if not wait_for(lambda: not self.bed.processes(), GONE, 0.05):
            left = self.bed.processes()
            self.totals.alive += len(left)
            self.bed.clear()
            return [f"alive after {time.monotonic() - started:.1f} s: {pid} {line}" for pid, line in left.items()]
        return []

    def cleared(self) -> list[str]:
        """Nothing is left in the temp directory; after the death of supervisors that is so once the next run started."""
        left = self.bed.homes()
        self.totals.homes += len(left)
        return [f"left in the temp directory: {', '.join(left[:5])}"] if left else []

    def _whole(self) -> list[str]:
        problems = []
        for name in ("*/plan.json", "*/trials/*/intent.json", "*/trials/*/record.json"):
            for path in self.bed.output.glob(name):
                if f"{path.relative_to(self.bed.output).parts[0]}/{path.parent.name}" in self.intended:
                    continue
                try:
                    read_sealed(path)
                except (JournalDamage, OSError) as error:
                    self.totals.corrupt += 1
                    problems.append(f"corrupt: {error}")
        for path in self.bed.output.glob("*/report.json"):
            try:
                store.read_report(path)
            except UserMistake as error:
                self.totals.corrupt += 1
                problems.append(f"corrupt: {error}")
        return problems

    def _kept(self) -> list[str]:
        """What was finished is there, unchanged, and was not bought again."""
        problems = []
        now, starts = self.bed.records(), self.bed.starts()
        for key, data in self.finished.items():
            if key in self.intended:
                continue
            if key not in now or (now[key] != data and b'"outcome":"error"' not in data):
                self.totals.lost += 1
                problems.append(f"lost: {key} {'is gone' if key not in now else 'has changed'}")
            elif now[key] == data and b'"outcome":"error"' not in data and starts[key] > self.bought[key]:
                self.totals.twice += 1
                problems.append(f"bought again: {key}")
        self.see()
        return problems

    def _judged(self, session: Session | None) -> list[str]:
        """The report can be made from the journal, holds each finished trial once, and the exit status fits it."""
        problems = []
        for folder in self.bed.run_folders():
            try:
                report = judge(folder)
            except UserMistake as error:
                problems.append(f"no report from the journal: {error}")
                continue
            problems += self._counted(folder, report)
        if session is not None and not session.running and self.bed.run_folders():
            missing = judge(self.bed.last_run).run.counts["missing"]
            if missing and session.status == 0:
                problems.append(f"exit status 0 although {missing} trials are missing")
        return problems

    def _counted(self, folder: Path, report: Report) -> list[str]:
        problems = []
        keys = Counter(line.key for line in report.trials)
        doubles = [key for key, count in keys.items() if count > 1]
        self.totals.twice += len(doubles)
        problems += [f"counted twice: {key}" for key in doubles]
        if sum(report.run.counts.values()) != report.run.planned:
            problems.append(f"counts {report.run.counts} do not add up to {report.run.planned}")
        found = sum(key.startswith(f"{folder.name}/") and key not in self.intended for key in self.finished)
        home = sum(line.outcome is not Outcome.MISSING for line in report.trials)
        if home < found:
            self.totals.lost += found - home
            problems.append(f"{found} trials are finished, the report holds {home}")
        return problems


def judge(folder: Path) -> Report:
    """Make a report from a journal alone."""
    gathered = store.gather(folder)
    settings = Settings(rootpath=folder.parent, output=folder.parent)
    return verdicts.judge(gathered.plan, gathered.entries, settings, finished="", strangers=gathered.strangers)
