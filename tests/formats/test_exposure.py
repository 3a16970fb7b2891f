"""What Claude Code 2.1.197 and codex-cli 0.171.0 load of odd SKILL.md files, row by row as it was measured."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_skilleval.errors import SkillMistake
from pytest_skilleval.skills import exposure, exposures, listings

GONE = ("not loaded",)


class Probe(NamedTuple):
    text: str | bytes
    claude: tuple[str, ...]
    """Name and description that the model is told, `GONE`, or (name, "hidden")."""
    codex: tuple[str, ...]
    specification: tuple[str, ...] = ()
    """Words of each finding, in order."""
    fix: str = ""
    """Words of the first fix."""
    folder: str = "pdf-forms"
    file: str = "SKILL.md"


def front(
    name: str = "pdf-forms", description: str = "Fills forms.", more: str = "", body: str = "# Forms\n\nFill them.\n"
) -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}"


LONG = "x" * 1400
WELL = ("pdf-forms", "Fills forms.")

PROBES = {
    "a plain one": Probe(front(), WELL, WELL),
    "a byte order mark": Probe("\ufeff" + front(), ("pdf-forms", "---"), GONE, ("byte order mark",), "UTF-8 without one"),
    "crlf": Probe(front().replace("\n", "\r\n"), WELL, WELL),
    "no name": Probe("---\ndescription: Fills forms.\n---\n\nBody\n", WELL, WELL, ("name is missing",), "`name: pdf-forms`"),
    "no description": Probe("---\nname: pdf-forms\n---\n\nBody line.\n", ("pdf-forms", "Body line."), GONE, ("description is missing",), "`description:`"),
    "an empty description": Probe(front(description=""), ("pdf-forms", "Forms"), GONE, ("description is empty",), "`description:`"),
    "a list as description": Probe(front(description="[Fills, forms]", body="Body\n"), ("pdf-forms", "Body"), GONE, ("description must be text",), "`description:`"),
    "no front matter": Probe("# Fill forms\n\nText.\n", ("pdf-forms", "Fill forms"), GONE, ("there is no front matter",), "on the first lines"),
    "a blank line first": Probe("\n" + front(), ("pdf-forms", "---"), GONE, ("must start on line 1",), "it starts on line 2"),
    "no closing line": Probe("---\nname: pdf-forms\ndescription: Fills forms.\n\nText.\n", ("pdf-forms", "---"), GONE, ("is not closed",), "write a line `---`"),
    "an unquoted colon": Probe(front(description="Use: fill forms"), ("pdf-forms", "Use: fill forms"), ("pdf-forms", "Use: fill forms"), ("not YAML",), "text that holds ': ' needs quotes"),
    "another name than the folder": Probe(front(name="forms"), WELL, ("forms", "Fills forms."), ("name is 'forms', its folder 'pdf-forms'",), "give both one name"),
    "upper case": Probe(front(name="PDF-Forms"), ("PDF-Forms", "Fills forms."), ("PDF-Forms", "Fills forms."), ("lower-case letters",), "`name: pdf-forms`", folder="PDF-Forms"),
    "spaces": Probe(front(name="pdf forms"), ("pdf forms", "Fills forms."), ("pdf forms", "Fills forms."), ("lower-case letters",), "`name: pdf-forms`", folder="pdf forms"),
    "letters of another script": Probe(front(name="技能"), ("技能", "Fills forms."), ("技能", "Fills forms."), folder="技能"),
    "a number as name": Probe(front(name="123"), ("123", "Fills forms."), ("123", "Fills forms."), ("name must be text",), "`name: 123`", folder="123"),
    "two hyphens in a row": Probe(front(name="pdf--forms"), ("pdf--forms", "Fills forms."), ("pdf--forms", "Fills forms."), ("single hyphens",), "`name: pdf-forms`", folder="pdf--forms"),
    "a name of 65 characters": Probe(front(name="a" * 65), ("a" * 65, "Fills forms."), GONE, ("has 65 characters",), "shorten it", folder="a" * 65),
    "a description of 1,400 characters": Probe(front(description=LONG), ("pdf-forms", LONG), ("pdf-forms", LONG[:1024]), ("1400 characters; 1024 are allowed",), "into the body"),
    "a description of 2,000 characters": Probe(front(description="y" * 2000), ("pdf-forms", "y" * 1536), ("pdf-forms", "y" * 1024), ("2000 characters",), "into the body"),
    "a folded block": Probe(front(description=">\n  Fills\n  forms."), WELL, WELL),
    "a literal block": Probe(front(description="|\n  Fills forms."), WELL, WELL),
    "a stripped block": Probe(front(description=">-\n  Fills\n  forms."), WELL, WELL),
    "plain text on two lines": Probe(front(description="Fills\n  forms."), WELL, WELL),
    "double quotes": Probe(front(description='"Fills forms."'), WELL, WELL),
    "single quotes": Probe(front(description="'Fills forms.'"), WELL, WELL),
    "a tab after the colon": Probe(front(description="\tFills forms."), WELL, WELL),
    "dashes in the description": Probe(front(description="a --- b"), ("pdf-forms", "a"), ("pdf-forms", "a --- b")),
    "a rule in the body": Probe(front(body="One.\n\n---\n\nTwo.\n"), WELL, WELL),
    "latin-1 bytes": Probe(front(description="Caf\u00e9.").encode("latin-1"), ("pdf-forms", "Caf\ufffd."), GONE, ("0xe9 is not UTF-8",), "save the file as UTF-8"),
    "disable-model-invocation": Probe(front(more="disable-model-invocation: true\n"), ("pdf-forms", "hidden"), WELL, ("'disable-model-invocation' is no key",), "under `metadata:`"),
    "a file name in lower case": Probe(front(), GONE, GONE, ("the file is named skill.md",), "rename it to SKILL.md", file="skill.md"),
    "nested folders": Probe(front(), GONE, WELL, ("lies 3 folders deep",), "move the folder to", folder="a/b/pdf-forms"),
    "an empty body": Probe(front(body=""), WELL, WELL, ("no text below",), "what the agent is to do"),
    "an empty file": Probe("", ("pdf-forms", ""), GONE, ("there is no front matter",), "on the first lines"),
    "other tools' keys": Probe(front(more="version: 1.0\nmetadata: {a: 1}\nallowed-tools: [Read]\n"), WELL, WELL, ("'version' is no key", "metadata must be", "allowed-tools must be text"), "under `metadata:`"),
    "a long body": Probe(front(body="Line.\n" * 600), WELL, WELL, ("601 lines; fewer than 500",), "into references/"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBES)
def test_a_skill_is_loaded_as_it_was_measured(name: str, tmp_path: Path) -> None:
    probe = PROBES[name]
    folder = tmp_path / "skills" / probe.folder
    folder.mkdir(parents=True)
    (folder / probe.file).write_bytes(probe.text if isinstance(probe.text, bytes) else probe.text.encode())
    found = exposure(folder, root=tmp_path / "skills")
    for load, expected in ((found.claude, probe.claude), (found.codex, probe.codex)):
        if expected == GONE:
            assert not load.loaded
            assert not load.listed
            assert load.reason
        elif expected[1] == "hidden":
            assert (load.loaded, load.name, load.listed) == (True, expected[0], False)
        else:
            assert (load.loaded, load.listed) == (True, True)
            assert (load.name, load.description) == expected
    assert len(found.specification) == len(probe.specification)
    for finding, words in zip(found.specification, probe.specification, strict=True):
        assert words in finding.message
    assert probe.fix in (found.fix[0] if found.fix else "")
    assert bool(found.fix) == bool(probe.specification)


def test_there_are_at_least_33_probes() -> None:
    assert len(PROBES) >= 33


def test_findings_name_their_lines(tmp_path: Path) -> None:
    folder = tmp_path / "pdf-forms"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\ndescription: x\nversion: 1\nname: Forms\n---\n\n\n")
    assert [finding.line for finding in exposure(folder).specification] == [3, 4, 4, 6]


def test_dashes_in_a_description_are_named_as_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "pdf-forms"
    folder.mkdir()
    (folder / "SKILL.md").write_text(front(description="a --- b"))
    assert exposure(folder).claude.reason == "the front matter ends at the first three dashes within a value"
    assert exposure(folder).codex.reason == ""


def test_two_skills_of_one_name_are_told_apart_by_claude_code_alone(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "SKILL.md").write_text(front(name="same"))
    found = exposures(tmp_path)
    assert [one.claude.name for one in found] == ["one", "two"]
    assert [one.codex.name for one in found] == ["same", "same"]


def test_codex_obeys_its_own_policy_file(tmp_path: Path) -> None:
    folder = tmp_path / "pdf-forms"
    (folder / "agents").mkdir(parents=True)
    (folder / "SKILL.md").write_text(front())
    (folder / "agents/openai.yaml").write_text("policy:\n  allow_implicit_invocation: false\n")
    assert exposure(folder).claude.listed
    assert (exposure(folder).codex.loaded, exposure(folder).codex.listed) == (True, False)


def test_nested_skills_are_found_and_other_folders_passed_over(tmp_path: Path) -> None:
    for folder in ("a", "b/c", "node_modules/d", "e"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("a", "b/c", "node_modules/d"):
        (tmp_path / folder / "SKILL.md").write_text(front(name=folder[-1]))
    found = exposures(tmp_path)
    assert [one.folder.relative_to(tmp_path).as_posix() for one in found] == ["a", "b/c"]
    assert [(one.claude.loaded, one.codex.loaded) for one in found] == [(True, True), (False, True)]


def test_of_300_long_descriptions_claude_code_lists_four_and_codex_shortens_all(tmp_path: Path) -> None:
    for number in range(300):
        folder = tmp_path / f"skill-{number:03}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(front(name=folder.name, description="d" * 330))
    found = listings(exposures(tmp_path))
    assert found["claude"][:3] == (300, 4, 0)
    assert "296 skills are named without description" in found["claude"].reason
    assert found["codex"][:3] == (300, 0, 300)


def test_a_few_skills_are_listed_whole(tmp_path: Path) -> None:
    for number in range(5):
        folder = tmp_path / f"skill-{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(front(name=folder.name, description="d" * 330))
    found = listings(exposures(tmp_path))
    assert found["claude"] == (5, 5, 0, "")
    assert found["codex"] == (5, 5, 0, "")


def test_a_folder_without_skill_file_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(SkillMistake, match=r"holds no SKILL.md"):
        exposure(tmp_path)
