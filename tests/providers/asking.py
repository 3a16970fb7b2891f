"""Skills to ask about."""

from __future__ import annotations

from pathlib import Path

from pytest_skilleval.model import Skill


def skill_at(folder: Path, name: str, text: str = "Do it well.") -> Skill:
    """Write a skill folder and return it."""
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n---\n{text}\n")
    return Skill(
        name=name, description=f"About {name}.", path=path, digest="0" * 64, body=f"{text}\n", files=("SKILL.md",)
    )
