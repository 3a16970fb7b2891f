"""The chat provider, against a scripted endpoint."""

from __future__ import annotations

import os

import pytest
from rig import Call, Fail, ModelServer, Say, by_turn

from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import ErrorClass, OptionMistake, TrialFault, UserMistake
from pytest_skilleval.providers.base import ProviderSettings
from pytest_skilleval.providers.chat import Chat

pytest.importorskip("openai")

LOAD = Call("load_skill", {"name": "greeter"})


@pytest.fixture
def server():
    with ModelServer(by_turn(Say("unscripted"))) as running:
        yield running
    assert running.broken == []


@pytest.fixture
def chat(server):
    def make(model="m1", effort=None, **options):
        environ = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-chat-0123456789"}
        options.setdefault("base_url", f"{server.url}/v1")
        return Chat(ProviderSettings(model=model, effort=effort, environ=environ, options=options))

    return make


@pytest.fixture
def asked(ask, run):
    def go(provider, condition="self-load", system="", **spec):
        from dataclasses import replace

        question = replace(ask(condition, lane=Lane.PROMPT, **spec), system=system)
        return provider.read(question, run(question, provider.prepare(question)))

    return go


def test_an_answer_comes_back_with_model_and_tokens(chat, server, asked):
    server.script = by_turn(Say("Use --trials 5.", input=120, cached=20, output=9))
    answer = asked(chat(effort="low", parameters={"temperature": 0.5}))
    assert answer.error is None
    transcript = answer.transcript
    assert (transcript.final_text, transcript.model, transcript.turns) == ("Use --trials 5.", "m1", 1)
    assert (transcript.tokens.input, transcript.tokens.cached, transcript.tokens.output) == (120, 20, 9)
    body = server.questions[0].body
    assert (body["temperature"], body["reasoning_effort"]) == (0.5, "low")


def test_a_skill_that_the_model_loads_is_used_and_its_text_goes_back(chat, server, asked):
    server.script = by_turn(Say(calls=(LOAD,), input=100, output=10), Say("Done.", input=200, output=5))
    transcript = asked(chat()).transcript
    assert [(use.name, use.how, use.position) for use in transcript.skills_used] == [("greeter", "tool", 0)]
    assert transcript.skills_visible == ("greeter", "other")
    assert "About greeter." in server.questions[0].text
    assert "Do it well." not in server.questions[0].text
    assert "Do it well." in server.questions[1].text
    assert (transcript.tokens.input, transcript.tokens.output, transcript.turns) == (300, 15, 2)


def test_a_skill_that_does_not_exist_is_not_used(chat, server, asked):
    server.script = by_turn(Say(calls=(Call("load_skill", {"name": "nope"}),)), Say("Done."))
    transcript = asked(chat()).transcript
    assert transcript.skills_used == ()
    assert [call.status for call in transcript.tool_calls] == ["error"]


def test_without_skills_no_tool_is_offered(chat, server, asked):
    server.script = by_turn(Say("Done."))
    transcript = asked(chat(), "none").transcript
    assert "tools" not in server.questions[0].body
    assert transcript.skills_visible == ()


def test_a_preloaded_skill_is_the_system_text(chat, server, asked):
    server.script = by_turn(Say("Done."))
    asked(chat(), "preloaded", system="Know this.")
    assert server.questions[0].body["messages"][0] == {"role": "system", "content": "Know this."}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Fail(401, "bad key"), ErrorClass.AUTH),
        (Fail(404, "no such model"), ErrorClass.MODEL_NOT_FOUND),
        (Fail(429, "Slow down"), ErrorClass.RATE_LIMIT),
        (Fail(429, "You exceeded your current quota, please check your plan"), ErrorClass.QUOTA),
        (Fail(500, "oops"), ErrorClass.SERVER_ERROR),
        (Say("x", stop="length"), ErrorClass.CONTEXT_TOO_LONG),
        (Say("x", stop="content_filter"), ErrorClass.REFUSAL),
    ],
)
def test_an_error_has_its_class_and_no_answer(chat, server, asked, reply, expected):
    server.script = by_turn(reply)
    answer = asked(chat())
    assert answer.error.error_class is expected
    assert (answer.transcript.finished, answer.transcript.final_text) == (False, "")
    assert len(server.questions) == 1  # its own retries would stack on the runner's


def test_the_wait_that_an_endpoint_asks_for_is_kept(chat, server, asked):
    server.script = by_turn(Fail(429, "Slow down", headers={"retry-after": "17"}))
    assert asked(chat()).error.retry_after == 17.0


def test_an_endpoint_that_is_out_of_reach_is_a_network_error(chat, asked):
    assert asked(chat(base_url="http://127.0.0.1:9/v1")).error.error_class is ErrorClass.NETWORK


def test_a_model_that_never_answers_is_out_of_turns(chat, server, asked):
    server.script = by_turn(Say(calls=(LOAD,)))
    assert asked(chat(), budget={"steps": 3}).error.error_class is ErrorClass.MAX_TURNS
    assert len(server.questions) == 3


def test_a_file_of_the_workspace_is_not_imported_in_place_of_a_module(chat, server, ask, run):
    server.script = by_turn(Say("Done."))
    question = ask(lane=Lane.PROMPT)
    (question.workspace / "openai.py").write_text("raise SystemExit('taken over')")
    provider = chat()
    assert provider.read(question, run(question, provider.prepare(question))).error is None


def test_lanes_in_which_something_has_to_be_done_are_refused(chat, ask):
    with pytest.raises(TrialFault, match="chat can only answer, and lane execution needs an agent"):
        chat().prepare(ask())


def test_the_key_goes_by_the_environment_and_is_a_secret(chat, ask):
    launch = chat().prepare(ask(lane=Lane.PROMPT))
    assert launch.env == {"OPENAI_API_KEY": "sk-chat-0123456789"}
    assert launch.secrets == ("sk-chat-0123456789",)
    assert "sk-chat" not in launch.stdin.read_text()


def test_what_is_missing_is_said_before_the_first_trial():
    with pytest.raises(UserMistake, match="no model is named"):
        Chat(ProviderSettings()).detect()
    with pytest.raises(UserMistake, match="OPENAI_API_KEY is not set"):
        Chat(ProviderSettings(model="m")).detect()
    with pytest.raises(OptionMistake, match=r"providers\.chat\.url: .*allowed keys: base_url, key, parameters"):
        Chat(ProviderSettings(options={"url": "x"}))
    assert Chat(ProviderSettings(model="m", options={"base_url": "http://x"})).detect().info.model == "m"
