from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_skilleval.reports.closing import shown
from pytest_skilleval.reports.line import Line
from pytest_skilleval.reports.plain import cut, plain, plain_line

from .payloads import ANSI, CONTROLS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\r\x00", "\\x0d\\x00"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\u2028", "\\u2028"),
        ("\U000e0041", "\\U000e0041"),
        ("\ufffe\U0001ffff", "\\ufffe\\U0001ffff"),
        ("\ud800", "\\ud800"),
        ("é ü 漢字 🙂 \xa0", "é ü 漢字 🙂 \xa0"),
    ],
)
def test_what_drives_a_screen_becomes_an_escape_and_the_rest_stays(text: str, expected: str) -> None:
    assert plain(text) == expected


@given(st.text())
def test_no_text_keeps_a_character_that_xml_forbids_or_that_moves_a_cursor(text: str) -> None:
    found = plain(text, keep="")
    assert not any(
        ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or char in "\u202a\u202b\u202c\u202d\u202e\ufffe\uffff"
        for char in found
    )
    assert not any(0xD800 <= ord(char) <= 0xDFFF for char in found)


def test_a_line_stays_one_line_and_within_its_limit() -> None:
    assert plain_line("  a\n\n b\t c  ") == "a b c"
    assert plain_line("x" * 50, 10) == "x" * 9 + "…"


def test_a_cut_says_how_much_is_left_out() -> None:
    assert cut("abcdef", 4) == ("abcd", 2)
    assert cut("abcd", 4) == ("abcd", 0)


def test_a_terminal_line_holds_no_control_character_whatever_it_quotes() -> None:
    line = Line(f"  reason: {ANSI}{CONTROLS}", "red")
    assert line.text.startswith("  reason: \\x1b[2J")
    assert line.text.isprintable()
    assert line.colour == "red"


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "é…"),
        ("UTF8", "é…"),
        ("ascii", "\\xe9\\u2026"),
        ("latin-1", "é\\u2026"),
        (None, "\\xe9\\u2026"),
        ("no-such", "\\xe9\\u2026"),
    ],
)
def test_a_console_gets_what_it_can_show(encoding: str | None, expected: str) -> None:
    assert shown("é…", encoding) == expected
