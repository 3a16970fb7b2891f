"""Which skill an agent chose, by evidence: its own load event, or an explicit choice in a plain chat answer."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from pytest_skilleval.model import Case, Condition
from pytest_skilleval.records import SkillUse, Transcript

from .facts import Facts
from .patterns import one_line

__all__ = ["CHOICE_FORMAT", "Selection", "can_discover", "choice_in", "select", "skills_used", "was_used"]

CHOICE_FORMAT = "Skill: NAME"
"""The line with which a model that has no tool to load a skill says its choice; `Skill: none` chooses none.

A JSON object with a string under "skill", alone in a fenced block or as the whole answer, says the same.
"""

_LINE = re.compile(
    r"^[ \t]{0,3}(?:[-*][ \t]+)?(?:\*\*|__|`)?skill(?:\*\*|__)?[ \t]*:[ \t]*(?:\*\*|__)?[ \t]*"
    r"[`\"']?(?P<name>[^\s`\"'*<>]{1,64})[`\"']?(?:\*\*|__|`)?[ \t]*\.?[ \t]*$",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]{0,3}(?:```+|~~~+)[ \t]*(?P<info>\w*)[ \t]*$")
ANSWER_CHARS = 200_000


class Selection(NamedTuple):
    """What was chosen, and whether that is right."""

    skill: str | None
    """The skill chosen; None = none was."""
    right: bool | None
    """None = it cannot apply under this condition."""
    reason: str


def can_discover(condition: Condition) -> bool:
    """Return whether an agent could choose a skill: one is installed, and none is put before it."""
    return condition.installs != "nothing" and not condition.preloads


def choice_in(answer: str, case: Case) -> str | None:
    """Return the skill that a plain answer chooses by a line of `CHOICE_FORMAT` or its JSON; "none" counts as a choice.

    Quoted lines, lines of the prompt and code are no choice, and neither are two different ones.
    """
    asked = {line.strip() for line in f"{case.spec.prompt}\n{case.spec.context}".splitlines()}
    chosen: set[str] = set()
    fence: list[str] | None = None
    for line in answer[:ANSWER_CHARS].splitlines():
        mark = _FENCE.match(line)
        if mark:
            if fence is not None:
                chosen.update(_json_choice("\n".join(fence), case))
            fence = [] if fence is None else None
        elif fence is not None:
            fence.append(line)
        elif line.strip() not in asked:
            found = _LINE.match(line)
            if found:
                chosen.add(found["name"].rstrip("."))
    chosen.update(_json_choice(answer[:ANSWER_CHARS], case))
    return chosen.pop() if len(chosen) == 1 else None


def _json_choice(text: str, case: Case) -> set[str]:
    if not text.strip().startswith("{") or text.strip() in case.spec.prompt:
        return set()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    name = value.get("skill") if isinstance(value, dict) else None
    return {name} if isinstance(name, str) and name.strip() else set()


def skills_used(transcript: Transcript, case: Case) -> tuple[SkillUse, ...]:
    """Return the skills that an agent chose itself, in order; what the harness forced on it is no choice."""
    own = tuple(use for use in transcript.skills_used if use.how != "forced")
    if own or transcript.tool_calls:
        # An agent that has tools shows its choice by loading; what it says of it is no evidence.
        return own
    name = choice_in(transcript.final_text, case)
    if name is None or name.lower() == "none":
        return ()
    return (SkillUse(name=name, how="choice", position=0, evidence=f"the answer's line {CHOICE_FORMAT!r}"),)


def was_used(name: str | None, facts: Facts) -> SkillUse | None:
    """Return the first use of a skill, or of any skill when `name` is None."""
    for use in skills_used(facts.transcript, facts.case):
        if name is None or use.name == name:
            return use
    return None


def select(facts: Facts) -> Selection:
    """Return the skill that the agent chose, and whether it is the one that the case wants."""
    wanted = facts.case.skill
    used = was_used(wanted, facts) or was_used(None, facts)
    chosen = facts.selected if facts.selected is not None else (used.name if used else None)
    if not can_discover(facts.condition):
        return Selection(chosen, None, f"cannot apply under {facts.condition.name}: no skill could be discovered")
    how = f" ({one_line(used.evidence, 100)})" if used and used.name == chosen else ""
    right = chosen == wanted
    if right:
        return Selection(chosen, right, f"chose {chosen or 'no skill'}, as wanted{how}")
    return Selection(chosen, right, f"chose {chosen or 'no skill'}, wanted {wanted or 'no skill'}{how}")
