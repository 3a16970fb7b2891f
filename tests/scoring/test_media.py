"""Checks of what can be seen: screenshots, recordings and videos."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from pytest_skilleval.scoring.terminal import parse_asciicast, plain_text
from pytest_skilleval.scoring.video import Video, parse_video

from .samples import box, cast_v2, cast_v3, mp4, picture, webm
from .test_files import answer
from .trials import MakeFacts


@pytest.mark.parametrize(
    ("content", "check", "holds", "reason"),
    [
        (picture(), {}, True, "shot.png is a PNG of 320 x 120 pixels"),
        (picture("JPEG"), {}, True, "is a JPEG of 320 x 120 pixels"),
        (picture(blank=True), {}, False, "is blank"),
        (picture("JPEG", blank=True), {}, False, "is blank"),
        (picture(blank=True, mode="RGBA"), {}, False, "is blank"),
        (picture(size=(90, 60)), {}, False, "has 90 x 60 pixels, wanted at least 100 x 50"),
        (picture(), {"min_width": 321}, False, "wanted at least 321 x 50"),
        (picture()[:200], {}, False, "cannot be decoded"),
        (b"PNG, honestly", {}, False, "neither PNG nor JPEG"),
        (picture("GIF"), {}, False, "neither PNG nor JPEG"),
        (b"", {}, False, "neither PNG nor JPEG"),
    ],
)
def test_a_screenshot_is_decoded(
    make_facts: MakeFacts, content: bytes, check: dict[str, Any], holds: bool, reason: str
) -> None:
    result = answer(make_facts, {"kind": "screenshot", "path": "shot.png", **check}, files={"shot.png": content})
    assert (result.passed, result.error) == (holds, False)
    assert reason in result.reason


def chunk(name: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + name + content + zlib.crc32(name + content).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("side", "reason"), [(8_000, "8000 x 8000 pixels are too many"), (60_000, "cannot be decoded")]
)
def test_a_picture_that_would_fill_the_memory_is_not_decoded(make_facts: MakeFacts, side: int, reason: str) -> None:
    header = chunk(b"IHDR", side.to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00")
    bomb = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    result = answer(make_facts, {"kind": "screenshot", "path": "bomb.png"}, files={"bomb.png": bomb})
    assert result.passed is False
    assert reason in result.reason


RUN = ((0.5, "o", "$ pytest\r\n"), (1.0, "i", "q"), (2.25, "o", "\x1b[32m5 pas"), (2.5, "o", "sed\x1b[0m\r\n"))
V2 = cast_v2(*RUN)
V3 = cast_v3(*RUN)


@pytest.mark.parametrize(
    ("content", "check", "holds", "reason"),
    [
        (V2, {"matches": "^5 passed$", "min_duration": 2.5}, True, "is a recording (asciicast v2)"),
        (V3, {"matches": "^5 passed$", "min_duration": 6.25}, True, "is a recording (asciicast v3)"),
        (V2, {"min_duration": 2.6}, False, "lasts 2.5 s, wanted at least 2.6 s"),
        (V3, {"min_duration": 6.3}, False, "lasts 6.25 s"),
        (V2, {"matches": "failed"}, False, "shows nothing that matches 'failed'"),
        (V2, {"matches": "q"}, False, "shows nothing that matches 'q'"),
        (cast_v2(), {}, False, "it holds no output"),
        (cast_v2((0, "i", "x")), {}, False, "it holds no output"),
        (V2 + "[3.0, 5]\n", {}, False, "line 6 is no event"),
        (V2 + '[3.0, "o", "cut', {}, False, "line 6 is no JSON"),
        (cast_v2(*RUN, width=0), {}, False, "line 1 gives no size"),
        (cast_v2(*RUN, version=1), {}, False, "line 1 is no header of asciicast version 2 or 3"),
        ("just a log\n", {}, False, "line 1 is no JSON"),
        ("", {}, False, "line 1 is no asciicast header"),
        (webm(), {"min_duration": 2.5}, True, "is a recording (webm)"),
        (webm(), {"min_duration": 3}, False, "lasts 2.5 s"),
        (webm(), {"matches": "x"}, False, "has no text to match"),
        (webm(clusters=0), {}, False, "a WebM without any picture in it"),
        (webm(doc_type=b"matroska"), {}, False, "an EBML file of type 'matroska', not webm"),
        (webm()[:40], {}, False, "no recording"),
        (b"\x1a\x45\xdf\xa3", {}, False, "cut off or damaged"),
        (mp4(), {"min_duration": 3}, True, "is a recording (mp4)"),
        (mp4(pictures=False), {}, False, "an MP4 without a movie in it"),
    ],
)
def test_a_recording_is_read(
    make_facts: MakeFacts, content: str | bytes, check: dict[str, Any], holds: bool, reason: str
) -> None:
    result = answer(make_facts, {"kind": "recording", "path": "run.cast", **check}, files={"run.cast": content})
    assert (result.passed, result.error) == (holds, False)
    assert reason in result.reason


def test_a_video_that_was_streamed_lasts_until_its_last_block() -> None:
    # Two clusters at 0 and 1000 ms, the last block 400 ms into its own.
    assert parse_video(webm(duration=None, streamed=True, clusters=2)) == Video("webm", 1.4)


def test_both_versions_of_a_movie_header_give_the_duration() -> None:
    assert parse_video(mp4(seconds=7)) == Video("mp4", 7.0)
    assert parse_video(mp4(seconds=7, version=1)) == Video("mp4", 7.0)


@pytest.mark.parametrize("data", [b"", b"\0" * 100, box(b"ftyp", b"isom") + b"\0\0\0\1moov", webm()[:60] + b"\0" * 50])
def test_a_damaged_video_is_a_value_error_and_nothing_else(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut off|neither|without|not webm"):
        parse_video(data)


def test_control_sequences_are_taken_out_of_a_terminals_text() -> None:
    assert (
        plain_text("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07 \x1b[1;31mred\x1b[0m\x1b(B\x08!\r\n\x9b2Kok")
        == "link red!\nok"
    )


def test_a_recording_gives_its_size() -> None:
    cast = parse_asciicast(V3)
    assert (cast.columns, cast.rows, cast.text) == (80, 24, "$ pytest\n5 passed\n")
