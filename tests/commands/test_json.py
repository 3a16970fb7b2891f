"""`--json`, of every command: one JSON object on stdout, and nothing else there."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_skilleval.cli import COMMANDS
from pytest_skilleval.reports.render import as_json
from tests.commands.conftest import run_pytest, write_project
from tests.reports.made import made

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Shell

CALLS: dict[str, tuple[str, ...]] = {
    "init": (),
    "check": ("-n", "0"),
    "doctor": (),
    "list": (),
    "report": ("{new}", "--format", "md=r.md", "--format", "html=r.html", "--format", "junit=r.xml"),
    "rebuild": ("{new}",),
    "regrade": ("{new}", "-n", "0"),
    "compare": ("{old}", "{new}", "--allow-incomparable"),
    "lifts": ("{old}", "other/report.json"),
    "noise": ("{old}", "{new}"),
    "plan": ("{new}",),
    "merge": ("{old}", "{new}", "--repeats"),
    "bless": ("{new}", "main"),
    "export": ("{new}", "exported"),
    "schema": (),
    "completion": ("bash",),
}
"""A call of each command that works."""


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two runs whose workspaces are kept."""
    folder = tmp_path_factory.mktemp("two")
    write_project(folder)
    for seed in ("1", "2"):
        done = run_pytest(folder, "--trials=2", f"--skilleval-seed={seed}", "--skilleval-keep=all")
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_call_of_each_command_is_known() -> None:
    assert list(CALLS) == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_one_object_and_nothing_else(
    shell: Shell, two_runs: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "doctor":
        monkeypatch.setenv("PATH", f"{shell.folder}/bin")  # it is to find no agent
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    for name in ("cases", "skills", ".skilleval"):
        shutil.copytree(two_runs / name, shell.folder / name, symlinks=True)
    if command == "init":
        shutil.rmtree(shell.folder / "cases")
    (shell.folder / "other").mkdir()
    (shell.folder / "other/report.json").write_text(as_json(made(run={"provider": {"id": "claude"}})))
    old, new = sorted(path.name for path in shell.output.iterdir())
    said = shell(command, *(word.format(old=old, new=new) for word in CALLS[command]), "--json")
    value = json.loads(said.out)
    assert isinstance(value, dict)
    if command == "doctor":
        assert (said.status, list(value)) == (4, ["error"])
    else:
        assert (said.status, "error" in value) == (0, False), said.err
