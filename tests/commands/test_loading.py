"""`skilleval check` says what Claude Code and Codex will really load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_skilleval.commands.loading import loading
from pytest_skilleval.commands.place import Place

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Shell


def skill(folder: Path, name: str, text: str, file: str = "SKILL.md") -> None:
    place = folder / "skills" / name
    place.mkdir(parents=True)
    (place / file).write_text(text, encoding="utf-8")


def front(name: str, description: str = "Fills forms.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n# Forms\n\nFill them.\n"


def test_each_skill_is_shown_with_what_both_clients_make_of_it(tmp_path: Path) -> None:
    skill(tmp_path, "good", front("good"))
    skill(tmp_path, "bom", "\ufeff" + front("bom"))
    skill(tmp_path, "other", front("forms"))
    skill(tmp_path, "lower", front("lower"), "skill.md")
    skill(tmp_path, "a/b/nested", front("nested"))
    found = loading(Place(tmp_path, tmp_path / ".skilleval/runs"))
    # The rows of the measurement: a mark hides it from Codex, Claude Code takes the folder's name, Codex the file's.
    assert found.lines[2:-1] == [
        "skills/a/b/nested  not loaded   nested",
        "skills/bom         bom (!)      not loaded",
        "skills/good        good         good",
        "skills/lower       not loaded   not loaded",
        "skills/other       other (!)    forms",
    ]
    messages = {finding.where: finding.message for finding in found.findings if finding.where != "skills/bom"}
    assert list(messages) == ["skills/a/b/nested", "skills/lower", "skills/other"]
    assert messages["skills/a/b/nested"].startswith("not loaded by Claude Code: only folders directly below")
    assert messages["skills/lower"].startswith("not loaded by Claude Code and not loaded by Codex: the file is named")
    assert messages["skills/other"].startswith(
        "Claude Code: it is called by its folder, not 'forms'; give both one name"
    )
    bom = [finding.message for finding in found.findings if finding.where == "skills/bom"]
    assert any(message.startswith("not loaded by Codex: a byte order mark") for message in bom)
    (good,) = [row for row in found.value if row["folder"] == "skills/good"]
    assert good == {
        "folder": "skills/good",
        "claude": {"loaded": True, "name": "good", "description": "Fills forms.", "listed": True, "reason": ""},
        "codex": {"loaded": True, "name": "good", "description": "Fills forms.", "listed": True, "reason": ""},
        "specification": [],
        "fix": [],
    }


def test_many_skills_outgrow_the_list_that_is_shown_to_the_model(tmp_path: Path) -> None:
    for number in range(300):
        skill(tmp_path, f"skill-{number:03d}", front(f"skill-{number:03d}", "x" * 330))
    found = loading(Place(tmp_path, tmp_path / ".skilleval/runs"))
    whole = [finding.message for finding in found.findings if not finding.where]
    # Measured: Claude Code lists 300 names and 4 descriptions, Codex shortens all of them.
    assert any(message.endswith("296 skills are named without description") for message in whole)
    assert any(message.startswith("Codex: ") for message in whole)


def test_check_shows_it(shell: Shell) -> None:
    skill(shell.folder, "good", front("good"))
    (shell.folder / "cases/prompt").mkdir(parents=True)
    (shell.folder / "cases/prompt/broken.yaml").write_text("prompt: 1\n")
    said = shell("check", "--json")
    assert [row["folder"] for row in said.json["skills"]] == ["skills/good"]
    assert "skills/good" in shell("check").out
