"""F18 and F27: a journal and a baseline that are cut, flipped, foreign or no file at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_skilleval import store
from pytest_skilleval.errors import RunFolderMistake
from pytest_skilleval.journal import Journal, claim_run
from pytest_skilleval.model import TrialId
from pytest_skilleval.resume import remaining

from .account import judge
from .board import Desk, line
from .crashes import RUN
from .crowd import intent, plan, record

_TRIALS = [TrialId("execution", "greet", "none", number) for number in (1, 2, 3)]


def _journal(folder: Path) -> Journal:
    """Write a run of three passed trials."""
    claim_run(folder, plan(folder, _TRIALS))
    journal = Journal(folder, folder.name)
    for trial in _TRIALS:
        journal.write_intent(intent(folder, trial))
        journal.write_record(record(folder, trial))
    return journal


def _damages(data: bytes, step: int) -> Iterator[tuple[str, bytes]]:
    for place in range(0, len(data), step):
        yield f"cut at {place}", data[:place]
        yield f"flipped at {place}", data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    yield "NULs inside", data[:20] + b"\0" * 100 + data[20:]
    yield "NULs alone", b"\0" * len(data)
    yield "merge markers", b"<<<<<<< ours\n" + data + b"=======\n" + data + b">>>>>>> theirs\n"
    yield "twice", data + data
    yield "no UTF-8", b"\xff\xfe" + data
    yield "deep", b"[" * 100_000
    yield "a number", b"1"
    yield "a huge number", b'{"checksum":' + b"9" * 10_000 + b',"body":{}}'


def _same(bad: bytes, good: bytes) -> bool:
    """Tell whether only white space of JSON around a file is gone."""
    return bad.strip(b" \t\r\n") == good.strip(b" \t\r\n")


@line("F18", "corrupt journal")
def corrupt_journal(desk: Desk) -> None:
    """Damage each file of a journal at each byte: the others count, it is named, its trial runs again; never a traceback."""
    folder = desk.folder / "runs" / "one"
    journal = _journal(folder)
    step = desk.scale(11, 1)
    for name in ("record.json", "intent.json"):
        path = journal.folder(_TRIALS[1]) / name
        good = path.read_bytes()
        for what, bad in _damages(good, step):
            path.write_bytes(bad)
            desk.point(f"{name} {what}", _still_counts(folder, name, what, _same(bad, good)))
        path.write_bytes(good)
    _no_files(desk, folder, journal)
    _foreign(desk, folder, journal)
    _damaged_plan(desk, folder, step)
    _resumed_after_damage(desk)


def _still_counts(folder: Path, name: str, what: str, same: bool) -> list[str]:
    """Two trials count whatever happened to the third, whose damage is named."""
    report = judge(folder)
    counts = report.run.counts
    named = any(f"{_TRIALS[1].folder}/{name}" in reason for reason in report.run.reasons)
    left = remaining(folder, store.gather(folder).plan)
    lost = name == "record.json" and not same
    wanted = {"passed": 2 if lost else 3, "failed": 0, "error": 0, "missing": 1 if lost else 0}
    problems = [] if dict(counts) == wanted else [f"{what}: counts {counts}"]
    problems += [] if named != same else [f"{what}: named: {named}"]
    problems += [] if left == ([_TRIALS[1]] if lost else []) else [f"{what}: to run again: {left}"]
    return problems


def _no_files(desk: Desk, folder: Path, journal: Journal) -> None:
    """Where a record should be there is a folder, a FIFO, a link to itself, a file nobody may read."""
    path = journal.folder(_TRIALS[1]) / "record.json"
    good = path.read_bytes()
    plants: dict[str, Callable[[], object]] = {
        "a folder": path.mkdir,
        "a FIFO": lambda: os.mkfifo(path),
        "a link to itself": lambda: path.symlink_to(path),
        "a link elsewhere": lambda: path.symlink_to("/etc/hostname"),
    }
    for what, plant in plants.items():
        path.unlink()
        plant()
        desk.point(what, _still_counts(folder, "record.json", what, same=False))
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        path.write_bytes(good)


def _foreign(desk: Desk, folder: Path, journal: Journal) -> None:
    """A record of another run, of another trial, and a folder that nothing planned owns."""
    path = journal.folder(_TRIALS[1]) / "record.json"
    good = path.read_bytes()
    other = _journal(folder.with_name("other"))
    for what, source in (
        ("another run's record", other.folder(_TRIALS[1])),
        ("another trial's record", journal.folder(_TRIALS[0])),
    ):
        shutil.copy(source / "record.json", path)
        desk.point(what, _still_counts(folder, "record.json", what, same=False))
    path.write_bytes(good)
    stranger = folder / "trials" / "0123456789abcdef0123"
    stranger.mkdir()
    report = judge(folder)
    problems = desk.expect(report.run.counts["passed"] == 3, f"counts {report.run.counts}")
    problems += desk.expect(any(stranger.name in reason for reason in report.run.reasons), "it is not named")
    desk.point("a folder of nobody", problems)
    stranger.rmdir()


def _damaged_plan(desk: Desk, folder: Path, step: int) -> None:
    """Without its plan a run cannot be judged: that is said with the file's name, and no record is touched."""
    path = folder / "plan.json"
    good = path.read_bytes()
    before = {record: record.read_bytes() for record in folder.rglob("record.json")}
    for what, bad in _damages(good, step):
        if _same(bad, good):
            continue
        path.write_bytes(bad)
        problems = []
        try:
            judge(folder)
            problems.append("it was judged")
        except RunFolderMistake as mistake:
            problems += desk.expect("plan.json" in str(mistake), f"it does not name the file: {mistake}")
        problems += desk.expect(all(path.read_bytes() == data for path, data in before.items()), "a record changed")
        desk.point(f"plan.json {what}", problems)
    path.write_bytes(good)


def _resumed_after_damage(desk: Desk) -> None:
    """A resume runs the damaged trial once more, and no other."""
    bed = desk.bed(cases=1, agent=":")
    account = desk.account(bed)
    bed.run("-n0", "--trials", "3", "-q")
    account.see()
    victim = sorted(bed.output.glob("*/trials/*/record.json"))[1]
    account.intended.add(f"{bed.last_run.name}/{victim.parent.name}")
    victim.write_bytes(victim.read_bytes()[:-100])
    session = bed.run("-n0", "--trials", "3", "-q", "--skilleval-resume")
    problems = desk.expect(session.status == 0, f"exit status {session.status}")
    problems += account.settle(session) + account.cleared()
    problems += desk.expect(
        bed.report()["run"]["counts"]["passed"] == 3, f"in the end: {bed.report()['run']['counts']}"
    )
    problems += desk.expect(bed.starts().total() == 4, f"{bed.starts().total()} agents for 3 trials and one more")
    desk.point("resumed after damage", problems, session)


@line("F27", "baseline trouble")
def bad_baseline(desk: Desk) -> None:
    """A baseline that cannot be used is refused before any agent starts; one that goes away later spoils nothing."""
    for what, plant in list(_BASELINES.items())[: desk.scale(4, len(_BASELINES))]:
        bed = desk.bed(cases=1, agent=":")
        place = bed.folder / "baseline.json"
        plant(place)
        session = bed.run(*RUN, f"--compare-baseline={place}")
        problems = desk.expect(session.status == 4, f"exit status {session.status}")
        problems += desk.expect(not bed.starts(), "an agent was started")
        problems += desk.expect(not bed.run_folders(), "a run folder was made")
        problems += desk.expect(str(place) in session.said.replace("\n", ""), "it does not name the file")
        problems += desk.expect("Traceback" not in session.said and "INTERNALERROR" not in session.said, "a traceback")
        desk.point(what, problems, session)
    _other_run(desk)
    _gone_later(desk)


def _huge(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(500 * 1024 * 1024)


_BASELINES: dict[str, Callable[[Path], object]] = {
    "missing": lambda place: None,
    "a folder": lambda place: place.mkdir(),
    "500 MB": _huge,
    "cut": lambda place: place.write_text('{"schema": "skilleval-report/1", "run": {"id"'),
    "empty": lambda place: place.touch(),
    "no report": lambda place: place.write_text('{"schema": "something/1"}'),
    "next version": lambda place: place.write_text('{"schema": "skilleval-report/2"}'),
    "a FIFO": os.mkfifo,
    "deep": lambda place: place.write_bytes(b"[" * 1_000_000),
    "half a report": lambda place: place.write_text('{"schema": "skilleval-report/1", "run": {}}'),
}


def _other_run(desk: Desk) -> None:
    """A run of other cases has nothing to compare with: that is said, the own report is written."""
    bed = desk.bed(cases=1, agent=":")
    bed.run(*RUN)
    baseline = bed.folder / "baseline.json"
    value = json.loads((bed.last_run / "report.json").read_bytes())
    text = json.dumps(value).replace("case1", "elsewhere")
    baseline.write_text(text)
    before = len(bed.run_folders())
    session = bed.run(*RUN, f"--compare-baseline={baseline}")
    problems = desk.expect(session.status not in (3, None), f"exit status {session.status}")
    problems += desk.expect("Traceback" not in session.said, "a traceback")
    ran = len(bed.run_folders()) > before
    problems += desk.expect(ran or session.status == 4, "neither refused nor run")
    problems += desk.expect(not ran or (bed.last_run / "report.json").is_file(), "no report.json")
    desk.point("another run's", problems, session)


def _gone_later(desk: Desk) -> None:
    """The baseline is removed by the first agent: it was read before."""
    bed = desk.bed(cases=0)
    baseline = bed.folder / "baseline.json"
    bed.case("case1", f"rm -f {baseline}")
    bed.run(*RUN)
    shutil.move(bed.last_run / "report.json", baseline)
    session = bed.run(*RUN, f"--compare-baseline={baseline}")
    problems = desk.expect(session.status == 0, f"exit status {session.status}")
    problems += desk.expect(not baseline.exists(), "it was not removed")
    problems += desk.expect(bed.report()["comparison"] is not None, "no comparison")
    desk.point("gone later", problems, session)
