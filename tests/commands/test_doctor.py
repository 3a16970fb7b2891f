"""`skilleval doctor`: the command around the exposure check, whose own tests are with the providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.providers.exposure import Finding

if TYPE_CHECKING:
    from tests.commands.conftest import Shell

SKILL = "---\nname: greeter\ndescription: Greets people by name.\n---\n\nSay {word}.\n"


@pytest.fixture
def asked(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The exposure check answers by itself, and keeps what it was asked."""
    calls: list[Any] = []

    def check(name: str, settings: object, skills: list[Any], stale: list[Any]) -> list[Finding]:
        calls.append(
            (name, settings, [skill.body.strip() for skill in skills], [skill.body.strip() for skill in stale])
        )
        broken = name == "codex"
        return [Finding("none", ok=True, message="nothing is there"), Finding("self-load", not broken, "greeter")]

    monkeypatch.setattr("pytest_skilleval.commands.doctor.check_exposure", check)
    monkeypatch.setenv("PATH", str(shell.folder / "bin"))
    (shell.folder / "skills/greeter").mkdir(parents=True)
    (shell.folder / "skills/greeter/SKILL.md").write_text(SKILL.format(word="hello"))
    return calls


def install(shell: Shell, name: str) -> None:
    (shell.folder / "bin").mkdir(exist_ok=True)
    (shell.folder / "bin" / name).write_text("#!/bin/sh\n")
    (shell.folder / "bin" / name).chmod(0o755)


def test_each_installed_agent_is_looked_at(shell: Shell, asked: list[Any]) -> None:
    install(shell, "claude")
    said = shell("doctor")
    assert said.status == 0
    assert [call[0] for call in asked] == ["claude"]
    assert "claude: self-load: ok: greeter" in said.out
    assert "0 of 2 promises broken" in said.out
    assert "no stale version" in said.err


def test_a_broken_promise_ends_with_1(shell: Shell, asked: list[Any]) -> None:
    said = shell("doctor", "--provider", "claude", "--provider", "codex", "--json")
    assert said.status == 1
    assert said.json["broken"] == 1
    assert [row for row in said.json["findings"] if not row["ok"]] == [
        {"provider": "codex", "condition": "self-load", "ok": False, "message": "greeter"}
    ]


def test_the_stale_version_and_the_projects_settings_are_handed_over(shell: Shell, asked: list[Any]) -> None:
    (shell.folder / "old").mkdir()
    (shell.folder / "old/SKILL.md").write_text(SKILL.format(word="goodbye"))
    (shell.folder / "pytest.ini").unlink()
    (shell.folder / "pyproject.toml").write_text('[tool.skilleval.providers.claude]\nprogram = "/opt/claude"\n')
    said = shell("doctor", "--provider", "claude", "--stale", "old", "--model", "large")
    assert (said.status, said.err) == (0, "")
    ((_, settings, bodies, stale),) = asked
    assert (bodies, stale) == (["Say hello."], ["Say goodbye."])
    assert settings.options == {"program": "/opt/claude"}
    assert settings.model == "large"


def test_no_agent_and_no_skill_are_said_in_one_line(shell: Shell, asked: list[Any]) -> None:
    said = shell("doctor")
    assert said.status == 4
    assert "none of claude, codex is on PATH" in said.err
    (shell.folder / "skills/greeter/SKILL.md").unlink()
    said = shell("doctor", "--provider", "claude")
    assert said.status == 4
    assert "no skill lies in skills" in said.err
    assert asked == []
