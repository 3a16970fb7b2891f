"""The command line of `skilleval`: help, mistakes, `--json`, exit statuses, completion."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_skilleval import cli
from pytest_skilleval.commands.answer import Answer
from pytest_skilleval.commands.completion import completions

ROOT = Path(__file__).parent.parent
INTERFACE = ("init", "check", "plan", "compare", "report", "rebuild", "merge", "list", "bless", "noise", "schema")
"""What the project's description promises."""


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Call the command line in an empty folder, and return status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        status = cli.main(words)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_help_names_every_command(said: Any) -> None:
    status, out, err = said("--help")
    assert (status, err) == (0, "")
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("    ") and line[4] != " "]
    assert set(INTERFACE) <= set(listed)
    assert [name for name in listed if name != "COMMAND"] == list(cli.COMMANDS)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_has_help_with_examples_that_its_parser_takes(said: Any, name: str) -> None:
    status, out, err = said(name, "--help")
    assert (status, err) == (0, "")
    assert "--json" in out
    examples = [line.strip() for line in out.partition("examples:")[2].splitlines()]
    examples = [line.split("  ")[0] for line in examples if line.startswith("skilleval ")]
    if name != "completion":  # its examples are in a shell's own words
        assert examples
    for line in examples:
        words = line.partition(" > ")[0].partition(" | ")[0].replace("'", "").split()[1:]
        assert cli.command_line(words[:1]).parse_args(words).command == name


def test_the_version_is_the_packages(said: Any) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert said("--version") == (0, f"skilleval {project['version']}\n", "")
    assert project["scripts"]["skilleval"] == "pytest_skilleval.cli:main"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), "COMMAND"),
        (("lst",), "'lst'"),
        (("compare", "only-one"), "CAND"),
        (("report", "r", "--frmat", "md"), "--frmat"),
        (("report", "r", "--form", "md"), "--form"),
        (("plan", "r", "--detect", "much"), "much"),
        (("list", "-n", "x"), "x"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_on_stderr_and_status_4(
    said: Any, words: tuple[str, ...], wanted: str
) -> None:
    status, out, err = said(*words)
    assert (status, out) == (4, "")
    assert err.startswith("skilleval: ")
    assert wanted in err
    assert err.count("\n") == 1
    assert "--help" in err


@pytest.mark.parametrize(
    "words",
    [
        ("report", "nope"),
        ("rebuild", "nope"),
        ("compare", "a", "b"),
        ("noise", "a", "b"),
        ("plan", "nope"),
        ("merge", "a", "b"),
        ("bless", "nope", "main"),
        ("compare", "a"),
    ],
)
def test_with_json_a_mistake_is_one_object_on_stdout_too(said: Any, words: tuple[str, ...]) -> None:
    status, out, err = said(*words, "--json")
    assert status == 4
    assert list(json.loads(out)) == ["error"]
    assert err == f"skilleval: {json.loads(out)['error']}\n"


@pytest.mark.parametrize("which", [(), ("--report",)])
def test_schemas_are_json_with_and_without_the_flag(said: Any, which: tuple[str, ...]) -> None:
    status, out, err = said("schema", *which)
    assert (status, err) == (0, "")
    assert json.loads(out) == json.loads(said("schema", *which, "--json")[1])
    schema = json.loads(out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    wanted = {"run", "groups", "lanes", "lift", "comparison", "gate", "trials", "timing"} if which else set()
    assert wanted <= set(schema.get("properties", {}))


def test_a_defect_is_status_3_with_its_traceback_and_still_one_object(
    said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_arguments: object) -> Answer:
        raise ZeroDivisionError("of this program")

    monkeypatch.setattr("pytest_skilleval.commands.runs.run", broken)
    status, out, err = said("list", "--json")
    assert status == 3
    assert json.loads(out) == {"error": "ZeroDivisionError: of this program"}
    assert "Traceback" in err


def test_stopping_it_is_status_2_without_a_traceback(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_arguments: object) -> Answer:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_skilleval.commands.runs.run", stopped)
    assert said("list") == (2, "", "skilleval: stopped\n")


def test_text_from_a_foreign_file_cannot_drive_the_terminal(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["a\x1b[2Jb", "c\u202ed", "e\rf"]
    monkeypatch.setattr("pytest_skilleval.commands.runs.run", lambda _arguments: Answer({}, lines, notes=["g\x07h"]))
    _, out, err = said("list")
    assert out == "a\\x1b[2Jb\nc\\u202ed\ne\\x0df\n"
    assert err == "g\\x07h\n"


def test_a_console_that_knows_ascii_only_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr("pytest_skilleval.commands.runs.run", lambda _arguments: Answer({}, ["naïve"]))
    assert cli.main(["list"]) == 0
    stream.seek(0)
    assert stream.read() == "na\\xefve\n"


def test_a_reader_that_has_seen_enough_is_no_mistake(tmp_path: Path) -> None:
    command = f"{sys.executable} -m pytest_skilleval.cli schema | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.split() == ["{", "0"]
    assert done.stderr == ""


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from pytest_skilleval import cli; cli.main(['--help']);"
        "print([name for name in ('numpy', 'scipy', 'pydantic', 'jinja2', 'yaml', 'pytest') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ---------------------------------------------------------------------------------------------------- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_every_long_option(said: Any, shell: str) -> None:
    status, out, _ = said("completion", shell)
    assert status == 0
    known = completions(cli.command_line())
    assert set(known) == set(cli.COMMANDS)
    for name, command in known.items():
        assert name in out
        for option in command.options:
            assert option.lstrip("-") in out, (name, option)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("skilleval", "re"), {"report", "rebuild", "regrade"}),
        (("skilleval", "compare", "--al"), {"--allow-incomparable"}),
        (("skilleval", "completion", "z"), {"zsh"}),
        (("skilleval", "report", "lat"), {"latest"}),
        (("skilleval", "report", "2026"), {"20260101T000000Z-aaaa"}),
    ],
)
def test_bash_completes_commands_options_and_runs(
    said: Any, tmp_path: Path, words: tuple[str, ...], wanted: set[str]
) -> None:
    (tmp_path / "done.bash").write_text(said("completion", "bash")[1])
    (tmp_path / ".skilleval/runs/20260101T000000Z-aaaa").mkdir(parents=True)
    (tmp_path / ".skilleval/latest").symlink_to("runs/20260101T000000Z-aaaa")
    script = (
        f"source ./done.bash; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _skilleval;"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert set(done.stdout.split()) == wanted
    assert done.stderr == ""
