"""How often `--skilleval-against` is right: many seeded runs with two versions in each, drawn by the stub and judged.

The trials are the stub's own draws for the run's own keys, and the verdict is the judge's; only pytest and the
workspaces are left out, since a prompt case needs neither. A run with equal versions must end inconclusive.

    python benchmarks/against.py --seeds 200 --cases 24 --trials 5
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from pathlib import Path

from pytest_skilleval import verdicts
from pytest_skilleval.casespec import CaseSpec, Kind, Lane
from pytest_skilleval.journal import Entry
from pytest_skilleval.model import CONDITIONS, Case, Condition, TrialId
from pytest_skilleval.options import Settings
from pytest_skilleval.providers.base import Ask, ProviderSettings
from pytest_skilleval.providers.stub import Stub
from pytest_skilleval.records import (
    AgainstRef,
    Judging,
    Outcome,
    Plan,
    PlannedTrial,
    ProviderInfo,
    SkillPair,
    TrialRecord,
)
from pytest_skilleval.results import Report

LOADED = CONDITIONS["self-load"]
STUB = ProviderInfo(id="stub", simulated=True)
PAIR = SkillPair(name="greeter", baseline="0" * 64, candidate="1" * 64)


def case(number: int, rate: float, base: float) -> Case:
    """Return a prompt case with a rate for each side."""
    stub = {"solve_rate": {"self-load": rate, "self-load@base": base}}
    spec = CaseSpec.model_validate({"skill": "greeter", "prompt": "Greet.", "answer": "hello", "stub": stub})
    return Case(
        lane=Lane.PROMPT, id=f"case-{number:02d}", spec=spec, path=Path("cases.json"), line=1, fingerprint="f" * 16
    )


def drawn(stub: Stub, one: Case, condition: Condition, trial: TrialId) -> bool:
    """Tell whether the stub solves a work item."""
    here = Path()
    ask = Ask(
        id=trial, case=one, kind=Kind.PLAN, condition=condition, prompt="", system="", skills=(), under_test=None,
        home=here, workspace=here, tmp=here, scratch=here, env={}, budget=one.spec.budget,
    )  # fmt: skip
    return stub.act(ask).answer == one.spec.answer


def run(seed: int, cases: list[Case], trials: int) -> Report:
    """Draw and judge one run."""
    stub = Stub(ProviderSettings(seed=seed))
    planned, entries = [], {}
    for one in cases:
        for condition in (LOADED, LOADED.twin):
            assert condition is not None
            for number in range(1, trials + 1):
                trial = TrialId("prompt", one.id, condition.name, number)
                digest = PAIR.baseline if condition.base else PAIR.candidate
                values = {**trial._asdict(), "skill": "greeter", "fingerprint": one.fingerprint}
                planned.append(
                    PlannedTrial(**values, nodeid=trial.key, skill_digest=digest, base=condition.base, seen=str(digest))
                )
                outcome = Outcome.PASSED if drawn(stub, one, condition, trial) else Outcome.FAILED
                entries[trial] = Entry(None, TrialRecord(**values, run="r", outcome=outcome, provider=STUB), ())
    judging = Judging(against=AgainstRef(reference="old", skills=(PAIR,)))
    plan = Plan(
        run="r", token="t", started="", provider=STUB, seed=seed, trials_each=trials, judging=judging,
        trials=tuple(planned),
    )  # fmt: skip
    return verdicts.judge(plan, entries, Settings(rootpath=Path(), seed=seed), finished="")


def main() -> int:
    """Measure, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--shift", type=float, default=0.0, help="what the current skill adds to each case's rate")
    parser.add_argument("--assert-inconclusive", type=float, default=None, help="least share of inconclusive runs")
    chosen = parser.parse_args()
    found: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    for seed in range(chosen.seeds):
        # A mean pass rate of .7, with which two single trials of a case disagree in 16 % of pairs.
        draw = random.Random(f"rates:{seed}")
        rates = [draw.betavariate(0.431, 0.185) for _ in range(chosen.cases)]
        cases = [case(i, min(1.0, max(0.0, rate + chosen.shift)), rate) for i, rate in enumerate(rates)]
        comparison = run(seed, cases, chosen.trials).comparison
        assert comparison is not None
        found[comparison["overall"]["verdict"]] += 1
        groups["a group has a verdict"] += any(row["verdict"] != "inconclusive" for row in comparison["groups"])
    share = found["inconclusive"] / chosen.seeds
    print(
        json.dumps(
            {"design": vars(chosen), "overall": dict(found), "runs in which": dict(groups), "inconclusive": share}
        )
    )
    return int(chosen.assert_inconclusive is not None and share < chosen.assert_inconclusive)


if __name__ == "__main__":
    sys.exit(main())
