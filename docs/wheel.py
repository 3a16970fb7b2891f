"""Checks a built wheel: its size, and what is and is not in it."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

LIMIT = 300_000
WANTED = (
    "pytest_skilleval/py.typed",
    "pytest_skilleval/plugin.py",
    "pytest_skilleval/reports/templates/report.html.j2",
    "pytest_skilleval/reports/templates/report.css",
    "pytest_skilleval/scoring/review.html.j2",
)


def problems(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel."""
    names = zipfile.ZipFile(wheel).namelist()
    size = wheel.stat().st_size
    found = [] if size < LIMIT else [f"{size:,} bytes; less than {LIMIT:,} are allowed"]
    found += [f"{name} is missing" for name in WANTED if name not in names]
    places = ("pytest_skilleval/", "pytest_skilleval-")
    return found + [f"{name} does not belong there" for name in names if not name.startswith(places) or ".pyc" in name]


def main(folder: str) -> int:
    """Check the only wheel of a folder, and say what is wrong."""
    wheels = sorted(Path(folder).glob("*.whl"))
    if len(wheels) != 1:
        sys.stderr.write(f"{folder}: one wheel is needed, there are {len(wheels)}\n")
        return 1
    found = problems(wheels[0])
    sys.stdout.write(f"{wheels[0]}: {wheels[0].stat().st_size:,} bytes\n")
    sys.stderr.writelines(f"{wheels[0].name}: {line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
