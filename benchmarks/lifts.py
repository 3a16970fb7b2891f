"""How often the intervals of the lifts hold the truth: whole runs of the plugin over many seeds.

    python benchmarks/lifts.py [--seeds 40] [--cases 24] [--trials 1]

The simulated agent's rates are known, so the true lift is. The suite is a prompt lane: no process is started, and the
rates differ from case to case as those of the project's own cases do. A 95 % interval should hold the truth in 34 to 40
of 40 runs (the chance of fewer than 34 is 0.3 %).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

RATES = {"none": (0.2, 0.45), "self-load": (0.5, 0.9), "preloaded": (0.8, 1.0)}
TRUE = {"realised": ("none", "self-load"), "oracle": ("none", "preloaded"), "routing_gap": ("self-load", "preloaded")}


def rate(condition: str, case: int, cases: int) -> float:
    """Return a case's rate: spread evenly over the condition's range, in an order of its own for each condition."""
    low, high = RATES[condition]
    place = case * {"none": 1, "self-load": 5, "preloaded": 7}[condition] % cases
    return round(low + (high - low) * place / (cases - 1), 4)


def write_suite(folder: Path, cases: int) -> dict[str, float]:
    """Write the suite; return the true lifts."""
    skill = folder / "skills/greeter/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greeter\ndescription: Greets people by name.\n---\n\nSay hello.\n")
    found = [
        {
            "id": f"case-{number:02d}",
            "prompt": f"Greet guest number {number}.",
            "skill": "greeter",
            "conditions": list(RATES),
            "expect": ["hello"],
            "answer": "hello",
            "stub": {"solve_rate": {name: rate(name, number, cases) for name in RATES}, "failure_answer": "goodbye"},
        }
        for number in range(cases)
    ]
    path = folder / "cases/prompt/suite.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"cases": found}))
    means = {name: sum(rate(name, number, cases) for number in range(cases)) / cases for name in RATES}
    return {metric: means[with_] - means[without] for metric, (without, with_) in TRUE.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--trials", type=int, default=1)
    options = parser.parse_args()
    held = dict.fromkeys(TRUE, 0)
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        truth = write_suite(folder, options.cases)
        for seed in range(options.seeds):
            words = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--trials", str(options.trials)]
            words += ["--skilleval-report=json", "--skilleval-gate=never", f"--skilleval-seed={seed}"]
            subprocess.run([sys.executable, "-m", "pytest", *words], cwd=folder, check=True, capture_output=True)
            report = json.loads((folder / ".skilleval/latest/report.json").read_text())
            for lift in report["lift"]:
                if lift["of"] == "pass_rate" and lift["metric"] in TRUE:
                    low, high = lift["ci"]
                    held[lift["metric"]] += low <= truth[lift["metric"]] <= high
    for metric, count in held.items():
        print(f"{metric}: the interval held the true lift {truth[metric]:+.3f} in {count} of {options.seeds} runs")


if __name__ == "__main__":
    main()
