"""Patterns under a limit of time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.scoring.patterns import IN_PROCESS_CHARS, TEXT_CHARS, one_line, search, search_all

CATASTROPHIC = "(a|aa)+$"
VICTIM = "a" * 40 + "b"


@pytest.fixture
def signals() -> Iterator[None]:
    """Put handlers and timers back, whatever a test did to them."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGVTALRM)}
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_a_pattern_that_backtracks_for_ever_is_a_fault_of_class_check() -> None:
    with pytest.raises(TrialFault, match=r"took longer than 0\.2 s on 41 characters") as fault:
        search(CATASTROPHIC, VICTIM, limit=0.2)
    assert fault.value.error_class is ErrorClass.CHECK


def test_a_slow_pattern_on_long_text_is_ended_from_outside() -> None:
    # Here the engine looks for signals too seldom: each of its steps reads a million characters.
    with pytest.raises(TrialFault, match="took longer than"):
        search(r"[\s\S]*z", "a" * TEXT_CHARS, limit=0.2)


def test_the_limit_also_holds_outside_the_main_thread() -> None:
    faults: list[TrialFault] = []

    def match() -> None:
        try:
            search(CATASTROPHIC, VICTIM, limit=0.2)
        except TrialFault as fault:
            faults.append(fault)

    thread = threading.Thread(target=match)
    thread.start()
    thread.join()
    assert [fault.error_class for fault in faults] == [ErrorClass.CHECK]


def test_short_and_long_texts_give_the_same_places() -> None:
    short = "one\ntwo three\n"
    long = short + "x" * IN_PROCESS_CHARS
    for text in (short, long):
        hits = search_all(r"^t\w+|three", text)
        assert [(hit.start, hit.end) for hit in hits] == [(4, 7), (8, 13)]
        assert hits[0].line == "two three"


def test_lines_begin_and_end_matches() -> None:
    assert search("^improved$", "Verdict:\nimproved\n") is not None
    assert search("^improved$", "not improved") is None


def test_text_beyond_the_bound_is_not_matched() -> None:
    assert search("needle", "x" * (TEXT_CHARS - 6) + "needle") is not None
    assert search("needle", "x" * TEXT_CHARS + "needle") is None


@pytest.mark.parametrize("filler", ["", "x" * IN_PROCESS_CHARS])
def test_what_is_no_regular_expression_is_a_fault_of_class_check(filler: str) -> None:
    with pytest.raises(TrialFault, match="cannot be matched") as fault:
        search("(unclosed", f"text{filler}")
    assert fault.value.error_class is ErrorClass.CHECK


@pytest.mark.usefixtures("signals")
def test_an_alarm_that_someone_else_set_still_rings_while_a_pattern_is_matched() -> None:
    class TooLongError(Exception):
        pass

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(TooLongError):
        search(CATASTROPHIC, VICTIM, limit=5.0)
    assert signal.getsignal(signal.SIGALRM) is ring
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("pattern", ["a+b", CATASTROPHIC])
def test_timers_and_handlers_of_others_are_as_before(pattern: str) -> None:
    def theirs(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError

    signal.signal(signal.SIGALRM, theirs)
    signal.signal(signal.SIGVTALRM, theirs)
    signal.setitimer(signal.ITIMER_REAL, 100, 7)
    signal.setitimer(signal.ITIMER_VIRTUAL, 50, 3)
    try:
        search(pattern, VICTIM, limit=0.1)
    except TrialFault:
        assert pattern is CATASTROPHIC
    assert signal.getsignal(signal.SIGALRM) is theirs
    assert signal.getsignal(signal.SIGVTALRM) is theirs
    for which, delay, interval in ((signal.ITIMER_REAL, 100, 7), (signal.ITIMER_VIRTUAL, 50, 3)):
        left, again = signal.getitimer(which)
        assert left == pytest.approx(delay, abs=20)
        assert again == pytest.approx(interval, abs=0.01)


def test_a_reason_is_one_plain_line() -> None:
    assert one_line("two\nlines\x1b[31m\tand a bell\x07") == "two lines [31m and a bell"
    assert one_line("x" * 300) == "x" * 197 + "..."
