"""Error sentences and status codes: the class of each, from sentences that the real programs print."""

from __future__ import annotations

import random

import pytest

from pytest_skilleval.errors import ErrorClass, OptionMistake
from pytest_skilleval.providers.classes import TABLE, Retry, error_table, policy, read_retry
from pytest_skilleval.providers.faults import class_of, looks_like_limit, retry_after_in
from pytest_skilleval.records import TrialError


@pytest.mark.parametrize(
    ("sentence", "status", "expected"),
    [
        ("This request would exceed your account's rate limit. Please try again later.", 429, ErrorClass.RATE_LIMIT),
        ("Claude AI usage limit reached|1753560000", 429, ErrorClass.QUOTA),
        ("You've hit your session limit \u00b7 resets 3pm (UTC)", None, ErrorClass.QUOTA),
        ("Server is temporarily limiting requests (not your usage limit)", None, ErrorClass.OVERLOADED),
        ("Server is temporarily limiting requests (not your usage limit)", 429, ErrorClass.RATE_LIMIT),
        ("Credit balance is too low", 400, ErrorClass.QUOTA),
        ("prompt is too long: 250000 tokens > 200000 maximum", 400, ErrorClass.CONTEXT_TOO_LONG),
        ("messages: text content blocks must be non-empty", 400, ErrorClass.BAD_REQUEST),
        ("API Error: Rate limit reached", None, ErrorClass.RATE_LIMIT),
        ("exceeded retry limit, last status: 429 Too Many Requests", None, ErrorClass.RATE_LIMIT),
        ("unexpected status 404 Not Found: model: nope not found", None, ErrorClass.MODEL_NOT_FOUND),
        ("stream disconnected before completion: Overloaded", None, ErrorClass.OVERLOADED),
        ("stream disconnected before completion: idle timeout waiting for SSE", None, ErrorClass.NETWORK),
        ("Not logged in \u00b7 Please run /login", None, ErrorClass.AUTH),
        ("Your organization has disabled Claude subscription access for Claude Code", 403, ErrorClass.AUTH),
        ("", 502, ErrorClass.SERVER_ERROR),
        ("", 529, ErrorClass.OVERLOADED),
        ("something else", None, None),
    ],
)
def test_a_sentence_and_a_status_have_a_class(sentence, status, expected):
    assert class_of(sentence, status) is expected


REJECTED = "API Error: Request rejected (429) \u00b7 This request would exceed your account's rate limit."
OVERLOADED = "API Error: 529 Overloaded. This is a server-side issue, usually temporary \u2014 try again in a moment."


@pytest.mark.parametrize(
    ("answer", "is_limit"),
    [
        ("Claude AI usage limit reached|1753560000", True),
        ("You\u2019ve hit your usage limit. Try again later.", True),
        ("5-hour limit reached \u2219 resets 2am", True),
        ("You're out of extra usage \u00b7 resets 5pm", True),
        ("Use a token bucket: when the rate limit is reached, wait and try again.", False),
        ("The API answers 429 when you've hit your limit.", False),
        ("usage limit reached " + "x" * 500, False),
        ("You've hit your session limit \u00b7 resets 3pm (UTC)", True),
        ("You've hit your Opus limit \u00b7 resets Oct 10, 3pm (America/New_York)", True),
        ("Claude usage limit reached. Your limit will reset at 3pm.\n\n /upgrade to increase your usage limit.", True),
        ("Quota exceeded. Check your plan and billing details.", True),
        ("Rate limit reached. Please try again in 11.054s.", True),
        ("Credit balance is too low", True),
        ("Your credit balance is too low to access the Anthropic API.", True),
        ("API Error: Rate limit reached", True),
        (f"{REJECTED} Please try again later.", True),
        (f"{OVERLOADED} If it persists, check your inference gateway (127.0.0.1:41933).", True),
        ('API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}', True),
        ("Quota exceeded errors mean you must back off: retry with exponential delay.", False),
        ("API error: 404 means the file is missing, so check the path.", False),
        ("API error: 500 internal server error is what the log shows; I restarted the service.", False),
        ("Rate limit reached? Wait, then try again.", False),
        ("Rate limit reached for the fourth time today, so I cached the answers.", False),
        ("You've hit your limit of three retries in retry.py: raise MAX_RETRIES.", False),
        ("Weekly limit reached by 3 of 10 users; the table is in report.md.", False),
        ("", False),
    ],
)
def test_an_answer_that_is_nothing_but_a_limit_is_told_from_one_about_limits(answer, is_limit):
    assert looks_like_limit(answer) is is_limit


@pytest.mark.parametrize(
    ("sentence", "seconds"),
    [
        ("Rate limit reached. Please try again in 11.054s. Visit ...", 11.054),
        ("retry after 20 seconds", 20.0),
        ("Please try again in 310ms.", 0.31),
        ("Try again in 2 minutes", 120.0),
        ("Try again later.", None),
    ],
)
def test_the_wait_that_a_sentence_asks_for_is_read_in_seconds(sentence, seconds):
    found = retry_after_in(sentence)
    assert found == seconds if seconds is None else abs(found - seconds) < 1e-9


def test_every_error_class_has_a_row_in_the_table():
    assert set(TABLE) == set(ErrorClass)


def test_only_refusals_that_pass_are_retried_and_only_hopeless_ones_stop_the_provider():
    retried = {found for found in ErrorClass if policy(found).retry}
    stopping = {found for found in ErrorClass if policy(found).stops_provider}
    assert {found.value for found in retried} == {"rate_limit", "overloaded", "server_error", "network"}
    assert {found.value for found in stopping} == {"auth", "quota", "model_not_found", "bad_request", "spawn"}
    assert all(policy(found).outcome == "error" for found in retried | stopping)


def test_a_row_is_changed_one_key_at_a_time():
    table = error_table({"refusal": {"outcome": "error"}, "network": {"retry": False}})
    assert (policy(ErrorClass.REFUSAL, table).outcome, policy(ErrorClass.REFUSAL, table).retry) == ("error", False)
    assert (policy(ErrorClass.NETWORK, table).outcome, policy(ErrorClass.NETWORK, table).retry) == ("error", False)
    assert policy(ErrorClass.NETWORK).retry


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"rate-limit": {"retry": False}}, "errors.rate-limit: no such class; allowed: rate_limit, overloaded"),
        ({"auth": True}, "errors.auth: True is no table"),
        ({"auth": {"again": True}}, "errors.auth.again"),
        ({"auth": {"outcome": "passed"}}, "errors.auth.outcome"),
        ({"auth": {"retry": "yes"}}, "errors.auth.retry"),
    ],
)
def test_a_wrong_row_is_a_user_mistake_that_names_its_key(table, words):
    with pytest.raises(OptionMistake) as caught:
        error_table(table)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def error(retry_after=None):
    return TrialError(error_class=ErrorClass.RATE_LIMIT, message="x", retry_after=retry_after)


def test_waits_double_with_jitter_in_their_upper_half_and_end_at_the_limit():
    retry, draw = Retry(limit=3, first=4.0, longest=10.0), random.Random(0)
    for retries, step in enumerate((4.0, 8.0, 10.0)):
        waits = [retry.wait(retries, error(), draw) for _ in range(200)]
        assert step / 2 <= min(waits) < max(waits) <= step
    assert retry.wait(3, error(), draw) is None


def test_a_wait_is_never_shorter_than_asked_and_a_long_one_is_not_waited_for():
    retry, draw = Retry(first=1.0, longest=60.0), random.Random(0)
    assert retry.wait(0, error(30.0), draw) == 30.0
    assert retry.wait(0, error(3600.0), draw) is None


def test_the_waits_are_changed_by_a_table_and_a_wrong_key_or_value_is_a_mistake():
    assert read_retry({"limit": 0}) == Retry(limit=0)
    assert read_retry({}).limit == 3
    for table, key in (({"limits": 1}, "limits"), ({"limit": -1}, "limit"), ({"first": "soon"}, "first")):
        with pytest.raises(
            OptionMistake, match=rf"tool\.skilleval\.retry\.{key}: .*allowed keys: limit, first, longest"
        ):
            read_retry(table)
