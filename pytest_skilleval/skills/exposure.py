"""What an agent will really load of a SKILL.md, and what its model is told of it.

Measured by what the clients sent to a model: Claude Code 2.1.197 and codex-cli 0.171.0. What a file does that was not
measured follows from how those clients were seen to read the front matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_skilleval.documents import parse_yaml
from pytest_skilleval.errors import CaseMistake, SkillMistake

from .frontmatter import split_front_matter
from .specification import MAX_DESCRIPTION, MAX_NAME, Finding, specification_findings

__all__ = ["Listing", "Load", "Loads", "exposure", "exposures", "listings"]

CLAUDE_DESCRIPTION = 1536
"""Characters of one description in Claude Code's list."""
BUDGET = 8_000
"""Characters of a list of skills, in both clients."""
CLAUDE_OWN = 3_000
"""Characters of the list that Claude Code's own dozen of skills take; with it the list that was measured comes out:
of 300 skills with descriptions of 330 characters, four were described."""
MAX_DEPTH = 6
"""Folders below the skills folder in which a SKILL.md is looked for."""
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})


class Load(NamedTuple):
    """What one client makes of a skill."""

    loaded: bool
    """Whether it is there at all."""
    name: str | None = None
    """What it is called."""
    description: str | None = None
    """What the model is told of it."""
    listed: bool = False
    """Whether the model is told of it without the user's help."""
    reason: str = ""
    """Why it is not loaded or not what its author wrote; "" where all is well."""


class Loads(NamedTuple):
    """A skill as each client sees it."""

    folder: Path
    claude: Load
    codex: Load
    specification: tuple[Finding, ...]
    """What the specification wants otherwise, each with its line."""

    @property
    def fix(self) -> tuple[str, ...]:
        """What to do, in the order of the findings; empty for a skill that is well."""
        return tuple(dict.fromkeys(finding.fix for finding in self.specification if finding.fix))


class Listing(NamedTuple):
    """What a client's model is told of all skills together."""

    named: int
    """Skills whose name is listed."""
    described: int
    """Skills whose whole description is listed."""
    shortened: int
    """Skills whose description is cut to fit."""
    reason: str
    """What is lost and why; "" where nothing is."""


def exposure(folder: Path, *, root: Path | None = None) -> Loads:
    """Return what each client makes of a skill.

    Args:
        folder: The folder that holds SKILL.md, in whatever case its name is written.
        root: The folder of skills that the client searches; the folder above by default.

    Raises:
        SkillMistake: There is no such file, or it cannot be read.
    """
    root = folder.parent if root is None else root
    try:
        names = [path.name for path in folder.iterdir() if path.name.lower() == "skill.md"]
        data = (folder / ("SKILL.md" if "SKILL.md" in names else names[0])).read_bytes()
    except IndexError:
        raise SkillMistake(f"{folder}: holds no SKILL.md") from None
    except OSError as exc:
        raise SkillMistake(f"{folder}: cannot be read: {exc.strerror}") from None
    findings = specification_findings(data, folder.name)
    if "SKILL.md" not in names:
        fix = Finding(1, f"the file is named {names[0]}", "rename it to SKILL.md")
        lost = Load(loaded=False, reason=f"the file is named {names[0]}, not SKILL.md")
        return Loads(folder, lost, lost, (fix, *findings))
    if folder.parent != root:
        findings = [Finding(1, f"lies {_depth(folder, root)} folders deep", f"move the folder to {root}"), *findings]
        claude = Load(loaded=False, reason="only folders directly below the skills folder are searched")
    else:
        claude = _claude(data, folder.name)
    return Loads(folder, claude, _codex(data, folder), tuple(findings))


def exposures(root: Path) -> list[Loads]:
    """Return what each client makes of every skill below a folder of skills, in the order of their paths."""
    return [exposure(folder, root=root) for folder in _skill_folders(root, 0)]


def listings(found: list[Loads]) -> dict[str, Listing]:
    """Return what the models of Claude Code and Codex are told of all these skills together."""
    claude = [one.claude for one in found if one.claude.listed]
    codex = [one.codex for one in found if one.codex.listed]
    return {"claude": _claude_listing(claude), "codex": _codex_listing(codex)}


# --------------------------------------------------------------------------------------------------------- Claude Code

_CLAUDE_FRONT = re.compile(r"^---\s*\n([\s\S]*?)---\s*\n?")
"""It ends the front matter at the first three dashes wherever they stand, and knows no byte order mark."""


def _claude(data: bytes, folder_name: str) -> Load:
    text = data.decode("utf-8", "replace")
    match = _CLAUDE_FRONT.match(text)
    front = (_lenient(match[1]) if match else None) or {}
    body = text[match.end() :] if match else text
    name = _scalar(front.get("name"))
    reasons = []
    if "\ufffd" in text and "\ufffd".encode() not in data:
        reasons.append("bytes that are no UTF-8 become U+FFFD")
    description = _scalar(front.get("description"))
    if description is None:
        description = _first_line(body)
        reasons.append("the first line of text stands for the description")
    elif (
        (whole := split_front_matter(text)) is not None
        and match is not None
        and len(match[1].strip()) < len(whole[0].strip())
    ):
        reasons.append("the front matter ends at the first three dashes within a value")
    if name is not None and name != folder_name:
        reasons.append(f"it is called by its folder, not {name[:80]!r}")
    if len(description) > CLAUDE_DESCRIPTION:
        reasons.append(f"the description is cut at {CLAUDE_DESCRIPTION} characters")
    hidden = front.get("disable-model-invocation") is True
    if hidden:
        reasons.append("`disable-model-invocation` hides it from the model")
    return Load(
        loaded=True,
        name=folder_name,
        description=description[:CLAUDE_DESCRIPTION],
        listed=not hidden,
        reason="; ".join(reasons),
    )


def _first_line(body: str) -> str:
    for line in body.lstrip("\ufeff").splitlines():
        if text := line.strip().lstrip("#").strip():
            return text
    return ""


def _claude_listing(loads: list[Load]) -> Listing:
    lines = [len(f"- {load.name}: {load.description}\n") for load in loads]
    names = sum(len(f"- {load.name}\n") for load in loads)
    room = BUDGET - CLAUDE_OWN
    if sum(lines) <= room:
        return Listing(len(loads), len(loads), 0, "")
    room -= names
    described = 0
    for load in loads:
        room -= len(f": {load.description}")
        if room < 0:
            break
        described += 1
    reason = (
        f"the list holds about {BUDGET:,} characters: {len(loads) - described} skills are named without description"
    )
    return Listing(len(loads), described, 0, reason)


# --------------------------------------------------------------------------------------------------------------- Codex


def _codex(data: bytes, folder: Path) -> Load:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Load(loaded=False, reason="the file is not UTF-8")
    if text.startswith("\ufeff"):
        return Load(loaded=False, reason="a byte order mark stands before the front matter")
    parts = split_front_matter(text)
    if parts is None or parts[2] == 1:
        return Load(loaded=False, reason="there is no front matter that starts on line 1 and is closed")
    front = _lenient(parts[0])
    if front is None:
        return Load(loaded=False, reason="the front matter is no YAML mapping")
    name = folder.name if front.get("name") is None else _scalar(front["name"])
    description = _scalar(front.get("description"))
    if name is None:
        return Load(loaded=False, reason="name is no text")
    if len(name) > MAX_NAME:
        return Load(loaded=False, reason=f"name has more than {MAX_NAME} characters")
    if description is None:
        return Load(loaded=False, reason="there is no description that is text")
    cut = f"the description is cut at {MAX_DESCRIPTION} characters" if len(description) > MAX_DESCRIPTION else ""
    hidden = _forbids_implicit_use(folder)
    reason = "`allow_implicit_invocation: false` hides it from the model" if hidden else cut
    return Load(loaded=True, name=name, description=description[:MAX_DESCRIPTION], listed=not hidden, reason=reason)


def _forbids_implicit_use(folder: Path) -> bool:
    try:
        text = (folder / "agents" / "openai.yaml").read_text("utf-8")
        data = parse_yaml(text, "openai.yaml", strict=False).data
    except (OSError, UnicodeDecodeError, CaseMistake):
        return False
    policy = data.get("policy", data) if isinstance(data, dict) else {}
    return isinstance(policy, dict) and policy.get("allow_implicit_invocation") is False


def _codex_listing(loads: list[Load]) -> Listing:
    total = sum(len(f"- {load.name}: {load.description} (file: r0/{load.name}/SKILL.md)\n") for load in loads)
    if total <= BUDGET:
        return Listing(len(loads), len(loads), 0, "")
    return Listing(
        len(loads), 0, len(loads), f"the list holds about {BUDGET:,} characters: every description is shortened"
    )


# ------------------------------------------------------------------------------------------------------------- reading


def _lenient(front: str) -> dict[str, Any] | None:
    """Return the mapping of a front matter as both clients read it: a value with ': ' needs no quotes."""
    for text in (front, _with_quotes(front)):
        try:
            data = parse_yaml(text, "SKILL.md", strict=False).data
        except CaseMistake:
            continue
        return data if isinstance(data, dict) else None
    return None


def _with_quotes(front: str) -> str:
    def quoted(match: re.Match[str]) -> str:
        return f"{match[1]}'{match[2].replace(chr(39), chr(39) * 2)}'"

    return re.sub(r"(?m)^([\w-]+:[ \t]+)([^\s'\"\[{|>&*!#].*:.*?)\s*$", quoted, front)


def _scalar(value: Any) -> str | None:
    """Return a value as text, or None where it is none (or blank)."""
    if isinstance(value, bool | int | float):
        return str(value)
    return value.strip() or None if isinstance(value, str) else None


def _skill_folders(folder: Path, depth: int) -> Iterator[Path]:
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in _SKIPPED)
    for path in inner:
        if any(file.name.lower() == "skill.md" for file in path.iterdir()):
            yield path
        elif depth < MAX_DEPTH:
            yield from _skill_folders(path, depth + 1)


def _depth(folder: Path, root: Path) -> int:
    return len(folder.relative_to(root).parts) if folder.is_relative_to(root) else 0
