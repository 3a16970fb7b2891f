"""The front matter of a SKILL.md: what lies between the first two lines that are exactly `---`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_skilleval.documents import decode, parse_yaml
from pytest_skilleval.errors import CaseMistake, SkillMistake

__all__ = ["FrontMatter", "read_front_matter", "split_front_matter"]


class FrontMatter(NamedTuple):
    """A SKILL.md, taken apart."""

    data: Mapping[str, Any]
    """The front matter's keys."""
    lines: Mapping[str, int]
    """1-based line of each key."""
    body: str
    """What follows, line breaks as they are."""
    body_line: int
    """1-based line on which it starts."""
    bom: bool
    """Whether the file starts with a byte order mark."""


def split_front_matter(text: str) -> tuple[str, str, int] | None:
    """Return front matter, body and the body's 1-based first line, or None where the front matter is not closed.

    A later line `---` is a rule of the body: a quarter of real skills have one, so splitting at dashes is no way.
    A text that does not start with the line `---` has an empty front matter.
    """
    lines = text.split("\n")
    if lines[0].rstrip("\r") != "---":
        return "", text, 1
    for index, line in enumerate(lines[1:], 1):
        if line.rstrip("\r") == "---":
            return "\n".join(lines[1:index]), "\n".join(lines[index + 1 :]), index + 2
    return None


@functools.lru_cache(maxsize=1024)
def read_front_matter(data: bytes, name: str) -> FrontMatter:
    """Take a SKILL.md apart; what was read last is kept, since a file of evals and its skill both ask.

    Args:
        data: Its bytes.
        name: What messages call it.

    Raises:
        SkillMistake: Not UTF-8, no closed front matter, or no YAML mapping in it; with the line and the way out.
    """
    try:
        text = decode(data, name)
    except CaseMistake as exc:
        raise SkillMistake(str(exc)) from None
    parts = split_front_matter(text)
    if parts is None:
        raise SkillMistake(f"{name}:1: the front matter is not closed; write a line `---` below the description")
    front, body, body_line = parts
    if body_line == 1:
        raise SkillMistake(f"{name}:1: {_no_front_matter(text)}")
    try:
        # Other tools' keys are not ours to judge: a date or `yes` among them is no mistake.
        document = parse_yaml(front, name, strict=False, first_line=2)
    except CaseMistake as exc:
        raise SkillMistake(f"{exc}; agents drop such a skill or read it in part") from None
    if document.data is None:
        raise SkillMistake(f"{name}:1: the front matter is empty; it needs `name:` and `description:`")
    if not isinstance(document.data, dict):
        raise SkillMistake(f"{name}:2: the front matter must hold `key: value` lines, `name:` and `description:` first")
    lines = {key: document.line((key,)) or 2 for key in document.data}
    return FrontMatter(document.data, lines, body, body_line, data.startswith(b"\xef\xbb\xbf"))


def _no_front_matter(text: str) -> str:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() == "---":
            if number == 1 or not any(before.strip() for before in text.split("\n")[: number - 1]):
                return f"the front matter must start on line 1 with exactly `---`; it starts on line {number}"
            break
        if line.strip():
            break
    return "there is no front matter; write `---`, `name:`, `description:` and `---` on the first lines"
