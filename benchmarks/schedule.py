"""Makespan against the least that any order could reach: xdist's load and worksteal, and the plugin's own scheduler.

    python benchmarks/schedule.py [--scale 0.5] [--workers 8 20] [--only lognormal plans-and-agents many-plans ...]

`headline` is a run of 160 trials that took 437 minutes one after the other and 16 minutes at 60 slots (26.6 x), a
hundred times shorter; `prompts` one of 24 routing trials at 20 slots (14 x).

Trials sleep, so that a busy machine bends little. The makespan is the time from the first trial's start to the last
one's end, without the start of the workers. It is compared with max(longest, sum/n, each cap's bound) twice: of the
durations as asked for, and of the durations as measured, which leaves out what a trial costs beyond its sleep.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

QUIET = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:syrupy")
HOW = {"load": ("--dist", "load"), "worksteal": ("--dist", "worksteal"), "own": (), "own, recorded": ()}
"""Schedulers in the order of their runs: the last one knows the durations that the others have recorded."""


class Job(NamedTuple):
    """One trial to be."""

    lane: str
    seconds: float


class Mix(NamedTuple):
    """Trials, and what may run at once."""

    jobs: list[Job]
    agents: int | None = None
    """The cap on agents."""
    workers: int | None = None
    """How many there are; as asked for by default."""

    def bound(self, jobs: list[Job], workers: int) -> float:
        """Return the makespan that no order can beat."""
        seconds = [job.seconds for job in jobs]
        bounds = [max(seconds), sum(seconds) / workers]
        if self.agents is not None:
            bounds.append(sum(job.seconds for job in jobs if job.lane == "execution") / self.agents)
        return max(bounds)


def mixes(scale: float) -> dict[str, Mix]:
    draw = random.Random(1)
    seconds = [draw.lognormvariate(-0.245, 0.7) for _ in range(160)]  # mean 1 s
    for index in draw.sample(range(160), 4):
        seconds[index] *= 10
    lognormal = [Job("execution", scale * value) for value in seconds]
    even = [Job("prompt", scale * 0.1)] * 80 + [Job("execution", scale * 1.0)] * 80
    uneven = [Job("prompt", scale * 0.5)] * 240 + [Job("execution", scale * 0.8)] * 30
    spread = [draw.lognormvariate(0, 0.5) for _ in range(160)]
    headline = [Job("execution", 262.2 * value / sum(spread)) for value in spread]
    prompts = [Job("prompt", scale * draw.lognormvariate(0, 0.4)) for _ in range(24)]
    return {
        "lognormal": Mix(lognormal),
        "plans-and-agents": Mix(even, 2),
        "many-plans": Mix(uneven, 2),
        "headline": Mix(headline, workers=60),
        "prompts": Mix(prompts, workers=20),
    }


def write(folder: Path, mix: Mix) -> None:
    """Write one case a trial."""
    for lane in ("prompt", "execution"):
        cases: list[dict[str, Any]] = [
            {
                "id": f"job-{number}",
                "prompt": "Sleep.",
                "conditions": ["none"],
                "stub": {"solve_rate": 1.0, "sleep": round(job.seconds, 4)},
                **({"expect": ["hello"], "answer": "hello"} if lane == "prompt" else {"checks": []}),
            }
            for number, job in enumerate(mix.jobs)
            if job.lane == lane
        ]
        if cases:
            path = folder / "cases" / lane / "jobs.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"cases": cases}))


def run(folder: Path, how: str, workers: int, mix: Mix) -> dict[str, float]:
    """Run a mix once; return its makespan, in ratios too."""
    records = folder / ".skilleval" / "durations.json"
    if how == "own":
        records.unlink(missing_ok=True)
    caps = () if mix.agents is None else (f"--skilleval-cap=kind:agent={mix.agents}",)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *QUIET, "-n", str(workers), "--skilleval-report=json", *HOW[how], *caps],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
    )
    if done.returncode != 0:
        raise SystemExit(f"{how}: pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    report = json.loads((folder / ".skilleval" / "latest" / "report.json").read_text())
    rows = report["timing"]["trials"]
    assert len(rows) == len(mix.jobs)
    makespan = max(row["started"] + row["duration_s"] for row in rows.values()) - min(
        row["started"] for row in rows.values()
    )
    measured = [Job(key.partition(":")[0], row["duration_s"] - row["waited_s"]) for key, row in rows.items()]
    most = most_agents(rows)
    assert mix.agents is None or most <= mix.agents, f"{how}: {most} agents at once"
    return {
        "makespan_s": makespan,
        "asked": makespan / mix.bound(mix.jobs, workers),
        "measured": makespan / mix.bound(measured, workers),
        "speed_up": sum(job.seconds for job in mix.jobs) / makespan,
        "agents": most,
    }


def most_agents(rows: dict[str, Any]) -> int:
    """Return how many agents ran at the same moment."""
    events = []
    for key, row in rows.items():
        if key.startswith("execution:"):
            events += [(row["agent_started"], 1), (row["agent_started"] + row["agent_s"], -1)]
    running = most = 0
    for _, step in sorted(events):
        running += step
        most = max(most, running)
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.5, help="seconds for each second asked for (default: 0.5)")
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 20])
    parser.add_argument("--only", nargs="+", default=None)
    options = parser.parse_args()
    found = mixes(options.scale)
    for name in options.only or found:
        mix = found[name]
        several = options.workers if mix.agents is None else options.workers[:1]
        for workers in several if mix.workers is None else [mix.workers]:
            with tempfile.TemporaryDirectory() as temp:
                write(Path(temp), mix)
                bound = mix.bound(mix.jobs, workers)
                print(f"{name}, -n {workers}: no order can beat {bound:.1f} s", flush=True)
                # The runs without records come first of their kind, the one with records last.
                for how in HOW:
                    began = time.monotonic()
                    row = run(Path(temp), how, workers, mix)
                    load = os.getloadavg()[0]
                    print(
                        f"  {how:<14} {row['makespan_s']:6.1f} s   {row['asked']:.2f} x the bound, "
                        f"{row['measured']:.2f} x that of the measured durations; "
                        f"{row['speed_up']:.1f} x one after the other; at most {row['agents']:.0f} agents at once "
                        f"(whole session {time.monotonic() - began:.0f} s, load {load:.0f})",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
