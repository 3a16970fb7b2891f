"""What agents leave in their homes: evidence that stdout does not hold. The files are recorded ones, trimmed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from asking import skill_at

from pytest_skilleval.providers.base import ProcessOutput, ProviderSettings
from pytest_skilleval.providers.claude import Claude
from pytest_skilleval.providers.codex import Codex
from pytest_skilleval.providers.loads import read_by_command

DATA = Path(__file__).parent / "data"
GOOD = '{"type":"turn.completed","usage":{"input_tokens":200,"output_tokens":20}}\n'


@pytest.fixture
def codex_answer(ask, tmp_path):
    def answer(rollout, stdout=GOOD, **changes):
        question = ask(**changes)
        folder = question.home / ".codex" / "sessions" / "2026" / "11" / "30"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rollout-2026-11-30T02-07-30-x.jsonl").write_text(rollout)
        (tmp_path / "stdout").write_text(stdout)
        output = ProcessOutput(tmp_path / "stdout", tmp_path / "none", 0, "exited")
        return Codex(ProviderSettings()).read(question, output).transcript

    return answer


@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-6.2-sol"])
def test_a_command_that_stdout_lost_is_found_in_the_session_file(codex_answer, model):
    transcript = codex_answer((DATA / f"rollout-{model}.jsonl").read_text())
    assert [(call.command, call.status, call.exit_status) for call in transcript.tool_calls] == [
        ("echo x > made.txt", "error", 1)
    ]
    assert "Read-only file system" in transcript.tool_calls[0].output
    assert (transcript.model, transcript.version, transcript.turns) == (model, "0.171.0", 2)


def test_a_command_that_stdout_told_is_not_told_twice(codex_answer):
    item = {"id": "i", "type": "command_execution", "command": "/bin/bash -c 'echo x > made.txt'", "exit_code": 1}
    told = json.dumps({"type": "item.completed", "item": {**item, "status": "failed"}}) + "\n"
    calls = codex_answer((DATA / "rollout-gpt-5.5.jsonl").read_text(), told + GOOD).tool_calls
    assert [call.command for call in calls] == ["echo x > made.txt"]


def test_a_lost_command_stands_where_it_was_run(codex_answer):
    def called(key, command):
        given = json.dumps({"cmd": command})
        payload = {"type": "function_call", "name": "exec_command", "arguments": given, "call_id": key}
        return json.dumps({"type": "response_item", "payload": payload})

    def told(key, command):
        item = {"id": key, "type": "command_execution", "command": f"/bin/bash -c {command}", "exit_code": 0}
        return json.dumps({"type": "item.completed", "item": {**item, "status": "completed"}})

    rollout = "\n".join(called(name, name) for name in ("one", "two", "three", "four"))
    stdout = "\n".join([told("1", "one"), told("3", "three"), GOOD])
    assert [call.command for call in codex_answer(rollout, stdout).tool_calls] == ["one", "two", "three", "four"]


def test_the_listed_skills_come_from_the_session_file(codex_answer):
    listing = "<skills_instructions>\n- `r0` = `/h/.codex/skills`\n### Available skills\n- greeter: Greets: well. (file: r0/greeter/SKILL.md)\n</skills_instructions>"
    payload = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": listing}]}
    rollout = json.dumps({"type": "response_item", "payload": payload})
    assert codex_answer(rollout).skills_visible == ("greeter",)


def test_a_session_file_without_a_listing_says_that_nothing_was_listed(codex_answer):
    assert codex_answer('{"type":"session_meta","payload":{"cli_version":"0.171.0"}}').skills_visible == ()


def test_without_a_session_file_nobody_knows_what_was_listed(ask, tmp_path):
    (tmp_path / "stdout").write_text(GOOD)
    output = ProcessOutput(tmp_path / "stdout", tmp_path / "none", 0, "exited")
    assert Codex(ProviderSettings()).read(ask(), output).transcript.skills_visible is None


@pytest.fixture
def claude_answer(ask, tmp_path):
    def answer(files, condition="self-load"):
        question = ask(condition)
        for name, text in files.items():
            path = question.home / ".claude" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "stdout").write_text('{"type":"result","subtype":"success","is_error":false,"result":"Done."}\n')
        output = ProcessOutput(tmp_path / "stdout", tmp_path / "none", 0, "exited")
        return Claude(ProviderSettings()).read(question, output).transcript

    return answer


def test_a_load_that_only_claudes_own_count_shows_is_a_use_with_that_evidence(claude_answer):
    count = json.dumps({"skillUsage": {"greeter": {"usageCount": 1}, "other": {"usageCount": 0}}})
    uses = claude_answer({".claude.json": count}).skills_used
    assert [(use.name, use.evidence) for use in uses] == [("greeter", ".claude.json skillUsage counts greeter")]


def test_claudes_session_file_says_what_was_listed_and_its_own_skills_are_left_out(claude_answer):
    attachment = {"type": "skill_listing", "names": ["greeter", "plugin-authoring", "stray"]}
    session = json.dumps({"type": "attachment", "attachment": attachment})
    assert claude_answer({"projects/-w/s.jsonl": session}).skills_visible == ("greeter", "stray")


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"skillUsage": 7}', "[" * 100_000])
def test_a_damaged_file_of_the_agents_costs_nothing_else(claude_answer, damage):
    transcript = claude_answer({".claude.json": damage, "projects/-w/s.jsonl": damage})
    assert (transcript.final_text, transcript.skills_used) == ("Done.", ())


def test_a_pipe_or_a_link_in_place_of_a_file_is_not_read(claude_answer, ask, tmp_path):
    home = ask().home / ".claude"
    (home / "projects" / "-w").mkdir(parents=True)
    os.mkfifo(home / "projects" / "-w" / "pipe.jsonl")
    (tmp_path / "elsewhere").write_text(json.dumps({"skillUsage": {"greeter": {"usageCount": 1}}}))
    (home / ".claude.json").symlink_to(tmp_path / "elsewhere")
    assert claude_answer({}).skills_used == ()


def test_a_skill_without_text_is_read_when_its_own_file_is_named(tmp_path):
    skill = skill_at(tmp_path, "quiet", "")
    shown = {
        command: list(read_by_command(command, "---", [skill]))
        for command in ("cat a/quiet/SKILL.md", "cat a/SKILL.md")
    }
    assert shown == {"cat a/quiet/SKILL.md": ["quiet"], "cat a/SKILL.md": []}
