from __future__ import annotations

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_skilleval.reports.markdown import ROWS, as_markdown, markdown_cell

from .made import compared, made
from .payloads import ANSI, CONTROLS, MARKDOWN, PAYLOADS, poisoned_report

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tokens(text: str) -> list[Token]:
    """All tokens of a text, inline ones too."""
    found = []
    for token in READER.parse(text):
        found += [token, *(token.children or ())]
    return found


@pytest.mark.parametrize("text", [*MARKDOWN, *PAYLOADS])
def test_foreign_text_is_one_paragraph_of_plain_text(text: str) -> None:
    found = READER.parse(markdown_cell(text, 10_000))
    assert [token.type for token in found] == ["paragraph_open", "inline", "paragraph_close"]
    assert {child.type for child in found[1].children or ()} <= {"text", "text_special"}


@pytest.mark.parametrize("text", ["a | b", "a \\| b", "[x](y)", "`|`", "<td>|</td>"])
def test_foreign_text_stays_in_its_cell(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {markdown_cell(text)} | end |\n"
    cells = [token for token in READER.parse(table) if token.type == "td_open"]
    assert len(cells) == 2
    body = [token for token in READER.parse(table) if token.type == "inline"][-2:]
    shown = "".join(child.content for child in body[0].children or ())
    assert shown == text
    assert body[1].content == "end"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words, 3 of 5 - fine", "plain words, 3 of 5 - fine"),
        ("eval-guide", "eval-guide"),
        ("two\n  lines", "two lines"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("# head", "\\# head"),
        ("a_b*c", "a\\_b\\*c"),
        ("<b> & c", "&lt;b&gt; &amp; c"),
        ("https://x", "https\\://x"),
        ("www.x", "www\\.x"),
        ("@me", "@\u2060me"),
        ("\x1b[0m", "\\\\x1b\\[0m"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_each_special_character_is_written_so_that_it_shows(text: str, expected: str) -> None:
    assert markdown_cell(text) == expected


def test_a_hostile_report_has_the_structure_of_a_harmless_one() -> None:
    for text in (*PAYLOADS, *MARKDOWN, ANSI, CONTROLS):
        hostile, tame = (tokens(as_markdown(poisoned_report((one,)))) for one in (text, "harmless"))
        kinds = [
            [token.type for token in found if token.type not in ("text", "text_special")] for found in (hostile, tame)
        ]
        assert kinds[0] == kinds[1], text
        blocks = [
            [token.content for token in found if token.type in ("html_block", "html_inline")]
            for found in (hostile, tame)
        ]
        assert blocks[0] == blocks[1], text
        assert not any(token.type in ("link_open", "image") for token in hostile)


def test_no_control_character_reaches_the_file() -> None:
    text = as_markdown(poisoned_report((ANSI, CONTROLS)))
    assert all(char.isprintable() or char in "\n\u2060" for char in text)


def test_the_report_says_its_verdict_first_and_what_moved() -> None:
    lines = as_markdown(made(comparison=compared())).splitlines()
    assert lines[:5] == [
        "# Regressed",
        "",
        "**stub: simulated, no agent was run**",
        "",
        "pass rate -0.200 \\[-0.33, -0.07\\]; mean score -0.120 \\[-0.20, -0.04\\]; p = 0.004; 1 case up, 6 down, 3 level",
    ]
    assert "| pass rate | 80% | 60% | -0.200 | [-0.33, -0.07] |" in lines
    assert "| execution\\:greet\\:self-load | regressed | -0.600 | [-0.90, -0.20] | 0.002 | 0.010 |" in lines
    assert "| execution\\:greet\\:none | inconclusive (signal up) | +0.300 | [-0.10, +0.70] | 0.10 | 0.40 |" in lines
    assert "1 only in this run: execution\\:brand-new\\:none" in lines


def test_groups_fold_away_and_are_bounded() -> None:
    text = as_markdown(made([f"case-{number}" for number in range(ROWS + 20)], {"none": ["passed"]}))
    assert f"<summary>{ROWS + 20} groups</summary>" in text
    assert "and 20 more in report.json" in text
    assert text.count("| execution | case-") == ROWS


def test_a_judge_is_named_with_its_agreement() -> None:
    judge = {
        "provider": "chat",
        "model": "m1",
        "simulated": False,
        "statements": 12,
        "agreement": {"rate": 0.9, "ci": [0.8, 0.95]},
    }
    assert (
        "chat m1 decided 12 statements in prose; two of its answers agree in 90% [80%, 95%] of pairs."
        in as_markdown(made(judge=judge))
    )


def test_a_control_condition_is_marked() -> None:
    assert "| execution | none (control) | 10 | 30 | 70% | [42%, 88%] | 0.775 | [0.54, 0.91] | 0 | 0 |" in as_markdown(
        made()
    )


def test_equal_reports_give_equal_bytes() -> None:
    assert as_markdown(made(comparison=compared())) == as_markdown(made(comparison=compared()))
