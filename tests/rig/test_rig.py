"""The rig speaks the three wire formats, keeps what it was asked, and stops."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request

import pytest

from rig import Cut, Fail, Hang, ModelServer, Say, by_turn, load, shell

TOOLS = {
    "/v1/messages": [{"name": "Bash", "input_schema": {}}, {"name": "Skill", "input_schema": {}}],
    "/v1/responses": [{"type": "function", "name": "exec_command", "parameters": {}}],
    "/v1/chat/completions": [{"type": "function", "function": {"name": "bash", "parameters": {}}}],
}
PATHS = list(TOOLS)


def post(server, path, body, timeout=10):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return answer.read().decode()


def body(path, *history, stream=False):
    key = "input" if path.endswith("responses") else "messages"
    first = {"role": "user", "content": "Hello"}
    return {"model": "m", "tools": TOOLS[path], "stream": stream, key: [first, *history]}


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_is_the_same_as_a_document_and_as_a_stream(path):
    with ModelServer(by_turn(Say("Hello there.", input=7, cached=3, output=5))) as server:
        document = json.loads(post(server, path, body(path)))
        stream = post(server, path, body(path, stream=True))
    assert "Hello there." in json.dumps(document)
    data = [line[6:] for line in stream.splitlines() if line.startswith("data: ")]
    events = [json.loads(line) for line in data if line != "[DONE]"]
    pieces = []
    for event in events:
        delta = (
            event.get("delta") if path != PATHS[2] else (event["choices"] or [{}])[0].get("delta", {}).get("content")
        )
        text = delta.get("text") if isinstance(delta, dict) else delta
        pieces += [text] if isinstance(text, str) else []
    assert "".join(pieces) == "Hello there."


@pytest.mark.parametrize("path", PATHS)
def test_each_conversation_is_answered_by_its_own_turn_and_a_failed_turn_again(path):
    script = by_turn((Fail(429, headers={"retry-after": "1"}), Say("one")), Say("two"))
    with ModelServer(script) as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(server, path, body(path))
        assert (refused.value.code, refused.value.headers["retry-after"]) == (429, "1")
        refused.value.close()
        assert "one" in post(server, path, body(path))
        assert "two" in post(server, path, body(path, {"role": "assistant", "content": "one"}))
        assert [(question.turn, question.tries) for question in server.questions] == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize(("path", "name"), [(PATHS[0], "Bash"), (PATHS[1], "exec_command"), (PATHS[2], "bash")])
def test_a_command_is_given_to_the_tool_that_the_agent_offers(path, name):
    with ModelServer(by_turn(Say(calls=(shell("ls -l"),)))) as server:
        said = post(server, path, body(path))
    assert f'"name": "{name}"' in said
    assert "ls -l" in said


def test_a_skill_is_loaded_by_its_tool_or_by_the_file_that_is_listed():
    with ModelServer(by_turn(Say(calls=(load("demo"),)))) as server:
        assert '"skill": "demo"' in post(server, PATHS[0], body(PATHS[0]))
        listing = {"role": "developer", "content": "- `r0` = `/h/skills`\n- demo: It demos. (file: r0/demo/SKILL.md)"}
        assert "cat /h/skills/demo/SKILL.md" in post(server, PATHS[1], body(PATHS[1], listing))


def test_a_script_that_breaks_is_told_and_answers_with_an_error():
    with ModelServer(by_turn(Say(calls=(load("demo"),)))) as server:
        with pytest.raises(urllib.error.HTTPError) as broken:
            post(server, PATHS[1], body(PATHS[1]))
        broken.value.close()
        assert server.broken == ["LookupError: the request lists no skill 'demo'"]


def test_a_cut_stream_ends_in_the_middle():
    with ModelServer(by_turn(Cut())) as server, pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(server, PATHS[0], body(PATHS[0], stream=True))


def test_a_server_that_is_left_lets_go_of_clients_that_wait():
    errors = []

    def wait(server):
        try:
            post(server, PATHS[0], body(PATHS[0]), timeout=30)
        except OSError as error:
            errors.append(error)

    with ModelServer(by_turn(Hang())) as server:
        client = threading.Thread(target=wait, args=(server,))
        client.start()
        while not server.questions:
            pass
    client.join(5)
    assert not client.is_alive()
    assert len(errors) == 1
