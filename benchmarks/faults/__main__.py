"""The command: inject the faults, print a line each and the totals; exit status 1 when a line is red."""

from __future__ import annotations

import argparse
import sys

from . import lines as _lines  # noqa: F401 - puts the lines on the board
from . import page
from .board import LINES, Sheet, run_line


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--full", action="store_true", help="a hundred kills, every crash point (an hour)")
    parser.add_argument("--only", metavar="F1,F2", help="these lines alone")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments (default: 0)")
    parser.add_argument("--repeats", type=int, metavar="N", help="at most so many faults at random moments a line")
    parser.add_argument("--write", action="store_true", help=f"keep the results, and write {page.PAGE.name} of them")
    given = parser.parse_args()
    names = (
        [name.strip() for name in given.only.split(",")]
        if given.only
        else sorted(LINES, key=lambda name: int(name[1:]))
    )
    unknown = [name for name in names if name not in LINES]
    if unknown:
        parser.error(f"--only {given.only}: no line {', '.join(unknown)}; choose from {', '.join(LINES)}")
    sheet = Sheet()
    for name in names:
        result = run_line(name, full=given.full, seed=given.seed, repeats=given.repeats)
        print(sheet.row(result), flush=True)
        if given.write:
            page.keep(result, seed=given.seed, repeats=given.repeats, full=given.full)
            page.PAGE.write_text(page.page(page.read()), encoding="utf-8")
    print(sheet.foot())
    return 0 if sheet.good else 1


if __name__ == "__main__":
    sys.exit(main())
