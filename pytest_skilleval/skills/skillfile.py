"""SKILL.md folders to Skill: found, checked, installed for an agent, or put into its context."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pytest_skilleval.errors import SkillMistake
from pytest_skilleval.model import Skill

from .folder import copy_entries, digest_of, skill_entries
from .frontmatter import FrontMatter, read_front_matter
from .specification import MAX_DESCRIPTION, MAX_NAME, keeps_name_rule

__all__ = ["find_skills", "install", "is_skill_folder", "load_skill", "preload_text", "skill_folders"]

MAX_SKILL_FILE = 1024 * 1024


def is_skill_folder(folder: Path) -> bool:
    """Whether a folder holds a SKILL.md, in whatever case its name is written."""
    try:
        return any(name.lower() == "skill.md" for name in os.listdir(folder))  # noqa: PTH208 - a thousand skills
    except OSError:
        return False


def load_skill(folder: Path) -> Skill:
    """Read a skill.

    Args:
        folder: The folder that holds SKILL.md; it may be a link.

    Returns:
        The skill. What the specification wants otherwise, though agents load it, is in `warnings`.

    Raises:
        SkillMistake: An agent would not load it as it is, or would load something else: measuring it would measure its
            absence. One line with the file, its line and what to do.
    """
    file = _skill_file(folder)
    if not file.is_file():
        raise SkillMistake(f"{file}: is no file")
    data = file.read_bytes()
    if len(data) > MAX_SKILL_FILE:
        raise SkillMistake(
            f"{file}: is larger than {MAX_SKILL_FILE // 2**20} MiB; move what is long into further files"
        )
    front = read_front_matter(data, str(file))
    name = _text(front, "name", file)
    description = _text(front, "description", file)
    line = front.lines["name"]
    if len(name) > MAX_NAME:
        raise SkillMistake(
            f"{file}:{line}: name: has {len(name)} characters; Codex loads no skill with more than {MAX_NAME}"
        )
    if "/" in name or "\\" in name or name.startswith(".") or not name.isprintable():
        raise SkillMistake(
            f"{file}:{line}: name: {name!r} cannot name a folder; use lower-case letters, digits and hyphens"
        )
    entries = skill_entries(folder)
    return Skill(
        name=name,
        description=description,
        path=folder,
        digest=digest_of(entries),
        body=front.body,
        files=tuple(entry.path for entry in entries),
        warnings=tuple(_warnings(front, folder, file, name, description)),
    )


def find_skills(folders: Iterable[Path]) -> dict[str, Skill]:
    """Return the skills in folders by name, in the order of their names.

    Args:
        folders: Each a skill itself or a folder of skills; one that is not there is skipped.

    Raises:
        SkillMistake: One of them cannot be used (see `load_skill`), or two with one name differ.
    """
    skills: dict[str, Skill] = {}
    for folder in dict.fromkeys(folder for top in folders for folder in skill_folders(top)):
        skill = load_skill(folder)
        first = skills.setdefault(skill.name, skill)
        if first.digest != skill.digest:
            raise SkillMistake(f"{folder}: a different skill named {skill.name!r} is at {first.path}; keep one")
    return dict(sorted(skills.items()))


def skill_folders(top: Path) -> list[Path]:
    """Return a folder that is a skill itself, else the skills in it."""
    if is_skill_folder(top):
        return [top]
    if not top.is_dir():
        return []
    return [path for path in sorted(top.iterdir()) if not path.name.startswith(".") and is_skill_folder(path)]


def install(skill: Skill, target_root: Path) -> Path:
    """Copy a skill to where an agent discovers skills.

    Args:
        skill: As it was loaded; a skill that changed since is refused.
        target_root: The folder of skills; made when it is not there.

    Returns:
        The new folder, which bears the skill's name.

    Raises:
        SkillMistake: See `skill_entries`; or something is in that place already.
    """
    target = target_root / skill.name
    if target.exists() or target.is_symlink():
        raise SkillMistake(f"{target}: is already there; a skill is installed into an empty place")
    entries = skill_entries(skill.path)
    if digest_of(entries) != skill.digest:
        raise SkillMistake(f"{skill.path}: changed while the run was on; run again with the skill left alone")
    copy_entries(skill.path, entries, target)
    return target


def preload_text(skill: Skill, path: Path) -> str:
    """Return a skill's text as it stands in the context when it is preloaded.

    Args:
        skill: The skill.
        path: Where the agent finds its further files.
    """
    where = f"The skill {skill.name} is loaded. Its relative paths start from the folder {path}"
    return f"{where}\n\n{skill.body.strip()}\n"


def _skill_file(folder: Path) -> Path:
    try:
        names = sorted(name for name in os.listdir(folder) if name.lower() == "skill.md")  # noqa: PTH208
    except OSError as exc:
        raise SkillMistake(f"{folder}: cannot be read: {exc.strerror}") from None
    if "SKILL.md" in names:
        return folder / "SKILL.md"
    if names:
        raise SkillMistake(f"{folder / names[0]}: must be named SKILL.md; Claude Code and Codex load no {names[0]}")
    raise SkillMistake(f"{folder}: holds no SKILL.md")


def _text(front: FrontMatter, key: str, file: Path) -> str:
    """Return a text of the front matter."""
    if key not in front.data:
        raise SkillMistake(f"{file}:1: {key}: is missing; write `{key}:` between the lines `---`")
    value, line = front.data[key], front.lines[key]
    if not isinstance(value, str):
        hint = f"; write {key}: '{value}'" if isinstance(value, bool | int | float) else ""
        kind = {list: "a list", dict: "a mapping", type(None): "empty"}.get(type(value), "a number or true/false")
        raise SkillMistake(f"{file}:{line}: {key}: must be text, not {kind}{hint}")
    if not value.strip():
        raise SkillMistake(f"{file}:{line}: {key}: must not be empty")
    return value.strip()


def _warnings(front: FrontMatter, folder: Path, file: Path, name: str, description: str) -> Iterable[str]:
    if front.bom:
        yield f"{file}:1: has a byte order mark: Codex does not load it, and Claude Code describes it as `---`"
    at_name, at_description = (f"{file}:{front.lines[key]}: {key}:" for key in ("name", "description"))
    if not keeps_name_rule(name):
        yield f"{at_name} the specification wants lower-case letters, digits and single hyphens, not {name!r}"
    if name != folder.name and name != folder.resolve().name:
        yield f"{at_name} {name!r} is not the folder's name; Claude Code calls it {folder.name!r}"
    if len(description) > MAX_DESCRIPTION:
        yield f"{at_description} has {len(description)} characters; Codex cuts at the specification's {MAX_DESCRIPTION}"
    if not front.body.strip():
        yield f"{file}:{front.body_line}: has no text below its front matter"
