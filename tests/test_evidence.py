"""What a trial leaves beside its record belongs to its last attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Project

# The first time it leaves a file and breaks; later it leaves nothing.
FORGETFUL = """
[tool.skilleval.providers.forgetful]
command = ["sh", "-c", "if [ -e {flag} ]; then echo done; else touch {flag}; echo old > out.txt; exit 1; fi"]
version_command = ["sh", "-c", "echo 1.0.0"]
parse = {{format = "text"}}
"""


def test_a_second_attempt_shows_nothing_of_the_first(project: Project) -> None:
    project.write("pyproject.toml", FORGETFUL.format(flag=project.path / "flag"))
    project.case(checks=[], artifacts=[{"path": "out.txt"}])
    words = ("--skilleval-provider=command:forgetful", "--skilleval-sandbox=off", "--skilleval-keep=all")
    project.run(*words)
    assert project.outcomes() == {"error": 1}
    (folder,) = (project.path / ".skilleval/latest").resolve().glob("trials/*")
    left = {path.name for path in folder.iterdir()}
    assert {"workspace.diff", "artifacts", "workspace"} <= left
    project.run(*words, "--skilleval-resume")
    assert project.outcomes() == {"failed": 1}
    assert {path.name for path in folder.iterdir()} == {
        "intent.json", "record.json", "transcript.jsonl", "stdout", "workspace", "workspace.json"
    }  # fmt: skip
    assert not (folder / "workspace/out.txt").exists()
