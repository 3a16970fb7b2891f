"""SKILL.md folders to Skill: front matter, digest, older versions, what each agent will really load."""

from __future__ import annotations

from .history import skill_at, stale_skill
from .skillfile import find_skills, install, is_skill_folder, load_skill, preload_text

__all__ = ["find_skills", "install", "is_skill_folder", "load_skill", "preload_text", "skill_at", "stale_skill"]
