"""A pytest session that a command starts, in a process of its own that ends with the command."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .place import Place

__all__ = ["Said", "run_pytest", "stoppable", "tell", "workers"]

_PATIENCE_S = 20.0
"""How long an interrupted pytest may take to stop its trials."""
_MOST_WORKERS = 4
_DROPPED = ("PYTEST_XDIST_", "PYTEST_ADDOPTS", "GITHUB_STEP_SUMMARY")
"""Variables of another session's workers, options of the user's sessions, and the place of a CI job's summary: this
session's report is not for it."""
_NEUTRAL = (
    "compare_baseline", "against", "judge", "budget", "shard", "resume", "record", "replay", "tokens", "stop", "cap",
)  # fmt: skip
"""Ini keys that must not touch the session."""
_KEPT = ("-p", "--import-mode", "--skilleval-skills", "--skilleval-stale")
"""Options of the user's own sessions without which cases may not be found, or not be imported."""
_KEPT_OF_ENVIRONMENT = (*_KEPT, "-c", "--config-file", "--rootdir")
"""Pytest reads the further ones too late where a configuration file says them."""


class Said(NamedTuple):
    """What a session said."""

    status: int
    """Pytest's exit status; negative where a signal ended it."""
    out: str
    err: str

    @property
    def last_words(self) -> str:
        """What pytest said in the end: its usage error, else the last line."""
        lines = [line for text in (self.err, self.out) for line in text.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
        return (errors or lines[-1:] or ["it said nothing"])[0]


class _TerminatedError(KeyboardInterrupt):
    """This program is to end, by a signal that pytest has not seen."""


def tell(line: str) -> None:
    """Say what goes on, to somebody who waits."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{line}\n")


def workers(asked: int | None) -> int:
    """Return how many workers a session gets: as many as there are cores, unless the user says it."""
    return min(_MOST_WORKERS, os.cpu_count() or 1) if asked is None else asked


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM end what was started, like Ctrl-C."""

    def end(_number: int, _frame: object) -> None:
        raise _TerminatedError

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_pytest(place: Place, words: Sequence[str]) -> Said:
    """Run pytest to its end, untouched by what the user has set for sessions of their own.

    A judge, a baseline or a budget among the project's `addopts` would else cost money, or change what comes out.

    Args:
        place: The project.
        words: Arguments.

    Raises:
        KeyboardInterrupt: The user has seen enough; pytest has stopped by then.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *_own_options(place), "-o", "addopts=", *words, *_neutral()],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            out, err = process.communicate()
        except KeyboardInterrupt as stop:
            # Ctrl-C reaches it by itself, from the terminal; a second one would cut its cleaning up short.
            if isinstance(stop, _TerminatedError):
                process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return Said(process.returncode, out, err)


def _own_options(place: Place) -> Iterator[str]:
    """Yield what is kept of the options that the user gives to every session."""
    yield from _kept(place.listed("addopts", ()), _KEPT)
    try:
        yield from _kept(shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), _KEPT_OF_ENVIRONMENT)
    except ValueError:
        return  # an open quote, which pytest would refuse; nothing of it is used here


def _kept(words: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Yield the options of these names, each with its value: in the next word, or in the same."""
    rest = iter(words)
    for word in rest:
        if word in names:
            yield from (word, next(rest, ""))
        elif word.partition("=")[0] in names or (word[:2] in names and len(word) > len("-p")):
            yield word


def _neutral() -> Iterator[str]:
    for name in _NEUTRAL:
        yield from ("-o", f"skilleval_{name}=")
