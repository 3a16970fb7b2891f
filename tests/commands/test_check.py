"""`skilleval check` and `skilleval init`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands.conftest import Shell

SKILL = "---\nname: greeter\ndescription: Greets people by name.\n---\n\nSay hello.\n"


def write(shell: Shell, name: str, text: str) -> None:
    path = shell.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def temp(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temp directory that must be empty in the end."""
    folder = shell.folder / "temp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    yield folder
    left = sorted(path.name for path in folder.iterdir() if not path.name.startswith("pytest-of-"))
    assert left == []


def case(**more: Any) -> str:
    said = {"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}
    spec = {"skill": "greeter", "prompt": "Write a word into out.txt.", "conditions": ["none", "self-load"],
            "checks": [said], "solution": "hello.sh"}  # fmt: skip
    return json.dumps(spec | more)


def test_each_mistake_is_named_with_file_line_and_key_and_nothing_runs(shell: Shell) -> None:
    write(shell, "cases/execution/a.yaml", "prompt: hi\nchekcs: []\n")
    write(shell, "cases/execution/b.yaml", "prompt: hi\nskill: greeter\nsolution: gone.sh\n")
    write(shell, "cases/prompt/c.yaml", "cases:\n  - {id: x, prompt: hi}\n  - {id: y, promt: ho}\n")
    write(shell, "skills/greeter/SKILL.md", "---\nname: greeter\n---\nSay hello.\n")
    said = shell("check", "--json")
    assert said.status == 1
    messages = [finding["message"] for finding in said.json["findings"]]
    for wanted in (
        "cases/execution/a.yaml:2: chekcs",
        "cases/execution/b.yaml:3: solution",
        "cases/prompt/c.yaml:3: cases[1].promt",
        "skills/greeter/SKILL.md:1: description",
    ):
        assert any(wanted in message for message in messages), wanted
    assert said.json["counts"]["mistake"] == 4
    assert said.json["sound"] is False


def test_what_the_oracle_and_the_no_op_prove(shell: Shell, temp: Path) -> None:
    write(shell, "skills/greeter/SKILL.md", SKILL)
    write(shell, "cases/execution/hello.sh", "echo hello > out.txt\n")
    write(shell, "cases/execution/sound.yaml", case())
    given = {"id": "given", "kind": "file", "path": "in.txt", "contains": "x"}
    never = {"id": "untouched", "kind": "file", "path": "in.txt", "changed": False}
    said = {"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}
    lax = case(workspace={"files": {"in.txt": "x"}}, checks=[said, given, never])
    write(shell, "cases/execution/lax.yaml", lax)
    hopeless = {"id": "other", "kind": "file", "path": "out.txt", "equals": "goodbye"}
    write(shell, "cases/execution/hopeless.yaml", case(checks=[hopeless]))
    write(shell, "cases/execution/unproven.yaml", case().replace('"solution": "hello.sh"', '"category": "x"'))
    write(shell, "cases/execution/leaky.yaml", case(prompt="Use the skill greeter to write hello into out.txt."))
    write(shell, "cases/execution/broken.yaml", case(workspace={"setup": [{"run": ["false"]}]}))
    told = shell("check", "-n", "0", "--json")
    assert told.status == 1, told.err
    found = {(row["case"], row["kind"], row["check"]) for row in told.json["findings"]}
    assert found == {
        ("execution:lax", "cannot fail", "given"),
        ("execution:hopeless", "impossible", "other"),
        ("execution:unproven", "unproven", ""),
        ("execution:leaky", "leak", ""),
        ("execution:broken", "broken", ""),
    }
    rows = {row["case"]: row for row in told.json["cases"]}
    assert rows["sound"] == {
        "lane": "execution", "case": "sound", "checks": 1, "oracle": {"passed": 2}, "noop": {"failed": 2}, "findings": 0,
    }  # fmt: skip
    assert rows["hopeless"]["oracle"] == {"failed": 2}
    assert told.json["broken_cases"] == 3
    leak = next(row for row in told.json["findings"] if row["kind"] == "leak")
    assert leak["where"] == "cases/execution/leaky.yaml:1: prompt"
    assert not (shell.folder / ".skilleval").exists(), "a run is left in the project"


def test_the_first_case_of_init_is_sound_and_runs_as_it_is(
    shell: Shell, temp: Path, a_session: Callable[..., Any]
) -> None:
    (shell.folder / "pytest.ini").unlink()
    said = shell("init", "--json")
    assert said.status == 0
    made = said.json["files"]
    assert sorted(path.as_posix() for path in map(Path, made)) == sorted(made)
    assert all((shell.folder / name).is_file() for name in made)
    checked = shell("check", "-n", "0", "--strict", "--json")
    assert checked.status == 0, checked.json["findings"]
    assert checked.json["cases"][0]["oracle"] == {"passed": 2}
    done = a_session(shell.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "simulated" in done.stdout


def test_init_overwrites_nothing(shell: Shell) -> None:
    assert shell("init").status == 0
    before = {path: path.read_bytes() for path in shell.folder.rglob("*") if path.is_file()}
    said = shell("init")
    assert said.status == 4
    assert "nothing is overwritten" in said.err
    assert {path: path.read_bytes() for path in shell.folder.rglob("*") if path.is_file()} == before


def test_init_writes_the_case_for_a_skill_that_is_there(shell: Shell) -> None:
    write(shell, ".claude/skills/greeter/SKILL.md", SKILL)
    said = shell("init", "--json")
    assert said.status == 0
    assert said.json["skill"] == "greeter"
    assert not (shell.folder / "skills").exists()
    assert "skill: greeter" in (shell.folder / "cases/execution/first-case.yaml").read_text()


def test_init_refuses_a_skill_that_is_not_there(shell: Shell) -> None:
    write(shell, "skills/greeter/SKILL.md", SKILL)
    said = shell("init", "--skill", "parting")
    assert said.status == 4
    assert "there are: greeter" in said.err
    assert not (shell.folder / "cases").exists()


def test_init_says_that_testpaths_leaves_the_cases_out(shell: Shell) -> None:
    (shell.folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    said = shell("init")
    assert said.status == 0
    assert "`testpaths` holds tests" in said.out
    assert (shell.folder / "pytest.ini").read_text() == "[pytest]\ntestpaths = tests\n"


def test_check_heeds_no_option_that_the_user_gives_to_every_session(shell: Shell, temp: Path) -> None:
    write(shell, "elsewhere/greeter/SKILL.md", SKILL)
    write(shell, "cases/execution/hello.sh", "echo hello > out.txt\n")
    write(shell, "cases/execution/sound.yaml", case())
    words = "--skilleval-judge=command:gone --compare-baseline=gone --trials=7 --skilleval-gate=trials"
    ini = "[pytest]\nskilleval_shard = 1/1\nskilleval_budget = time=1s\nskilleval_resume = gone\n"
    write(shell, "pytest.ini", f"{ini}addopts = {words} -k nothing --skilleval-skills elsewhere\n")
    said = shell("check", "--json", "-n", "0")
    assert (said.status, said.err) == (0, "")
    (row,) = said.json["cases"]
    assert (row["oracle"], row["noop"]) == ({"passed": 2}, {"failed": 2})


def test_check_passes_on_what_pytest_refuses(shell: Shell, temp: Path) -> None:
    write(shell, "cases/execution/hello.sh", "echo hello > out.txt\n")
    write(shell, "cases/execution/a.yaml", case(skill="nobody"))
    said = shell("check", "-n", "0")
    assert said.status == 4
    assert "nobody" in said.err
    assert said.err.count("\n") == 1


def test_nothing_to_check_is_said(shell: Shell, temp: Path) -> None:
    said = shell("check", "-n", "0")
    assert said.status == 4
    assert "no case" in said.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_check_that_is_stopped_leaves_no_process_and_no_folder(shell: Shell, temp: Path, number: int) -> None:
    write(shell, "skills/greeter/SKILL.md", SKILL)
    write(shell, "cases/execution/hello.sh", f"echo $$ > {shell.folder}/pid\nexec sleep 300\n")
    write(shell, "cases/execution/slow.yaml", case(conditions=["none"]))
    command = [sys.executable, "-m", "pytest_skilleval.cli", "check", "-n", "0"]
    with subprocess.Popen(
        command, cwd=shell.folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 120
        while not (shell.folder / "pid").exists() or not (shell.folder / "pid").read_text().strip():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        agent = int((shell.folder / "pid").read_text())
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err == "skilleval: stopped\n"
    with pytest.raises(ProcessLookupError):
        os.kill(agent, 0)
