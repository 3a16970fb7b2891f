"""Pauses that the processes of a session agree on, and what they wait for, through small files in the run folder.

halts/<session>/pause.json              until when the provider has asked everybody to wait
halts/<session>/waiting/<worker>.json   what this worker waits for, and until when
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING

from pytest_skilleval.journal import write_aside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Pauses", "read_waits", "session_folder"]


def session_folder(run_folder: Path, token: str) -> Path:
    """Return where the processes of one session meet."""
    return run_folder / "halts" / token


class Pauses:
    """The pauses of one worker.

    Args:
        folder: The session's own.
        worker: The name of this process.
        longest: Seconds that one pause may take.
    """

    def __init__(self, folder: Path, worker: str, longest: float) -> None:
        self._folder = folder
        self._worker = worker
        self._longest = longest

    def ask(self, seconds: float) -> None:
        """Let every trial of the session wait before it asks the provider again; the longest pause stands."""
        until = time.time() + min(seconds, self._longest)
        if until > _until(self._folder / "pause.json"):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_aside(self._folder / "pause.json", json.dumps({"until": until}).encode())

    def left(self) -> float:
        """Return the seconds that a trial is to wait before it asks."""
        return min(self._longest, max(0.0, _until(self._folder / "pause.json") - time.time()))

    def wait(self, seconds: float, what: str) -> None:
        """Sleep, and let the controller tell what for."""
        path = self._folder / "waiting" / f"{self._worker}.json"
        with self._said(path, what, time.time() + seconds):
            time.sleep(seconds)

    @contextlib.contextmanager
    def _said(self, path: Path, what: str, until: float) -> Iterator[None]:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_aside(path, json.dumps({"what": what, "until": until}).encode())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def read_waits(folder: Path) -> list[tuple[int, str, float]]:
    """Return how many workers wait, for what, and the most seconds that they still will.

    Args:
        folder: The session's own.
    """
    found: dict[str, list[float]] = {}
    with contextlib.suppress(OSError):
        for path in (folder / "waiting").glob("*.json"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                wait = json.loads(path.read_text())
                found.setdefault(str(wait["what"]), []).append(max(0.0, float(wait["until"]) - time.time()))
    return [(len(seconds), what, max(seconds)) for what, seconds in sorted(found.items())]


def _until(path: Path) -> float:
    try:
        return float(json.loads(path.read_text())["until"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
