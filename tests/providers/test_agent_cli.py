"""Claude and Codex as commands: what is found, prepared and understood, with small programs in their place."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from asking import skill_at

from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import ErrorClass, OptionMistake, TrialFault, UserMistake
from pytest_skilleval.providers import make_provider
from pytest_skilleval.providers.base import ProviderSettings
from pytest_skilleval.providers.loads import read_by_command

KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY"}


@pytest.fixture
def program(tmp_path):
    """Write an executable script and return its path."""

    def write(text, name="agent"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


@pytest.fixture
def agent(program, tmp_path):
    """A provider whose program is a script."""

    def make(name, script="#!/bin/sh\ncat >/dev/null\n", model=None, effort=None, environ=None, **options):
        path = program(script)
        return make_provider(
            name,
            ProviderSettings(
                model=model,
                effort=effort,
                environ={"PATH": os.environ["PATH"], KEYS[name]: "sk-secret-0123456789", **(environ or {})},
                rootpath=tmp_path,
                options={"program": str(path), **options},
            ),
            {},
        )

    return make


def flag(launch, name):
    return launch.argv[launch.argv.index(name) + 1]


# ------------------------------------------------------------------------------------------------ finding


def test_the_version_is_asked_in_a_throw_away_home_with_an_environment_of_its_own(agent, tmp_path):
    script = f'#!/bin/sh\nenv > {tmp_path}/seen\ntouch "$HOME/left"\necho "2.1.332 (Claude Code)"\n'
    found = agent("claude", script, environ={"CLAUDE_CODE_SIMPLE": "1", "CANARY": "x"}).detect()
    assert found.info.version == "2.1.332"
    assert found.info.path == str(tmp_path / "bin" / "agent")
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines())
    assert not {"CLAUDE_CODE_SIMPLE", "CANARY", "ANTHROPIC_API_KEY"} & seen.keys()
    assert not Path(seen["HOME"]).exists()
    assert not any("never tested" in warning for warning in found.warnings)


def test_a_version_that_was_never_tested_is_a_warning_that_names_the_tested_ones(agent):
    found = agent("codex", "#!/bin/sh\necho codex-cli 9.9.9\n").detect()
    assert any("codex 9.9.9 was never tested" in warning and "0.171.0" in warning for warning in found.warnings)


def test_a_program_that_is_missing_is_a_mistake_that_says_how_to_get_it(tmp_path):
    settings = ProviderSettings(environ={"PATH": str(tmp_path), "ANTHROPIC_API_KEY": "x"}, rootpath=tmp_path)
    with pytest.raises(UserMistake, match=r"claude: not found on PATH; install it with `npm install -g @anthropic"):
        make_provider("claude", settings, {}).detect()


def test_a_program_without_a_version_is_a_mistake_that_shows_its_answer(agent):
    with pytest.raises(UserMistake, match="no version in its answer: segmentation trouble"):
        agent("claude", "#!/bin/sh\necho segmentation trouble >&2\nexit 3\n").detect()


def test_without_a_key_or_a_login_file_nothing_is_started(agent, program, tmp_path):
    settings = ProviderSettings(
        environ={"PATH": os.environ["PATH"]},
        rootpath=tmp_path,
        options={"program": str(program("#!/bin/sh\necho 2.1.332\n"))},
    )
    with pytest.raises(UserMistake, match=r"nothing logs it in.*ANTHROPIC_API_KEY.*login_file"):
        make_provider("claude", settings, {}).detect()


@pytest.mark.parametrize(("options", "words"), [({"programme": "x"}, "programme"), ({"args": "x"}, "args")])
def test_an_option_that_does_not_exist_or_has_a_wrong_type_is_a_mistake_that_names_it(options, words):
    with pytest.raises(OptionMistake, match=rf"tool\.skilleval\.providers\.claude\.{words}.*allowed keys: program"):
        make_provider("claude", ProviderSettings(options=options), {})


def test_a_login_file_is_copied_for_its_owner_only_and_its_tokens_are_secrets(agent, ask, tmp_path):
    (tmp_path / "auth.json").write_text(json.dumps({"tokens": {"access_token": "a" * 40, "kind": "short"}}))
    question = ask()
    launch = agent("codex", login_file="auth.json").prepare(question)
    copied = question.home / ".codex" / "auth.json"
    assert copied.read_bytes() == (tmp_path / "auth.json").read_bytes()
    assert stat.S_IMODE(copied.stat().st_mode) == 0o600
    assert "a" * 40 in launch.secrets


def test_a_login_file_that_is_not_there_is_a_mistake_that_names_it(agent):
    with pytest.raises(UserMistake, match=r"codex\.login_file: .*/gone\.json: No such file"):
        agent("codex", "#!/bin/sh\necho 0.171.0\n", login_file="gone.json").detect()


# ------------------------------------------------------------------------------------------------ preparing


def test_claude_gets_its_prompt_on_stdin_and_its_system_text_in_a_file(agent, ask):
    question = replace(ask("preloaded"), system="Do it like this.")
    launch = agent("claude", model="sonnet", effort="low").prepare(question)
    assert launch.stdin.read_text() == question.prompt
    assert question.prompt not in launch.argv
    system = flag(launch, "--append-system-prompt-file")
    assert (question.scratch / "system.txt").read_text() == "Do it like this."
    assert system == str(question.scratch / "system.txt")
    assert (flag(launch, "--model"), flag(launch, "--effort")) == ("sonnet", "low")
    assert flag(launch, "--setting-sources") == "user"
    assert "--bare" not in launch.argv
    assert launch.env["CLAUDE_CONFIG_DIR"] == str(question.home / ".claude")


def test_claude_in_the_prompt_lane_has_no_tool_that_changes_anything(agent, ask):
    launch = agent("claude").prepare(ask(lane=Lane.PROMPT))
    assert flag(launch, "--tools") == "Skill,Read"
    assert flag(launch, "--max-turns") == "4"
    assert "--tools" not in agent("claude").prepare(ask()).argv


def test_a_cases_limits_become_claudes_own(agent, ask):
    launch = agent("claude").prepare(ask(budget={"steps": 7, "cost_usd": 0.5}))
    assert (flag(launch, "--max-turns"), flag(launch, "--max-budget-usd")) == ("7", "0.5")


@pytest.mark.parametrize("prompt", ["/cost", "  /greeter do it"])
def test_claude_refuses_a_prompt_that_is_a_command_of_its_own(agent, ask, prompt):
    question = ask(prompt=prompt)
    assert "starts with '/'" in agent("claude").objection(question.case)
    with pytest.raises(TrialFault):
        agent("claude").prepare(question)


@pytest.mark.parametrize(("prompt", "refused"), [("Use $greeter now", True), ("It costs $5, greeter", False)])
def test_codex_refuses_a_prompt_that_loads_the_skill_by_itself(agent, ask, prompt, refused):
    assert (agent("codex").objection(ask(prompt=prompt).case) is not None) is refused


def test_codex_gets_a_config_of_its_own_that_any_text_survives(agent, ask):
    text = 'Say "hi"\\n\n\t\x7f\x01 \u00e9 """ \U0001f600'
    question = replace(ask("preloaded", workspace={"env": {"MY_KEY": 'a"b'}}), system=text)
    launch = agent("codex", effort="low", base_url="http://127.0.0.1:1/v1").prepare(question)
    config = tomllib.loads((question.home / ".codex" / "config.toml").read_text())
    assert config["developer_instructions"] == text
    assert config["model_reasoning_effort"] == "low"
    assert config["shell_environment_policy"]["set"] == {"MY_KEY": 'a"b'}
    assert config["shell_environment_policy"]["ignore_default_excludes"] is False
    assert config["model_providers"]["skilleval"]["base_url"] == "http://127.0.0.1:1/v1"
    assert config["skills"]["bundled"]["enabled"] is False
    assert launch.argv[-1] == "-"
    assert launch.stdin.read_text() == question.prompt


def test_codex_in_the_prompt_lane_is_held_by_its_own_sandbox_unless_it_runs_inside_ours(agent, ask):
    plan = ask(lane=Lane.PROMPT)
    assert flag(agent("codex").prepare(plan), "--sandbox") == "read-only"
    inside = agent("codex").prepare(replace(plan, sandboxed=True))
    assert "--sandbox" not in inside.argv  # its own sandbox does not work inside another one
    assert "--dangerously-bypass-approvals-and-sandbox" in agent("codex").prepare(ask()).argv


def test_an_openai_key_stands_in_for_codexs_own(program, tmp_path):
    settings = ProviderSettings(environ={"OPENAI_API_KEY": "sk-openai"}, options={"program": "/bin/sh"})
    assert make_provider("codex", settings, {}).credentials() == {"CODEX_API_KEY": "sk-openai"}


def test_variables_that_the_user_lets_pass_reach_the_agent_and_only_secret_ones_are_redacted(agent, ask):
    environ = {"AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": "abc", "OTHER": "no"}
    launch = agent("claude", environ=environ, pass_env=["AWS_REGION", "AWS_SECRET_ACCESS_KEY"]).prepare(ask())
    assert launch.env["AWS_REGION"] == "eu-west-1"
    assert "OTHER" not in launch.env
    assert set(launch.secrets) == {"sk-secret-0123456789", "abc"}


# ------------------------------------------------------------------------------------------------ lying agents


def result(**fields):
    return json.dumps({"type": "result", "subtype": "success", **fields})


def saying(*lines, status=0, stderr=""):
    body = "".join(f"printf '%s\\n' '{line}'\n" for line in lines)
    return f"#!/bin/sh\ncat >/dev/null\n{body}printf '%s' '{stderr}' >&2\nexit {status}\n"


@pytest.fixture
def asked(agent, ask, run):
    def go(name, script, **spec):
        provider, question = agent(name, script), ask(**spec)
        return provider.read(question, run(question, provider.prepare(question)))

    return go


@pytest.mark.parametrize("status", [0, 1])
def test_b15_a_success_that_is_flagged_as_error_is_a_rate_limit_whatever_the_exit_status(asked, status):
    line = result(is_error=True, result="Rate limit reached. Please try again later.")
    answer = asked("claude", saying(line, status=status))
    assert answer.error.error_class is ErrorClass.RATE_LIMIT
    assert (answer.transcript.finished, answer.transcript.final_text) == (False, "")


def test_b13_a_429_that_ends_an_agent_is_a_rate_limit_and_no_failed_task(asked):
    said = "exceeded retry limit, last status: 429 Too Many Requests"
    line = json.dumps({"type": "turn.failed", "error": {"message": said}})
    assert asked("codex", saying(line, status=1)).error.error_class is ErrorClass.RATE_LIMIT
    line = result(is_error=True, api_error_status=429, result="API Error: Request rejected (429)")
    assert asked("claude", saying(line, status=1)).error.error_class is ErrorClass.RATE_LIMIT


@pytest.mark.parametrize("text", ["Claude AI usage limit reached|1753560000", "5-hour limit reached - resets 2am"])
def test_a_spent_plan_that_arrives_as_a_success_is_an_error(asked, text):
    answer = asked("claude", saying(result(is_error=False, result=text)))
    assert answer.error.error_class is ErrorClass.QUOTA
    assert answer.transcript.final_text == ""


def test_a_message_that_no_model_wrote_makes_no_success(asked):
    message = {"model": "<synthetic>", "content": [{"type": "text", "text": "Hold on"}]}
    event = json.dumps({"type": "assistant", "message": message, "error": "billing_error"})
    answer = asked("claude", saying(event, result(is_error=False, result="Hold on")))
    assert answer.error.error_class is ErrorClass.QUOTA


def test_a_rejected_limit_event_without_any_output_is_a_spent_plan(asked):
    event = json.dumps({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}})
    answer = asked("claude", saying(event, result(is_error=False, result="")))
    assert answer.error.error_class is ErrorClass.QUOTA


def test_a_good_result_with_a_bad_exit_status_is_a_finished_answer(asked):
    answer = asked("claude", saying(result(is_error=False, result="Done."), status=1))
    assert answer.error is None
    assert answer.transcript.final_text == "Done."


def test_an_exit_status_of_0_without_a_result_is_no_finished_answer(asked):
    message = {"id": "m", "model": "x", "content": [{"type": "text", "text": "Done, I promise."}]}
    answer = asked("claude", saying(json.dumps({"type": "assistant", "message": message})))
    assert answer.error.error_class is ErrorClass.NO_RESULT
    assert "after 1 events, none of them final" in answer.error.message


def test_an_empty_result_after_words_of_the_model_is_those_words(asked):
    message = {"id": "m", "model": "x", "content": [{"type": "text", "text": "Hello."}]}
    lines = json.dumps({"type": "assistant", "message": message}), result(is_error=False, result="")
    assert asked("claude", saying(*lines)).transcript.final_text == "Hello."


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_flag_that_the_agent_does_not_know_is_a_bad_request_and_a_crash_is_not(asked, name):
    flagged = asked(name, saying(status=2, stderr="error: unexpected argument --json found"))
    assert flagged.error.error_class is ErrorClass.BAD_REQUEST
    crashed = asked(name, saying(status=1, stderr="Segmentation trouble"))
    assert crashed.error.error_class is ErrorClass.NO_RESULT
    assert "Segmentation trouble" in crashed.error.message


def test_b37_odd_lines_cost_neither_tool_calls_nor_the_answer(asked):
    use = {
        "id": "m",
        "model": "x",
        "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}],
    }
    back = {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "a.txt"}]}
    script = saying(
        "Starting ...",
        "",
        json.dumps({"type": "system", "subtype": "init", "session_id": "s"}),
        json.dumps({"type": "assistant", "message": use}),
        json.dumps({"type": "user", "message": back}),
        '{"type":"assistant","mess',
        result(is_error=False, result="Done."),
    )
    transcript = asked("claude", script).transcript
    assert [(call.command, call.output, call.status) for call in transcript.tool_calls] == [("ls", "a.txt", "ok")]
    assert (transcript.final_text, transcript.session_id, transcript.unparsed_lines) == ("Done.", "s", (1, 6))


def test_b35_a_skill_that_is_loaded_after_other_tools_is_used_with_its_position(asked):
    def use(key, tool, given):
        block = {"type": "tool_use", "id": key, "name": tool, "input": given}
        return json.dumps({"type": "assistant", "message": {"id": key, "model": "x", "content": [block]}})

    def back(key):
        block = {"type": "tool_result", "tool_use_id": key, "content": "ok"}
        return json.dumps({"type": "user", "message": {"content": [block]}})

    lines = [use("a", "Bash", {"command": "ls"}), back("a"), use("b", "Read", {"file_path": "/w/x"}), back("b")]
    lines += [use("c", "Skill", {"skill": "greeter"}), back("c"), result(is_error=False, result="Done.")]
    uses = asked("claude", saying(*lines)).transcript.skills_used
    assert [(found.name, found.how, found.position) for found in uses] == [("greeter", "tool", 2)]


def test_a_mention_of_a_skill_is_no_use_of_it(asked):
    answer = asked("claude", saying(result(is_error=False, result="Do not use greeter here.")))
    assert answer.transcript.skills_used == ()


@pytest.mark.parametrize(
    ("command", "output", "used"),
    [
        ("cat ~/.codex/skills/greeter/SKILL.md", "---\nname: greeter\n---\nDo it well.\n", ["greeter"]),
        ("cd ~/.codex/skills/greeter && sed -n 1,20p SKILL.md", "Do it well.\n", ["greeter"]),
        ("ls ~/.codex/skills/greeter/SKILL.md", "/h/.codex/skills/greeter/SKILL.md\n", []),
        ("rg --files ~/.codex/skills", "greeter/SKILL.md\n", []),
        ("echo Do it well.", "Do it well.\n", []),
    ],
)
def test_reading_a_skills_text_is_a_use_and_listing_it_is_none(asked, command, output, used):
    item = {"id": "i", "type": "command_execution", "command": command, "aggregated_output": output}
    done = {"type": "item.completed", "item": {**item, "exit_code": 0, "status": "completed"}}
    turn = {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}
    script = saying(json.dumps(done), json.dumps(turn))
    assert [found.name for found in asked("codex", script).transcript.skills_used] == used


def test_a_line_that_two_skills_share_tells_neither_from_the_other(tmp_path):
    one, two = (skill_at(tmp_path, name, f"## Overview\nThis is {name}.") for name in ("alpha", "omega"))
    read = {command: list(read_by_command(command, output, (one, two))) for command, output in (
        ("cat alpha/SKILL.md", one.body),
        ("cd alpha; head -1 SKILL.md", "## Overview"),
        ("cat */SKILL.md", one.body + two.body),
    )}  # fmt: skip
    assert list(read.values()) == [["alpha"], [], ["alpha", "omega"]]


def test_what_an_agent_spent_beyond_the_cases_budget_is_said(asked):
    usage = {"input_tokens": 900, "cached_input_tokens": 700, "output_tokens": 100}
    script = saying(json.dumps({"type": "turn.completed", "usage": usage}))
    assert asked("codex", script, budget={"tokens": 300}).error is None
    error = asked("codex", script, budget={"tokens": 299}).error
    assert (error.error_class, error.message) == (ErrorClass.MAX_TURNS, "budget.tokens is 299, spent were 300")


def test_more_tool_calls_than_can_be_judged_are_an_error_and_not_a_short_list(agent, ask, tmp_path):
    provider, question = agent("codex"), ask()
    provider.prepare(question)
    item = '{{"type":"item.started","item":{{"id":"i{0}","type":"command_execution","command":"c{0}"}}}}\n'
    stdout = tmp_path / "many"
    stdout.write_text("".join(item.format(n) for n in range(10_001)) + '{"type":"turn.completed"}\n')
    from pytest_skilleval.providers.base import ProcessOutput

    answer = provider.read(question, ProcessOutput(stdout, tmp_path / "none", 0, "exited"))
    assert answer.error.error_class is ErrorClass.DISK
    assert "10001 tool calls" in answer.error.message
