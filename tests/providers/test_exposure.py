"""The exposure check's judgement: what each condition promises, against texts that keep or break it."""

from __future__ import annotations

import json
import sys
import urllib.request

import pytest
from asking import skill_at

from pytest_skilleval.errors import UserMistake
from pytest_skilleval.model import CONDITIONS
from pytest_skilleval.providers.base import ProviderSettings
from pytest_skilleval.providers.doctor import check_exposure
from pytest_skilleval.providers.exposure import examine
from pytest_skilleval.providers.loopback import Loopback

BODY = "# Greeter\n\nWrite the greeting with the printf recipe."
LISTING = "The following skills are available:\n\n- greeter: About greeter.\n"


@pytest.fixture
def judged(tmp_path):
    skill = skill_at(tmp_path, "greeter", BODY)

    def judge(condition, text, foreign=None, said="", **changes):
        shown = skill.model_copy(update=changes)
        return examine(CONDITIONS[condition], [shown], text, foreign or {}, said)

    return judge


def broken(findings):
    return [finding.message for finding in findings if not finding.ok]


@pytest.mark.parametrize(
    ("condition", "text"),
    [("none", "You are an agent."), ("self-load", LISTING), ("stale", LISTING), ("preloaded", f"System.\n{BODY}")],
)
def test_a_condition_whose_promises_are_kept_has_no_finding_against_it(judged, condition, text):
    findings = judged(condition, text)
    assert findings
    assert broken(findings) == []


@pytest.mark.parametrize(
    ("condition", "text", "message"),
    [
        ("none", LISTING, "greeter is offered although nothing is installed"),
        ("none", BODY, "greeter: its text is there before it is loaded"),
        ("self-load", "You are an agent.", "greeter is dropped: it is not listed"),
        ("self-load", LISTING + BODY, "greeter: its text is there before it is loaded"),
        ("preloaded", "# Greeter", "greeter is preloaded with 0 of 1 lines; missing is 'Write the greeting"),
        ("preloaded", LISTING + BODY, "greeter is offered although nothing is installed"),
    ],
)
def test_a_broken_promise_is_said(judged, condition, text, message):
    assert any(said.startswith(message) for said in broken(judged(condition, text)))


def test_a_cut_description_is_said_with_how_much_is_shown(judged):
    text = "- greeter: Writes greetings in many langu\n"
    said = broken(judged("self-load", text, description="Writes greetings in many languages and styles."))
    assert said == [
        "greeter is offered with 30 of 46 characters of its description; it ends with 'Writes greetings in many langu'"
    ]


def test_the_agents_own_reason_for_dropping_a_skill_is_passed_on(judged):
    said = "ERROR failed to load skill /h/skills/greeter/SKILL.md: missing field `description`"
    (message,) = broken(judged("self-load", "nothing", said=said))
    assert message.endswith("missing field `description`")


def test_the_users_own_text_is_a_leak_unless_it_is_the_skills_text_too(judged):
    foreign = {"CLAUDE.md": "Always speak like a pirate, please."}
    assert broken(judged("none", "... Always speak like a  pirate, please. ...", foreign)) == [
        "CLAUDE.md reaches the agent: 'Always speak like a pirate, please.'"
    ]
    assert broken(judged("preloaded", BODY, {"AGENTS.md": BODY})) == []


def test_the_loopback_endpoint_keeps_what_it_is_asked_and_answers(tmp_path):
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "system": [{"text": "Be kind."}]}
    with Loopback() as endpoint:
        for stream in (False, True):
            data = json.dumps({**body, "stream": stream}).encode()
            request = urllib.request.Request(f"{endpoint.url}/v1/messages", data)
            with urllib.request.urlopen(request, timeout=10) as answer:
                said = answer.read().decode()
            assert "ok" in said
            assert ("event: message_stop" in said) is stream
        assert len(endpoint.requests) == 2
        assert {"Hello", "Be kind."} <= set(endpoint.text.splitlines())


def test_a_provider_that_cannot_be_checked_is_a_mistake():
    with pytest.raises(UserMistake, match="chat: cannot be checked without asking a model; allowed: claude, codex"):
        list(check_exposure("chat", ProviderSettings(), []))


CLAUDE = f"""#!{sys.executable}
import json, os, pathlib, sys, urllib.request
names = [path.name for path in pathlib.Path(os.environ["CLAUDE_CONFIG_DIR"], "skills").glob("*")]
listing = "".join(f"- {{name}}: About {{name}}.\\n" for name in names)
flag = "--append-system-prompt-file"
system = open(sys.argv[sys.argv.index(flag) + 1]).read() if flag in sys.argv else ""
body = json.dumps({{"messages": [sys.stdin.read()], "system": [listing, system, os.environ.get("CANARY", "")]}})
urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body.encode()).read()
"""


def test_the_check_starts_the_program_once_a_condition_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temp").mkdir()
    program = tmp_path / "claude"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    from pytest_skilleval.skills import load_skill

    skill_at(tmp_path / "skills", "greeter", BODY)
    skill = load_skill(tmp_path / "skills" / "greeter")
    environ = {"PATH": "/usr/bin:/bin", "CANARY": "Always speak like a pirate, please.", "HOME": str(tmp_path)}
    (tmp_path / "CLAUDE.md").write_text(environ["CANARY"])
    settings = ProviderSettings(
        environ=environ, rootpath=tmp_path / "project", options={"program": str(program), "login_file": "gone"}
    )
    findings = list(check_exposure("claude", settings, [skill]))
    assert broken(findings) == []
    assert [finding.condition for finding in findings if "nothing of" in finding.message] == [
        "none",
        "self-load",
        "preloaded",
    ]
    assert list((tmp_path / "temp").iterdir()) == []
