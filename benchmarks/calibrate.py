"""Measure what the verdicts are worth: error rates, power and coverage in simulated runs, as a Markdown page.

    python benchmarks/calibrate.py                 # the published page, a quarter of an hour on one core
    python benchmarks/calibrate.py --runs 100 --output /tmp/page.md

Simulated cases pass with probabilities from a beta distribution, so calibrated that two trials of one case disagree
with the given flip rate; a trial's score is made of its pass and of two lesser checks that have their own rates. Both
the product's comparison and the rule of the first implementation judge the same runs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from simulation import NOTHING, Floats, Run, Scenario, Suite, drifting, shifted, single

from pytest_skilleval.stats.compare import compare_arrays
from pytest_skilleval.stats.differences import fieller
from pytest_skilleval.stats.lifts import lift
from pytest_skilleval.stats.rates import flip_rate, lane_rate
from pytest_skilleval.stats.summary import summarise_group

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "calibration.md"


def simulate(
    options: argparse.Namespace, design: tuple[int, int], scenario: Scenario, part: int
) -> Iterable[tuple[Run, Run, Floats, Floats]]:
    """Pairs of runs of so many cases and trials, and their true rates."""
    rng = np.random.default_rng((options.seed, part))
    for _ in range(number_of_runs(options, design[0])):
        suite = Suite.draw(rng, design[0], options.flip, options.mean)
        base, cand = scenario.change(suite.rates, rng)
        yield suite.run(rng, design[1], base), suite.run(rng, design[1], cand), base, cand


def number_of_runs(options: argparse.Namespace, cases: int) -> int:
    """Large designs get fewer runs."""
    runs: int = options.runs
    return runs if cases < 100 else max(1, runs * 3 // 10)


def judge(base: Run, cand: Run, **how: Any) -> dict[str, Any]:
    """One comparison."""
    return compare_arrays(base.scores, cand.scores, base.passes, cand.passes, **how)


def verdicts(found: dict[str, Any]) -> tuple[list[str], str]:
    """Of the groups, and overall."""
    return [finding["verdict"] for finding in found["per_case"]], found["overall"]["verdict"]


def share(hits: Sequence[bool]) -> str:
    """A share in per cent with its standard error."""
    rate = float(np.mean(hits))
    return f"{100 * rate:.1f} ± {100 * float(np.sqrt(rate * (1 - rate) / len(hits))):.1f}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return [*lines, ""]


def note(text: str) -> None:
    """Progress, beside the page."""
    sys.stderr.write(f"{time.process_time():7.1f} s  {text}\n")


def quiet_runs(options: argparse.Namespace) -> list[str]:
    """How often a verdict is given when nothing changed."""
    rows = []
    for part, (cases, trials) in enumerate([(8, 5), (24, 3), (24, 5), (24, 10), (160, 3), (160, 5)]):
        quiet: dict[str, list[bool]] = defaultdict(list)
        for base, cand, *_ in simulate(options, (cases, trials), NOTHING, part):
            groups, overall = verdicts(judge(base, cand))
            quiet["all"].append({*groups, overall} == {"inconclusive"})
            quiet["groups"].append(set(groups) == {"inconclusive"})
            quiet["overall"].append(overall == "inconclusive")
            old_groups, old_overall = verdicts(judge(base, cand, method="paired-bootstrap"))
            quiet["old"].append({*old_groups, old_overall} == {"inconclusive"})
        note(f"nothing changed, {cases} x {trials}: {share(quiet['all'])}")
        shares = (share(quiet[key]) for key in ("all", "groups", "overall", "old"))
        rows.append((f"{cases} x {trials}", number_of_runs(options, cases), *shares))
    head = ("cases x trials", "runs", "everything", "all groups", "overall", "everything, `paired-bootstrap`")
    return [
        "## When nothing changed",
        "",
        "Share of comparisons that end `inconclusive`, in per cent ± one standard error.",
        "The promise is 95 for *everything*: each group and the overall verdict.",
        "",
        *table(head, rows),
    ]


def power_runs(options: argparse.Namespace) -> list[str]:
    """How often a real change is found."""
    plan = [
        (24, 5, shifted(-0.2)),
        (24, 5, shifted(0.2)),
        (24, 5, shifted(-0.1)),
        (24, 10, shifted(-0.1)),
        (24, 3, shifted(0.2)),
        (8, 5, shifted(0.3)),
        (160, 5, shifted(-0.1)),
        (24, 5, single(1, 0)),
        (24, 6, single(1, 0)),
        (24, 10, single(0.95, 0.1)),
        (24, 6, drifting(1.0)),
    ]
    rows = []
    for part, (cases, trials, scenario) in enumerate(plan, start=100):
        first, improved, regressed, false = [], [], [], []
        for base, cand, before, after in simulate(options, (cases, trials), scenario, part):
            groups, overall = verdicts(judge(base, cand))
            direction = "regressed" if after[0] < before[0] else "improved"
            first.append(groups[0] == direction)
            improved.append(overall == "improved")
            regressed.append(overall == "regressed")
            still = (before == after) | scenario.name.startswith("nothing")
            false.append(any(v != "inconclusive" for v, quiet in zip(groups, still, strict=True) if quiet))
        note(f"{scenario.name}, {cases} x {trials}: {share(improved)} improved, {share(regressed)} regressed")
        lone = share(first) if scenario.name.startswith("one") else ""
        shares = (share(improved), share(regressed), lone, share(false))
        rows.append((scenario.name, f"{cases} x {trials}", number_of_runs(options, cases), *shares))
    head = ("what changed", "cases x trials", "runs", "overall improved", "overall regressed", "the changed case found")
    return [
        "## When something changed",
        "",
        "Share of comparisons with that verdict, in per cent ± one standard error.",
        "The last column: a verdict for some case that did not change.",
        "",
        *table((*head, "false group verdict"), rows),
    ]


def coverage(options: argparse.Namespace) -> list[str]:
    """How often each shown interval holds the truth."""
    rows = []
    for part, trials in enumerate((3, 5, 10), start=200):
        held: dict[str, list[bool]] = defaultdict(list)
        rng = np.random.default_rng((options.seed, part))
        for _ in range(max(1, options.runs // 4)):
            suite = Suite(rng.random(24), rng.random((24, 2)))
            after = rng.random(24)
            base, cand = suite.run(rng, trials), suite.run(rng, trials, after)
            for name, ci, truth in _intervals(suite, base, cand, after):
                if ci is not None:
                    held[name].append(ci[0] - 1e-9 <= truth <= ci[1] + 1e-9)
        rows.append((trials, held))
        note(f"coverage with {trials} trials: least {min(float(np.mean(v)) for v in held.values()):.3f}")
    names = sorted({name for _, held in rows for name in held})
    return [
        "## Coverage",
        "",
        "Share of intervals that hold the true value, in per cent ± one standard error, in runs of 24 cases whose",
        "true pass rates are uniform in (0, 1), baseline and candidate apart. The promise is 93.",
        "",
        *table(
            ("interval", *(f"{trials} trials" for trials, _ in rows)),
            [(name, *(share(held[name]) if held[name] else "" for _, held in rows)) for name in names],
        ),
    ]


def _intervals(
    suite: Suite, base: Run, cand: Run, after: Floats
) -> Iterable[tuple[str, Sequence[float] | None, float]]:
    found = judge(base, cand, relabellings=4000, resamples=4000)
    before = suite.rates
    changes = {"pass_rate": after - before, "score": suite.mean_score(after) - suite.mean_score(before)}
    for metric, truth in changes.items():
        name, overall = metric.replace("_", " "), found["overall"]
        for finding, own in zip(found["per_case"], truth, strict=True):
            yield f"group: change of {name}", finding[metric]["ci"], own
        yield f"overall: change of {name}, these cases", overall[metric]["ci"], float(truth.mean())
        # Before and after are drawn alike: over cases like these the true change is 0.
        yield f"overall: change of {name}, cases like these", overall[metric]["cases_like_these"]["ci"], 0.0
        yield f"overall: change of {name}, cluster bootstrap", overall["bootstrap"][metric]["ci"], 0.0
    for scores, passes, rate, score in zip(base.scores, base.passes, before, suite.mean_score(before), strict=True):
        group = summarise_group(scores.tolist(), passes.tolist())
        yield "group: pass rate", group["pass_rate"]["ci"], rate
        yield "group: mean score", group["score"]["ci"], score
    means = [run.passes.mean(axis=1).tolist() for run in (base, cand)]
    yield "lane: pass rate", lane_rate(means[0], base.passes.size)["ci"], 0.5
    yield "lane: mean score", lane_rate(base.scores.mean(axis=1).tolist(), base.passes.size)["ci"], 0.5
    yield "lift", lift(means[0], means[1])["ci"], 0.0
    counts = [(int(passes.sum()), len(passes)) for passes in base.passes]
    yield "flip rate", flip_rate(counts)["ci"], 1 / 3  # E[2p(1 - p)] of uniform p
    ratio = fieller(
        [b - a / 2 for a, b in zip(*means, strict=True)], [0.5 + b - a for a, b in zip(*means, strict=True)]
    )
    yield "ratio of lifts (Fieller)", None if ratio is None else ratio.interval, 0.5


def page(options: argparse.Namespace) -> str:
    """The whole page."""
    lines = [
        "# Measured error rates, power and coverage",
        "",
        "Made by `make calibrate` (`benchmarks/calibrate.py`) with the code of this version; do not edit.",
        f"Simulated runs: seed {options.seed}, {options.runs} runs for designs below 100 cases and",
        f"{number_of_runs(options, 100)} above, {options.runs // 4} for coverage; flip rate {options.flip:g},",
        f"mean pass rate {options.mean:g}. How the verdicts are made is in [statistics](statistics.md).",
        "",
        *quiet_runs(options),
        *power_runs(options),
        *coverage(options),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="Simulated comparisons for each design, default 1000")
    parser.add_argument("--seed", type=int, default=1, help="Of the simulation, default 1")
    parser.add_argument("--flip", type=float, default=0.16, help="How often two trials of one case disagree")
    parser.add_argument("--mean", type=float, default=0.7, help="Mean pass rate")
    parser.add_argument("--output", type=Path, default=PAGE, help="Where the page goes")
    options = parser.parse_args(arguments)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page(options), encoding="utf-8")
    note(f"written: {options.output}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
