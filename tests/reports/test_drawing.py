from __future__ import annotations

import pytest

from pytest_skilleval.reports.drawing import difference_axis, share_axis


def test_a_share_lies_between_the_edges_of_its_axis() -> None:
    axis = share_axis()
    assert [axis.at(value) for value in (0.0, 0.5, 1.0)] == ["2.0%", "50.0%", "98.0%"]
    assert [label for _, label in axis.ticks] == ["0%", "25%", "50%", "75%", "100%"]
    assert axis.zero is None


@pytest.mark.parametrize(
    ("interval", "reach"),
    [
        ((-0.03, 0.09), 0.1),
        ((-0.2, 0.1), 0.2),
        ((0.1, 0.21), 0.3),
        ((-0.31, 0), 0.5),
        ((-0.9, 0.1), 1.0),
        ((-1.5, 0), 1.0),
    ],
)
def test_a_difference_axis_is_as_narrow_as_its_intervals_allow(interval: tuple[float, float], reach: float) -> None:
    axis = difference_axis([interval, None])
    assert (axis.low, axis.high) == (-reach, reach)
    assert axis.zero == "50.0%"


def test_without_differences_the_narrowest_axis_is_drawn() -> None:
    assert difference_axis([]).high == 0.1
    assert difference_axis([None], [float("nan")]).high == 0.1


def test_an_unknown_bound_is_not_drawn_and_one_beyond_the_axis_is_drawn_at_its_end() -> None:
    axis = share_axis()
    assert axis.bar(0.5, None) == ("", "", "50.0%")
    assert axis.bar(None, (0.0, 1.0)) == ("2.0%", "98.0%", "")
    assert difference_axis([(-0.1, 0.1)]).bar(0.5, (-2, 2)) == ("2.0%", "98.0%", "98.0%")
