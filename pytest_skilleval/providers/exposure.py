"""What a condition promises about a skill, held against the text that the agent's model would see."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_skilleval.model import Condition, Skill

__all__ = ["Finding", "examine"]

DISTINCT = 20
"""Characters that a line needs to be told from chance."""


class Finding(NamedTuple):
    """One promise, and whether it is kept."""

    condition: str
    ok: bool
    message: str
    """One line, with the skill's name."""


def examine(
    condition: Condition, skills: Sequence[Skill], text: str, foreign: Mapping[str, str], said: str = ""
) -> list[Finding]:
    """Return what a condition's agent can see of skills, against what it should.

    Args:
        condition: The condition.
        skills: All skills under test, in the version that the condition shows.
        text: All that the model would see in its first request.
        foreign: Texts that no agent may see, such as the user's own instructions: name to content.
        said: The agent's own error output, which may say why a skill was dropped.
    """
    seen = _flat(text)
    findings = []
    for skill in skills:
        listed = re.search(rf"^\s*-\s+{re.escape(skill.name)}\b[^\n:]*:", text, re.MULTILINE) is not None
        if condition.installs != "nothing":
            findings.append(_offered(condition, skill, seen, said, listed=listed))
        elif listed:
            findings.append(_broken(condition, f"{skill.name} is offered although nothing is installed"))
        findings.append(_body(condition, skill, seen))
    if condition.installs == "nothing" and not condition.preloads and all(found.ok for found in findings):
        findings = [_kept(condition, "no skill under test is offered, and none of their text is there")]
    own = _flat("\n".join(f"{skill.description}\n{skill.body}" for skill in skills))
    for name, content in foreign.items():
        leaked = next((line for line in _distinct(content) if line in seen and line not in own), None)
        if leaked is not None:
            findings.append(_broken(condition, f"{name} reaches the agent: {leaked[:80]!r}"))
    if foreign and all(found.ok for found in findings):
        findings.append(_kept(condition, f"nothing of {', '.join(foreign)} reaches the agent"))
    return findings


def _kept(condition: Condition, message: str) -> Finding:
    return Finding(condition.name, ok=True, message=message)


def _broken(condition: Condition, message: str) -> Finding:
    return Finding(condition.name, ok=False, message=message)


def _offered(condition: Condition, skill: Skill, seen: str, said: str, *, listed: bool) -> Finding:
    if not listed:
        why = next((line.strip() for line in said.splitlines() if f"/{skill.name}/" in line), "it is not listed")
        return _broken(condition, f"{skill.name} is dropped: {why}")
    wanted = _flat(skill.description)
    if wanted in seen:
        return _kept(condition, f"{skill.name} is offered with its whole description")
    shown = _longest_head(wanted, seen)
    return _broken(
        condition,
        f"{skill.name} is offered with {shown} of {len(wanted)} characters of its description; "
        f"it ends with {wanted[max(0, shown - 30) : shown]!r}",
    )


def _body(condition: Condition, skill: Skill, seen: str) -> Finding:
    lines = [line for line in _distinct(skill.body) if line not in _flat(skill.description)]
    there = [line for line in lines if line in seen]
    if condition.preloads:
        if len(there) == len(lines):
            return _kept(condition, f"{skill.name} is preloaded, all {len(lines)} lines of it")
        missing = next(line for line in lines if line not in there)
        message = f"{skill.name} is preloaded with {len(there)} of {len(lines)} lines; missing is {missing[:80]!r}"
        return _broken(condition, message)
    if there:
        return _broken(condition, f"{skill.name}: its text is there before it is loaded: {there[0][:80]!r}")
    return _kept(condition, f"{skill.name}: its text is not there before it is loaded")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _distinct(text: str) -> list[str]:
    return [line for line in (_flat(line) for line in text.splitlines()) if len(line) >= DISTINCT]


def _longest_head(wanted: str, seen: str) -> int:
    """Return how many characters of the beginning are there, by bisection: a head of a head is there too."""
    low, high = 0, len(wanted)
    while low < high:
        middle = (low + high + 1) // 2
        if wanted[:middle] in seen:
            low = middle
        else:
            high = middle - 1
    return low
