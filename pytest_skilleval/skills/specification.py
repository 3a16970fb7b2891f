"""What the Agent Skills specification says of a SKILL.md (https://agentskills.io/specification), and the way out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

from pytest_skilleval.errors import SkillMistake

from .frontmatter import FrontMatter, read_front_matter

__all__ = [
    "MAX_COMPATIBILITY",
    "MAX_DESCRIPTION",
    "MAX_NAME",
    "Finding",
    "keeps_name_rule",
    "specification_findings",
]

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_BODY_LINES = 500
"""Recommended, not required."""
KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


class Finding(NamedTuple):
    """Something that the specification wants otherwise."""

    line: int
    """1-based line of SKILL.md."""
    message: str
    """What it says."""
    fix: str
    """What to do."""


def keeps_name_rule(name: str) -> bool:
    """Whether a name keeps the rule: lower-case letters and digits of any script, single hyphens between them."""
    normal = unicodedata.normalize("NFKC", name)
    letters = all(part and all(c.isalnum() for c in part) for part in normal.split("-"))
    return letters and normal == normal.lower()


def specification_findings(data: bytes, folder_name: str) -> list[Finding]:
    """Return what the specification wants otherwise, in the order of the file.

    Args:
        data: The bytes of SKILL.md.
        folder_name: The name of the folder that holds it.
    """
    try:
        front = read_front_matter(data, "SKILL.md")
    except SkillMistake as exc:
        line, _, message = str(exc).removeprefix("SKILL.md:").partition(": ")
        what, _, fix = message.partition("; ")
        return [Finding(int(line), what, fix)]
    found = [*_of_name(front, folder_name), *_of_description(front), *_of_other_keys(front), *_of_body(front)]
    if front.bom:
        found.append(Finding(1, "starts with a byte order mark", "save the file as UTF-8 without one"))
    return sorted(found)


def _of_name(front: FrontMatter, folder_name: str) -> Iterator[Finding]:
    name, line = front.data.get("name"), front.lines.get("name", 1)
    if not isinstance(name, str) or not name.strip():
        yield Finding(line, _absent("name", front), f"write `name: {folder_name}`")
        return
    if len(name) > MAX_NAME:
        yield Finding(line, f"name has {len(name)} characters; {MAX_NAME} are allowed", "shorten it, and its folder")
    if not keeps_name_rule(name):
        wants = "name may hold lower-case letters, digits and single hyphens"
        yield Finding(line, f"{wants}, not {name[:80]!r}", f"write `name: {_spelt(name) or 'my-skill'}`")
    if name != folder_name:
        yield Finding(line, f"name is {name[:80]!r}, its folder {folder_name[:80]!r}", "give both one name")


def _of_description(front: FrontMatter) -> Iterator[Finding]:
    text, line = front.data.get("description"), front.lines.get("description", 1)
    if not isinstance(text, str) or not text.strip():
        yield Finding(line, _absent("description", front), "write `description:` with what it does and when to use it")
    elif len(text) > MAX_DESCRIPTION:
        news = f"description has {len(text)} characters; {MAX_DESCRIPTION} are allowed"
        yield Finding(line, news, "move what is no trigger into the body")


def _of_other_keys(front: FrontMatter) -> Iterator[Finding]:
    for key, value in front.data.items():
        line = front.lines[key]
        if key not in KEYS:
            yield Finding(line, f"{key[:60]!r} is no key of the specification", "put it under `metadata:` as text")
        elif key == "compatibility" and not (isinstance(value, str) and 1 <= len(value) <= MAX_COMPATIBILITY):
            yield Finding(line, f"compatibility must be text of 1 to {MAX_COMPATIBILITY} characters", "shorten it")
        elif key == "metadata" and not _is_text_mapping(value):
            yield Finding(line, "metadata must be a mapping of text to text", "put its values in quotes")
        elif key in {"license", "allowed-tools"} and not isinstance(value, str):
            yield Finding(line, f"{key} must be text", "write it on one line, parted by spaces")


def _of_body(front: FrontMatter) -> Iterator[Finding]:
    lines = front.body.count("\n")
    if not front.body.strip():
        yield Finding(front.body_line, "there is no text below the front matter", "write what the agent is to do")
    elif lines > MAX_BODY_LINES:
        news = f"the text has {lines} lines; fewer than {MAX_BODY_LINES} are recommended"
        yield Finding(front.body_line, news, "move parts into references/ and name them here")


def _absent(key: str, front: FrontMatter) -> str:
    if key not in front.data:
        return f"{key} is missing"
    value: Any = front.data[key]
    return f"{key} is empty" if value is None or value == "" else f"{key} must be text"


def _is_text_mapping(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _spelt(name: str) -> str:
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFKC", name).lower()).strip("-")[:MAX_NAME]
