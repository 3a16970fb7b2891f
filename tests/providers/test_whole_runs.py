"""Whole runs of pytest with a program in the place of Claude Code that refuses, lies, hangs on or looks around."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAD = f"""#!{sys.executable}
import json, os, pathlib, sys, time
if "--version" in sys.argv:
    print("2.1.332")
    raise SystemExit
prompt = sys.stdin.read()
def result(text, **more):
    print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": text, **more}},
          separators=(",", ":")), flush=True)
def nth():
    here = pathlib.Path(os.environ["ASKED"])
    number = len(list(here.iterdir())) + 1
    (here / str(os.getpid())).touch()
    return number
def solve():
    pathlib.Path("out.txt").write_text("hello")
"""
REFUSES = 'result("API Error: Rate limit reached. Please try again later.", is_error=True)\n'


@pytest.fixture
def fake(project, monkeypatch):
    """Put a program in the place of Claude Code; a retry waits no time."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-fake-0123456789")
    asked = project.path / "asked"
    asked.mkdir()

    def write(body, retries=0, more=""):
        program = project.write("bin/claude", HEAD + body)
        program.chmod(0o755)
        project.write(
            "pyproject.toml",
            f"[tool.skilleval.providers.claude]\nprogram = {json.dumps(str(program))}\n"
            f"env = {{ASKED = {json.dumps(str(asked))}}}\n"
            f"[tool.skilleval.retry]\nlimit = {retries}\nfirst = 0\n{more}",
        )
        return ("--skilleval-provider=claude", "--skilleval-sandbox=off")

    return write


def trial_errors(project):
    return [trial["error"]["class"] for trial in project.report()["trials"] if trial["error"]]


def test_b13_an_outage_stands_beside_the_rate_and_not_in_it(project, fake):
    project.case()
    flags = fake(
        f"number = nth()\nif number in (3, 7):\n    {REFUSES}    raise SystemExit(1)\nsolve()\nresult('Done.')\n"
    )
    done = project.run(*flags, "--trials=10", "--skilleval-max-errors=0.5")
    (group,) = project.report()["groups"]
    assert (group["n"], group["passed"], group["errors"], group["pass_rate"]["n"]) == (8, 8, 2, 8)
    assert trial_errors(project) == ["rate_limit", "rate_limit"]
    assert done.ret == 1


@pytest.mark.parametrize("status", [0, 1])
def test_b15_a_success_that_is_flagged_as_error_is_neither_passed_nor_failed_and_is_kept(project, fake, status):
    project.case(checks=[{"id": "any", "kind": "text", "matches": "."}])
    project.run(*fake(f"{REFUSES}raise SystemExit({status})\n"))
    assert project.outcomes() == {"error": 1}
    assert trial_errors(project) == ["rate_limit"]
    (stdout,) = project.path.glob(".skilleval/runs/*/trials/*/stdout")
    assert '"is_error":true' in stdout.read_text()


def test_an_outage_that_passes_is_retried_in_a_fresh_place_and_its_attempt_is_recorded(project, fake):
    project.case()
    body = f"if nth() == 1:\n    pathlib.Path('dirt').touch()\n    {REFUSES}    raise SystemExit(1)\n"
    flags = fake(f"{body}assert not pathlib.Path('dirt').exists()\nsolve()\nresult('Done.')\n", retries=1)
    project.run(*flags)
    assert project.outcomes() == {"passed": 1}
    (record,) = project.path.glob(".skilleval/runs/*/trials/*/record.json")
    (attempt,) = json.loads(record.read_text())["body"]["attempts"]
    assert attempt.startswith("attempt 1: rate_limit: API Error")


def test_b23_every_trial_is_asked_for_itself(project, fake):
    project.case(checks=[{"id": "any", "kind": "text", "matches": "."}])
    flags = fake("nth()\nresult(os.urandom(8).hex())\n")
    answers = set()
    for asked in (5, 10):
        project.run(*flags, "--trials=5", "-n2")
        assert len(list((project.path / "asked").iterdir())) == asked
        for path in project.path.glob(".skilleval/runs/*/trials/*/record.json"):
            answers.add(json.loads(path.read_text())["body"]["final_text"])
    assert len(answers) == 10


def test_b25_an_agent_that_stays_alive_after_its_result_is_ended_and_counts(project, fake):
    project.case(budget={"timeout": 60})
    project.run(*fake("solve()\nresult('Done.')\ntime.sleep(600)\n"))
    assert project.outcomes() == {"passed": 1}


def test_b28_an_agent_that_reads_stdin_is_not_held_up_by_a_pipe_that_stays_open(project, fake):
    project.case()
    flags = fake("assert sys.stdin.read() == ''\nsolve()\nresult('Done.')\n")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:randomly", "-s", "-n2", *flags],
        cwd=project.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as run:
        assert run.wait(120) == 0
    assert project.outcomes() == {"passed": 1}


def test_b36_variables_of_the_parent_session_do_not_reach_the_agent(project, fake, monkeypatch):
    project.case()
    for name in ("CLAUDECODE", "CLAUDE_CODE_SIMPLE", "CODEX_CI", "VIRTUAL_ENV", "BASH_ENV", "NODE_OPTIONS"):
        monkeypatch.setenv(name, "1" if name != "NODE_OPTIONS" else "")
    allowed = (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "CLAUDE_CODE_DISABLE_",
        "CLAUDE_CODE_MAX_RETRIES",
    )
    body = f"""
bad = [name for name in os.environ if name.startswith(("CLAUDE", "CODEX", "PYTEST", "VIRTUAL", "PYTHON", "BASH", "NODE_OPT"))
       and not name.startswith({allowed!r})]
if bad:
    raise SystemExit(str(bad))
solve()
result("Done.")
"""
    done = project.run(*fake(body), "-n2")
    assert project.outcomes() == {"passed": 1}, done.outlines


def test_a_row_of_the_error_table_is_a_setting_of_the_project(project, fake):
    project.case()
    flags = fake('result("No.", is_error=True, stop_reason="refusal")\n')
    project.run(*flags)
    assert project.outcomes() == {"failed": 1}
    flags = fake(
        'result("No.", is_error=True, stop_reason="refusal")\n',
        more="[tool.skilleval.errors.refusal]\noutcome = 'error'\n",
    )
    project.run(*flags)
    assert project.outcomes() == {"error": 1}


def test_a_wrong_row_of_the_error_table_is_a_usage_error(project, fake):
    project.case()
    done = project.run(*fake("", more="[tool.skilleval.errors.refusal]\noutcome = 'fine'\n"))
    assert done.ret == 4
    assert any("tool.skilleval.errors.refusal.outcome" in line for line in done.errlines + done.outlines)


def test_a_wrong_key_stops_the_run_after_its_first_trial(project, fake):
    project.case()
    flags = fake('nth()\nresult("Invalid API key", is_error=True, api_error_status=401)\nraise SystemExit(1)\n')
    done = project.run(*flags, "--trials=5")
    assert project.outcomes() == {"error": 1, "missing": 4}
    assert len(list((project.path / "asked").iterdir())) == 1
    assert done.ret == 1


def test_a_prompt_that_the_agent_takes_as_its_own_command_is_a_usage_error(project, fake):
    project.case(prompt="/cost please")
    done = project.run(*fake("result('Done.')\n"))
    assert done.ret == 4
    assert any("starts with '/'" in line for line in done.errlines + done.outlines)
    assert list((project.path / "asked").iterdir()) == []


def test_what_was_recorded_is_replayed_without_the_agent(project, fake):
    project.case()
    flags = fake("nth()\nsolve()\nresult('Done.')\n")
    project.run(*flags, "--skilleval-record=kept")
    project.run("--skilleval-provider=replay", "--skilleval-replay=kept")
    assert project.outcomes() == {"passed": 1}
    assert project.report()["run"]["provider"]["id"] == "replay:claude"
    assert len(list((project.path / "asked").iterdir())) == 1
    project.case(prompt="Write hello into out.txt, please.")
    done = project.run("--skilleval-provider=replay", "--skilleval-replay=kept")
    assert project.outcomes() == {"error": 1}
    assert any("its prompt changed since" in line for line in done.outlines)
