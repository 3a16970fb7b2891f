"""The prompt lane: routing and planning, judged by the answer alone."""

from __future__ import annotations

from pytest_skilleval.casespec import Lane
from pytest_skilleval.model import Case, Condition
from pytest_skilleval.records import Component
from pytest_skilleval.scoring.facts import Facts
from pytest_skilleval.scoring.negation import is_negated
from pytest_skilleval.scoring.patterns import Hit, search, search_all
from pytest_skilleval.scoring.selection import Selection, select
from pytest_skilleval.scoring.workflow import Deeds

from . import parts
from .marks import Marks, Part, Weights, attempt, combine

__all__ = ["WEIGHTS", "ask_text", "grade"]

WEIGHTS = {
    "expected-patterns": 0.4,
    "skill-selection": 0.4,
    "workflow": 0.2,
    "forbidden-patterns": 0.1,
    "anti-patterns": 0.05,
}
"""The last two are penalties, taken off for each match."""


def ask_text(case: Case, _condition: Condition) -> str:
    """Return the prompt: the case's own words, the same in every condition."""
    return case.spec.prompt


def grade(facts: Facts, weights: Weights, pass_at: float | None) -> Marks:
    """Score an answer.

    It passes when the agent finished, all expected patterns match and no forbidden one does, the right skill was
    chosen, required checks and workflow steps hold, and no anti-pattern of severity error was found.
    """
    deeds = Deeds.of(facts.transcript, Lane.PROMPT)
    selection = select(facts)
    weight = {name: weights.of(name, facts.case) for name in WEIGHTS}
    # Checks of the case decide about passing here, and enter no component.
    checked = parts.checks(facts, 0.0)
    return combine(
        (
            attempt("expected-patterns", weight["expected-patterns"], lambda: _expected(facts, weight)),
            _selected(selection, weight),
            attempt("workflow", weight["workflow"], lambda: parts.workflow(facts, deeds, weight["workflow"])),
            attempt("forbidden-patterns", 0.0, lambda: _forbidden(facts, weight)),
            attempt("anti-patterns", 0.0, lambda: _habits(facts, deeds, weight)),
            *((checked,) if facts.case.spec.checks else ()),
        ),
        pass_at=pass_at,
        selected_skill=selection.skill,
        problems=parts.finish_problems(facts),
    )


def _expected(facts: Facts, weight: dict[str, float]) -> Part:
    wanted = facts.case.spec.expect
    answer = facts.transcript.final_text
    missing = [pattern for pattern in wanted if search(pattern, answer) is None]
    value = (len(wanted) - len(missing)) / len(wanted) if wanted else None
    problems = tuple(f"the answer does not match {pattern!r}" for pattern in missing)
    reason = f"{len(wanted) - len(missing)} of {len(wanted)} expected patterns match" if wanted else "none is expected"
    component = Component(
        id="expected-patterns",
        value=value,
        weight=weight["expected-patterns"],
        reason="; ".join([reason, *(f"not: {pattern!r}" for pattern in missing)])[:500],
    )
    return Part(component, problems)


def _selected(selection: Selection, weight: dict[str, float]) -> Part:
    value = None if selection.right is None else float(selection.right)
    component = Component(
        id="skill-selection", value=value, weight=weight["skill-selection"], reason=selection.reason[:500]
    )
    return Part(component, () if selection.right is not False else (selection.reason,))


def _forbidden(facts: Facts, weight: dict[str, float]) -> Part:
    answer = facts.transcript.final_text
    hits = [(pattern, hit) for pattern in facts.case.spec.forbid if (hit := _said(pattern, answer))]
    return _penalty(
        "forbidden-patterns",
        weight["forbidden-patterns"],
        [f"the answer must not match {pattern!r}, and does: {hit.line!r}" for pattern, hit in hits],
    )


def _said(pattern: str, answer: str) -> Hit | None:
    """Return the first match that the answer does not advise against: "do not run it once" is no "run it once"."""
    return next((hit for hit in search_all(pattern, answer) if not is_negated(answer, hit.start, hit.end)), None)


def _habits(facts: Facts, deeds: Deeds, weight: dict[str, float]) -> Part:
    hits, problems = parts.found_habits(facts, deeds)
    part = _penalty("anti-patterns", weight["anti-patterns"], [hit.reason for hit in hits])
    return Part(part.component, problems)


def _penalty(name: str, each: float, lines: list[str]) -> Part:
    """Return a component that takes `each` off for every line, all together at most 1."""
    reason = "; ".join(lines)[:500] or "none was found"
    return Part(Component(id=name, value=min(1.0, each * len(lines)), weight=-1.0, reason=reason), tuple(lines))
