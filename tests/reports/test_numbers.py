from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_skilleval.reports import numbers


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        (numbers.percent, None, "-"),
        (numbers.percent, 0.0, "0%"),
        (numbers.percent, 0.075, "7.5%"),
        (numbers.percent, 2 / 3, "66.7%"),
        (numbers.percent, 1.0, "100%"),
        (numbers.score, None, "-"),
        (numbers.score, 0.0, "0.000"),
        (numbers.score, 0.77777, "0.778"),
        (numbers.points, None, "-"),
        (numbers.points, 0.12, "+0.120"),
        (numbers.points, -0.05, "-0.050"),
        (numbers.points, -0.0004, "0.000"),
        (numbers.seconds, None, "-"),
        (numbers.seconds, 0.41, "0.4 s"),
        (numbers.seconds, 59.4, "59 s"),
        (numbers.seconds, 125, "2 min 05 s"),
        (numbers.seconds, 3660, "1 h 01 min"),
        (numbers.money, None, "-"),
        (numbers.money, 0.0123, "$0.0123"),
        (numbers.money, 1234.5, "$1,234.50"),
        (numbers.tokens, None, "-"),
        (numbers.tokens, 950, "950"),
        (numbers.tokens, 12_345, "12.3k"),
        (numbers.tokens, 999_949, "999.9k"),
        (numbers.tokens, 1_200_000, "1.20M"),
        (numbers.size, 999, "999 B"),
        (numbers.size, 1500, "1.5 kB"),
        (numbers.size, 12_000_000, "12.0 MB"),
        (numbers.p_value, None, "-"),
        (numbers.p_value, 0.5, "0.50"),
        (numbers.p_value, 0.034, "0.034"),
        (numbers.p_value, 0.0002, "< 0.001"),
    ],
)
def test_each_number_has_one_form(function: Callable[[Any], str], value: float | None, expected: str) -> None:
    assert function(value) == expected


def test_an_interval_is_written_as_its_numbers_are() -> None:
    assert numbers.ci(None) == ""
    assert numbers.ci((0.434, 0.888)) == "[0.43, 0.89]"
    assert numbers.ci((0.434, 0.888), share=True) == "[43%, 89%]"
    assert numbers.ci((-0.12, 0.3), signed=True) == "[-0.12, +0.30]"


def test_a_count_agrees_with_its_noun() -> None:
    assert [numbers.count(n, "trial") for n in (0, 1, 1234)] == ["0 trials", "1 trial", "1,234 trials"]
