"""The execution lane: the agent acts in a workspace, and checks look at what it left."""

from __future__ import annotations

from pytest_skilleval.casespec import Lane
from pytest_skilleval.model import Case, Condition
from pytest_skilleval.scoring.facts import Facts
from pytest_skilleval.scoring.selection import select
from pytest_skilleval.scoring.workflow import Deeds

from . import parts
from .marks import Marks, Weights, attempt, combine

__all__ = ["WEIGHTS", "ask_text", "grade"]

WEIGHTS = {"provider-finished": 1.0, "checks": 1.0, "workflow": 1.0, "anti-patterns": 1.0, "artifacts": 1.0}


def ask_text(case: Case, _condition: Condition) -> str:
    """Return the prompt: the case's own words, the same in every condition."""
    return case.spec.prompt


def grade(facts: Facts, weights: Weights, pass_at: float | None) -> Marks:
    """Score an execution trial: all components weigh the same, and those that are not asked for are left out.

    It passes when the agent finished, required checks, workflow steps and artifacts hold, and no anti-pattern of
    severity error was found.
    """
    deeds = Deeds.of(facts.transcript, Lane.EXECUTION)
    weight = {name: weights.of(name, facts.case) for name in WEIGHTS}
    return combine(
        (
            parts.provider_finished(facts, weight["provider-finished"]),
            parts.checks(facts, weight["checks"]),
            attempt("workflow", weight["workflow"], lambda: parts.workflow(facts, deeds, weight["workflow"])),
            attempt(
                "anti-patterns",
                weight["anti-patterns"],
                lambda: parts.anti_patterns(facts, deeds, weight["anti-patterns"]),
            ),
            attempt("artifacts", weight["artifacts"], lambda: parts.artifacts(facts, weight["artifacts"])),
        ),
        pass_at=pass_at,
        selected_skill=select(facts).skill,
    )
