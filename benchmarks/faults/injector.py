"""Faults at the border to the kernel: strace counts the system calls of a process, then breaks the n-th of a kind."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from .bed import Bed, Session
from .board import CannotInject, Desk

CHANGES = ("write", "fsync", "rename", "unlink", "mkdir")
"""The calls that change what is on disk, as this plugin makes them."""
_CALL = re.compile(r"^(\w+)\((.*)$")


@functools.cache
def strace() -> str:
    """Return the program.

    Raises:
        CannotInject: It is not there, or may not trace.
    """
    found = shutil.which("strace")
    if found is None:
        raise CannotInject("strace is not installed")
    works = subprocess.run([found, "-qq", "-e", "trace=none", "true"], capture_output=True, check=False)
    if works.returncode:
        raise CannotInject(f"strace may not trace here: {works.stderr.decode(errors='replace').strip()}")
    return found


def counting(log: Path, kinds: Sequence[str] = CHANGES) -> tuple[str, ...]:
    """Return what stands before a command whose calls are to be listed; its children are not looked at."""
    return (strace(), "-qq", "-y", "-s", "0", "-o", str(log), "-e", f"trace={','.join(kinds)}")


def breaking(kind: str, when: str, what: str) -> tuple[str, ...]:
    """Return what stands before a command of which a call is to be broken.

    Args:
        kind: Of call.
        when: Which of them: `7` or, for that one and all after it, `7+`.
        what: `signal=SIGKILL`, `error=EIO`, `delay_enter=50000`, ...
    """
    return (strace(), "-qq", "-o", "/dev/null", "-e", f"trace={kind}", "-e", f"inject={kind}:{what}:when={when}")


def calls(log: Path) -> list[tuple[str, str]]:
    """Return kind and arguments of the calls in a listing, in order."""
    found = (_CALL.match(line) for line in log.read_text(errors="replace").splitlines())
    return [(match[1], match[2]) for match in found if match]


def points(desk: Desk, listed: Sequence[tuple[str, str]], place: Path, small: int) -> Iterator[tuple[str, int]]:
    """Yield kind and number of the calls to break: all that touch a place, or of a small board some.

    Args:
        desk: Of the line.
        listed: From `calls`.
        place: A path; calls that name nothing below it are left alone.
        small: How many a small board breaks.
    """
    numbers: Counter[str] = Counter()
    all_points = []
    for kind, arguments in listed:
        numbers[kind] += 1
        if str(place) in arguments:
            all_points.append((kind, numbers[kind]))
    if not desk.full and len(all_points) > small:
        all_points = sorted(desk.draw.sample(all_points, small))
    yield from all_points


def listed_run(
    desk: Desk, *args: str, kinds: Sequence[str] = CHANGES, **more: object
) -> tuple[Bed, list[tuple[str, str]]]:
    """Run once unharmed and list the calls."""
    bed = desk.bed(**more)
    log = bed.folder / "calls"
    session: Session = bed.run(*args, before=counting(log, kinds))
    if session.status != 0:
        raise RuntimeError(f"an unharmed run under strace ends with {session.status}: {session.said[-300:]}")
    return bed, calls(log)
