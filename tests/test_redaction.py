"""Secrets: in every form they take in an agent's output, wherever a chunk ends."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_skilleval.redaction import MASK, Redactor, redact_keys, redact_named

KEY = 'sk-test-AAAA +bb/cc=="quoted"\\ü-0123456789'


def test_a_secret_is_masked_and_its_surroundings_stay():
    assert Redactor(["hunter22"]).text("login hunter22!\n") == "login [redacted]!\n"
    assert Redactor(["hunter22"]).bytes(b"\xff hunter22 \x00") == b"\xff [redacted] \x00"


def test_secrets_shorter_than_six_characters_are_left_alone():
    assert Redactor(["12345", "", "true"]).text("12345 true") == "12345 true"
    assert Redactor(["123456"]).text("123456") == MASK


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        quote(KEY, safe=""),
        quote(KEY, safe="").lower().replace("sk-test-aaaa", "sk-test-AAAA"),
        quote(KEY),
        quote_plus(KEY),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps({"k": KEY}))[1:-1],
        json.dumps(KEY)[1:-1].replace("/", "\\/"),
    ],
)
def test_b43_every_form_of_a_secret_is_masked(form):
    text = Redactor([KEY]).text(f"before {form} after")
    assert "sk-test" not in text
    assert "0123456789" not in text
    assert text.startswith("before ")
    assert text.endswith(" after")


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
@pytest.mark.parametrize("after", ["", "x", "xy", "xyz"])
def test_b43_base64_is_masked_at_every_alignment(encode, before, after):
    secret = "sk-test-0123456789abcdef?>"
    encoded = encode(f"{before}{secret}{after}".encode()).decode()
    masked = Redactor([secret]).text(f"[{encoded}]")
    assert MASK in masked
    # What is left around the mask are the characters that the secret shares with its neighbours: at most three at the
    # head and two with the padding at the tail of the secret itself.
    left = masked.replace(MASK, "").strip("[]")
    assert len(left) <= len(encode(before.encode())) + len(encode(after.encode())) + 8
    assert encode(secret[3:-3].encode()).decode().rstrip("=")[:12] not in masked


def test_the_long_lines_of_a_key_file_are_secrets_of_their_own():
    pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\n"
    shown = Redactor([pem]).text("1: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----BEGIN PRIVATE KEY-----")
    assert shown == "1: [redacted]\n-----BEGIN PRIVATE KEY-----"


def test_the_longer_of_two_secrets_with_one_head_wins():
    redactor = Redactor(["secret-a", "secret-a-and-more"])
    assert redactor.text("secret-a-and-more secret-a") == "[redacted] [redacted]"


def test_lone_surrogates_come_through():
    assert Redactor(["hunter22"]).text("\udcff hunter22") == "\udcff [redacted]"


def test_b43_a_secret_across_a_chunk_border_is_masked_at_every_cut():
    data = b"x" * 10 + b"hunter22-long" + b"y" * 10
    for cut in range(len(data) + 1):
        stream = Redactor(["hunter22-long"]).stream()
        assert (
            stream.feed(data[:cut]) + stream.feed(data[cut:]) + stream.flush() == b"x" * 10 + b"[redacted]" + b"y" * 10
        )


def test_a_stream_holds_back_less_than_one_secret():
    stream = Redactor(["hunter22-long"]).stream()
    assert stream.feed(b"a line\n") == b"a line\n"
    assert stream.feed(b"hunter22-lon") == b""
    assert stream.feed(b"e rider\n") == b"hunter22-lone rider\n"


@given(
    secrets=st.lists(st.text("ab", min_size=6, max_size=9), max_size=4),
    chunks=st.lists(st.binary(max_size=1).flatmap(lambda _: st.text("abc", max_size=12)), max_size=12),
)
@example(secrets=["aaaaab", "aaabaaab"], chunks=["aaaaaba", "aab"])
def test_chunks_never_change_the_result(secrets, chunks):
    redactor = Redactor(secrets)
    stream = redactor.stream()
    streamed = b"".join(stream.feed(chunk.encode()) for chunk in chunks) + stream.flush()
    assert streamed == redactor.bytes("".join(chunks).encode())


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("api_key=abcd1234efgh", "api_key=[redacted]"),
        ("OPENAI_API_KEY=sk-abcdefgh12", "OPENAI_API_KEY=[redacted]"),
        ('{"apiKey": "abcd1234efgh"}', '{"apiKey": "[redacted]"}'),
        (r"{\"token\":\"abcd1234efgh\"}", r"{\"token\":\"[redacted]\"}"),
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer [redacted]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [redacted]"),
        ("curl 'https://x/?token=abcd1234efgh&n=1'", "curl 'https://x/?token=[redacted]&n=1'"),
        ("password: correct-horse-1", "password: [redacted]"),
    ],
)
def test_a_value_behind_a_telling_name_is_masked(text, masked):
    assert redact_named(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "token: 12345678",
        "max_tokens=4096000000",
        "the token is a word",
        "token: something",
        "input_tokens: 123456789012",
        "secret: false",
        "tokenizer=cl100k_base_x",
        "a key = value1234567",
        "password: short1",
        "password: [redacted]",
    ],
)
def test_counts_and_prose_stay(text):
    assert redact_named(text) == text


@pytest.mark.parametrize("piece", ["a_", "token_", "A", "authorization ", "token\\\\", "token = ", "api-"])
def test_hostile_text_costs_linear_time(piece):
    # A regex with nested repetition needs hours for this; the whole suite's time limit is the assertion.
    assert redact_named(piece * (400_000 // len(piece))).startswith(piece[:1])


def test_json_values_are_masked_by_their_key():
    value = {
        "headers": {"Authorization": "x1", "x-api-key": "k"},
        "clientSecret": "short",
        "usage": {"input_tokens": 12, "total_tokens": 15},
        "note": ["password=abcd1234x", 3, None],
    }
    assert redact_keys(value) == {
        "headers": {"Authorization": MASK, "x-api-key": MASK},
        "clientSecret": MASK,
        "usage": {"input_tokens": 12, "total_tokens": 15},
        "note": ["password=[redacted]", 3, None],
    }


def test_the_module_needs_only_the_standard_library():
    code = "import sys; sys.path.append(sys.argv[1]); import pytest_skilleval.redaction as r; print(r.Redactor(['hunter22']).text('hunter22'))"
    root = __file__.rpartition("/tests/")[0]
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, root], capture_output=True, text=True, check=True)
    assert done.stdout == "[redacted]\n"
