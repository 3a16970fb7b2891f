"""A run folder that a command makes of runs that are there: whole or not at all."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from pytest_skilleval.journal import Journal, write_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_skilleval.records import Plan

__all__ = ["write_run"]


def write_run(output: Path, plan: Plan, fill: Callable[[Journal], None]) -> Path:
    """Write a run folder whole or not at all: it is made aside and renamed.

    Args:
        output: The folder of runs.
        plan: Of the new run.
        fill: Puts the trials into the new journal.

    Raises:
        OSError: The disk is full, or the folder cannot be made.
    """
    output.mkdir(parents=True, exist_ok=True)
    aside = output / f".making.{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        (aside / "trials").mkdir(parents=True)
        fill(Journal(aside, plan.run))
        write_plan(aside, plan)
        return aside.rename(output / plan.run)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
