"""Skills: found, refused with a way out, installed without a byte from outside, older versions from git."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_skilleval.cases import leaks, load_case_file
from pytest_skilleval.errors import SkillMistake
from pytest_skilleval.skills import exposure, find_skills, install, load_skill, preload_text, skill_at, stale_skill
from pytest_skilleval.skills.frontmatter import split_front_matter

TEXT = "---\nname: greet\ndescription: Greets people by name.\n---\n\n# Greet\n\nSay hello.\n"


def make(folder: Path, text: str | bytes = TEXT, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(SkillMistake) as caught:
        load_skill(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --------------------------------------------------------------------------------------------------------- front matter


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("---\na: 1\n---\nbody\n", ("a: 1", "body\n", 4)),
        ("---\na: x --- y\n---\nbody\n---\nmore\n", ("a: x --- y", "body\n---\nmore\n", 4)),
        ("---\r\na: 1\r\n---\r\nbody\r\n", ("a: 1\r", "body\r\n", 4)),
        ("---\n---\n", ("", "", 3)),
        ("# Title\n---\na: 1\n---\n", ("", "# Title\n---\na: 1\n---\n", 1)),
        ("--- \na: 1\n---\n", ("", "--- \na: 1\n---\n", 1)),
        ("---\na: 1\n ---\n", None),
        ("---\na: 1\n", None),
        ("", ("", "", 1)),
    ],
)
def test_front_matter_ends_at_the_first_line_that_is_exactly_three_dashes(
    text: str, parts: tuple[str, str, int] | None
) -> None:
    assert split_front_matter(text) == parts


REFUSED = {
    "an unquoted colon": ("---\nname: greet\ndescription: Use: now\n---\nx\n", 3, "text that holds ': ' needs quotes"),
    "a list as name": ("---\nname: [a]\ndescription: x\n---\nx\n", 2, "name: must be text, not a list"),
    "a number as name": ("---\nname: 12\ndescription: x\n---\nx\n", 2, "write name: '12'"),
    "a list as description": (
        "---\nname: a\ndescription:\n  - x\n---\nx\n",
        3,
        "description: must be text, not a list",
    ),
    "no closing line": ("---\nname: greet\ndescription: x\n", 1, "the front matter is not closed"),
    "no front matter": ("# Greet\n\nSay hello.\n", 1, "there is no front matter"),
    "a blank line first": (
        "\n---\nname: a\ndescription: b\n---\nx\n",
        1,
        "must start on line 1 with exactly `---`; it starts on line 2",
    ),
    "an empty front matter": ("---\n---\nx\n", 1, "the front matter is empty"),
    "a text as front matter": ("---\nhello\n---\nx\n", 2, "must hold `key: value` lines"),
    "no name": ("---\ndescription: x\n---\nx\n", 1, "name: is missing"),
    "no description": ("---\nname: greet\n---\nx\n", 1, "description: is missing"),
    "an empty description": ("---\nname: greet\ndescription:\n---\nx\n", 3, "description: must be text, not empty"),
    "a blank description": ("---\nname: greet\ndescription: ' '\n---\nx\n", 3, "description: must not be empty"),
    "a name of 65 characters": (
        f"---\nname: {'a' * 65}\ndescription: x\n---\nx\n",
        2,
        "Codex loads no skill with more than 64",
    ),
    "a name that is a path": ("---\nname: ../greet\ndescription: x\n---\nx\n", 2, "cannot name a folder"),
    "a duplicate key": ("---\nname: greet\ndescription: x\nname: b\n---\nx\n", 4, "is given twice"),
    "a tab": ("---\nname: greet\n\tdescription: x\n---\nx\n", 3, "never with tabs"),
    "bytes that are no UTF-8": (b"---\nname: greet\ndescription: caf\xe9\n---\nx\n", 3, "0xe9 is not UTF-8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_skill_that_agents_would_not_load_as_it_is_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    text, line, words = REFUSED[name]
    message = refusal(make(tmp_path / "greet", text))
    assert message.startswith(f"{tmp_path / 'greet' / 'SKILL.md'}:{line}: ")
    assert words in message


def test_a_file_name_in_lower_case_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "greet").joinpath("SKILL.md").rename(tmp_path / "greet/skill.md")
    assert "must be named SKILL.md" in refusal(tmp_path / "greet")


def test_a_folder_without_skill_file_and_a_pipe_in_its_place_are_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "nope")
    (tmp_path / "greet").mkdir()
    assert "holds no SKILL.md" in refusal(tmp_path / "greet")
    os.mkfifo(tmp_path / "greet/SKILL.md")
    assert "is no file" in refusal(tmp_path / "greet")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "---\nname: wave\ndescription: x\n---\nx\n",
            "SKILL.md:2: name: 'wave' is not the folder's name; Claude Code calls it 'greet'",
        ),
        ("---\nname: Greet_Me\ndescription: x\n---\nx\n", "SKILL.md:2: name: the specification wants"),
        ("---\nname: a--b\ndescription: x\n---\nx\n", "SKILL.md:2: name: the specification wants"),
        (f"---\nname: greet\ndescription: {'x' * 1025}\n---\nx\n", "SKILL.md:3: description: has 1025 characters"),
        ("\ufeff---\nname: greet\ndescription: x\n---\nx\n", "SKILL.md:1: has a byte order mark"),
        ("---\nname: greet\ndescription: x\n---\n\n", "SKILL.md:5: has no text below its front matter"),
    ],
)
def test_what_agents_load_against_the_specification_is_a_warning(text: str, words: str, tmp_path: Path) -> None:
    warnings = load_skill(make(tmp_path / "greet", text)).warnings
    assert any(words in warning for warning in warnings)


@pytest.mark.parametrize("name", ["greet", "a", "a-1", "技能", "0", "a" * 64])
def test_a_valid_skill_has_no_warning(name: str, tmp_path: Path) -> None:
    text = f"---\nname: '{name}'\ndescription: Grüße. Use it --- now.\nversion: 2026-11-30\nlist: [yes]\n---\r\n\nx\n"
    skill = load_skill(make(tmp_path / name, text))
    assert (skill.name, skill.description, skill.warnings) == (name, "Grüße. Use it --- now.", ())


def test_crlf_and_block_scalars_are_read(tmp_path: Path) -> None:
    text = "---\r\nname: greet\r\ndescription: >\r\n  Greets\r\n  people.\r\n---\r\n\r\nSay hello.\r\n"
    skill = load_skill(make(tmp_path / "greet", text))
    assert (skill.name, skill.description, skill.body.strip(), skill.warnings) == (
        "greet",
        "Greets people.",
        "Say hello.",
        (),
    )


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(
        st.binary(max_size=60),
        st.text(alphabet="-ab: \n\r\t[]{}&*!|>'\"#%@`?,~\ufeff\x00é", max_size=60).map(
            lambda text: f"---\nname: a\ndescription: b\n{text}\n---\nx".encode()
        ),
    )
)
def test_odd_bytes_give_a_skill_or_a_mistake_and_nothing_else(data: bytes, tmp_path: Path) -> None:
    folder = make(tmp_path / "greet", data)
    found = exposure(folder)
    assert found.claude.loaded
    try:
        skill = load_skill(folder)
    except SkillMistake as exc:
        message = str(exc)
    else:
        message = ""
        assert skill.name
        assert skill.description
    assert "\n" not in message


# -------------------------------------------------------------------------------------------------------------- finding


def test_skills_are_found_in_several_folders_and_sorted(tmp_path: Path) -> None:
    make(tmp_path / "a/wave", TEXT.replace("greet", "wave"))
    make(tmp_path / "b/greet")
    (tmp_path / "a/notes").mkdir()
    (tmp_path / "a/README.md").write_text("x")
    found = find_skills([tmp_path / "a", tmp_path / "b", tmp_path / "nope"])
    assert list(found) == ["greet", "wave"]
    assert list(find_skills([tmp_path / "b/greet"])) == ["greet"]


def test_a_skill_that_cannot_be_used_is_never_left_out_in_silence(tmp_path: Path) -> None:
    make(tmp_path / "a/greet")
    make(tmp_path / "a/broken", "---\nname: broken\n---\n")
    with pytest.raises(SkillMistake, match="description: is missing"):
        find_skills([tmp_path / "a"])


def test_two_versions_of_one_skill_are_refused_and_two_copies_are_not(tmp_path: Path) -> None:
    make(tmp_path / "a/greet")
    make(tmp_path / "b/greet")
    assert list(find_skills([tmp_path / "a", tmp_path / "b"])) == ["greet"]
    make(tmp_path / "b/greet", **{"more.md": "x"})
    with pytest.raises(SkillMistake, match=f"a different skill named 'greet' is at {tmp_path}/a/greet"):
        find_skills([tmp_path / "a", tmp_path / "b"])


def test_a_link_to_a_skill_folder_is_a_skill(tmp_path: Path) -> None:
    make(tmp_path / "shared/greet")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/greet").symlink_to("../shared/greet")
    assert find_skills([tmp_path / "skills"])["greet"].warnings == ()


# ----------------------------------------------------------------------------------------------------------- installing


def test_a_skill_is_installed_under_its_name_without_evals_and_caches(tmp_path: Path) -> None:
    folder = make(
        tmp_path / "src/other-name",
        **{
            "references/a.md": "a",
            "evals/evals.json": "[]",
            "evaluations/e.json": "{}",
            "node_modules/x.js": "x",
            ".git/HEAD": "x",
            "scripts/x.pyc": "x",
            "docs/evals/kept.md": "k",
        },
    )
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_text("x")
    skill = load_skill(folder)
    target = install(skill, tmp_path / "home/.claude/skills")
    assert target == tmp_path / "home/.claude/skills/greet"
    files = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    assert files == ["SKILL.md", "docs/evals/kept.md", "references/a.md"]
    assert skill.files == ("SKILL.md", "docs/evals/kept.md", "references/a.md")
    assert load_skill(target).digest == skill.digest


def test_executable_bits_stay_and_set_user_bits_do_not(tmp_path: Path) -> None:
    folder = make(tmp_path / "greet", **{"run.sh": "true\n", "data.txt": "x"})
    (folder / "run.sh").chmod(0o4750)
    (folder / "data.txt").chmod(0o600)
    old = os.umask(0o077)
    try:
        target = install(load_skill(folder), tmp_path / "out")
    finally:
        os.umask(old)
    assert stat.S_IMODE((target / "run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "data.txt").stat().st_mode) == 0o644


def test_links_inside_of_a_skill_work_in_the_copy(tmp_path: Path) -> None:
    folder = make(tmp_path / "greet", **{"references/a.md": "inside"})
    (folder / "short.md").symlink_to("references/a.md")
    (folder / "chain.md").symlink_to("short.md")
    (folder / "whole.md").symlink_to(folder / "references/a.md")
    (folder / "around.md").symlink_to("../greet/references/a.md")
    (folder / "refs").symlink_to("references")
    target = install(load_skill(folder), tmp_path / "out")
    (folder / "references/a.md").write_text("changed at home")
    for name in ("short.md", "chain.md", "whole.md", "around.md", "refs/a.md"):
        assert (target / name).read_text() == "inside"
        assert (target / name).resolve().is_relative_to(target)


def bad_links(folder: Path, outside: Path) -> dict[str, str]:
    """Put one bad thing into a skill each; return its name and words of the refusal."""
    (folder / "host").symlink_to("/etc/hostname")
    (folder / "up").symlink_to("../secret")
    (folder / "folder").symlink_to(outside)
    (folder / "self").symlink_to(".")
    (folder / "sub").mkdir()
    (folder / "sub/loop").symlink_to("..")
    (folder / "turn").symlink_to("turn")
    (folder / "dangling").symlink_to("nothing.md")
    (folder / "far").symlink_to("/nothing/at/all")
    (folder / "hidden").symlink_to("evals/answers.json")
    os.mkfifo(folder / "pipe")
    (folder / "hard").hardlink_to(outside / "secret.txt")
    return {
        "host": "out of the skill's folder",
        "up": "out of the skill's folder",
        "folder": "out of the skill's folder",
        "self": "in a circle",
        "sub/loop": "in a circle",
        "turn": "in a circle",
        "dangling": "nowhere",
        "far": "out of the skill's folder",
        "hidden": "is a link to evals/answers.json, which is never installed",
        "pipe": "neither a file nor a folder",
        "hard": "a hard link",
    }


@pytest.mark.parametrize(
    "kept", ["host", "up", "folder", "self", "sub/loop", "turn", "dangling", "far", "hidden", "pipe", "hard"]
)
def test_what_leads_out_of_a_skill_is_refused_before_anything_is_copied(kept: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("canary-7d1f")
    (tmp_path / "secret").write_text("canary-7d1f")
    folder = make(tmp_path / "greet", **{"evals/answers.json": "canary-7d1f"})
    words = bad_links(folder, outside)
    for name in words:
        if name != kept:
            (folder / name).unlink()
    message = refusal(folder)
    assert message.startswith(f"{folder / kept}: ")
    assert words[kept] in message


def test_folders_that_hold_each_other_through_links_are_refused(tmp_path: Path) -> None:
    folder = make(tmp_path / "greet", **{"a/x.md": "x", "b/y.md": "y"})
    (folder / "a/to-b").symlink_to("../b")
    assert "a/to-b/y.md" not in load_skill(folder).files
    (folder / "b/to-a").symlink_to("../a")
    assert "in a circle" in refusal(folder)


def test_two_names_of_one_file_inside_of_the_skill_are_copied(tmp_path: Path) -> None:
    folder = make(tmp_path / "greet", **{"a.md": "x"})
    (folder / "b.md").hardlink_to(folder / "a.md")
    target = install(load_skill(folder), tmp_path / "out")
    assert (target / "b.md").read_text() == "x"


def test_too_many_and_too_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "greet", **{"a.md": "x" * 100, "b.md": "x" * 100})
    monkeypatch.setattr("pytest_skilleval.skills.folder.MAX_FILES", 2)
    assert "holds more than 2 files" in refusal(folder)
    monkeypatch.setattr("pytest_skilleval.skills.folder.MAX_FILES", 3)
    monkeypatch.setattr("pytest_skilleval.skills.folder.MAX_BYTES", 200)
    assert "are installed" in refusal(folder)


def test_a_skill_that_changes_after_it_was_read_is_not_installed(tmp_path: Path) -> None:
    folder = make(tmp_path / "greet", **{"a.md": "x"})
    skill = load_skill(folder)
    (folder / "a.md").write_text("y")
    with pytest.raises(SkillMistake, match="changed while the run was on"):
        install(skill, tmp_path / "out")
    assert not (tmp_path / "out/greet").exists()


def test_nothing_is_installed_over_something(tmp_path: Path) -> None:
    skill = load_skill(make(tmp_path / "greet"))
    install(skill, tmp_path / "out")
    with pytest.raises(SkillMistake, match="is already there"):
        install(skill, tmp_path / "out")


def test_the_digest_covers_paths_bytes_and_executable_bits_and_not_times_and_evals(tmp_path: Path) -> None:
    folder = make(tmp_path / "greet", **{"a.sh": "x"})
    first = load_skill(folder).digest
    assert len(first) == 64
    os.utime(folder / "a.sh", (1, 1))
    (folder / "evals").mkdir()
    (folder / "evals/evals.json").write_text("[]")
    assert load_skill(folder).digest == first
    digests = {first}
    (folder / "a.sh").chmod(0o755)
    digests.add(load_skill(folder).digest)
    (folder / "a.sh").write_text("y")
    digests.add(load_skill(folder).digest)
    (folder / "a.sh").rename(folder / "b.sh")
    digests.add(load_skill(folder).digest)
    assert len(digests) == 4


def test_the_preloaded_text_is_the_body_with_the_folders_path(tmp_path: Path) -> None:
    skill = load_skill(make(tmp_path / "greet"))
    text = preload_text(skill, Path("/w/skills/greet"))
    assert "/w/skills/greet" in text
    assert text.endswith("# Greet\n\nSay hello.\n")
    assert "description:" not in text


# -------------------------------------------------------------------------------------------------------------- history


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return done.stdout.strip()


def commit(repository: Path, text: str, message: str = "x") -> str:
    make(repository / "skills/greet", text)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "--allow-empty", "-m", message)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository in which the skill has three versions, and a last commit that changes only its evals."""
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q")
    for number in (1, 2, 3):
        commit(path, TEXT.replace("Say hello.", f"Version {number}."))
    (path / "skills/greet/evals").mkdir()
    (path / "skills/greet/evals/evals.json").write_text("[]")
    commit(path, TEXT.replace("Say hello.", "Version 3."))
    return path


def stale(repository: Path, ref: str | None, tmp_path: Path) -> str | None:
    current = load_skill(repository / "skills/greet")
    found = stale_skill(ref, "greet", current, target=tmp_path / "older", root=repository)
    return None if found is None else found.body.split()[-1]


def test_the_previous_version_is_the_newest_commit_that_installs_something_else(
    repository: Path, tmp_path: Path
) -> None:
    assert stale(repository, None, tmp_path) == "2."


def test_while_the_skill_is_being_edited_the_last_commit_is_the_previous_version(
    repository: Path, tmp_path: Path
) -> None:
    make(repository / "skills/greet", TEXT.replace("Say hello.", "Version 4."))
    assert stale(repository, None, tmp_path) == "3."


def test_a_revision_gives_that_version_and_nothing_of_its_evals(repository: Path, tmp_path: Path) -> None:
    assert stale(repository, "git:HEAD~3", tmp_path) == "1."
    assert stale(repository, "git:HEAD", tmp_path) == "3."
    skill = skill_at("HEAD", load_skill(repository / "skills/greet"), target=tmp_path / "at")
    assert skill.files == ("SKILL.md",)
    assert skill.digest == load_skill(repository / "skills/greet").digest
    assert sorted(path.name for path in skill.path.iterdir()) == ["SKILL.md"]


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("git:nope", "git knows no such commit"),
        ("git:--help", "is no revision"),
        ("git:", "is no revision"),
        ("git:HEAD~9", "git knows no such commit"),
        ("nowhere", "holds no skill 'greet'"),
    ],
)
def test_a_version_that_was_asked_for_and_is_not_there_is_a_mistake(
    ref: str, words: str, repository: Path, tmp_path: Path
) -> None:
    with pytest.raises(SkillMistake, match=words):
        stale(repository, ref, tmp_path)


def test_skills_that_were_committed_together_each_get_their_own_older_version(repository: Path, tmp_path: Path) -> None:
    names, texts = ("meet", "wave"), ("Old.", "New.")
    digests: dict[str, list[str]] = {name: [] for name in names}
    for text in texts:
        for name in names:
            folder = make(repository / "skills" / name, f"---\nname: {name}\ndescription: Is {name}.\n---\n\n{text}\n")
            digests[name].append(load_skill(folder).digest)
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "-m", text)
    for ref in (None, "git:HEAD~1"):
        found = [
            stale_skill(ref, name, load_skill(repository / "skills" / name), target=tmp_path / "older", root=repository)
            for name in names
        ]
        # The files of the first are still there when the second has been looked for.
        assert [skill and load_skill(skill.path).digest for skill in found] == [digests[name][0] for name in names]


def test_looking_for_the_previous_version_leaves_the_files_of_a_revision(repository: Path, tmp_path: Path) -> None:
    current = load_skill(repository / "skills/greet")
    asked = skill_at("HEAD", current, target=tmp_path / "older")
    assert stale(repository, None, tmp_path) == "2."
    assert load_skill(asked.path).digest == current.digest


def test_a_revision_before_the_skill_and_a_broken_one_are_mistakes(repository: Path, tmp_path: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "other")
    git(repository, "rm", "-rq", "--cached", ".")
    (repository / "x").write_text("x")
    git(repository, "add", "x")
    git(repository, "commit", "-q", "-m", "x")
    with pytest.raises(SkillMistake, match="git:HEAD: the skill 'greet' was not in"):
        stale(repository, "git:HEAD", tmp_path)
    commit(repository, "---\nname: greet\n---\n")
    commit(repository, TEXT)
    with pytest.raises(SkillMistake, match=r"git:HEAD~1: .*description: is missing"):
        stale(repository, "git:HEAD~1", tmp_path)
    assert stale(repository, None, tmp_path) is None


def test_a_folder_may_be_the_skill_or_hold_it(repository: Path, tmp_path: Path) -> None:
    make(repository / "cases/stale/greet", TEXT.replace("Say hello.", "Old."))
    assert stale(repository, "cases/stale", tmp_path) == "Old."
    assert stale(repository, "cases/stale/greet", tmp_path) == "Old."
    assert stale(repository, str(repository / "cases/stale/greet"), tmp_path) == "Old."


def test_without_a_repository_an_older_version_or_git_there_is_none(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = load_skill(make(tmp_path / "alone/greet"))
    assert stale_skill(None, "greet", alone, target=tmp_path / "t", root=tmp_path) is None
    assert stale_skill(None, "greet", None, target=tmp_path / "t", root=tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert stale(repository, None, tmp_path) is None


def test_git_runs_without_hooks_and_the_users_settings(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    git(repository, "config", "core.pager", str(trap))
    git(repository, "config", "core.sshCommand", str(trap))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap))
    assert stale(repository, None, tmp_path) == "2."
    assert not (tmp_path / "sprung").exists()


def test_a_link_in_an_older_version_is_judged_like_any_other(repository: Path, tmp_path: Path) -> None:
    (repository / "skills/greet/out.md").symlink_to("/etc/hostname")
    commit(repository, TEXT)
    (repository / "skills/greet/out.md").unlink()
    with pytest.raises(SkillMistake, match=r"git:HEAD: .*out.md: is a link that leads out of the skill's folder"):
        stale(repository, "git:HEAD", tmp_path)


# ---------------------------------------------------------------------------------------------------------------- leaks

LONG = TEXT + "\nAlways look the person in the eye and smile before you say the first word.\n"


def found(
    tmp_path: Path, case: str, files: dict[str, str] | None = None, lane: str = "execution"
) -> list[tuple[str, str]]:
    skill = load_skill(make(tmp_path / "skills/greet-people", LONG.replace("name: greet", "name: greet-people")))
    folder = tmp_path / f"cases/{lane}"
    for name, content in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "x.yaml").write_text("skill: greet-people\n" + case)
    (one,) = load_case_file(folder / "x.yaml", root=tmp_path)
    return [(str(problem.loc[0]), problem.message) for problem in leaks(one, skill)]


def test_a_case_that_gives_nothing_away_has_no_leak(tmp_path: Path) -> None:
    case = "prompt: Welcome the guest and smile before you talk.\nworkspace: {template: t, files: {guests.txt: Ada}}\n"
    assert found(tmp_path, case, {"t/list.txt": "Ada and Bob"}) == []


@pytest.mark.parametrize(
    "prompt", ["Use greet-people on Ada.", "Use Greet People now.", "Read skills/greet_people first."]
)
def test_a_prompt_that_names_the_skill_is_a_leak_unless_the_case_is_explicit(prompt: str, tmp_path: Path) -> None:
    ((key, message),) = found(tmp_path, f"prompt: {prompt}\n")
    assert key == "prompt"
    assert "names the skill" in message
    assert found(tmp_path, f"prompt: {prompt}\ncategory: explicit\n") == []


def test_a_sentence_copied_from_the_skill_is_a_leak_and_is_shown(tmp_path: Path) -> None:
    case = "prompt: Please look the person in the  eye and smile, before you go.\n"
    ((key, message),) = found(tmp_path, case)
    assert key == "prompt"
    assert '"look the person in the eye and smile before you"' in message
    ((key, message),) = found(tmp_path, "prompt: x\nworkspace: {template: t}\n", {"t/notes.md": LONG})
    assert key == "workspace"
    assert message.startswith("notes.md holds words of SKILL.md")


@pytest.mark.parametrize(
    "name", ["stale/a.txt", "run-preloaded.txt", "self_load.md", "with_skill.txt", "none/x.txt", "none.txt"]
)
def test_a_file_that_names_a_condition_is_a_leak(name: str, tmp_path: Path) -> None:
    ((key, message),) = found(tmp_path, f"prompt: x\nworkspace: {{files: {{{name}: a}}}}\n")
    assert key == "workspace"
    assert "names a condition" in message


def test_a_prompt_that_an_agent_runs_as_a_command_is_a_leak(tmp_path: Path) -> None:
    ((key, message),) = found(tmp_path, "prompt: /cost of the trip\n")
    assert key == "prompt"
    assert "Claude Code runs as a command" in message


def test_an_answer_in_the_workspace_is_a_leak(tmp_path: Path) -> None:
    assert "sounds like the answer" in found(tmp_path, "prompt: x\nworkspace: {files: {expected.txt: a}}\n")[0][1]
    case = "prompt: x\nworkspace: {template: t}\nsolution: s.sh\n"
    ((key, message),) = found(tmp_path, case, {"t/run.sh": "echo hi\n", "s.sh": "echo hi\n"})
    assert (key, message) == ("solution", 'lies in the workspace as "run.sh"; keep it out of the template')


def test_an_expectation_that_an_echo_of_the_prompt_meets_is_a_leak(tmp_path: Path) -> None:
    case = "prompt: Should I use --trials 5?\nexpect: ['--trials \\d+', '--compare']\n"
    ((key, message),) = found(tmp_path, case, lane="prompt")
    assert key == "expect"
    assert "an echo would match" in message


def test_a_skill_of_one_word_is_named_only_where_it_is_marked_as_a_skill(tmp_path: Path) -> None:
    skill = load_skill(make(tmp_path / "pdf", "---\nname: pdf\ndescription: Reads pages.\n---\nx\n"))
    folder = tmp_path / "cases/prompt"
    folder.mkdir(parents=True)
    for prompt, count in {
        "Turn this pdf into text.": 0,
        "Use the pdf skill.": 1,
        "Run /pdf now.": 1,
        "With skill pdf.": 1,
    }.items():
        (folder / "x.yaml").write_text(f"skill: pdf\nprompt: '{prompt}'\n")
        (case,) = load_case_file(folder / "x.yaml", root=tmp_path)
        assert len(leaks(case, skill)) == count, prompt
