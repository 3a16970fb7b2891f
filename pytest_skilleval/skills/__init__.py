"""SKILL.md folders to Skill: front matter, digest, older versions, what each agent will really load."""

from __future__ import annotations

from .exposure import Listing, Load, Loads, exposure, exposures, listings
from .history import skill_at, stale_skill
from .skillfile import find_skills, install, is_skill_folder, load_skill, preload_text, skill_folders

__all__ = [
    "Listing",
    "Load",
    "Loads",
    "exposure",
    "exposures",
    "find_skills",
    "install",
    "is_skill_folder",
    "listings",
    "load_skill",
    "preload_text",
    "skill_at",
    "skill_folders",
    "stale_skill",
]
