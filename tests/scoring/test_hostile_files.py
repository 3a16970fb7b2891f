"""Files of any content at all: every reader answers, none breaks."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_skilleval.scoring.account import parse_account
from pytest_skilleval.scoring.kinds import content_problem, kind_of
from pytest_skilleval.scoring.media import parse_picture
from pytest_skilleval.scoring.negation import is_negated
from pytest_skilleval.scoring.terminal import parse_asciicast
from pytest_skilleval.scoring.video import parse_video

from .samples import cast_v2, cast_v3, mp4, picture, webm

GOOD = [
    picture(size=(20, 20)),
    picture("JPEG", size=(20, 20)),
    webm(),
    mp4(),
    cast_v2((0.1, "o", "x")).encode(),
    cast_v3((0.1, "o", "x")).encode(),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(max_examples=150, deadline=None)
@given(
    data=st.one_of(st.binary(max_size=200), damaged()),
    name=st.sampled_from(["a", "a.png", "a.cast", "a.jsonl", "a.md"]),
)
def test_a_reader_answers_or_raises_a_value_error(data: bytes, name: str) -> None:
    kind = kind_of(name, data)
    problem = content_problem(name, data, kind)
    assert problem is None or problem
    for reader in (parse_picture, parse_video, lambda raw: parse_asciicast(raw.decode("utf-8", "replace"))):
        with contextlib.suppress(ValueError):
            reader(data)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("#-*|`[]()<>a .!\n\t~=:,'\u2019dontever"), max_size=300))
def test_prose_of_any_shape_is_read(text: str) -> None:
    account = parse_account(text)
    assert all(0 <= share.value <= 1 for share in (account.taxonomy(("a",)), account.reproducibility()))
    assert set(account.unresolved("report.md", set())) <= set(account.references())
    middle = len(text) // 2
    assert is_negated(text, middle, len(text)) in {True, False}


@pytest.mark.parametrize("data", GOOD)
def test_the_undamaged_files_are_good(data: bytes) -> None:
    assert content_problem("a", data, kind_of("a", data)) is None
