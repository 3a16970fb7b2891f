"""F1 and F2: workers and controllers are killed at random moments."""

from __future__ import annotations

import os
import signal
import time

from .bed import Bed, wait_for
from .board import Desk, line

MODES = ("", "load", "worksteal")
"""Without those by scope: pytest-xdist 3.8 itself hangs in them after a worker's death (its issues 1323, 1327, 1378)."""
_INTERNAL = 3
"""pytest's exit status for an internal error."""
_KILLS = 6
"""Workers killed in one session."""


@line("F1", "worker killed")
def worker_killed(desk: Desk) -> None:
    """Kill a random worker at random moments: own scheduler, load, worksteal (those by scope hang in xdist itself)."""
    left = desk.times(4, 100)
    sessions = 0
    while left > 0:
        mode = MODES[sessions % len(MODES)]
        sessions += 1
        left -= _one_session(desk, mode, min(left, _KILLS if desk.full else 4))


def _one_session(desk: Desk, mode: str, kills: int) -> int:
    bed = desk.bed(cases=4, agent="sleep 0.3")
    account = desk.account(bed)
    session = bed.start(
        "-n2", *(("--dist", mode) if mode else ()), "--trials", "12", "--max-worker-restart", "1000", "-q"
    )
    killed = 0
    for _ in range(kills):
        # A moment counts from the first trial on: before it there is nothing to lose, and xdist gives up early.
        wait_for(lambda: not session.running or bed.starts().total())
        time.sleep(desk.draw.uniform(0.1, 1.2))
        workers = session.workers()
        account.see()
        if not session.running or not workers:
            break
        try:
            os.kill(desk.draw.choice(workers), signal.SIGKILL)
        except ProcessLookupError:
            continue
        killed += 1
        desk.totals.points += 1
        wait_for(lambda before=workers: not session.running or set(session.workers()) - set(before))
    status = session.wait()
    problems = desk.expect(status is not None, "the session hangs")
    problems += account.settle(session)
    problems += account.cleared()
    if status == _INTERNAL and bed.run_folders():
        # xdist itself gives up when a worker dies while it starts; then the run is taken up again.
        desk.remark("once more after xdist's internal error")
        session = bed.run("-n2", "--trials", "12", "-q", "--skilleval-resume")
        problems += account.settle(session) + account.cleared()
        status = session.status
    if bed.run_folders() and not problems:
        problems += _died_once(bed, killed, status)
    desk.totals.points -= 1
    desk.point(f"--dist {mode or 'own'}, {killed} workers killed", problems, session)
    return max(killed, 1)


def _died_once(bed: Bed, killed: int, status: int | None) -> list[str]:
    """A running trial of a killed worker is an error, once, and everything else has its result."""
    report = bed.report()
    errors = [trial for trial in report["trials"] if trial["outcome"] == "error"]
    classes = {trial["error"]["class"] for trial in errors}
    problems = []
    if report["run"]["counts"]["missing"]:
        gone = [f"{trial['key']} {trial['reason']}" for trial in report["trials"] if trial["outcome"] == "missing"]
        problems.append(f"missing: {gone[:3]}")
    if classes - {"worker_died"}:
        problems.append(f"errors of class {sorted(classes)}")
    if len(errors) > killed:
        problems.append(f"{len(errors)} errors of {killed} killed workers")
    if bool(errors) != (status == 1):
        problems.append(f"exit status {status} with {len(errors)} errors")
    return problems


@line("F2", "controller killed")
def controller_killed(desk: Desk) -> None:
    """Kill the controller at random moments, resume, kill that one too; in the end everything has run once."""
    left = desk.times(3, 100)
    rounds = 0
    while left > 0:
        left -= _one_run(desk, ("-n2",) if rounds % 2 == 0 else ("-n0",), min(left, 6 if desk.full else 3))
        rounds += 1


def _one_run(desk: Desk, mode: tuple[str, ...], kills: int) -> int:
    bed = desk.bed(cases=4, agent="sleep 0.2", stale=True)
    account = desk.account(bed)
    done = 0
    for _ in range(kills):
        session = bed.start(*mode, "--trials", "10", "-q", *_resume(bed))
        begun = bed.starts().total()
        # Every third kill may come before the first trial.
        early = desk.draw.random() < 1 / 3
        if not early:
            wait_for(lambda begun=begun, session=session: not session.running or bed.starts().total() > begun)
        moment = desk.draw.uniform(0, 2.5)
        time.sleep(moment)
        account.see()
        if not session.running:
            break
        if desk.draw.random() < 0.3:
            session.signal_group(signal.SIGKILL)  # the workers too: only supervisors are left to clear up
        else:
            session.signal(signal.SIGKILL)
        session.process.wait()
        # Where nothing was left to clear up, as before the workers are there, the next start does: looked up in the end.
        problems = account.settle(session)
        desk.point(
            f"{' '.join(mode)} killed {moment:.2f} s after its {'start' if early else 'first trial'}", problems, session
        )
        done += 1
    account.see()
    session = bed.run(*mode, "--trials", "10", "-q", *_resume(bed))
    problems = account.settle(session) + account.cleared()
    problems += desk.expect(session.status == 0, f"the last resume ended with {session.status}")
    if bed.run_folders():
        counts = bed.report()["run"]["counts"]
        problems += desk.expect(counts["passed"] == 40, f"in the end: {counts}")
        before = bed.starts().total()
        again = bed.run(*mode, "--trials", "10", "-q", *_resume(bed))
        problems += desk.expect(again.status == 0, f"resuming a finished run ended with {again.status}")
        problems += desk.expect(bed.starts().total() == before, "resuming a finished run started agents")
    desk.totals.points -= 1
    desk.point("resumed to the end", problems, session)
    return max(done, 1)


def _resume(bed: Bed) -> tuple[str, ...]:
    return ("--skilleval-resume",) if bed.run_folders() else ()
