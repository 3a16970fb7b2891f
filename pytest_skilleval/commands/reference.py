"""A run that a command is told to work on: found by what the user typed, and read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pytest_skilleval import store, verdicts
from pytest_skilleval.errors import JournalDamage, RunFolderMistake
from pytest_skilleval.journal import read_plan
from pytest_skilleval.options import Settings
from pytest_skilleval.records import Plan
from pytest_skilleval.results import Report

from .place import Place

__all__ = ["MEANING", "Opened", "judged", "open_run", "run_folder", "settings_of"]

MEANING = "a run id, a run folder, a report.json, a blessed name or `latest`"


class Opened(NamedTuple):
    """A run as it was judged."""

    report: Report
    path: Path
    """The report.json that was read, or the run folder when it was judged from its journal just now."""

    @property
    def thresholds(self) -> tuple[tuple[str, float], ...]:
        """The smallest gains that it was asked to call improved, where its plan is at hand."""
        try:
            return () if self.folder is None else read_plan(self.folder).judging.thresholds
        except JournalDamage:
            return ()

    @property
    def folder(self) -> Path | None:
        """Its run folder, when it is at hand."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return folder if (folder / "plan.json").exists() else None


def open_run(place: Place, reference: str) -> Opened:
    """Read a run; one without a report.json is judged from its journal.

    Raises:
        BaselineMistake: It cannot be found or read.
        RunFolderMistake: Its journal cannot be read.
    """
    path = store.find_run(place.output, reference, place.root)
    if path.is_file():
        return Opened(store.read_report(path), path)
    gathered = store.gather(path)
    settings = settings_of(gathered.plan, place)
    report = verdicts.judge(gathered.plan, gathered.entries, settings, finished=store.now())
    return Opened(report, path)


def settings_of(plan: Plan, place: Place) -> Settings:
    """Return what a run was asked to be judged by."""
    return Settings(
        rootpath=place.root,
        output=place.output,
        seed=plan.seed,
        gate=plan.judging.gate,
        max_errors=plan.judging.max_errors,
        thresholds=plan.judging.thresholds,
        method="paired-bootstrap" if plan.method == "paired-bootstrap" else "exact",
    )


def judged(place: Place, reference: str, purpose: str) -> Opened:
    """Read a run that has a report.json.

    Args:
        place: Where to look.
        reference: What the user typed.
        purpose: What it is needed for, for the message.

    Raises:
        RunFolderMistake: It has none: it was killed, or is still running.
        BaselineMistake: It cannot be found or read.
    """
    path = store.find_run(place.output, reference, place.root)
    if path.is_dir():
        raise RunFolderMistake(
            f"{reference}: has no report.json, which {purpose} needs: it is still running, or it was killed; "
            f"`pytest --skilleval-resume={path.name}` ends it, `skilleval rebuild {path.name}` judges what there is"
        )
    return Opened(store.read_report(path), path)


def run_folder(place: Place, reference: str) -> Path:
    """Return a run's folder.

    Raises:
        RunFolderMistake: What was typed is a report alone: its journal is not at hand.
        BaselineMistake: It cannot be found.
    """
    path = store.find_run(place.output, reference, place.root)
    folder = path if path.is_dir() else path.parent
    if not (folder / "plan.json").exists():
        raise RunFolderMistake(f"{reference}: is a report alone; give the run folder, which holds plan.json and trials")
    return folder
