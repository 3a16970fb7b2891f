"""What the plugin costs: a trial against a plain test, a session without cases, collection; ratios within one run.

    python benchmarks/overhead.py [--trials 1000] [--items 10000] [--files 1000] [--repeats 3]

Each figure is CPU time (user and system, children included) of whole pytest processes, the least of some repeats, taken
in turn so that a slow moment of the machine falls on both sides.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:syrupy")


def cpu(folder: Path, *args: str) -> float:
    """Return the CPU seconds of one pytest process and all its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *QUIET, *args],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 5):
        raise SystemExit(
            f"pytest {' '.join(args)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def least(pairs: list[tuple[Path, tuple[str, ...]]], repeats: int) -> list[float]:
    """Return the least CPU seconds of each command, taken in turn."""
    rounds = [[cpu(folder, *args) for folder, args in pairs] for _ in range(repeats)]
    return [min(column) for column in zip(*rounds, strict=True)]


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


def trial_cost(base: Path, trials: int, repeats: int) -> dict[str, float]:
    """Compare trivial stub trials with an equal plain test: a temp folder, one subprocess, one file read."""
    plain, evals = base / "plain", base / "evals"
    write(
        plain,
        "test_plain.py",
        f"""
        import subprocess
        import pytest

        @pytest.mark.parametrize("trial", range({trials}))
        def test_trial(trial, tmp_path):
            subprocess.run(["sh", "-c", "echo hello > out.txt"], cwd=tmp_path, check=True)
            assert (tmp_path / "out.txt").read_text() == "hello\\n"
        """,
    )
    write(evals, "cases/execution/solve.sh", "echo hello > out.txt\n")
    case = {
        "prompt": "Write hello into out.txt.",
        "conditions": ["none"],
        "checks": [{"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}],
        "solution": "solve.sh",
        "stub": {"solve_rate": 1.0},
    }
    write(evals, "cases/execution/greet.yaml", json.dumps(case))
    seconds = least([(plain, ()), (evals, ("--trials", str(trials)))], repeats)
    return {
        "plain_ms": 1000 * seconds[0] / trials,
        "trial_ms": 1000 * seconds[1] / trials,
        "ratio": seconds[1] / seconds[0],
    }


def idle_cost(base: Path, repeats: int) -> dict[str, float]:
    """Compare a session that has the plugin but no case with one that does not load it."""
    write(base / "idle", "test_one.py", "def test_one():\n    pass\n")
    without, with_plugin = least([(base / "idle", ("-p", "no:skilleval")), (base / "idle", ())], repeats)
    return {"without_s": without, "with_s": with_plugin, "more_s": with_plugin - without}


def collection_cost(base: Path, items: int, repeats: int) -> dict[str, float]:
    """Compare collecting work items with collecting as many plain parametrized items."""
    plain, evals = base / "many-plain", base / "many-evals"
    per_case = 4 * 5
    cases = items // per_case
    write(
        plain,
        "test_many.py",
        f"""
        import pytest

        @pytest.mark.parametrize("number", range({cases * per_case}))
        def test_many(number):
            pass
        """,
    )
    write(evals, "skills/greeter/SKILL.md", "---\nname: greeter\ndescription: Greets people.\n---\nSay hello.\n")
    write(evals, "cases/stale/SKILL.md", "---\nname: greeter\ndescription: Greets people.\n---\nSay goodbye.\n")
    found = [
        {
            "id": f"case-{number}",
            "prompt": f"Say hello {number} times.",
            "skill": "greeter",
            "checks": [],
            "expect": ["hello"],
        }
        for number in range(cases)
    ]
    write(evals, "cases/prompt/many.json", json.dumps({"cases": found}))
    pairs = [
        (plain, ("--collect-only",)),
        (evals, ("--collect-only", "--trials", "5", "--skilleval-stale", "cases/stale")),
    ]
    seconds = least(pairs, repeats)
    return {"items": cases * per_case, "plain_s": seconds[0], "evals_s": seconds[1], "ratio": seconds[1] / seconds[0]}


def foreign_cost(base: Path, files: int, repeats: int) -> dict[str, float]:
    """Compare collecting evals.json files, each with its skill and ten cases, with as many plain parametrized items."""
    plain, evals = base / "files-plain", base / "files-evals"
    items = files * 10 * 3  # an older version of none of the skills is known, so `stale` is left out
    write(
        plain,
        "test_many.py",
        f"""
        import pytest

        @pytest.mark.parametrize("number", range({items}))
        def test_many(number):
            pass
        """,
    )
    write(evals, "pytest.ini", "[pytest]\nskilleval_paths = skills\n")
    for number in range(files):
        name = f"skill-{number:04}"
        write(evals, f"skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: Does thing {number}.\n---\nDo it.\n")
        found = [
            {
                "id": index,
                "prompt": f"Do thing {number}, step {index}.",
                "expected_output": "done",
                "files": [],
                "expectations": ["The output says done."],
            }
            for index in range(10)
        ]
        write(evals, f"skills/{name}/evals/evals.json", json.dumps({"skill_name": name, "evals": found}))
    seconds = least([(plain, ("--collect-only",)), (evals, ("--collect-only",))], repeats)
    return {"items": items, "plain_s": seconds[0], "evals_s": seconds[1], "ratio": seconds[1] / seconds[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temp:
        base = Path(temp)
        rows = {
            "trial (at most 2.5 x a plain test)": trial_cost(base, options.trials, options.repeats),
            "session without cases (at most 0.05 s more)": idle_cost(base, 3 * options.repeats),
            "collection (at most 3 x plain items)": collection_cost(base, options.items, options.repeats),
            "evals.json files (at most 3 x plain items)": foreign_cost(base, options.files, options.repeats),
        }
    for name, row in rows.items():
        print(
            f"{name}: "
            + ", ".join(
                f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            )
        )


if __name__ == "__main__":
    main()
