"""--skilleval-judge: statements in prose are decided by a provider, strictly, with evidence and cost on record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.judge import parse_verdict

if TYPE_CHECKING:
    from tests.conftest import Project

RUBRIC = {"id": "kind-words", "kind": "rubric", "statement": "The greeting is kind."}
SHOWN = "--- the answer\nDear  Ada,\nI am glad to see you.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"verdict": "yes", "evidence": "glad to see you"}', (True, "glad to see you")),
        ('{"evidence": "Dear Ada, I am glad", "verdict": "yes"}', (True, "Dear Ada, I am glad")),
        ('```json\n{"verdict": "no", "evidence": ""}\n```', (False, "")),
        ('\n{"verdict": "no", "evidence": "it never says how"}\n', (False, "it never says how")),
    ],
)
def test_a_verdict_is_one_json_object_with_a_quote(text: str, expected: tuple[bool, str]) -> None:
    assert tuple(parse_verdict(text, SHOWN, "j")) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        "The statement holds.",
        'Sure: {"verdict": "yes", "evidence": "glad to see you"}',
        '{"verdict": "yes", "evidence": ""}',
        '{"verdict": "yes", "evidence": "delighted"}',
        '{"verdict": "maybe", "evidence": "glad to see you"}',
        '{"verdict": true, "evidence": "glad to see you"}',
        '{"verdict": "yes"}',
        '{"verdict": "yes", "evidence": ["glad to see you"]}',
        '{"verdict": "yes", "evidence": "glad to see you", "score": 5}',
        '[{"verdict": "yes", "evidence": "glad to see you"}]',
        '{"verdict": "yes", "evidence": "glad to see you"}{"verdict": "no", "evidence": ""}',
    ],
)
def test_anything_else_is_an_error_of_the_check_and_no_verdict(text: str) -> None:
    with pytest.raises(TrialFault, match=r"judge j: (gave no verdict|its yes quotes)") as raised:
        parse_verdict(text, SHOWN, "j")
    assert raised.value.error_class is ErrorClass.CHECK


def test_the_stub_as_judge_agrees_with_the_stub_as_agent(any_mode: Project) -> None:
    said = {"id": "said", "kind": "file", "path": "out.txt", "equals": "hello", "required": False}
    any_mode.case(rate=0.5, checks=[RUBRIC, said])
    result = any_mode.run("--trials", "12", "--skilleval-judge", "stub", "--skilleval-seed", "3")
    assert result.ret == 0
    report = any_mode.report()
    counts = report["run"]["counts"]
    assert "unjudged" not in counts
    assert counts["passed"] + counts["failed"] == 12
    assert 0 < counts["passed"] < 12
    for line in report["trials"]:
        kind, wrote = line["checks"]
        assert kind["passed"] is wrote["passed"] is (line["outcome"] == "passed")
        assert kind["judged"]["answers"] == ["yes" if kind["passed"] else "no"]
        assert kind["judged"]["simulated"] is True
    assert report["judge"]["statements"] == 12
    result.stdout.fnmatch_lines(["*judge: stub (simulated, nobody was asked) decided 12 statements*"])


JUDGE = """
import json
import sys
from pathlib import Path
from pytest_skilleval.providers.base import Answer, Detected, Launch
from pytest_skilleval.records import ProviderInfo, Tokens, Transcript

SAYS = json.loads(Path(__file__).with_name("says.json").read_text())

class Judge:
    id, simulated, paid = "wise", False, True

    def __init__(self, settings):
        self.settings = settings

    def detect(self):
        return Detected(ProviderInfo(id=self.id, version="1"))

    def credentials(self):
        return {}

    def skill_root(self, home):
        return home / "skills"

    def prepare(self, ask):
        prompt = ask.scratch / "prompt.txt"
        prompt.write_text(ask.prompt)
        assert ask.kind == "plan" and ask.skills == ()
        script = 'cat > "$1"; echo "$HOME" >> "$2"; ls -A >> "$2"'
        seen = [str(Path(__file__).with_name(name)) for name in ("asked.txt", "homes.txt")]
        return Launch(("sh", "-c", script, "sh", *seen), stdin=prompt)

    def read(self, ask, output):
        assert output.exit_status == 0 and output.reason == "exited", output
        number = int(ask.id.case.rpartition("#")[2]) if "#" in ask.id.case else 1
        text = SAYS[number - 1]
        tokens = Tokens(input=100, output=10)
        return Answer(Transcript(final_text=text, finished=True, model=self.settings.model, tokens=tokens, cost_usd=0.25))

def pytest_skilleval_providers(config):
    return {"wise": Judge}
"""
YES = '{"verdict": "yes", "evidence": "hello"}'
NO = '{"verdict": "no", "evidence": ""}'


def judged(project: Project, says: list[str], *words: str, **more: Any) -> pytest.RunResult:
    """Run one case with a judge that says this."""
    project.write("conftest.py", JUDGE)
    project.write("says.json", json.dumps(says))
    project.case(checks=[RUBRIC], answer="I wrote it.", **more)
    repeats = ("--skilleval-judge-repeats", str(len(says))) if len(says) > 1 else ()
    return project.run("--skilleval-judge", "wise@m-1", *repeats, *words)


def test_most_answers_decide_and_agreement_tokens_and_cost_are_on_record(project: Project) -> None:
    result = judged(project, [NO, YES, YES])
    assert result.ret == 0
    report = project.report()
    (line,) = report["trials"]
    (check,) = line["checks"]
    assert (line["outcome"], check["passed"], check["reason"]) == ("passed", True, "judge wise: yes (2 of 3): 'hello'")
    # Of the 3 pairs of its answers only (yes, yes) agrees.
    assert check["judged"] == {
        "provider": "wise",
        "model": "m-1",
        "simulated": False,
        "answers": ["no", "yes", "yes"],
        "evidence": "hello",
        "agreement": pytest.approx(1 / 3),
        "tokens": {"input": 300, "cached": None, "output": 30, "reasoning": None},
        "cost_usd": 0.75,
    }
    assert (report["judge"]["statements"], report["judge"]["answers"], report["judge"]["cost_usd"]) == (1, 3, 0.75)
    assert report["judge"]["agreement"]["rate"] == pytest.approx(1 / 3)
    # The agent's own tokens and cost are not the judge's.
    assert (line["tokens"], line["cost_usd"]) == (None, None)
    result.stdout.fnmatch_lines(["*judge: wise m-1 decided 1 statement; two answers agree in 33.3% [[]3%, 91%]*"])
    asked = (project.path / "asked.txt").read_text()
    assert '"The greeting is kind."' in asked
    assert "--- out.txt\nhello" in asked
    assert "I wrote it." in asked
    homes = (project.path / "homes.txt").read_text().split()
    assert homes[1::2] == [".git"] * 3, "its working directory holds nothing of the agent's"
    assert len(set(homes[0::2])) == 3, "each answer comes from a home of its own"


@pytest.mark.parametrize(
    ("says", "wanted"),
    [
        (["I think so."], "judge wise: gave no verdict, but 'I think so.'"),
        ([YES, NO], "judge wise: no majority: yes, no; ask an odd number"),
    ],
)
def test_a_judge_without_a_verdict_is_an_error_of_the_trial(project: Project, says: list[str], wanted: str) -> None:
    assert judged(project, says).ret == 1
    (line,) = project.report()["trials"]
    assert (line["outcome"], line["error"]["class"]) == ("error", "check")
    assert line["error"]["message"] == f"check kind-words: {wanted}"


def test_runs_of_two_judges_are_not_comparable(project: Project) -> None:
    project.case(checks=[RUBRIC], conditions=["none"])
    assert project.run("--trials", "2", "--skilleval-judge", "oracle").ret == 0
    result = project.run("--trials", "2", "--skilleval-judge", "stub", "--compare-baseline", "latest")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*not comparable: judge: oracle in the baseline, stub here*"])
    result = project.run("--trials", "2", "--skilleval-judge", "oracle", "--compare-baseline", "latest")
    assert result.ret == 0
    assert project.report()["comparison"]["comparable"]


def test_what_a_judge_costs_counts_for_the_budget(project: Project) -> None:
    result = judged(project, [YES], "--trials", "4", "--skilleval-budget", "tokens=220")
    assert result.ret == 2
    assert project.outcomes() == {"passed": 2, "missing": 2}


def test_a_judge_without_a_verdict_costs_as_much(project: Project) -> None:
    result = judged(project, ["I think so."], "--trials", "4", "--skilleval-budget", "tokens=220")
    assert result.ret != 0
    assert project.outcomes() == {"error": 2, "missing": 2}


def test_a_dollar_budget_is_refused_where_the_judges_cost_is_unknown(project: Project) -> None:
    tells = "def pytest_configure(config):\n    from pytest_skilleval.providers.stub import Stub\n"
    project.write("telling.py", tells + "    Stub.tells_cost = True\n")
    words = ("-p", "telling", "--skilleval-budget=usd=5")
    result = judged(project, [YES], *words)
    assert result.ret == 4
    said = [line for line in result.stderr.lines if "usd" in line]
    assert len(said) == 1
    assert "judge wise does not say what an answer costs" in said[0]
    assert not (project.path / ".skilleval").exists()
    assert judged(project, [YES], *words, "--skilleval-allow-unknown-cost").ret == 0


@pytest.mark.parametrize("own", [True, False])
def test_a_cap_of_the_judge_holds_whoever_hands_out_the_trials(project: Project, own: bool) -> None:
    slow = """echo asked >> "$1"; sleep 0.3; echo answered >> "$1"; true """
    project.write("says.json", json.dumps([YES]))
    project.write("conftest.py", JUDGE.replace("""cat > "$1"; echo "$HOME" >> "$2"; ls -A >> "$2\"""", slow))
    for name in ("one", "two"):
        project.case(name, checks=[RUBRIC])
    words = ("-n2", "-v", "--trials=2", "--skilleval-judge=wise", "--skilleval-cap=provider:wise=1")
    result = project.run(*words, *(() if own else ("--dist=load",)))
    assert result.ret == 0
    assert ("CapScheduler" in result.stdout.str()) is own
    assert (project.path / "asked.txt").read_text().split() == ["asked", "answered"] * 4


def test_a_judge_that_nobody_knows_is_refused_before_the_first_agent(project: Project) -> None:
    project.case()
    result = project.run("--skilleval-judge", "nobody")
    assert result.ret == 4
    assert "'nobody' is not known" in result.stderr.str()
    assert not (project.path / ".skilleval").exists()


KEYED = """
[tool.skilleval.providers.keyed]
command = ["sh", "-c", "echo the key is $MY_API_KEY; echo $MY_API_KEY > key.txt"]
version_command = ["sh", "-c", "echo 1.0.0"]
keys = ["MY_API_KEY"]
parse = {format = "text"}
"""


def test_a_judge_is_never_shown_the_agents_key_and_quotes_none(project: Project) -> None:
    key = "sk-test-AAAA-bbbb-1234567890"
    project.write("pyproject.toml", KEYED)
    says = ['{"verdict": "yes", "evidence": "the key is [redacted]"}']
    env = {"MY_API_KEY": key}
    project.write("conftest.py", JUDGE)
    project.write("says.json", json.dumps(says))
    project.case(checks=[RUBRIC])
    words = ("--skilleval-judge=wise", "--skilleval-provider=command:keyed", "--skilleval-sandbox=off")
    result = project.run(*words, env=env)
    assert result.ret == 0
    (line,) = project.report()["trials"]
    assert line["checks"][0]["judged"]["evidence"] == "the key is [redacted]"
    asked = (project.path / "asked.txt").read_text()
    assert "--- key.txt\n[redacted]" in asked
    files = [path for path in project.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if key.encode() in path.read_bytes()] == []
