"""A preset with its real program: opencode, declared and not coded."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from installed import install
from rig import Say, by_turn, shell
from running import marked, supervised

from pytest_skilleval.casespec import Lane
from pytest_skilleval.providers import make_provider
from pytest_skilleval.providers.base import ProviderSettings
from pytest_skilleval.providers.contract import make_ask
from pytest_skilleval.providers.presets import PRESETS


@pytest.fixture
def opencode(server, tmp_path):
    """The preset, with the scripted model as its endpoint."""
    name = ".config/opencode/opencode.json"
    config = json.loads(PRESETS["opencode"]["files"][name])
    models = {"npm": "@ai-sdk/openai-compatible", "name": "rig", "models": {"m": {"name": "m"}}}
    models["options"] = {"baseURL": f"{server.url}/v1", "apiKey": "{env:OPENAI_API_KEY}"}
    environ = {"PATH": f"{install('opencode').parent}:{os.environ['PATH']}", "OPENAI_API_KEY": "sk-opencode-0123456789"}
    options = {"files": {name: json.dumps({**config, "provider": {"rig": models}})}}
    settings = ProviderSettings(model="rig/m", environ=environ, rootpath=tmp_path, options=options)
    return make_provider("command:opencode", settings, {})


@pytest.fixture
def asked(opencode):
    def go(ask):
        home = ask.home
        env = {"XDG_CONFIG_HOME": f"{home}/.config", "XDG_DATA_HOME": f"{home}/.local/share"}
        env |= {"XDG_CACHE_HOME": f"{home}/.cache", "XDG_STATE_HOME": f"{home}/.local/state"}
        ask = replace(ask, env={**ask.env, **env})
        output = supervised(ask, opencode.prepare(ask), ask.home.parent.name)
        assert marked(ask.home.parent.name) == []
        return opencode.read(ask, output)

    return go


def test_opencode_answers_runs_a_command_and_counts_its_tokens(opencode, server, asked, tmp_path):
    assert opencode.detect().info.version == "1.18.33"

    def script(question):
        if not question.tools:
            return Say("A title")
        return Say("Now.", calls=(shell("printf hello > out.txt"),)) if question.turn == 0 else Say("Done.", output=7)

    server.script = script
    question = make_ask(tmp_path / "trial-opencode", condition="none", budget={"timeout": 120})
    answer = asked(question)
    assert answer.error is None
    assert (question.workspace / "out.txt").read_text() == "hello"
    transcript = answer.transcript
    assert [(call.name, call.command, call.status) for call in transcript.tool_calls] == [
        ("bash", "printf hello > out.txt", "ok")
    ]
    assert (transcript.final_text, transcript.tokens.input, transcript.tokens.output) == ("Done.", 200, 17)


def test_opencode_in_the_prompt_lane_is_offered_no_tool_that_changes_anything(server, asked, tmp_path):
    server.script = by_turn(Say("I would use printf."))
    answer = asked(make_ask(tmp_path / "plan-opencode", lane=Lane.PROMPT, condition="none", budget={"timeout": 120}))
    assert answer.transcript.final_text == "I would use printf."
    offered = {name for question in server.questions for name in question.tools}
    assert {"read", "skill"} <= offered
    assert not offered & {"bash", "edit", "write", "patch", "task"}
