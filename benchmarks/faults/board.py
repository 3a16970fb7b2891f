"""The board: its lines by name, what a line may use, and what is printed."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .account import Account, Totals
from .bed import Bed, Session


class CannotInject(Exception):
    """This fault cannot be injected on this machine; the text says why."""


class Desk:
    """What one line works with: beds, a size, a seed; and where it writes down what it saw.

    Args:
        folder: Where its beds go.
        full: Whether this is the full board.
        seed: Of the random moments.
        repeats: At most so many faults at random moments; None = as many as the board wants.
    """

    def __init__(self, folder: Path, *, full: bool, seed: int = 0, repeats: int | None = None) -> None:
        self.folder = folder
        self.full = full
        self.repeats = repeats
        self.draw = random.Random(seed)
        self.totals = Totals()
        self.problems: list[str] = []
        self.remarks: list[str] = []
        self._measured: dict[str, list[float]] = {}
        self._beds: list[Bed] = []

    def scale(self, small: int, full: int) -> int:
        """Return how many of something this board wants."""
        return full if self.full else small

    def times(self, small: int, full: int) -> int:
        """Return how often something is done at random moments."""
        wanted = self.scale(small, full)
        return wanted if self.repeats is None else min(wanted, self.repeats)

    def bed(self, **more: Any) -> Bed:
        """Return a fresh bed."""
        self._beds.append(Bed(self.folder / f"bed{len(self._beds) + 1}", **more))
        return self._beds[-1]

    def account(self, bed: Bed) -> Account:
        """Return an account of a bed that counts for this line."""
        return Account(bed, self.totals)

    def point(self, what: str, problems: Sequence[str] = (), session: Session | None = None) -> None:
        """Write down one injected fault, and what did not hold after it."""
        self.totals.points += 1
        self.problems += [f"{what}: {problem}" for problem in problems]
        if problems and session is not None:
            self.problems.append(f"{what}: it said: {' | '.join(session.said.strip().splitlines()[-4:])}")

    def expect(self, holds: object, problem: str) -> list[str]:
        """Return the problem unless something holds."""
        return [] if holds else [problem]

    def remark(self, text: str) -> None:
        """Write down a number that is worth reading."""
        self.remarks.append(text)

    def measure(self, what: str, value: float, unit: str) -> None:
        """Write down a number of which the least and the most are worth reading."""
        self._measured.setdefault(f"{what} {{}} {unit}", []).append(value)

    def remembered(self) -> list[str]:
        """Return all that was written down, each remark once."""
        ranges = []
        for text, values in self._measured.items():
            least, most = f"{min(values):.3g}", f"{max(values):.3g}"
            ranges.append(text.format(least if least == most else f"{least} to {most}"))
        counts = Counter(self.remarks)
        return [*ranges, *(text if count == 1 else f"{text} ({count} times)" for text, count in counts.items())]

    def close(self) -> None:
        """Kill and remove what the line has left."""
        for bed in self._beds:
            bed.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


class Line(NamedTuple):
    """One line of the board."""

    id: str
    fault: str
    inject: Callable[[Desk], None]


class Result(NamedTuple):
    """How a line came out."""

    id: str
    fault: str
    totals: Totals
    state: str
    """green, red or skipped."""
    why: tuple[str, ...]
    seconds: float


LINES: dict[str, Line] = {}


def line(name: str, fault: str) -> Callable[[Callable[[Desk], None]], Callable[[Desk], None]]:
    """Put a function on the board."""

    def put(inject: Callable[[Desk], None]) -> Callable[[Desk], None]:
        LINES[name] = Line(name, fault, inject)
        return inject

    return put


def run_line(name: str, *, full: bool, folder: Path | None = None, seed: int = 0, repeats: int | None = None) -> Result:
    """Inject one line's faults and say how it came out."""
    one = LINES[name]
    started = time.monotonic()
    with _place(folder) as place:
        desk = Desk(place / name, full=full, seed=seed, repeats=repeats)
        try:
            one.inject(desk)
        except CannotInject as reason:
            return Result(name, one.fault, desk.totals, "skipped", (str(reason),), time.monotonic() - started)
        except Exception:  # noqa: BLE001 - a line that breaks is red, and the others go on
            desk.problems.append("the line itself broke: " + " | ".join(traceback.format_exc().split("\n")[-8:]))
        finally:
            desk.close()
    if not desk.totals.points:
        desk.problems.append("nothing was injected")
    state, why = ("red", desk.problems) if desk.problems else ("green", desk.remembered())
    return Result(name, one.fault, desk.totals, state, tuple(why), time.monotonic() - started)


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        yield Path(name)


@dataclass
class Sheet:
    """What is printed."""

    results: list[Result] = field(default_factory=list)

    def row(self, result: Result) -> str:
        """Return one line of the board."""
        self.results.append(result)
        head = f"{result.id:<4} {result.fault:<28} {result.totals.points:>5} points  {result.state:<7} {result.seconds:6.0f} s"
        more = "" if result.state == "red" else f"  {'; '.join(result.why)}" if result.why else ""
        return (
            head + more + "".join(f"\n       {why[:600]}" for why in (result.why[:12] if result.state == "red" else ()))
        )

    def foot(self) -> str:
        """Return the totals."""
        totals = Totals()
        for result in self.results:
            totals.add(result.totals)
        green = sum(result.state == "green" for result in self.results)
        red = sum(result.state == "red" for result in self.results)
        skipped = [result.id for result in self.results if result.state == "skipped"]
        return (
            f"{green} green, {red} red, {len(skipped)} cannot be injected here{': ' if skipped else ''}{', '.join(skipped)}\n"
            f"injected points {totals.points}, finished trials lost {totals.lost}, counted twice {totals.twice}, "
            f"records corrupt {totals.corrupt}, processes alive after 3 s {totals.alive}, temp homes left {totals.homes}"
        )

    @property
    def good(self) -> bool:
        return all(result.state != "red" for result in self.results)
