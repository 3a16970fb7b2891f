"""F12, F16, F22 to F24: agents that are killed, flood, refuse to die, or take all there is; and a controller without memory."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .bed import Bed, wait_for
from .board import CannotInject, Desk, line
from .injector import strace
from .signals import patience

MIB = 1 << 20
_GRACE = 3.5
"""Seconds of TERM and INT before everything is killed."""


@contextmanager
def watched(bed: Bed) -> Iterator[dict[str, int]]:
    """Follow the peak memory of every process of a bed that runs our code, in bytes by command line."""
    peaks: dict[str, int] = {}
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.05):
            for pid, command in bed.processes().items():
                if "python" in command and "agent" not in command:
                    peaks[command] = max(peaks.get(command, 0), _peak(pid))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


def _peak(pid: int) -> int:
    try:
        for row in Path(f"/proc/{pid}/status").read_text().splitlines():
            if row.startswith("VmHWM:"):
                return int(row.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _only_trial(bed: Bed) -> dict[str, Any]:
    trial: dict[str, Any] = bed.report()["trials"][0]
    return trial


@line("F12", "memory")
def memory(desk: Desk) -> None:
    """The agent is killed as the kernel kills for memory; the controller may not have more."""
    bed = desk.bed(cases=0)
    bed.case("killed", "kill -9 $$")
    account = desk.account(bed)
    session = bed.run("-n0", "-q")
    problems = account.settle(session) + account.cleared()
    trial = _only_trial(bed)
    problems += desk.expect(trial["outcome"] == "error" and "signal 9" in trial["reason"], f"{trial['reason']}")
    desk.point("agent killed", problems, session)
    if shutil.which("prlimit") is None:
        raise CannotInject("prlimit is not installed")
    for limit in (120, 200, 300, 450, 700, 1200) if desk.full else (250,):
        for mode in ("-n0", "-n2"):
            bed = desk.bed(cases=1, agent=":")
            account = desk.account(bed)
            session = bed.start(mode, "--trials", "3", before=("prlimit", f"--as={limit * MIB}"))
            if session.wait(desk.scale(30, 60)) is None:
                # Some numeric libraries loop for ever when they cannot allocate. Then a person kills the run.
                desk.remark(f"with {limit} MiB {mode} the session was killed")
            problems = account.settle(session) + account.cleared()
            if session.status == 0:
                problems += desk.expect(bed.report()["run"]["counts"]["passed"] == 3, "exit status 0, not all passed")
            desk.point(f"{limit} MiB {mode}", problems, session)


@line("F16", "1 GiB transcript")
def huge_output(desk: Desk) -> None:
    """1 GiB on one line, 1 GiB of lines, a million lines: memory is bounded, the cut is marked, the digest kept."""
    size = desk.scale(100, 1024) * MIB
    floods = {
        "one line": f"head -c {size} /dev/zero | tr '\\0' x; echo",
        "many lines": f"yes 0123456789012345678901234567890123456789 | head -c {size}",
        "a million lines": f"seq 1 {desk.scale(100_000, 1_000_000)}",
    }
    for what, agent in floods.items():
        bed = desk.bed(cases=0)
        bed.case("flood", agent, budget={"timeout": 600})
        account = desk.account(bed)
        with watched(bed) as peaks:
            session = bed.start("-n0", "-q")
            session.wait(900)
        problems = desk.expect(session.status == 0, f"exit status {session.status}")
        problems += account.settle(session) + account.cleared()
        problems += _bounded(desk, peaks)
        kept = next(bed.output.glob("*/trials/*/stdout"), None)
        problems += desk.expect(
            kept is not None and kept.stat().st_size <= 65 * MIB, "stdout is not kept, or too large"
        )
        if what != "a million lines" and kept is not None:
            with kept.open("rb") as file:
                file.seek(max(0, kept.stat().st_size - 4096))
                tail = file.read()
            problems += desk.expect(b"cut" in tail or b"truncated" in tail, "the cut is not marked")
        desk.point(what, problems, session)


def _bounded(desk: Desk, peaks: dict[str, int]) -> list[str]:
    most = max(peaks.values(), default=0)
    desk.measure("peak memory", most // MIB, "MiB")
    return desk.expect(0 < most < 200 * MIB, f"peak memory {most // MIB} MiB")


_STUBBORN = """
trap '' INT TERM HUP
beat() {{ trap '' INT TERM HUP; while :; do echo still here; echo x >> {beats}; sleep 0.05; done; }}
beat &
setsid sh -c "trap '' INT TERM HUP; while :; do echo x >> {beats}; sleep 0.05; done" &
(setsid nohup sh -c "trap '' INT TERM HUP; while :; do echo x >> {beats}; sleep 0.05; done" &)
(env -i setsid sh -c 'trap "" INT TERM HUP; (while :; do echo x >> {beats}; sleep 0.05; done) &' &)
{leaves}
while :; do sleep 1; done
"""


@line("F22", "stubborn agent")
def stubborn(desk: Desk) -> None:
    """It ignores signals, daemonises, clears its environment, holds its pipes open and keeps writing."""
    for leaves, wanted in ((":", "error"), ("echo something > else.txt", "failed")):
        for mode in ("-n0", "-n2") if desk.full else ("-n0",):
            bed = desk.bed(cases=0)
            beats = bed.folder / "beats"
            bed.case("stubborn", _STUBBORN.format(beats=beats, leaves=leaves), budget={"timeout": 1})
            account = desk.account(bed)
            session = bed.start(mode, "-q")
            wait_for(lambda bed=bed, session=session: not session.running or bed.records())
            # The record is written after the proof of death, so from here on nothing may move.
            at_record = beats.stat().st_size if beats.exists() else -1
            session.wait()
            time.sleep(0.5)
            problems = account.settle(session) + account.cleared()
            problems += desk.expect(at_record > 0, "it never began")
            problems += desk.expect(beats.stat().st_size == at_record, "it wrote on after its record")
            if not problems:
                trial = _only_trial(bed)
                took = next(iter(bed.report()["timing"]["trials"].values()))["agent_s"]
                problems += desk.expect(
                    trial["error"] and trial["error"]["class"] == "timeout", f"error {trial['error']}"
                )
                problems += desk.expect(trial["outcome"] == wanted, f"{trial['outcome']}, not {wanted}")
                problems += desk.expect(trial["isolation"]["tree"] == "dead", "its tree is not proven dead")
                problems += desk.expect(took <= 1 + _GRACE + 1 + patience(), f"dead after {took:.1f} s")
                desk.measure("dead after", took, "s")
            desk.point(f"{mode} leaving {'nothing' if leaves == ':' else 'a file'}", problems, session)


@line("F23", "greedy agent")
def greedy(desk: Desk) -> None:
    """A hundred thousand files, five gigabytes, hundreds of processes: an error for that trial, its neighbours pass."""
    agents = {
        "files": f"python3 -c 'import os\nfor n in range({100_000}): os.close(os.open(str(n), os.O_CREAT))'; sleep 30",
        "bytes": "for n in 1 2 3 4 5 6 7 8 9 10; do fallocate -l 1G big$n || dd if=/dev/zero of=big$n bs=1M count=1024; done;"
        " sleep 30",
        "processes": "for n in $(seq 1 300); do sleep 60 & done",
    }
    for what, agent in agents.items():
        bed = desk.bed(cases=2, agent="sleep 0.2")
        bed.case("greedy", agent, budget={"timeout": 60})
        account = desk.account(bed)
        session = bed.start("-n2", "-q")
        session.wait(300)
        problems = account.settle(session) + account.cleared()
        outcomes = {trial["case"]: trial for trial in bed.report()["trials"]}
        neighbours = [name for name, trial in outcomes.items() if name != "greedy" and trial["outcome"] != "passed"]
        problems += desk.expect(not neighbours, f"neighbours suffer: {neighbours}")
        trial = outcomes["greedy"]
        if what == "processes":
            problems += desk.expect(trial["isolation"]["tree"] == "dead", "its tree is not proven dead")
        else:
            found = trial["error"] and trial["error"]["class"]
            problems += desk.expect(found == "disk", f"{trial['outcome']} {trial['error']}")
        desk.point(what, problems, session)


@line("F24", "flood on a slow disk")
def flood(desk: Desk) -> None:
    """It prints as fast as it can while each write of its supervisor takes 100 ms: no memory grows, the wall holds."""
    bed = desk.bed(cases=0)
    ready = bed.folder / "ready"
    bed.case(
        "flood",
        f"while [ ! -e {ready} ]; do sleep 0.05; done; exec cat /dev/zero",
        budget={"timeout": desk.scale(4, 20)},
    )
    account = desk.account(bed)
    with watched(bed) as peaks:
        session = bed.start("-n0", "-q")
        wait_for(lambda: not session.running or bed.starts())
        agents = [pid for pid, command in bed.processes().items() if command.startswith("sh ")]
        supervisor = _parent(agents[0]) if agents else 0
        slow = subprocess.Popen(
            [strace(), "-qq", "-o", "/dev/null", "-p", str(supervisor), "-e", "trace=write",
             "-e", "inject=write:delay_enter=100000"],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(0.5)
        ready.touch()
        session.wait(120)
        slow.terminate()
        slow.wait()
    problems = desk.expect(supervisor, "no supervisor was found")
    problems += account.settle(session) + account.cleared() + _bounded(desk, peaks)
    if not problems:
        trial = _only_trial(bed)
        took = next(iter(bed.report()["timing"]["trials"].values()))["agent_s"]
        problems += desk.expect(trial["error"]["class"] == "timeout", f"error {trial['error']}")
        problems += desk.expect(took <= desk.scale(4, 20) + _GRACE + 5 + patience(), f"ended after {took:.1f} s")
    desk.point("flood", problems, session)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
