"""Components that several lanes share: provider finished, checks, workflow, anti-patterns, artifacts."""

from __future__ import annotations

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.records import CheckResult, Component
from pytest_skilleval.scoring.antipatterns import AntiPatternHit, detect
from pytest_skilleval.scoring.artifacts import count_artifacts
from pytest_skilleval.scoring.facts import Facts
from pytest_skilleval.scoring.verifiers import verify_all
from pytest_skilleval.scoring.workflow import Deeds, follow

from .marks import Part

__all__ = ["anti_patterns", "artifacts", "checks", "finish_problems", "found_habits", "provider_finished", "workflow"]


def finish_problems(facts: Facts) -> tuple[str, ...]:
    """Return why an unfinished trial cannot pass; a case may let an agent at its time limit be judged by its checks."""
    if facts.provider_finished:
        return ()
    error = facts.error
    if error and error.error_class is ErrorClass.TIMEOUT and facts.case.spec.budget.on_timeout == "grade":
        return ()
    return (f"the agent did not finish: {error.message}" if error else "the agent did not finish",)


def provider_finished(facts: Facts, weight: float) -> Part:
    """Say whether the agent ended by itself, and well."""
    done = facts.provider_finished
    why = "the agent finished" if done else (facts.error.message if facts.error else "the agent did not finish")
    component = Component(id="provider-finished", value=float(done), weight=weight, reason=why)
    return Part(component, finish_problems(facts))


def checks(facts: Facts, weight: float) -> Part:
    """Run the case's checks: their weighted share, and the required ones that do not hold."""
    verified = verify_all(facts.case.spec.checks, facts)
    decided = [check for check in verified.results if check.passed is not None]
    total = sum(check.weight for check in decided)
    value = sum(check.weight for check in decided if check.passed) / total if total > 0 else None
    failed = [check for check in decided if not check.passed]
    problems = tuple(f"{check.id}: {check.reason}" for check in failed if check.required)
    component = Component(id="checks", value=value, weight=weight, reason=_checks_reason(decided, failed))
    return Part(component, problems, verified.faults, verified.results)


def _checks_reason(decided: list[CheckResult], failed: list[CheckResult]) -> str:
    if not decided:
        return "no check could be decided"
    names = f"; not: {', '.join(check.id for check in failed)}" if failed else ""
    return f"{len(decided) - len(failed)} of {len(decided)} checks hold{names}"


def workflow(facts: Facts, deeds: Deeds, weight: float) -> Part:
    """Look for the steps of the workflow: their weighted share, and the required ones that were not done."""
    result = follow(facts.case.spec.workflow, deeds)
    missing = [f"step {step.step.id}: {step.reason}" for step in result.steps if not step.done]
    required = tuple(f"step {s.step.id}: {s.reason}" for s in result.steps if s.step.required and not s.done)
    reason = (
        f"{len(result.steps) - len(missing)} of {len(result.steps)} steps" if result.steps else "no workflow is asked"
    )
    component = Component(id="workflow", value=result.share, weight=weight, reason="; ".join([reason, *missing])[:500])
    return Part(component, required)


def found_habits(facts: Facts, deeds: Deeds) -> tuple[tuple[AntiPatternHit, ...], tuple[str, ...]]:
    """Return the anti-patterns in what was done, and those that keep the trial from passing."""
    hits = detect(facts.case.spec.anti_patterns, deeds)
    return hits, tuple(f"anti-pattern {hit.reason}" for hit in hits if hit.severity == "error")


def anti_patterns(facts: Facts, deeds: Deeds, weight: float) -> Part:
    """Say whether no anti-pattern was found; an agent that did nothing or never finished earns nothing by it."""
    hits, problems = found_habits(facts, deeds)
    value: float | None
    if not facts.case.spec.anti_patterns:
        value, reason = None, "no anti-pattern is looked for"
    elif hits:
        value, reason = 0.0, "; ".join(hit.reason for hit in hits)
    elif deeds.nothing or not facts.provider_finished:
        value, reason = (
            0.0,
            "no credit: the agent did nothing" if deeds.nothing else "no credit: the agent did not finish",
        )
    else:
        value, reason = 1.0, "none was found"
    return Part(Component(id="anti-patterns", value=value, weight=weight, reason=reason[:500]), problems)


def artifacts(facts: Facts, weight: float) -> Part:
    """Look for the files that the agent must leave: the share of these demands that is met."""
    wanted = facts.case.spec.artifacts
    if not wanted:
        return Part(Component(id="artifacts", value=None, weight=weight, reason="no artifact is asked for"))
    counts = [count_artifacts(artifact, facts) for artifact in wanted]
    problems = tuple(f"artifact {count.reason}" for count in counts if not count.enough)
    value = sum(count.enough for count in counts) / len(counts)
    reason = "; ".join(count.reason for count in counts)[:500]
    return Part(Component(id="artifacts", value=value, weight=weight, reason=reason), problems)
