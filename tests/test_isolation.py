"""What an agent can see: canaries of the host, in each place where they could leak, with and without bubblewrap."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project

CANARY = "canary-7c1f"
SANDBOXES = [
    "off",
    pytest.param(
        "require", marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
    ),
]
# The simulated agent looks wherever an agent would: its environment, homes and config folders, and upwards from its place.
LOOK_AROUND = """
{
  env
  git config --list
  for place in "$HOME" "$XDG_CONFIG_HOME" "$CLAUDE_CONFIG_DIR" "$CODEX_HOME" "$TMPDIR" ~; do
    find "$place" -type f 2>/dev/null | while read -r file; do echo "$file"; cat "$file"; done
  done
  up=$PWD
  while [ "$up" != / ]; do
    for name in CLAUDE.md AGENTS.md .claude .agents .mcp.json .env; do
      [ -e "$up/$name" ] && echo "found $up/$name"
    done
    up=$(dirname "$up")
  done
} > seen.txt 2>&1
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the user that is full of canaries, and an environment too."""
    home = tmp_path / "host-home"
    for name in (
        ".claude/skills/x/SKILL.md",
        ".agents/skills/x/SKILL.md",
        ".codex/AGENTS.md",
        ".claude/CLAUDE.md",
        ".netrc",
        ".env",
    ):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{CANARY} {name}")
    (home / ".gitconfig").write_text(f"[user]\n\tname = {CANARY}\n")
    monkeypatch.setenv("HOME", str(home))
    for name in (
        "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "CLAUDECODE", "CLAUDE_CODE_SIMPLE", "CODEX_THING", "PYTHONPATH_CANARY",
        "VIRTUAL_ENV", "GIT_AUTHOR_NAME", "BASH_ENV", "NODE_OPTIONS", "OPENAI_API_KEY", "ANTHROPIC_MODEL",
    ):  # fmt: skip
        monkeypatch.setenv(name, f"/{CANARY}/{name}")
    return home


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_an_agent_sees_nothing_of_the_host_b32_b36(project: Project, host: Path, sandbox: str) -> None:
    project.write("CLAUDE.md", CANARY)
    project.write("AGENTS.md", CANARY)
    project.write(".env", CANARY)
    project.case(checks=[{"id": "looked", "kind": "file", "path": "seen.txt", "matches": "HOME=", "never": CANARY}])
    project.write("cases/execution/greet.sh", LOOK_AROUND)
    result = project.run(f"--skilleval-sandbox={sandbox}", "--skilleval-keep=all")
    (seen,) = project.path.glob(".skilleval/runs/*/trials/*/workspace/seen.txt")
    text = seen.read_text(errors="replace")
    assert CANARY not in text
    assert "found " not in text
    assert result.ret == 0
    isolation = project.report()["trials"][0]["isolation"]
    assert isolation["sandbox"] == ("bubblewrap" if sandbox == "require" else "none")
    assert isolation["tree"] == "dead"


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_each_trial_has_a_home_of_its_own_and_the_real_one_is_untouched_b31(
    project: Project, host: Path, sandbox: str
) -> None:
    before = {path: path.read_bytes() for path in host.rglob("*") if path.is_file()}
    project.case(checks=[{"id": "own", "kind": "file", "path": "home.txt", "matches": "."}])
    project.write(
        "cases/execution/greet.sh",
        'test ! -e "$HOME/.claude.json" || exit 7\necho "$HOME $TMPDIR $XDG_CONFIG_HOME $CODEX_HOME" > home.txt\n'
        'echo "{}" > "$HOME/.claude.json"\necho x > "$TMPDIR/x"\n',
    )
    assert project.run("--trials", "6", "-n2", f"--skilleval-sandbox={sandbox}", "--skilleval-keep=all").ret == 0
    homes = {path.read_text() for path in project.path.glob(".skilleval/runs/*/trials/*/workspace/home.txt")}
    assert len(homes) == 6
    assert before == {path: path.read_bytes() for path in host.rglob("*") if path.is_file()}


def test_the_agent_cannot_read_the_project_inside_bubblewrap_b61(project: Project) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    project.write("secret/answer.txt", CANARY)
    project.case(checks=[{"id": "looked", "kind": "file", "path": "seen.txt", "matches": "done", "never": CANARY}])
    project.write(
        "cases/execution/greet.sh",
        f"cat {project.path}/secret/answer.txt > seen.txt 2>&1\necho done >> seen.txt\n"
        f"echo tampered > {project.path}/cases/execution/greet.yaml\n",
    )
    before = (project.path / "cases/execution/greet.yaml").read_text()
    assert project.run("--skilleval-sandbox=require").ret == 0
    assert (project.path / "cases/execution/greet.yaml").read_text() == before


def test_a_sandbox_that_is_required_and_does_not_work_is_refused_b62(project: Project, tmp_path: Path) -> None:
    project.case()
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    result = project.run("--skilleval-sandbox=require", env={"PATH": f"{fake.parent}:{os.environ['PATH']}"})
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--skilleval-sandbox=require*"])
    assert not (project.path / ".skilleval").exists()


def test_an_agent_that_used_a_hidden_skill_is_an_error_and_no_result(project: Project) -> None:
    project.skill()
    project.case(rate=1.0, skill="greeter", conditions=["none"])
    project.write(
        "conftest.py",
        "from pytest_skilleval.providers.stub import Stub\n"
        "class Leaky(Stub):\n"
        "    id = 'leaky'\n"
        "    def read(self, ask, output):\n"
        "        answer = super().read(ask, output)\n"
        "        return answer._replace(transcript=answer.transcript.model_copy(update={'skills_visible': ('greeter',)}))\n"
        "def pytest_skilleval_providers(config):\n"
        "    return {'leaky': Leaky}\n",
    )
    result = project.run("--skilleval-provider=leaky")
    assert result.ret == 1
    (trial,) = project.report()["trials"]
    assert trial["outcome"] == "error"
    assert trial["error"]["class"] == "contaminated"


def test_secrets_reach_no_file_no_terminal_and_no_junit_b43(project: Project) -> None:
    secret = "sk-test-AAAA-bbbb-1234567890"
    project.write(
        "conftest.py",
        "from pytest_skilleval.providers.base import Answer, Launch\n"
        "from pytest_skilleval.providers.stub import Oracle\n"
        f"SECRET = {secret!r}\n"
        "class Keyed(Oracle):\n"
        "    id = 'keyed'\n"
        "    def credentials(self):\n"
        "        return {'MY_API_KEY': SECRET}\n"
        "    def prepare(self, ask):\n"
        "        script = 'echo $MY_API_KEY; echo $MY_API_KEY >&2; printf %s $MY_API_KEY | base64 > out.txt; echo $MY_API_KEY > raw.txt; false'\n"
        "        return Launch(('sh', '-c', script), env=self.credentials(), secrets=(SECRET,))\n"
        "    def read(self, ask, output):\n"
        "        answer = super().read(ask, output)\n"
        "        return answer._replace(transcript=answer.transcript.model_copy(update={'final_text': 'the key is ' + SECRET}))\n"
        "def pytest_skilleval_providers(config):\n"
        "    return {'keyed': Keyed}\n",
    )
    project.case(checks=[{"id": "quotes", "kind": "file", "path": "raw.txt", "equals": "something else"}])
    result = project.run("--skilleval-provider=keyed", "--junitxml=junit.xml", "-v")
    assert project.outcomes() == {"failed": 1}
    import base64

    forms = {secret, base64.b64encode(secret.encode()).decode()}
    said = result.stdout.str() + result.stderr.str() + (project.path / "junit.xml").read_text()
    files = [path for path in (project.path / ".skilleval").rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 5
    for form in forms:
        assert form not in said
        for path in files:
            assert form.encode() not in path.read_bytes(), path
    assert any(b"[redacted]" in path.read_bytes() for path in files)
    json.loads((project.path / ".skilleval/latest/report.json").read_text())


def test_secrets_reach_no_artifact_no_judge_and_no_score_b43(project: Project) -> None:
    secret = "sk-test-AAAA-bbbb-1234567890"
    project.write(
        "pyproject.toml",
        "[tool.skilleval.providers.mine]\n"
        "command = ['sh', '-c', 'echo key $MY_API_KEY; echo key $MY_API_KEY > raw.txt']\n"
        "version_command = ['sh', '-c', 'echo 1.0.0']\n"
        "keys = ['MY_API_KEY']\n"
        "parse = {format = 'text'}\n",
    )
    project.case(checks=[{"id": "kind", "kind": "rubric", "statement": "It is kind."}], artifacts=[{"path": "raw.txt"}])
    project.write(
        "test_says.py",
        "import pytest\n\n"
        "@pytest.mark.skilleval(conditions=['none'])\n"
        "def test_says(skilleval):\n"
        "    text = (skilleval.run('hi').workspace / 'raw.txt').read_text()\n"
        "    pytest.fail(f'it says {text}', pytrace=False)\n",
    )
    project.run("--skilleval-provider=command:mine", "--skilleval-judge=oracle", env={"MY_API_KEY": secret})
    assert project.outcomes() == {"passed": 1, "failed": 1}
    files = [path for path in project.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
    run = (project.path / ".skilleval/latest").resolve()
    texts = [path.read_text() for path in run.glob("trials/*/record.json")]
    (kept,) = (ref for text in texts for ref in json.loads(text)["body"]["artifacts"])
    data = (run / kept["path"]).read_bytes()
    assert data == b"key [redacted]\n"
    assert (kept["bytes"], kept["digest"]) == (len(data), hashlib.sha256(data).hexdigest())
