"""Checks a built wheel: its size, what is in it, and a small run of it in a clean environment.

python docs/wheel.py dist FOLDER      size and content of the only wheel there
python docs/wheel.py oldest           constraints that pin each dependency to the lower bound of pyproject.toml
python docs/wheel.py try ENVIRONMENT  a stub session and a comparison with what is installed there
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

# 510 kB in November 2026: 222 modules, of which docstrings are a good part. 300 kB is wanted; until somebody finds what
# can go, this only keeps it from growing.
LIMIT = 600_000
WANTED = (
    "pytest_skilleval/py.typed",
    "pytest_skilleval/plugin.py",
    "pytest_skilleval/reports/templates/report.html.j2",
    "pytest_skilleval/reports/templates/report.css",
    "pytest_skilleval/scoring/review.html.j2",
)
ROOT = Path(__file__).parents[1]


def problems(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel."""
    names = zipfile.ZipFile(wheel).namelist()
    size = wheel.stat().st_size
    found = [] if size < LIMIT else [f"{size:,} bytes; less than {LIMIT:,} are allowed"]
    found += [f"{name} is missing" for name in WANTED if name not in names]
    places = ("pytest_skilleval/", "pytest_skilleval-")
    return found + [f"{name} does not belong there" for name in names if not name.startswith(places) or ".pyc" in name]


def check(folder: str) -> int:
    """Check the only wheel of a folder, and say what is wrong."""
    wheels = sorted(Path(folder).glob("*.whl"))
    if len(wheels) != 1:
        sys.stderr.write(f"{folder}: one wheel is needed, there are {len(wheels)}\n")
        return 1
    found = problems(wheels[0])
    sys.stdout.write(f"{wheels[0]}: {wheels[0].stat().st_size:,} bytes\n")
    sys.stderr.writelines(f"{wheels[0].name}: {line}\n" for line in found)
    return 1 if found else 0


def oldest() -> list[str]:
    """Return a constraint for each dependency: exactly its lower bound."""
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)", line) for line in lines]
    if not all(bounds):
        sys.exit(f"each dependency needs one lower bound: {lines}")
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


def try_out(environment: str) -> int:
    """Run `skilleval init`'s project in a fresh folder, serially and with two workers, and compare both runs."""
    binaries = Path(environment).resolve() / "bin"
    # Nothing of this repository may be imported in place of what is installed.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
    with tempfile.TemporaryDirectory() as folder:

        def run(*words: str) -> None:
            command = [str(binaries / words[0]), *words[1:]]
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")

        run("skilleval", "init")
        run("pytest", "-W", "error", "--trials", "2")
        run("pytest", "-W", "error", "--trials", "2", "-n", "2", "--compare-baseline=latest")
        run("skilleval", "check")
        report = json.loads((Path(folder) / ".skilleval/latest/report.json").read_text())
    counts = report["run"]["counts"]
    sys.stdout.write(f"{environment}: {counts}, compared: {report['comparison']['comparable']}\n")
    return 0 if report["run"]["status"] == "finished" and report["comparison"]["comparable"] else 1


def main(task: str, place: str = "") -> int:
    """Do one of the tasks named above."""
    if task == "oldest":
        sys.stdout.writelines(f"{line}\n" for line in oldest())
        return 0
    return try_out(place) if task == "try" else check(place)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
