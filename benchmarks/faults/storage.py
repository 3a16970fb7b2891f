"""F9 to F11, F14, F19, F25: disks that are full, broken, slow, gone or hostile, and too few descriptors."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .account import Account
from .bed import Bed, Session, wait_for
from .board import CannotInject, Desk, line
from .crashes import RUN
from .injector import breaking, listed_run, points

_PRLIMIT = "prlimit"


@contextmanager
def mounted(*arguments: str) -> Iterator[None]:
    """Mount something for a while; the last argument is the mount point.

    Raises:
        CannotInject: This user may not mount.
    """
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotInject(f"mount {' '.join(arguments[:-1])}: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", arguments[-1]], check=True)


def _honest(desk: Desk, bed: Bed, session: Session, account: Account, *said: str) -> list[str]:
    """What a run must do when it cannot write: end, say so with a path, never call a trial passed that is not recorded."""
    problems = desk.expect(session.status is not None, "the session hangs")
    problems += desk.expect(session.status != 0, "exit status 0")
    problems += account.settle(session) + account.cleared()
    if said:
        problems += desk.expect(any(text in session.said for text in said), f"it says none of {said}")
    problems += desk.expect("INTERNALERROR" not in session.said, "internal error")
    passed = [line for line in session.said.splitlines() if " passed" in line and "=" in line]
    recorded = sum(b'"outcome":"passed"' in data for data in bed.records().values())
    if passed and recorded < int(passed[-1].split(" passed")[0].split()[-1]):
        problems.append(f"{passed[-1].strip('= ')}, {recorded} recorded as passed")
    return problems


@line("F9", "disk full")
def disk_full(desk: Desk) -> None:
    """A run folder on a tiny file system; and no space for the n-th write, for every n."""
    bed = desk.bed(cases=2, agent=":")
    bed.output.mkdir(parents=True)
    with mounted("-t", "tmpfs", "-o", "size=64k", "none", str(bed.output)):
        session = bed.run("-n0", "--trials", "20")
        problems = _honest(desk, bed, session, desk.account(bed), "No space left on device")
        problems += desk.expect(str(bed.output) in session.said.replace("\n", ""), "no path is named")
        desk.point("tmpfs of 64 KiB", problems, session)
    full = ("-n0", "--trials", "2")
    clean, listed = listed_run(desk, *full, kinds=("write",), cases=1, agent=":")
    for kind, number in points(desk, listed, clean.path / ".skilleval", 3):
        bed = desk.bed(cases=1, agent=":")
        account = desk.account(bed)
        session = bed.run(*full, before=breaking(kind, str(number), "error=ENOSPC"))
        problems = desk.expect(session.status is not None, "the session hangs")
        problems += account.settle(session) + account.cleared()
        if session.status == 0:
            problems += _nothing_missing(bed)
        elif bed.run_folders():
            problems += desk.expect(
                (bed.last_run / "report.md").exists() or (bed.last_run / "report.json").exists(),
                "no other format was tried",
            )
        desk.point(f"no space for write {number}", problems, session)
        shutil.rmtree(bed.folder)


def _nothing_missing(bed: Bed) -> list[str]:
    """A write that a run can do without, such as a hint for the next one, may fail."""
    names = [name for name in ("report.json", "report.md", "report.html") if not (bed.last_run / name).is_file()]
    counts = bed.report()["run"]["counts"] if not names else {}
    return [f"exit status 0 without {names}"] if names or counts.get("missing") or counts.get("error") else []


@line("F10", "I/O error")
def io_error(desk: Desk) -> None:
    """The n-th sync, and the n-th read of a journal, fails."""
    clean, listed = listed_run(desk, *RUN, kinds=("fsync", "read"), cases=1, agent=":")
    for kind, number in points(desk, listed, clean.path / ".skilleval", 4):
        bed = desk.bed(cases=1, agent=":")
        account = desk.account(bed)
        session = bed.run(*RUN, before=breaking(kind, str(number), "error=EIO"))
        problems = desk.expect(session.status is not None, "the session hangs")
        problems += account.settle(session) + account.cleared()
        if session.status == 0:
            problems += desk.expect((bed.last_run / "report.json").is_file(), "exit status 0 without report.json")
        else:
            problems += desk.expect("Input/output error" in session.said, "it does not say what failed")
        desk.point(f"EIO for {kind} {number}", problems, session)
        shutil.rmtree(bed.folder)


@line("F11", "too few descriptors")
def few_descriptors(desk: Desk) -> None:
    """Limits of 40 to 120 open files."""
    if shutil.which(_PRLIMIT) is None:
        raise CannotInject("prlimit is not installed")
    for limit in range(40, 121, desk.scale(40, 5)):
        for mode in ("-n0", "-n2") if desk.full else ("-n0",):
            bed = desk.bed(cases=1, agent="sleep 0.05")
            account = desk.account(bed)
            session = bed.run(mode, "--trials", "4", before=(_PRLIMIT, f"--nofile={limit}:{limit}"))
            problems = desk.expect(session.status is not None, "the session hangs")
            problems += account.settle(session) + account.cleared()
            if session.status == 0:
                problems += desk.expect(bed.report()["run"]["counts"]["passed"] == 4, "exit status 0, not all passed")
            desk.point(f"{limit} descriptors {mode}", problems, session)


@line("F14", "read-only or vanished places")
def places_gone(desk: Desk) -> None:
    """Output, temp directory or working home cannot be written, or go away while the run goes on."""
    for what in ("output", "temp"):
        bed = desk.bed(agent="sleep 0.1")
        place = bed.path / ".skilleval" if what == "output" else bed.temp
        place.mkdir(exist_ok=True)
        with mounted("--bind", str(place), str(place)):
            subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], check=True)
            session = bed.run("-n0", "--trials", "3")
        if what == "temp" and session.status == 0:  # Python finds another one, such as /tmp
            problems = desk.expect(bed.report()["run"]["counts"]["passed"] == 6, "exit status 0, not all passed")
        else:
            status = session.status
            problems = desk.expect(status not in (0, None), f"exit status {status}")
            problems += desk.expect(not bed.starts(), "an agent was started")
            problems += desk.expect("Read-only file system" in session.said, "it does not say why")
        problems += desk.expect("INTERNALERROR" not in session.said, "internal error")
        problems += desk.account(bed).settle()
        desk.point(f"read-only {what}", problems, session)
    for what, mode in (("output", "-n0"), ("temp", "-n0"), ("output", "-n2"), ("temp", "-n2")):
        bed = desk.bed(agent="sleep 0.3")
        account = desk.account(bed)
        session = bed.start(mode, "--trials", "8")
        wait_for(lambda bed=bed, session=session: not session.running or len(bed.records()) >= 2)
        place = bed.path / ".skilleval" if what == "output" else bed.temp
        shutil.rmtree(place, ignore_errors=True)
        status = session.wait()
        problems = desk.expect(status is not None, "the session hangs")
        problems += desk.expect(status != 0 or what == "temp", f"exit status {status}")
        problems += account.settle(session)
        desk.point(f"{what} vanished {mode}", problems, session)


@line("F19", "slow file system")
def slow_disk(desk: Desk) -> None:
    """Each sync and rename takes 50 to 500 ms; no agent times out because of it."""
    for delay in (50, 500) if desk.full else (100,):
        for kind in ("fsync", "rename"):
            bed = desk.bed(cases=1, agent="sleep 0.2", budget={"timeout": 3})
            session = bed.run(*RUN, before=breaking(kind, "1+", f"delay_enter={delay * 1000}"))
            account = desk.account(bed)
            problems = desk.expect(session.status == 0, f"exit status {session.status}")
            problems += account.settle(session) + account.cleared()
            if not problems:
                agent = max(trial["agent_s"] for trial in bed.report()["timing"]["trials"].values())
                problems += desk.expect(agent < 3, f"an agent of 0.2 s took {agent} s")
            desk.point(f"{kind} {delay} ms", problems, session)


@line("F25", "hostile output folder")
def hostile_output(desk: Desk) -> None:
    """Where report.json goes there is a link, a FIFO, a folder, or another user's file."""
    plants: dict[str, Callable[[Path, Path], object]] = {
        "link": lambda place, target: place.symlink_to(target),
        "FIFO": lambda place, _: os.mkfifo(place),
        "folder": lambda place, _: place.mkdir(),
        "dangling link": lambda place, target: place.symlink_to(target.with_name("nothing")),
    }
    for name, plant in plants.items():
        bed = desk.bed(cases=1, agent=":")
        account = desk.account(bed)
        bed.run(*RUN)
        account.see()
        target = bed.folder / "target"
        target.write_text("untouched")
        place = bed.last_run / "report.json"
        place.unlink()
        plant(place, target)
        before = os.lstat(place)
        session = bed.run(*RUN, "--skilleval-resume", "--skilleval-report", "md")
        status = session.status
        problems = desk.expect(status not in (0, None), f"exit status {status}")
        problems += desk.expect(target.read_text() == "untouched", "the target was written")
        problems += desk.expect(not target.with_name("nothing").exists(), "a file was made elsewhere")
        problems += desk.expect(os.lstat(place).st_mode == before.st_mode, "it was replaced")
        problems += desk.expect((bed.last_run / "report.md").is_file(), "the other format was not tried")
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
        problems += account.settle()
        desk.point(name, problems, session)
    _others_folder(desk)


def _others_folder(desk: Desk) -> None:
    """Another user holds the folder for homes."""
    if os.getuid() != 0:
        desk.remark("another user's folder needs root")
        return
    bed = desk.bed(cases=1, agent=":")
    base = bed.temp / f"skilleval-{os.getuid()}"
    base.mkdir()
    os.chown(base, 65534, 65534)
    session = bed.run(*RUN)
    status = session.status
    problems = desk.expect(status not in (0, None), f"exit status {status}")
    problems += desk.expect("belongs to another user" in session.said, "it does not say why")
    problems += desk.expect(not any(base.iterdir()), "something was put in there")
    problems += desk.expect(not bed.starts(), "an agent was started")
    desk.point("another user's folder", problems, session)
