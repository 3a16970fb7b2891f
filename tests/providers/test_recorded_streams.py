"""Every recorded stream of claude and codex: its class, text, tools, skills and tokens are those its script intends."""

from __future__ import annotations

import os

import pytest
from asking import skill_at
from recorded import Recorded, recorded

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.providers.base import ProviderSettings
from pytest_skilleval.providers.claude import Claude
from pytest_skilleval.providers.codex import Codex

AGENTS = {"claude": Claude, "codex": Codex}
RUNS = [(cli, run) for cli in AGENTS for run in recorded(cli).values()]

BY_SCENARIO = {
    "c_429": ErrorClass.RATE_LIMIT,
    "c_429_quota": ErrorClass.QUOTA,
    "c_429_usage": ErrorClass.QUOTA,
    "d_400": ErrorClass.CONTEXT_TOO_LONG,  # the model's server says: prompt is too long
    "d_400_credit": ErrorClass.QUOTA,
    "d_401": ErrorClass.AUTH,
    "d_403": ErrorClass.AUTH,
    "d_404": ErrorClass.MODEL_NOT_FOUND,
    "e_500": ErrorClass.SERVER_ERROR,
    "e_503": ErrorClass.OVERLOADED,
    "e_529": ErrorClass.OVERLOADED,
    "g_cut": ErrorClass.NETWORK,
    "g_garbage": ErrorClass.NETWORK,
    "g_hang_mid": ErrorClass.NETWORK,
    "g_stream_overloaded": ErrorClass.OVERLOADED,
    "i_refusal2": ErrorClass.REFUSAL,
    "i_maxtokens": ErrorClass.CONTEXT_TOO_LONG,
    "b_loop": ErrorClass.MAX_TURNS,
}
BY_RUN = {
    ("claude", "fast_f_hang"): ErrorClass.NETWORK,  # the agent's own limit on the answer's headers ended it
    ("claude", "root_nosandbox"): ErrorClass.BAD_REQUEST,
    ("codex", "x_badflag"): ErrorClass.BAD_REQUEST,
    ("codex", "x_badconfig"): ErrorClass.BAD_REQUEST,
    ("codex", "x_unknownkey"): ErrorClass.BAD_REQUEST,
    ("codex", "x_nokey"): ErrorClass.AUTH,
    # They waited for the network when they were stopped: that is no slow agent.
    ("codex", "x_refused"): ErrorClass.NETWORK,
    ("codex", "x_openai_nologin"): ErrorClass.NETWORK,
    # 500 and 529 look alike in codex: "high demand".
    ("codex", "e_500"): ErrorClass.OVERLOADED,
    ("codex", "fast_e_500"): ErrorClass.OVERLOADED,
}


def intended_class(cli: str, run: Recorded) -> ErrorClass | None:
    if (cli, run.run) in BY_RUN:
        return BY_RUN[cli, run.run]
    return ErrorClass.TIMEOUT if run.timed_out else BY_SCENARIO.get(run.scenario)


def name(value: object) -> str:
    return value.run if isinstance(value, Recorded) else str(value)


@pytest.fixture
def answered(ask, tmp_path):
    def answer(cli, run):
        question = ask()
        skills = tuple(
            skill_at(tmp_path / "known", word, text)
            for word, text in (
                ("home-claude", "# home-claude\n\nSecret phrase: BODY-home-claude"),
                ("home-codex", "# home-codex\n\nSecret phrase: BODY-home-codex"),
                ("demo", "# demo\n\nBODY-OLD: write the word with printf.\nBODY-NEW: write the word with printf."),
            )
        )
        question = question.__class__(**{**question.__dict__, "skills": skills, "under_test": skills[2]})
        return AGENTS[cli](ProviderSettings(environ=dict(os.environ))).read(question, run.output(tmp_path))

    return answer


@pytest.mark.parametrize(("cli", "run"), RUNS, ids=name)
def test_a_recorded_run_has_the_class_that_its_script_intends(cli, run, answered):
    answer = answered(cli, run)
    found = None if answer.error is None else answer.error.error_class
    assert found is intended_class(cli, run), answer.error
    assert answer.transcript.finished is (found is None)


GOOD = [(cli, run) for cli, run in RUNS if intended_class(cli, run) is None]


@pytest.mark.parametrize(("cli", "run"), GOOD, ids=name)
def test_a_recorded_run_that_went_well_answers_with_its_scripts_last_words(cli, run, answered):
    last = run.answers()[-1]["text"]
    if run.run == "w_subagent":
        last = "(script exhausted)"  # the agent asked once more, for a sub-agent in the background
    assert answered(cli, run).transcript.final_text == last


BAD = [(cli, run) for cli, run in RUNS if intended_class(cli, run) is not None]


@pytest.mark.parametrize(("cli", "run"), BAD, ids=name)
def test_a_recorded_run_that_went_badly_has_no_answer_and_says_why_in_one_line(cli, run, answered):
    answer = answered(cli, run)
    assert answer.transcript.final_text == ""
    assert answer.error.message
    assert "\n" not in answer.error.message


# Commands that codex lost on stdout in a read-only sandbox: its session file has them, which was not recorded here.
LOST = {("codex", "mode_readonly"), ("codex", "no_unified")}


@pytest.mark.parametrize(("cli", "run"), [row for row in GOOD if (row[0], row[1].run) not in LOST], ids=name)
def test_a_recorded_run_ran_the_commands_of_its_script_in_order(cli, run, answered):
    wanted = [turn["tool"]["shell"] for turn in run.answers() if "shell" in turn.get("tool", {})]
    if run.scenario == "w_patch_shell":
        wanted = []  # codex takes apply_patch out of the shell and reports the file instead
    calls = answered(cli, run).transcript.tool_calls
    shells = [call.command for call in calls if call.name in ("Bash", "command_execution")]
    loads = [command for command in shells if "SKILL.md" in command and command not in wanted]
    assert [command for command in shells if command not in loads] == wanted


USES = {
    ("claude", "skill_tool"): ("home-claude", "tool"),
    ("claude", "skill_read"): ("home-claude", "read"),
    ("claude", "rec_selfload"): ("demo", "tool"),
    ("claude", "rec_stale"): ("demo", "tool"),
    ("codex", "skill_cat"): ("home-codex", "read"),
    ("codex", "skill_ref"): ("home-codex", "read"),
    ("codex", "rec_selfload"): ("demo", "read"),
    ("codex", "rec_stale"): ("demo", "read"),
    **{("codex", run): ("home-codex", "read") for run in recorded("codex") if run.startswith("model_")},
}


@pytest.mark.parametrize(("cli", "run"), RUNS, ids=name)
def test_a_recorded_run_used_the_skill_that_its_script_loads_and_no_other(cli, run, answered):
    uses = answered(cli, run).transcript.skills_used
    wanted = USES.get((cli, run.run))
    assert [(use.name, use.how) for use in uses] == ([] if wanted is None else [wanted])
    assert all(use.evidence for use in uses)


@pytest.mark.parametrize(
    ("cli", "run"), [row for row in GOOD if row[1].run not in ("w_subagent", "i_empty", "skill_slash")], ids=name
)
def test_a_recorded_run_spent_the_tokens_of_its_script(cli, run, answered):
    tokens = answered(cli, run).transcript.tokens
    # The script's `input` is what the wire says: Anthropic's excludes what comes from the cache, OpenAI's includes it.
    cached = run.tokens("cached")
    wanted = run.tokens("input") + (cached + run.tokens("cache_write") if cli == "claude" else 0)
    assert (tokens.input, tokens.cached, tokens.output) == (wanted, cached, run.tokens("output"))
    if cli == "codex":
        assert tokens.reasoning == run.tokens("reasoning")


def test_a_sub_agents_tokens_count_and_its_words_are_not_the_answer(answered):
    transcript = answered("claude", recorded("claude")["w_subagent_nobg"]).transcript
    assert transcript.final_text == "main answer"
    assert (transcript.tokens.input, transcript.tokens.output) == (300, 30)
    assert transcript.turns == 2


def test_a_command_that_was_denied_is_told_from_one_that_failed(answered):
    for run in ("mode_default", "mode_dontAsk"):
        call = answered("claude", recorded("claude")[run]).transcript.tool_calls[0]
        assert (call.name, call.status) == ("Bash", "denied")


def test_a_skill_that_does_not_exist_is_not_used_and_its_call_failed(answered):
    transcript = answered("claude", recorded("claude")["skill_missing"]).transcript
    assert [(call.name, call.status) for call in transcript.tool_calls] == [("Skill", "error")]


def test_an_agents_own_retries_are_kept_with_their_reason(answered):
    claude = answered("claude", recorded("claude")["c_429_then_ok"]).transcript
    assert [text.partition(": ")[2] for text in claude.attempts] == ["rate_limit (status 429)"] * 2
    codex = answered("codex", recorded("codex")["c_429_then_ok"]).transcript
    assert [text[:22] for text in codex.attempts] == ["codex: Reconnecting...", "codex: Reconnecting..."]


def test_session_model_version_and_offered_skills_come_from_the_stream(answered):
    transcript = answered("claude", recorded("claude")["skill_tool"]).transcript
    assert transcript.session_id == "66491b9e-1f44-43c9-a68b-788a3ee3ce38"
    assert (transcript.model, transcript.version) == ("claude-sonnet-5-5", "2.1.332")
    assert "home-claude" in transcript.skills_visible
    assert answered("codex", recorded("codex")["a_text"]).transcript.session_id.startswith("01a229")


def test_a_patch_is_a_tool_call_with_the_file_it_changes(answered):
    for run in ("w_patch", "w_patch_shell"):
        call = answered("codex", recorded("codex")[run]).transcript.tool_calls[0]
        assert (call.name, call.path, call.status, call.reads_only) == ("file_change", "/eval/ws/out.txt", "ok", False)


def test_no_line_of_a_recorded_stream_is_left_unparsed(answered):
    for cli, run in RUNS:
        assert answered(cli, run).transcript.unparsed_lines == (), (cli, run.run)
