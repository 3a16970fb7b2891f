"""The small fault scoreboard: the same lines as the full one, a few points each. `make faults` runs the full one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.faults import lines, page
from benchmarks.faults.account import Totals
from benchmarks.faults.board import LINES, CannotInject, Desk, Line, Sheet, run_line

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = ("F1", "F2", "F3", "F6", "F7", "F8", "F9", "F18", "F20", "F22", "F24", "F27")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the board looks into /proc")


@pytest.mark.parametrize("name", SMALL)
def test_a_run_survives(name: str, tmp_path: Path) -> None:
    result = run_line(name, full=False, folder=tmp_path)
    if result.state == "skipped":
        pytest.skip(result.why[0])
    assert result.state == "green", "\n".join(result.why)
    totals = vars(result.totals)
    assert totals.pop("points") >= 1
    assert set(totals.values()) == {0}
    assert list(tmp_path.iterdir()) == [], "the line left something"


def test_every_line_of_the_scoreboard_is_there() -> None:
    assert lines.__all__
    assert sorted(LINES, key=lambda name: int(name[1:])) == [f"F{number}" for number in range(1, 28)]


def test_the_page_is_made_of_the_kept_results_and_has_every_line() -> None:
    results = page.read()
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.page(results)
    for name in LINES:
        assert f"\n| {name} | " in text, f"{name} was not run"
    lost = sum(one["totals"]["lost"] for one in results.values())
    assert f"| finished trials lost | {lost} |" in text


@pytest.fixture
def scrap() -> Iterator[str]:
    """A line for a test of the board itself."""
    yield "F0"
    LINES.pop("F0", None)


def _line(name: str, inject: object) -> None:
    LINES[name] = Line(name, "a test", inject)  # type: ignore[arg-type]


def test_a_line_that_injects_nothing_is_red(scrap: str, tmp_path: Path) -> None:
    _line(scrap, lambda _: None)
    result = run_line(scrap, full=False, folder=tmp_path)
    assert (result.state, result.why) == ("red", ("nothing was injected",))


def test_a_line_that_breaks_is_red_and_one_that_cannot_be_injected_is_not_green(scrap: str, tmp_path: Path) -> None:
    def break_off(desk: Desk) -> None:
        desk.point("one")
        raise ValueError("boom")

    _line(scrap, break_off)
    result = run_line(scrap, full=False, folder=tmp_path)
    assert result.state == "red"
    assert "boom" in result.why[0]

    def cannot(desk: Desk) -> None:
        raise CannotInject("no such tool")

    _line(scrap, cannot)
    result = run_line(scrap, full=False, folder=tmp_path)
    assert (result.state, result.why) == ("skipped", ("no such tool",))
    sheet = Sheet()
    assert "skipped" in sheet.row(result)
    assert "0 green, 0 red, 1 cannot be injected here: F0" in sheet.foot()


def test_the_account_notices_lost_changed_torn_and_bought_again_trials(tmp_path: Path) -> None:
    desk = Desk(tmp_path, full=False)
    bed = desk.bed(cases=1, agent=":")
    assert bed.run("-n0", "--trials", "4", "-q").status == 0
    account = desk.account(bed)
    assert account.settle() == []
    gone, changed, torn, again = sorted(bed.output.glob("*/trials/*/record.json"))
    gone.unlink()
    changed.write_bytes(torn.read_bytes())
    torn.write_bytes(torn.read_bytes()[:-20])
    with bed.marks.open("a") as marks:
        marks.write(f"{bed.last_run.name}/{again.parent.name}\n")
    problems = "\n".join(account.settle())
    for what in (f"lost: {bed.last_run.name}/{gone.parent.name} is gone", "has changed", "corrupt: ", "bought again: "):
        assert what in problems
    found = account.totals
    assert (found.lost >= 2, found.corrupt, found.twice) == (True, 1, 1)
    desk.close()


def test_the_account_notices_processes_that_live_on_and_folders_that_are_left(tmp_path: Path) -> None:
    desk = Desk(tmp_path, full=False)
    bed = desk.bed(cases=1)
    left = bed.temp / "skilleval-0" / "run" / "home"
    left.mkdir(parents=True)
    lives = bed.command(("sleep", "60"))
    account = desk.account(bed)
    problems = [*account.settle(), *account.cleared()]
    lives.wait()
    assert any("alive after" in problem and "sleep 60" in problem for problem in problems)
    assert any("left in the temp directory" in problem for problem in problems)
    assert account.totals == Totals(alive=1, homes=3)
    desk.close()
