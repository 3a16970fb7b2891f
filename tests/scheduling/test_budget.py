"""Budgets of a whole run, and the forecast before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.halts import Budget, parse_budget
from pytest_skilleval.records import ExpectedGroup
from pytest_skilleval.reports.forecast import forecast_lines

if TYPE_CHECKING:
    from tests.conftest import Project


@pytest.mark.parametrize(
    ("texts", "budget"),
    [
        (["usd=5"], Budget(usd=5.0)),
        (["usd=0.25", "tokens=2M"], Budget(usd=0.25, tokens=2_000_000)),
        (["tokens=500k"], Budget(tokens=500_000)),
        (["tokens=7"], Budget(tokens=7)),
        (["time=30m"], Budget(seconds=1800)),
        (["time=45s"], Budget(seconds=45)),
        (["time=1.5h"], Budget(seconds=5400)),
        ([], Budget()),
    ],
)
def test_budgets_are_read(texts: list[str], budget: Budget) -> None:
    assert parse_budget(texts) == budget


@pytest.mark.parametrize("text", ["usd=", "usd=-1", "eur=5", "time=30", "tokens=2G", "5", "usd=5m"])
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(OptionMistake, match="write usd=5, tokens=2M"):
        parse_budget([text])


def test_a_budget_stops_within_one_trial_a_worker_and_a_resumed_run_has_its_own(project: Project) -> None:
    for name in ("one", "two"):
        project.case(name, stub={"solve_rate": 1.0, "sleep": 0.1, "tokens": 100})
    result = project.run("-n2", "--trials", "10", "--skilleval-budget=tokens=800")
    assert result.ret == 2
    report = project.report()
    counts = report["run"]["counts"]
    # 40 % of 20 trials of 100 tokens; another trial may be running in each worker when the limit is met.
    assert 8 <= counts["passed"] <= 9
    assert counts["passed"] + counts["missing"] == report["run"]["planned"] == 20
    reasons = {trial["reason"] for trial in report["trials"] if trial["outcome"] == "missing"}
    assert all(reason.startswith("not run: budget: tokens=800 is spent (") for reason in reasons)
    assert project.run("-n2", "--trials", "10", "--skilleval-budget=tokens=2M", "--skilleval-resume").ret == 0
    assert project.outcomes() == {"passed": 20}


RETRIED = """
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.providers.base import Answer
from pytest_skilleval.providers.stub import Stub
from pytest_skilleval.records import Tokens, TrialError, Transcript

class Limited(Stub):
    id = "limited"

    def read(self, ask, output):
        flag = self.settings.rootpath / f"refused-{ask.id.trial}"
        if not flag.exists():
            flag.touch()
            error = TrialError(error_class=ErrorClass.OVERLOADED, message="529: no room")
            return Answer(Transcript(tokens=Tokens(input=100, output=10), cost_usd=0.25), error)
        answer = super().read(ask, output)
        spent = {"tokens": Tokens(input=20, output=5), "cost_usd": 0.5}
        return answer._replace(transcript=answer.transcript.model_copy(update=spent))

def pytest_skilleval_providers(config):
    return {"limited": Limited}
"""


def test_what_was_retried_counts_for_the_trial_and_for_the_budget(project: Project) -> None:
    project.write("conftest.py", RETRIED)
    project.write("pyproject.toml", "[tool.skilleval.retry]\nfirst = 0.01\n")
    project.case()
    result = project.run("--skilleval-provider=limited", "--trials=4", "--skilleval-budget=tokens=200")
    assert result.ret == 2
    report = project.report()
    assert project.outcomes() == {"passed": 2, "missing": 2}
    first = report["trials"][0]
    assert first["tokens"] == {"input": 120, "cached": None, "output": 15, "reasoning": None}
    assert first["cost_usd"] == 0.75


def test_a_dollar_budget_that_nobody_can_count_is_refused_before_anything_runs(project: Project) -> None:
    project.case()
    result = project.run("--skilleval-budget=usd=5")
    assert result.ret == 4
    (said,) = [line for line in result.stderr.lines if "usd" in line]
    assert "stub does not say what a trial costs" in said
    assert "--skilleval-allow-unknown-cost" in said
    assert not (project.path / ".skilleval").exists()
    assert project.run("--skilleval-budget=usd=5", "--skilleval-allow-unknown-cost").ret == 0


@pytest.mark.parametrize("how", [(), ("-n0",), ("-n2",)])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--skilleval-budget=usd=5",), "stub does not say what a trial costs"),
        (("--skilleval-judge=nobody",), "nobody"),
    ],
)
def test_sessions_of_python_cases_alone_are_refused_as_well(
    project: Project, how: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    project.write(
        "test_asks.py",
        """
import pytest

@pytest.mark.skilleval(conditions=["none"])
def test_asks(skilleval):
    skilleval.run("hi")
""",
    )
    result = project.run(*how, *words)
    assert result.ret == 4
    assert len([line for line in result.errlines + result.outlines if said in line]) == 1
    assert not (project.path / ".skilleval").exists()


def test_the_forecast_takes_what_was_recorded_else_what_the_cases_allow(project: Project) -> None:
    stub = {"solve_rate": 1.0, "tokens": 100}
    project.case("one", stub=stub, budget={"timeout": 10})
    project.case("two", stub=stub, budget={"timeout": 20})
    first = project.run("--collect-only", "-q", "--trials", "3")
    # 3 x 10 s + 3 x 20 s; the stub costs nothing, so nothing else is said.
    first.stdout.fnmatch_lines(["  time    at most 1 min 30 s (2 of 2 groups at most their timeout)*"])
    first.stdout.no_fnmatch_line("  tokens*")
    assert project.run("--skilleval-case=one").ret == 0
    again = project.run("--collect-only", "-q", "--trials", "3")
    again.stdout.fnmatch_lines(
        [
            "  time    about * (1 of 2 groups as recorded, 1 of 2 groups at most their timeout)*",
            "  tokens  about 300 (1 of 2 groups as recorded, 1 of 2 groups unknown and not counted)",
        ]
    )


def test_a_paid_providers_unknown_cost_is_unknown_and_not_zero() -> None:
    groups = [
        ExpectedGroup("execution", "one", "none", trials=5, timeout_s=60.0),
        ExpectedGroup("execution", "two", "none", trials=5, timeout_s=60.0, tokens=1000, cost_usd=0.5),
    ]
    assert forecast_lines(groups[:1], {}, None, paid=True)[1:] == [
        "  tokens  unknown: nothing recorded, and no budget.tokens",
        "  cost    unknown: nothing recorded, and no budget.cost_usd",
    ]
    assert forecast_lines(groups, {"execution:one": 2.0}, None, paid=True) == [
        # 5 x 2 s + 5 x 60 s
        "  time    about 5 min 10 s (1 of 2 groups as recorded, 1 of 2 groups at most their timeout), one after the other",
        "  tokens  at most 5.0k (1 of 2 groups at most their budget.tokens, 1 of 2 groups unknown and not counted)",
        "  cost    at most $2.50 (1 of 2 groups at most their budget.cost_usd, 1 of 2 groups unknown and not counted)",
    ]
