"""What a real agent does when it is asked as this plugin asks it: events, evidence, errors and what reached the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from installed import PINNED, install
from rig import Cut, Fail, Hang, Say, by_turn, load, shell

from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.model import Skill
from pytest_skilleval.providers.contract import make_ask

NEW = "Write the greeting with the NEW printf recipe."
OLD = "Write the greeting with the OLD echo recipe."


def asked(folder, provider, condition="self-load", body=NEW, **spec):
    """A question whose skill really lies where the condition says."""
    spec.setdefault("budget", {"timeout": 60})
    ask = make_ask(folder, condition=condition, **spec)
    skill = Skill(
        name="greeter",
        description="Writes greetings into files. Use it for every greeting.",
        path=folder / "cases" / "greeter",
        digest="0" * 64,
        body=f"# Greeter\n\n{body}\n",
        files=("SKILL.md",),
    )
    text = f"---\nname: greeter\ndescription: {skill.description}\n---\n{skill.body}"
    system = ""
    if ask.condition.installs != "nothing":
        target = provider.skill_root(ask.home) / "greeter"
        target.mkdir(parents=True)
        (target / "SKILL.md").write_text(text)
    elif ask.condition.preloads:
        system = skill.body
    return replace(
        ask,
        system=system,
        skills=(skill,) if ask.condition.installs != "nothing" else (),
        under_test=None if condition == "none" else skill,
    )


def test_the_version_is_the_pinned_one_and_was_tested(agent, provider):
    found = provider.detect()
    assert found.info.version == PINNED[agent][1]
    assert not any("never tested" in warning for warning in found.warnings)


def test_an_answer_comes_back_with_its_tokens(provider, server, go, tmp_path):
    server.script = by_turn(Say("Four.", input=1200, cached=0, output=34))
    answer = go(asked(tmp_path, provider, prompt="What is two and two?"))
    assert answer.error is None
    transcript = answer.transcript
    assert (transcript.final_text, transcript.tool_calls, transcript.turns) == ("Four.", (), 1)
    assert (transcript.tokens.input, transcript.tokens.output) == (1200, 34)
    assert transcript.session_id
    assert transcript.unparsed_lines == ()


def test_a_command_runs_in_the_workspace_and_is_reported(provider, server, go, tmp_path):
    server.script = by_turn(Say("Now.", calls=(shell("printf hello > out.txt; echo wrote"),)), Say("Done."))
    question = asked(tmp_path, provider)
    transcript = go(question).transcript
    assert (question.workspace / "out.txt").read_text() == "hello"
    assert [(call.command, call.output.strip(), call.status) for call in transcript.tool_calls] == [
        ("printf hello > out.txt; echo wrote", "wrote", "ok")
    ]
    assert transcript.final_text == "Done."


def test_a_prompt_of_200_kb_arrives_whole(provider, server, go, tmp_path):
    server.script = by_turn(Say("Read."))
    prompt = " ".join(f"w{number}" for number in range(33_000)) + " END-OF-PROMPT"
    assert len(prompt) > 200_000
    assert go(asked(tmp_path, provider, prompt=prompt)).transcript.final_text == "Read."
    assert prompt in server.seen


@pytest.mark.parametrize("version", [("self-load", NEW), ("stale", OLD)], ids=["self-load", "stale"])
def test_an_installed_skill_is_listed_loaded_and_seen_only_once_loaded(provider, server, go, tmp_path, version):
    condition, body = version
    server.script = by_turn(Say("Loading.", calls=(load("greeter"),)), Say("Done."))
    transcript = go(asked(tmp_path, provider, condition, body)).transcript
    assert [use.name for use in transcript.skills_used] == ["greeter"]
    assert transcript.skills_visible == ("greeter",)
    first, second = server.questions
    assert "Use it for every greeting" in first.text
    assert body not in first.text
    assert body in second.text
    assert (OLD if body == NEW else NEW) not in server.seen


def test_without_a_skill_nothing_is_listed(provider, server, go, tmp_path):
    server.script = by_turn(Say("Done."))
    transcript = go(asked(tmp_path, provider, "none")).transcript
    assert transcript.skills_visible == ()
    assert transcript.skills_used == ()
    assert "greeter" not in server.seen


def test_a_preloaded_skill_is_in_the_first_request_and_not_listed(provider, server, go, tmp_path):
    server.script = by_turn(Say("Done."))
    transcript = go(asked(tmp_path, provider, "preloaded")).transcript
    assert NEW in server.questions[0].text
    assert "Use it for every greeting" not in server.seen
    assert transcript.skills_visible == ()


def test_the_prompt_lane_can_load_a_skill_and_change_nothing(agent, provider, server, go, tmp_path):
    server.script = by_turn(Say("Loading.", calls=(load("greeter"),)), Say("I would use greeter."))
    question = asked(tmp_path, provider, lane=Lane.PROMPT)
    transcript = go(question).transcript
    assert [use.name for use in transcript.skills_used] == ["greeter"]
    assert transcript.final_text == "I would use greeter."
    if agent == "claude":
        assert {"Read", "Skill"} <= set(server.questions[0].tools) <= {"Read", "Skill", "DeferredToolPlaceholder"}


def test_the_prompt_lane_lets_no_command_write(agent, provider, server, go, tmp_path):
    if agent == "claude":
        pytest.skip("no tool that writes is offered at all")
    server.script = by_turn(Say("Writing.", calls=(shell("echo x > made.txt"),)), Say("It did not work."))
    question = asked(tmp_path, provider, lane=Lane.PROMPT)
    transcript = go(question).transcript
    assert list(question.workspace.iterdir()) == []
    assert [call.command for call in transcript.tool_calls] == ["echo x > made.txt"]
    assert transcript.tool_calls[0].status in ("error", "denied")


def test_a_429_that_passes_is_an_attempt_and_no_error(provider, server, go, tmp_path):
    server.script = by_turn((Fail(429, headers={"retry-after": "0"}), Say("Recovered.")))
    answer = go(asked(tmp_path, provider))
    assert answer.error is None
    assert answer.transcript.final_text == "Recovered."


@pytest.mark.parametrize(
    "error",
    [
        (Fail(401, "invalid x-api-key"), {ErrorClass.AUTH}),
        (Fail(403, "forbidden"), {ErrorClass.AUTH}),
        (Fail(404, "model: nope not found"), {ErrorClass.MODEL_NOT_FOUND}),
        (Fail(429, "Too many requests", headers={"retry-after": "0"}), {ErrorClass.RATE_LIMIT}),
        # In codex a 500 and a 529 look alike.
        (Fail(500, "Internal server error"), {ErrorClass.SERVER_ERROR, ErrorClass.OVERLOADED}),
        (Fail(529, "Overloaded"), {ErrorClass.OVERLOADED}),
        (Cut(), {ErrorClass.NETWORK}),
    ],
    ids=["401", "403", "404", "429", "500", "529", "cut"],
)
def test_an_error_of_the_model_has_its_class_and_no_answer(provider, server, go, tmp_path, error):
    reply, expected = error
    server.script = by_turn(reply)
    answer = go(asked(tmp_path, provider))
    assert answer.error.error_class in expected
    assert (answer.transcript.finished, answer.transcript.final_text) == (False, "")


def test_a_model_that_never_answers_is_a_timeout(provider, server, go, tmp_path):
    server.script = by_turn(Hang())
    answer = go(asked(tmp_path, provider, budget={"timeout": 8}))
    assert answer.error.error_class is ErrorClass.TIMEOUT
    assert not answer.transcript.finished


def test_a_model_that_is_out_of_reach_is_a_network_error_though_the_time_ran_out(agent, server, tmp_path, go, provider):
    provider.options = provider.options.model_copy(update={"base_url": "http://127.0.0.1:9"})
    answer = go(asked(tmp_path, provider, budget={"timeout": 15}))
    assert answer.error.error_class is ErrorClass.NETWORK


def test_a_step_budget_ends_an_agent_that_goes_on_for_ever(agent, provider, server, go, tmp_path):
    steps = 3
    loop = Say("Again.", calls=(shell("echo again"),))
    server.script = by_turn(*[loop] * 8, Say("Enough."))
    answer = go(asked(tmp_path, provider, budget={"timeout": 60, "steps": steps}))
    assert answer.error.error_class is ErrorClass.MAX_TURNS
    if agent == "claude":  # codex has no such flag: it is told afterwards
        assert len(server.questions) == steps


def test_children_that_outlive_a_command_are_found(provider, server, go, tmp_path):
    command = "(setsid sleep 97 >/dev/null 2>&1 &) ; nohup sleep 98 >/dev/null 2>&1 & echo started"
    server.script = by_turn(Say(calls=(shell(command),)), Say("Done."))
    assert go(asked(tmp_path, provider)).transcript.final_text == "Done."


def test_the_key_is_hidden_from_the_commands_of_codex(agent, provider, server, go, tmp_path):
    if agent == "claude":
        pytest.skip("claude hands its environment to commands: its key is redacted in all that is written")
    server.script = by_turn(Say(calls=(shell("env"),)), Say("Done."))
    transcript = go(asked(tmp_path, provider)).transcript
    assert "0123456789abcdef" not in transcript.tool_calls[0].output
    assert "0123456789abcdef" not in server.seen


CANARY = "CANARY-7f3a"


@pytest.fixture
def canaries(tmp_path, monkeypatch):
    """A host that is full of instructions and settings that no agent may see."""
    host = tmp_path / "host"
    for name in (
        ".claude/CLAUDE.md",
        ".claude/skills/host-skill/SKILL.md",
        ".agents/skills/host-skill/SKILL.md",
        ".codex/AGENTS.md",
        ".codex/skills/host-skill/SKILL.md",
        ".config/git/config",
    ):
        path = host / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: host-skill\ndescription: {CANARY} host {name}\n---\n{CANARY} {name}\n")
    for name in ("CLAUDE.md", "AGENTS.md", ".claude/skills/up/SKILL.md", ".agents/skills/up/SKILL.md", ".mcp.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: up\ndescription: {CANARY} parent {name}\n---\n{CANARY} {name}\n")
    monkeypatch.setenv("HOME", str(host))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(host / ".claude"))
    monkeypatch.setenv("CODEX_HOME", str(host / ".codex"))
    for name in ("CLAUDE_CODE_SIMPLE", "CLAUDECODE", "CODEX_CI"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("ANTHROPIC_MODEL", f"{CANARY}-model")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"x-canary: {CANARY}")
    return tmp_path


@pytest.mark.parametrize("condition", ["none", "self-load"])
def test_nothing_of_the_host_reaches_the_model(canaries, provider, server, go, condition):
    server.script = by_turn(Say(calls=(shell("env; git config --list --show-origin; ls -a ~"),)), Say("Done."))
    question = asked(canaries / "trial", provider, condition)
    (question.workspace / ".git").mkdir()
    for name in ("objects", "refs"):
        (question.workspace / ".git" / name).mkdir()
    (question.workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    env = {**question.env, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(question.home / ".gitconfig")}
    answer = go(replace(question, env=env))
    assert answer.error is None
    assert CANARY not in server.seen
    assert not any(CANARY in value for found in server.questions for value in found.headers.values())
    assert "host-skill" not in server.seen
    assert (condition == "self-load") == ("greeter" in server.questions[0].text)


def test_an_agent_writes_only_below_its_own_folders(provider, server, go, tmp_path):
    before = set(Path("/tmp").iterdir())
    server.script = by_turn(Say(calls=(shell("echo hi > out.txt"),)), Say("Done."))
    question = asked(tmp_path / "trial", provider)
    go(question)
    new = {path.name for path in Path("/tmp").iterdir()} - {path.name for path in before}
    assert not {name for name in new if "claude" in name or "codex" in name or name.startswith("cc-")}
    assert {path.name for path in (tmp_path / "trial").iterdir()} == {"home", "workspace", "tmp", "scratch", "cases"}


def test_the_program_is_read_only_from_the_folders_that_are_named_for_a_sandbox(agent, provider, tmp_path):
    launch = provider.prepare(asked(tmp_path, provider))
    real = install(agent).resolve()
    assert any(real.is_relative_to(folder) for folder in launch.reads)
