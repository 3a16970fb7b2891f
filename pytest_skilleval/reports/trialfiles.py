"""What a run folder holds of one trial, read back for people: prompt, tool calls, answer, workspace diff, error stream.

Nothing that a report or an agent wrote is followed as a path: a trial's folder is the digest of its key, and links are
refused.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pytest_skilleval.model import TrialId
from pytest_skilleval.records import TrialRecord
from pytest_skilleval.results import TrialLine

__all__ = ["Step", "TrialFiles", "evidence_size", "read_trial"]

SHOWN = ("transcript.jsonl", "workspace.diff", "stderr")
"""Files whose text a report shows."""
READ_BYTES = 2 * 1024 * 1024
"""Of each file, so much is read; the rest stays in the run folder, and that is said."""


class Step(NamedTuple):
    """One line of a transcript."""

    kind: str
    """`context`, `prompt`, `tool`, `skill`, `answer`, or what a later version writes."""
    text: str
    """What was said, or the tool's command."""
    name: str = ""
    """The tool or the skill."""
    output: str = ""
    status: str = ""
    """A tool call's `ok`, `error`, `denied` or `unknown`; a skill's way of loading."""


class TrialFiles(NamedTuple):
    """What is there to show."""

    folder: str
    """Relative to the run folder."""
    steps: tuple[Step, ...] = ()
    diff: str = ""
    stderr: str = ""
    sizes: tuple[tuple[str, int], ...] = ()
    """Name and bytes of each file of the trial, sorted."""
    truncated: tuple[str, ...] = ()
    """Files of which only the head was read."""
    bundle: str = ""
    """Where its proof bundle's own page lies, relative to the run folder, ready for a link; empty without one."""

    def size(self, name: str) -> int:
        """Return the bytes of a file; 0 when it is not there."""
        return dict(self.sizes).get(name, 0)


def _folder(trial: TrialLine | TrialRecord) -> str:
    return f"trials/{_id(trial).folder}"


def evidence_size(run_folder: Path, trial: TrialLine) -> int:
    """Return the bytes that a trial's shown files would add to a report."""
    total = 0
    for name in SHOWN:
        with contextlib.suppress(OSError):
            total += min((run_folder / _folder(trial) / name).lstat().st_size, READ_BYTES)
    return total


def read_trial(run_folder: Path | None, trial: TrialLine | TrialRecord) -> TrialFiles:
    """Read what a run folder holds of a trial; what is not there, or no regular file, is left out."""
    name = _folder(trial)
    if run_folder is None or not (run_folder / name).is_dir():
        return TrialFiles(name)
    path = run_folder / name
    texts = {shown: _text(path / shown) for shown in SHOWN}
    sizes = tuple(
        sorted(
            (entry.name, entry.stat(follow_symlinks=False).st_size)
            for entry in os.scandir(path)
            if entry.is_file(follow_symlinks=False)
        )
    )
    return TrialFiles(
        folder=name,
        steps=tuple(_steps(texts["transcript.jsonl"])),
        diff=texts["workspace.diff"],
        stderr=texts["stderr"],
        sizes=tuple(pair for pair in sizes if not pair[0].startswith(".")),
        truncated=tuple(shown for shown, size in sizes if shown in SHOWN and size > READ_BYTES),
        bundle=_bundle(run_folder, trial),
    )


def _bundle(run_folder: Path, trial: TrialLine | TrialRecord) -> str:
    try:
        page = f"{_id(trial).bundle}/index.html"
        within = not {"", ".", ".."} & set(page.split("/"))
        return quote(page) if within and (run_folder / page).is_file() else ""
    except (OSError, ValueError):
        return ""  # no name of a file: too long, or with characters that none can hold


def _id(trial: TrialLine | TrialRecord) -> TrialId:
    """Return whose folder it is: a line that is shown under its twin's condition still has its own key."""
    named = trial.key.split(":") if isinstance(trial, TrialLine) else ()
    if len(named) == 4 and named[3].isdecimal():
        return TrialId(named[0], named[1], named[2], int(named[3]))
    return TrialId(trial.lane, trial.case, trial.condition, trial.trial)


def _text(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            return file.read(READ_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _steps(text: str) -> list[Step]:
    steps = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            steps.append(_step(value))
    return steps


def _step(value: dict[str, Any]) -> Step:
    kind = str(value.get("type", ""))
    if kind == "tool":
        return Step(
            kind,
            str(value.get("command", "")),
            str(value.get("name", "")),
            str(value.get("output", "")),
            str(value.get("status", "unknown")),
        )
    if kind == "skill":
        return Step(kind, str(value.get("evidence", "")), str(value.get("name", "")), status=str(value.get("how", "")))
    return Step(kind, str(value.get("text", "")))
