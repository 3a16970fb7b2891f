"""Whole runs of pytest with real agents on a scripted model: lanes, conditions, rates, and what is left behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from installed import install
from rig import Fail, Question, Reply, Say, by_turn, load, shell
from running import KEYS, MODELS

NEW = "Write the greeting with the NEW printf recipe."
OLD = "Write the greeting with the OLD echo recipe."
SKILL = (
    "---\nname: greeter\ndescription: Writes greetings into files. Use it for every greeting.\n---\n# Greeter\n\n{}\n"
)
CASE = """\
skill: greeter
prompt: Write the greeting of {name} into out.txt.
checks: [{{id: greeted, kind: file, path: out.txt, contains: hello}}]
stale: ../../stale/greeter
budget: {{timeout: 90}}
"""


def follows_skills(question: Question) -> Reply:
    """A model that loads a skill it is offered, does well with the new text, and badly without."""
    loaded = NEW in question.text or OLD in question.text
    if re.search(r"^- greeter: ", question.text, re.MULTILINE) and question.turn == 0:
        return Say("I look into the skill.", calls=(load("greeter"),), input=500, output=20)
    wrote = "out.txt; echo wrote" in question.text
    if wrote:
        return Say("Done.", input=700, output=5)
    word = "hello" if NEW in question.text and loaded else "hi"
    return Say("I write.", calls=(shell(f"printf {word} > out.txt; echo wrote"),), input=600, output=15)


@pytest.fixture
def project(agent, server, tmp_path):
    """A project with a skill, its stale version and execution cases."""
    root = tmp_path / "project"
    base = server.url + ("/v1" if agent == "codex" else "")
    table = f"[tool.skilleval.providers.{agent}]\nprogram = {json.dumps(str(install(agent)))}\nbase_url = {json.dumps(base)}\n"
    for name, text in {
        "pyproject.toml": table
        + "[tool.skilleval.retry]\nlimit = 1\nfirst = 0\n[tool.pytest.ini_options]\ntestpaths = ['cases']\n",
        "skills/greeter/SKILL.md": SKILL.format(NEW),
        "stale/greeter/SKILL.md": SKILL.format(OLD),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def measured(agent, project, tmp_path):
    """Run pytest in the project and return its exit status, output and report."""

    def run(*flags, env=None):
        temp = tmp_path / "temp"
        temp.mkdir(exist_ok=True)
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly"]
        argv += ["--skilleval-provider", agent, "--skilleval-model", MODELS[agent], *flags]
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        done = subprocess.run(
            argv,
            cwd=project,
            env={**keep, KEYS[agent]: "sk-e2e-0123456789abcdef", "TMPDIR": str(temp), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        reports = sorted(project.glob(".skilleval/runs/*/report.json"))
        report = json.loads(reports[-1].read_text()) if reports else None
        left = [path for path in temp.rglob("*") if path.is_file()]
        assert left == [], done.stdout
        return done, report

    return run


def write_cases(project: Path, names, text=CASE, lane="execution"):
    folder = project / "cases" / lane
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.yaml").write_text(text.format(name=name))


def group(report, condition, case):
    return next(row for row in report["groups"] if row["condition"] == condition and row["case"] == case)


def test_four_conditions_of_six_cases_give_trigger_rate_tokens_and_lifts(agent, measured, project, server):
    names = ["ada", "bob", "cyd", "dan", "eve", "fay"]
    write_cases(project, names)
    server.script = follows_skills
    done, report = measured("-n", "4", "--trials", "3", "--skilleval-condition", "all")
    assert report is not None, done.stdout + done.stderr
    assert report["run"]["counts"] == {"passed": 36, "failed": 36, "error": 0, "missing": 0}, done.stdout[-3000:]
    for name in names:
        for condition, rate in (("none", 0.0), ("self-load", 1.0), ("preloaded", 1.0), ("stale", 0.0)):
            assert group(report, condition, name)["pass_rate"]["rate"] == rate, (name, condition)
    loads = dict.fromkeys(("none", "self-load", "preloaded", "stale"), 0)
    for path in project.glob(".skilleval/runs/*/trials/*/record.json"):
        record = json.loads(path.read_text())["body"]
        loads[record["condition"]] += [use["name"] for use in record["skills_used"]] == ["greeter"]
    assert loads == {"none": 0, "self-load": 18, "preloaded": 0, "stale": 18}
    lifts = {row["metric"]: row["value"] for row in report["lift"] if row["of"] == "pass_rate"}
    assert (lifts["realised"], lifts["oracle"], lifts["routing_gap"], lifts["stale_harm"]) == (1.0, 1.0, 0.0, 0.0)
    # Three answers with a load, two without.
    assert group(report, "self-load", "ada")["tokens"]["output"] == pytest.approx(40)
    assert group(report, "preloaded", "ada")["tokens"]["output"] == pytest.approx(20)
    assert "sk-e2e-0123456789abcdef" not in done.stdout + done.stderr
    stored = [path for path in (project / ".skilleval").rglob("*") if path.is_file()]
    assert not [path for path in stored if b"sk-e2e-0123456789abcdef" in path.read_bytes()]


def test_the_prompt_lane_measures_routing(agent, measured, project, server):
    text = "skill: {name}\nprompt: How do I greet in a file?\nexpect: ['printf']\nbudget: {{timeout: 60}}\n"
    write_cases(project, ["greeter"], text, "prompt")
    write_cases(project, ["none"], text.replace("expect: ['printf']\n", "expect: ['hello']\n"), "prompt")

    def script(question):
        offered = re.search(r"^- greeter: ", question.text, re.MULTILINE)
        if offered and question.turn == 0:
            return Say(calls=(load("greeter"),))
        return Say("Use printf, hello.")

    server.script = script
    done, report = measured("--skilleval-lane", "prompt", "--skilleval-condition", "self-load")
    assert report is not None, done.stdout + done.stderr
    assert report["routing"]["recall"]["rate"] == 1.0, done.stdout
    # It loads the skill for the case that should have none, too.
    assert report["routing"]["false_trigger_rate"]["rate"] == 1.0


def test_a_rate_limit_that_never_ends_is_an_error_and_gives_no_rate(agent, measured, project, server):
    write_cases(project, ["ada"])
    server.script = by_turn(Fail(429, "Too many requests", headers={"retry-after": "0"}))
    done, report = measured("-n", "4", "--trials", "5", "--skilleval-condition", "self-load")
    assert report is not None, done.stdout + done.stderr
    assert report["run"]["counts"] == {"passed": 0, "failed": 0, "error": 5, "missing": 0}
    assert {trial["error"]["class"] for trial in report["trials"]} == {"rate_limit"}
    row = group(report, "self-load", "ada")
    assert (row["n"], row["errors"], row["pass_rate"]["n"], row["pass_rate"]["rate"]) == (0, 5, 0, None)
    assert report["run"]["status"] == "invalid"
    assert done.returncode == 1


def test_a_wrong_key_stops_the_run_after_its_first_trials(agent, measured, project, server):
    write_cases(project, ["ada", "bob", "cyd", "dan"])
    server.script = by_turn(Fail(401, "invalid x-api-key"))
    done, report = measured("--trials", "2", "--skilleval-condition", "self-load")
    assert report is not None, done.stdout + done.stderr
    assert report["run"]["counts"]["error"] == 1, done.stdout
    assert report["run"]["counts"]["missing"] == 7
    assert done.returncode == 1
