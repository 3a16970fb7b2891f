"""F3 to F5: a crash before every call that changes the disk, in a run and in its recovery, and with what was not synced lost."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .bed import Bed
from .board import Desk, line
from .injector import CHANGES, breaking, calls, counting, listed_run, points

RUN = ("-n0", "--trials", "2", "-q", "--skilleval-report", "json")
RESUME = (*RUN, "--skilleval-resume")


@line("F3", "crash at every step")
def crash_anywhere(desk: Desk) -> None:
    """Kill the process before the n-th call, for every n; then resume."""
    clean, listed = listed_run(desk, *RUN, cases=1, agent=":")
    marks = (clean.path / ".skilleval", clean.temp / f"skilleval-{os.getuid()}")
    chosen = [point for place in marks for point in points(desk, listed, place, 2)]
    for kind, number in chosen:
        bed = desk.bed(cases=1, agent=":")
        account = desk.account(bed)
        session = bed.run(*RUN, before=breaking(kind, str(number), "signal=SIGKILL"))
        problems = desk.expect(session.status != 0, "it was not killed")
        account.see()
        problems += account.settle(session)
        again = bed.run(*(RESUME if bed.run_folders() else RUN))
        problems += account.settle(again) + account.cleared() + _whole(bed)
        desk.point(f"{kind} {number}", problems, again)
        bed.clear()
        shutil.rmtree(bed.folder)


def _whole(bed: Bed) -> list[str]:
    """Everything that was planned has its result."""
    if not bed.run_folders():
        return ["no run"]
    counts = bed.report()["run"]["counts"]
    return [] if counts["passed"] == bed.report()["run"]["planned"] == 2 else [f"in the end: {counts}"]


@line("F4", "crash in recovery")
def crash_in_recovery(desk: Desk) -> None:
    """Kill a resume, and a rebuild, before the n-th call; a second one succeeds."""
    broken = desk.bed(cases=1, agent=":")
    _interrupt(broken)
    rebuild = (sys.executable, "-m", "pytest_skilleval.cli", "rebuild", "latest")
    for name, command, good in (("resume", RESUME, 0), ("rebuild", rebuild, 2)):
        listed = _listed(desk, broken, command)
        for kind, number in points(desk, listed, Path("/project/.skilleval"), 2):
            bed = _copy(desk, broken)
            account = desk.account(bed)
            account.see()
            first = _start(bed, command, breaking(kind, str(number), "signal=SIGKILL"))
            problems = account.settle()
            second = _start(bed, command, ())
            problems += account.settle() + account.cleared()
            problems += desk.expect(first != good, "it was not killed")
            problems += desk.expect(second == good, f"the second {name} ended with {second}")
            problems += _whole(bed) if name == "resume" else []
            desk.point(f"{name}: {kind} {number}", problems)
            shutil.rmtree(bed.folder)


def _interrupt(bed: Bed) -> None:
    """Leave a run with one of two trials."""
    bed.run(*RUN)
    records = sorted(bed.output.glob("*/trials/*/record.json"))
    records[0].unlink()
    (bed.last_run / "report.json").unlink()


def _copy(desk: Desk, bed: Bed) -> Bed:
    fresh = desk.bed(cases=0)
    shutil.rmtree(fresh.path)
    shutil.copytree(bed.path, fresh.path, symlinks=True)
    for script in fresh.path.glob("cases/execution/*.sh"):
        script.write_text(script.read_text().replace(str(bed.marks), str(fresh.marks)))
    return fresh


def _listed(desk: Desk, broken: Bed, command: Sequence[str]) -> list[tuple[str, str]]:
    bed = _copy(desk, broken)
    _start(bed, command, counting(bed.folder / "calls"))
    return [(kind, arguments.replace(str(bed.path), "/project")) for kind, arguments in calls(bed.folder / "calls")]


def _start(bed: Bed, command: Sequence[str], before: Sequence[str]) -> int | None:
    if command[0] != sys.executable:
        return bed.run(*command, before=before).process.returncode
    return bed.command((*before, *command)).wait()


# ------------------------------------------------------------------------------------------------ what was not synced

_PATH = re.compile(r"<([^>]*)>")
_QUOTED = re.compile(r'"([^"]*)"')


class Disk:
    """What is sure to be on disk after a power cut: contents that were synced, and names whose folder was synced after."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.names: set[str] = set()
        """Names that are there as the running system sees it, below the root."""
        self.sure: set[str] = set()
        """Of these, names that a power cut leaves."""
        self.contents: set[str] = set()
        """Names whose content was synced after its last change."""

    def do(self, kind: str, arguments: str) -> None:
        """Follow one call that has returned."""
        opened, quoted = _PATH.findall(arguments), _QUOTED.findall(arguments)
        if kind == "write" and opened:
            self.names.add(opened[0])
            self.contents.discard(opened[0])
        elif kind == "mkdir" and quoted:
            self.names.add(quoted[0])
            self.contents.add(quoted[0])
        elif kind == "fsync" and opened:
            path = opened[0]
            self.contents.add(path)
            self.sure |= {name for name in self.names if name.rpartition("/")[0] == path}
        elif kind == "rename" and len(quoted) >= 2:
            old, new = quoted[:2]
            self.names.discard(old)
            self.names.add(new)
            # Until the folder is synced the name may stand for the old file, for the new one, or for none.
            self.sure.discard(new)
            if old in self.contents:
                self.contents.add(new)
            else:
                self.contents.discard(new)

    def keeps(self, path: str) -> str:
        """Return why a path is not sure to be there, or nothing."""
        if path not in self.contents:
            return f"the content of {path} is not synced"
        while path != self.root and path.startswith(self.root):
            if path not in self.sure:
                return f"the name {path} is not synced in its folder"
            path = path.rpartition("/")[0]
        return ""


@line("F5", "lossy crash")
def lossy_crash(desk: Desk) -> None:
    """From the listing of a run keep what was synced before each call: every trial that was acknowledged is there."""
    bed, listed = listed_run(desk, "-n0", "--trials", str(desk.scale(3, 10)), "-q", cases=2, agent=":")
    disk = Disk(str(bed.path))
    acknowledged: list[str] = []
    renamed = ""
    for kind, arguments in listed:
        disk.do(kind, arguments)
        if kind == "rename" and '/record.json"' in arguments:
            renamed = _QUOTED.findall(arguments)[1]
        elif kind == "fsync" and renamed and f"<{renamed.rpartition('/')[0]}>" in arguments:
            acknowledged.append(renamed)
            renamed = ""
        problems = [reason for path in acknowledged if (reason := disk.keeps(path))]
        desk.totals.lost += len(problems)
        desk.point(f"power cut after {kind}", problems[:1])
    wanted = desk.scale(3, 10) * 2
    desk.problems += desk.expect(len(acknowledged) == wanted, f"{len(acknowledged)} of {wanted} trials acknowledged")
    desk.remark(f"{len(acknowledged)} acknowledged trials")


assert set(CHANGES) == {"write", "fsync", "rename", "unlink", "mkdir"}, "Disk follows these calls"
