"""F6 to F8: signals, closed terminals, and Ctrl-C pressed once, twice, three times."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time

from .account import Account
from .bed import PYTEST, Bed, Session, wait_for
from .board import Desk, line

_LIMIT = 5.0
"""Seconds from a signal to the end of the session."""


def _running(bed: Bed, session: Session, trials: int = 2) -> None:
    """Wait until some trials are finished and one more runs."""
    wait_for(
        lambda: not session.running or (len(bed.records()) >= trials and bed.starts().total() > len(bed.records()))
    )


def _ended(desk: Desk, bed: Bed, session: Session, account: Account, wanted: tuple[int, ...]) -> list[str]:
    """Wait for the end of a session that was told to stop, and look at what it left."""
    told = time.monotonic()
    status = session.wait(60)
    took = time.monotonic() - told
    problems = desk.expect(status in wanted, f"exit status {status}, not {' or '.join(map(str, wanted))}")
    problems += desk.expect(took <= _LIMIT + patience(), f"ended after {took:.1f} s")
    problems += account.settle(session) + account.cleared()
    report = bed.last_run / "report.json"
    if not report.is_file():
        return [*problems, "no report.json"]
    run = bed.report()["run"]
    problems += desk.expect(run["status"] == "interrupted", f"status {run['status']}")
    home = sum(run["counts"].values()) - run["counts"]["missing"]
    problems += desk.expect(home == len(bed.records()), f"{len(bed.records())} records, {home} in the report")
    desk.measure("ended in", took, "s")
    return problems


def patience() -> float:
    """Return seconds granted for a machine that has more to do than it has cores."""
    return max(0.0, os.getloadavg()[0] / (os.cpu_count() or 1) - 1.0) * 2.0


@line("F6", "TERM, HUP, closed terminal")
def told_to_stop(desk: Desk) -> None:
    """Send TERM and HUP to the controller; take its reader and its terminal away."""
    for mode in ("-n2", "-n0"):
        for number in (signal.SIGTERM, signal.SIGHUP):
            bed = desk.bed(agent="sleep 0.5")
            account = desk.account(bed)
            session = bed.start(mode, "--trials", "30")
            _running(bed, session)
            account.see()
            session.signal(number)
            problems = _ended(desk, bed, session, account, (128 + number,))
            desk.point(f"{number.name} {mode}", problems, session)
    for mode in ("-n2", "-n0"):
        _head(desk, mode)
    _terminal(desk)


def _head(desk: Desk, mode: str) -> None:
    """As `pytest | head -1`."""
    bed = desk.bed(agent="sleep 0.1")
    account = desk.account(bed)
    reading, writing = os.pipe()
    with (bed.folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            (*PYTEST, mode, "--trials", "6", "-v"),
            cwd=bed.path,
            env=bed.env,
            stdout=writing,
            stderr=errors,
            process_group=0,
        )
    os.close(writing)
    os.read(reading, 100)
    os.close(reading)
    try:
        status: int | None = process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        status = None
    problems = desk.expect(status not in (0, None), f"exit status {status}")
    problems += account.settle() + account.cleared()
    problems += desk.expect(not bed.run_folders() or (bed.last_run / "report.json").is_file(), "no report.json")
    if problems:
        problems.append((bed.folder / "errors").read_text()[-400:])
    desk.point(f"closed pipe {mode}", problems)


def _terminal(desk: Desk) -> None:
    """A terminal window is closed: HUP to its foreground group, and writing fails from then on."""
    bed = desk.bed(agent="sleep 0.5")
    account = desk.account(bed)
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(bed.path)
        os.execve(PYTEST[0], (*PYTEST, "-n2", "--trials", "30"), bed.env)
    wait_for(lambda: len(bed.records()) >= 2 or not _drained(master))
    account.see()
    os.close(master)
    ended = wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, 30)
    problems = desk.expect(ended, "the session hangs")
    problems += account.settle() + account.cleared()
    problems += desk.expect((bed.last_run / "report.json").is_file(), "no report.json")
    desk.point("closed terminal", problems)


def _drained(master: int) -> bool:
    """Read what a terminal shows; False when it is gone."""
    try:
        os.set_blocking(master, False)
        os.read(master, 1 << 16)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


@line("F7", "Ctrl-C once")
def pressed_once(desk: Desk) -> None:
    """Signal INT to the group, as a terminal does, and to the controller alone, as some tools do."""
    for mode in ("-n2", "-n0"):
        for group in (True, False):
            for _ in range(desk.times(1, 5)):
                bed = desk.bed(agent="trap '' INT TERM HUP; sleep 30 & sleep 0.5")
                account = desk.account(bed)
                session = bed.start(mode, "--trials", "30")
                _running(bed, session)
                time.sleep(desk.draw.uniform(0, 0.5))
                account.see()
                (session.signal_group if group else session.signal)(signal.SIGINT)
                problems = _ended(desk, bed, session, account, (2,))
                problems += desk.expect("stopping; press Ctrl-C again to force" in session.said, "it does not say so")
                desk.point(f"{mode} {'group' if group else 'controller'}", problems, session)


@line("F8", "Ctrl-C twice, three times")
def pressed_again(desk: Desk) -> None:
    """Press again 150 ms later, and again."""
    for number in range(desk.times(3, 50)):
        mode = ("-n2", "-n0")[number % 2]
        presses = (2, 3)[number // 2 % 2]
        bed = desk.bed(agent="trap '' INT TERM HUP; sleep 30 & sleep 0.5")
        account = desk.account(bed)
        session = bed.start(mode, "--trials", "30")
        _running(bed, session)
        time.sleep(desk.draw.uniform(0, 0.5))
        account.see()
        for press in range(presses):
            if press:
                time.sleep(0.15)
            if session.running:
                session.signal_group(signal.SIGINT)
        problems = _ended(desk, bed, session, account, (2, 130, -signal.SIGINT))
        desk.point(f"{mode} pressed {presses} times", problems, session)
