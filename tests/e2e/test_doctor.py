"""The exposure check with the real programs: what a model would see, in each condition."""

from __future__ import annotations

import os

import pytest
from installed import install

from pytest_skilleval.providers.base import ProviderSettings
from pytest_skilleval.providers.doctor import check_exposure
from pytest_skilleval.skills import load_skill

BODY = "# Greeter\n\nWrite the greeting with the printf recipe of this skill.\n"


def skill_in(folder, description="Writes greetings into files. Use it for every greeting.", body=BODY, name="greeter"):
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}")
    return load_skill(folder / name)


@pytest.fixture
def findings(agent, tmp_path):
    def check(skills, stale=()):
        settings = ProviderSettings(
            environ={**os.environ, "HOME": str(tmp_path / "host")},
            rootpath=tmp_path / "project",
            options={"program": str(install(agent))},
        )
        return list(check_exposure(agent, settings, skills, stale))

    return check


def test_a_healthy_skill_is_seen_exactly_where_its_condition_says(findings, tmp_path):
    new = skill_in(tmp_path / "new")
    old = skill_in(tmp_path / "old", body="# Greeter\n\nWrite the greeting with the echo recipe of before.\n")
    found = findings([new], [old])
    assert [finding for finding in found if not finding.ok] == []
    assert {finding.condition for finding in found} == {"none", "self-load", "preloaded", "stale"}


def test_the_users_own_instructions_would_be_found(findings, tmp_path):
    for path in ("host/.claude/CLAUDE.md", "project/AGENTS.md", "host/.agents/skills/x/SKILL.md"):
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"Always speak like a pirate, says {path}.\n")
    found = findings([skill_in(tmp_path / "new")])
    assert all(finding.ok for finding in found)
    assert any("AGENTS.md" in finding.message and "nothing of" in finding.message for finding in found)


def test_a_description_that_is_cut_is_said_with_its_length(agent, findings, tmp_path):
    long = "Writes greetings. " + " ".join(f"word{number}" for number in range(250))
    found = findings([skill_in(tmp_path / "new", long)])
    cut = [finding for finding in found if not finding.ok]
    # Codex shows 1024 characters, Claude Code about 1536.
    assert [finding.condition for finding in cut] == ["self-load"]
    assert f"of {len(long)} characters of its description" in cut[0].message
    shown = int(cut[0].message.split(" with ")[1].split(" of ")[0])
    assert (1000 <= shown <= 1024) if agent == "codex" else (1400 <= shown <= 1540)
