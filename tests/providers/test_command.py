"""Declared providers: the presets over recorded streams, and declarations of one's own."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace

import pytest
from asking import skill_at
from recorded import Recorded, recorded

from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import ErrorClass, OptionMistake, TrialFault, UserMistake
from pytest_skilleval.providers import make_provider
from pytest_skilleval.providers.base import ProviderSettings

PRESETS = ("opencode", "gemini")
RUNS = [(cli, run) for cli in PRESETS for run in recorded(cli).values()]
CLASSES = {
    "c_429": ErrorClass.RATE_LIMIT,
    "d_401": ErrorClass.AUTH,
    "e_500": ErrorClass.SERVER_ERROR,
    "e_503": ErrorClass.OVERLOADED,
    "g_cut": ErrorClass.NETWORK,
    "g_garbage": ErrorClass.NETWORK,
}


def name(value: object) -> str:
    return value.run if isinstance(value, Recorded) else str(value)


def intended(run):
    return ErrorClass.TIMEOUT if run.timed_out else CLASSES.get(run.scenario)


def declared(table, tmp_path=None, name="mine", model=None, **environ):
    settings = ProviderSettings(
        model=model, environ={"PATH": os.environ["PATH"], **environ}, options=table, rootpath=tmp_path or "/"
    )
    return make_provider(f"command:{name}", settings, {})


@pytest.fixture
def answered(ask, tmp_path):
    def answer(cli, run):
        skills = tuple(skill_at(tmp_path / "known", f"home-{word}", f"BODY-home-{word}") for word in ("ocs", "gemini"))
        question = replace(ask(), skills=skills, under_test=None)
        return declared({}, tmp_path, cli).read(question, run.output(tmp_path))

    return answer


@pytest.mark.parametrize(("cli", "run"), RUNS, ids=name)
def test_a_recorded_run_has_the_class_that_its_script_intends(cli, run, answered):
    answer = answered(cli, run)
    found = None if answer.error is None else answer.error.error_class
    assert found is intended(run), answer.error
    assert answer.transcript.finished is (found is None)


# Outside yolo, gemini offers no tool that runs commands: there the script could not go on.
TOOLLESS = {("gemini", "mode_default"), ("gemini", "mode_plan")}
GOOD = [(cli, run) for cli, run in RUNS if intended(run) is None and (cli, run.run) not in TOOLLESS]


@pytest.mark.parametrize(("cli", "run"), GOOD, ids=name)
def test_a_recorded_run_that_went_well_has_its_scripts_last_words_commands_and_tokens(cli, run, answered):
    transcript = answered(cli, run).transcript
    assert transcript.final_text == run.answers()[-1]["text"]
    wanted = [turn["tool"]["shell"] for turn in run.answers() if "shell" in turn.get("tool", {})]
    found = [call.command for call in transcript.tool_calls if call.name in ("bash", "run_shell_command")]
    assert found == wanted
    cached = run.tokens("cached")
    assert (transcript.tokens.input, transcript.tokens.cached) == (run.tokens("input"), cached)
    assert transcript.tokens.output == run.tokens("output")
    assert transcript.session_id


def test_outside_yolo_gemini_runs_no_command(answered):
    for cli, run in TOOLLESS:
        assert answered(cli, recorded(cli)[run]).transcript.tool_calls == ()


@pytest.mark.parametrize(
    ("cli", "run", "used"),
    [
        ("opencode", "skill_tool_rg", ["home-ocs"]),
        ("opencode", "skill_tool", []),  # the tool failed: no ripgrep
        ("gemini", "skill_tool", ["home-gemini"]),
        ("gemini", "b_tool", []),
    ],
)
def test_a_skill_is_used_when_its_tool_succeeded(cli, run, used, answered):
    assert [use.name for use in answered(cli, recorded(cli)[run]).transcript.skills_used] == used


def test_what_opencode_paid_is_added_up_over_its_steps(answered):
    assert answered("opencode", recorded("opencode")["b_tool"]).transcript.cost_usd == pytest.approx(2 * 0.000368)


def test_a_preset_leaves_out_a_flag_whose_value_is_not_known(ask, tmp_path):
    program = tmp_path / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environ = {"PATH": str(program.parent)}
    for model, flags in ((None, ()), ("a/b", ("--model", "a/b"))):
        launch = make_provider("command:opencode", ProviderSettings(model=model, environ=environ), {}).prepare(ask())
        assert launch.argv[1:] == ("run", "--format", "json", "--auto", *flags, "Write hello into out.txt.")


# ------------------------------------------------------------------------------------------------- of one's own

WHOLE = """
command = ["sh", "-c", "cat; echo; echo \\"$TONE $MY_KEY\\" >> \\"$1\\"", "sh", "{workspace}/said.txt"]
preload_via = "prompt"
keys = ["MY_KEY"]
skill_root = "{home}/agent/skills"
[env]
TONE = "{model} in {skill_name}"
[files]
"agent/config.json" = '{"key": "{env:MY_KEY}", "url": "{base_url}"}'
[parse]
success = {type = "end"}
text = {match = {type = "say"}, path = "body.text"}
"""


def test_a_declaration_becomes_a_command_its_environment_and_its_files(ask, run, tmp_path):
    table = tomllib.loads('base_url = "http://here"\n' + WHOLE)
    provider = declared(table, tmp_path, model="m1", MY_KEY="key-1")
    question = ask(prompt='{"type":"say","body":{"text":"Hi."}}\n{"type":"end"}')
    answer = provider.read(question, run(question, provider.prepare(question)))
    assert (answer.error, answer.transcript.final_text) == (None, "Hi.")
    assert (question.workspace / "said.txt").read_text() == "m1 in greeter key-1\n"
    config = question.home / "agent" / "config.json"
    assert config.read_text() == '{"key": "key-1", "url": "http://here"}'
    assert config.stat().st_mode & 0o077 == 0
    assert provider.skill_root(question.home) == question.home / "agent" / "skills"


def test_a_plain_text_agent_answers_with_what_it_prints_and_ends_with_status_0(ask, run):
    for status, text, error in ((0, "Hello.", None), (3, "", ErrorClass.NO_RESULT)):
        provider = declared({"command": ["sh", "-c", f"echo Hello.; exit {status}"], "parse": {"format": "text"}})
        question = ask()
        answer = provider.read(question, run(question, provider.prepare(question)))
        assert answer.transcript.final_text == text
        assert (answer.error and answer.error.error_class) is error


def test_a_preloaded_skill_stands_before_the_prompt_or_in_a_file_of_its_own(ask):
    question = replace(ask("preloaded"), system="Know this.")
    launch = declared({"command": ["cat"]}).prepare(question)
    assert launch.stdin.read_text() == "Know this.\n\nWrite hello into out.txt."
    table = {"command": ["cat", ["--system", "{system_prompt_file}"]], "preload_via": "file"}
    launch = declared(table).prepare(question)
    assert launch.argv[1:] == ("--system", str(question.scratch / "system.txt"))
    assert launch.stdin.read_text() == "Write hello into out.txt."
    assert declared(table).prepare(replace(question, system="")).argv[1:] == ()


def test_the_prompt_lane_has_a_command_of_its_own(ask):
    table = {"command": ["cat", "--act"], "plan_command": ["cat", "--plan"]}
    assert declared(table).prepare(ask(lane=Lane.PROMPT)).argv[1:] == ("--plan",)
    assert declared(table).prepare(ask()).argv[1:] == ("--act",)


def test_an_error_sentence_that_the_table_does_not_know_can_be_named(ask, tmp_path):
    parse = {
        "success": {"type": "end"},
        "errors": [{"match": {"type": "bad"}, "message": "why"}],
        "words": [{"match": "no more coins", "class": "quota"}],
    }
    stream = Recorded("x", "x", {}, [], 1, False, '{"type":"bad","why":"no more coins"}\n', "")
    answer = declared({"command": ["cat"], "parse": parse}).read(ask(), stream.output(tmp_path))
    assert answer.error.error_class is ErrorClass.QUOTA


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "declares no `command`"),
        ({"command": []}, "command: "),
        ({"command": ["cat", "{promt}"]}, "command: {promt} is no variable; allowed: base_url"),
        ({"command": ["cat"], "prompt_via": "arg"}, "prompt_via is 'arg' and {prompt} is missing"),
        ({"command": ["cat", "{env:K}"]}, "K is not named in keys or pass_env"),
        ({"command": ["cat", "{env:K}"], "keys": ["K"]}, "every user of the machine can read a command line"),
        ({"command": ["cat"], "parse": {"exit_codes": {"1": "odd"}}}, "parse.exit_codes.1"),
        ({"command": ["cat"], "parse": {"words": [{"match": "(", "class": "auth"}]}}, "parse.words.0.match"),
        ({"command": ["cat"], "preset": "cursor"}, "preset: 'cursor'; allowed: gemini, opencode"),
    ],
)
def test_a_wrong_declaration_is_a_mistake_that_names_its_key(table, words):
    with pytest.raises(OptionMistake) as caught:
        declared(table)
    assert words in str(caught.value)


def test_a_prompt_that_no_argument_can_hold_is_refused_before_anything_runs(ask):
    provider = declared({"command": ["echo", "{prompt}"], "prompt_via": "arg"})
    with pytest.raises(TrialFault, match=r"an argument of 200000 bytes; the system takes 131071"):
        provider.prepare(ask(prompt="x" * 200_000))


def test_a_program_that_is_missing_and_a_key_that_is_not_set_are_said_before_the_first_trial():
    with pytest.raises(UserMistake, match=r"no-such-agent: not found on PATH"):
        declared({"command": ["no-such-agent"]}).detect()
    with pytest.raises(UserMistake, match="nothing logs it in; set one of MY_KEY"):
        declared({"command": ["sh"], "version_command": ["echo", "1.2.3"], "keys": ["MY_KEY"]}).detect()


def test_a_program_that_the_agent_leans_on_is_missed_with_what_follows():
    table = {"command": ["sh"], "version_command": ["echo", "1.2.3"], "needs": {"sh": "x", "no-such": "nothing loads"}}
    assert declared(table).detect().warnings == ("command:mine: no-such is not on PATH; nothing loads",)


def test_a_version_is_found_by_its_own_command():
    found = declared({"command": ["sh"], "version_command": ["echo", "agent v1.2.3"], "tested": ["1.2.2"]}).detect()
    assert found.info.version == "1.2.3"
    assert found.warnings == ("command:mine 1.2.3 was never tested; tested: 1.2.2",)
