"""F17 and F20: a hundred writers in one run folder, and two runs that want the same one."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from pytest_skilleval import store
from pytest_skilleval.journal import Journal, claim_run, read_plan
from pytest_skilleval.model import TrialId
from pytest_skilleval.records import Intent, Outcome, Plan, PlannedTrial, ProviderInfo, TrialRecord

from .account import judge
from .bed import Session, wait_for
from .board import Desk, line

_EACH = 5
"""Trials of each writer; all of them also write one that is everybody's."""


def plan(folder: Path, trials: list[TrialId], token: str = "t") -> Plan:
    """Return a plan of these trials."""
    provider = ProviderInfo(id="stub", version="1", simulated=True)
    planned = tuple(PlannedTrial(**trial._asdict(), nodeid=trial.key, fingerprint="f") for trial in trials)
    return Plan(run=folder.name, token=token, started="2030-01-01T00:00:00Z", provider=provider, trials=planned)


def intent(folder: Path, trial: TrialId) -> Intent:
    """Return that a trial starts."""
    return Intent(run=folder.name, **trial._asdict(), fingerprint="f", started=0.0, worker="main", pid=1)


def record(folder: Path, trial: TrialId, outcome: Outcome = Outcome.PASSED, text: str = "") -> TrialRecord:
    """Return how a trial ended."""
    provider = ProviderInfo(id="stub", version="1", simulated=True)
    return TrialRecord(
        run=folder.name, **trial._asdict(), outcome=outcome, fingerprint="f", provider=provider, final_text=text
    )


def _write(folder: Path, number: int, shared: TrialId) -> None:
    journal = Journal(folder, folder.name)
    for trial in (*_own(number), shared):
        journal.write_intent(intent(folder, trial))
        # From 1 KB to 1 MB, so that a write that is not whole would show.
        journal.write_record(record(folder, trial, text="x" * 1000 * 4 ** (number % 6)))


def _own(number: int) -> list[TrialId]:
    return [TrialId("execution", f"case{number}", "none", trial) for trial in range(1, _EACH + 1)]


@line("F17", "100 writers")
def many_writers(desk: Desk) -> None:
    """A hundred processes claim one run folder for one session, then write records into it, one of them the same."""
    writers = desk.scale(20, 100)
    shared = TrialId("execution", "shared", "none", 1)
    folder = desk.folder / "runs" / "crowd"
    everything = [shared, *(trial for number in range(writers) for trial in _own(number))]
    agreed = plan(folder, everything)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_join, args=(folder, agreed, number, shared)) for number in range(writers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    problems = [f"writer {number} failed" for number, one in enumerate(processes) if one.exitcode]
    report = judge(folder)
    problems += desk.expect(report.run.counts["passed"] == len(everything), f"counts {report.run.counts}")
    problems += list(report.run.reasons)
    left = [path.name for path in folder.rglob(".*")]
    problems += desk.expect(not left, f"left beside the records: {left[:3]}")
    desk.totals.points += writers - 1
    desk.point(f"{writers} writers", problems)


def _join(folder: Path, agreed: Plan, number: int, shared: TrialId) -> None:
    claim_run(folder, agreed)
    _write(folder, number, shared)


@line("F20", "two runs, one folder")
def one_folder(desk: Desk) -> None:
    """Two sessions start together with one output; two resume the same run together; two get the same run id."""
    for number in range(desk.times(1, 50)):
        _fresh(desk, number)
        _resumed(desk, number)
        _same_id(desk, number)


def _fresh(desk: Desk, number: int) -> None:
    bed = desk.bed(cases=1, agent="sleep 0.1")
    account = desk.account(bed)
    pair = [bed.start("-n0", "--trials", "2", "-q") for _ in range(2)]
    statuses = [session.wait() for session in pair]
    problems = desk.expect(statuses == [0, 0], f"exit statuses {statuses}")
    problems += account.settle(pair[1]) + account.cleared()
    problems += desk.expect(len(bed.run_folders()) == 2, f"{len(bed.run_folders())} run folders")
    problems += desk.expect(bed.starts().total() == 4, f"{bed.starts().total()} agents for 4 trials")
    desk.point(f"two runs {number}", problems, pair[0])


def _resumed(desk: Desk, number: int) -> None:
    bed = desk.bed(cases=1, agent="sleep 0.3")
    account = desk.account(bed)
    first = bed.start("-n0", "--trials", "8", "-q")
    wait_for(lambda: not first.running or len(bed.records()) >= 2)
    first.kill()
    account.see()
    before = bed.starts().total()
    pair = [bed.start("-n0", "--trials", "8", "-q", "--skilleval-resume") for _ in range(2)]
    statuses = sorted(str(session.wait()) for session in pair)
    problems = desk.expect(statuses in (["0", "0"], ["0", "4"]), f"exit statuses {statuses}")
    problems += desk.expect("4" not in statuses or _refused(pair), "the second does not say why it refuses")
    problems += account.settle() + account.cleared()
    bought = bed.starts().total() - before
    twice = [folder for folder, count in bed.starts().items() if count > 2]
    problems += desk.expect(not twice, f"agents started three times: {twice}")
    problems += desk.expect(bought <= 8, f"{bought} agents started by two resumes of at most 6 trials")
    counts = bed.report()["run"]["counts"]
    problems += desk.expect(counts["passed"] == 8, f"in the end: {counts}")
    desk.point(f"two resumes {number}", problems, pair[0])


def _refused(pair: list[Session]) -> bool:
    return any("another session works on this run" in session.said for session in pair)


def _same_id(desk: Desk, number: int) -> None:
    """Run ids that collide: a clock that stands still, and no luck."""
    bed = desk.bed(cases=1, agent="sleep 0.3")
    account = desk.account(bed)
    bed.write(
        "conftest.py",
        "import pytest\n\n"
        "@pytest.hookimpl(trylast=True)\n"
        "def pytest_configure(config):\n"
        "    from pytest_skilleval import plugin\n"
        "    if not plugin.is_worker(config):\n"
        "        config.stash[plugin.HANDOVER]['run'] = '20300101T000000Z-0000'\n",
    )
    pair = [bed.start(mode, "--trials", "2", "-q") for mode in ("-n0", "-n2" if desk.full else "-n0")]
    statuses = sorted(str(session.wait()) for session in pair)
    problems = desk.expect(statuses.count("0") == 1, f"exit statuses {statuses}")
    said = [session.said for session in pair if session.status != 0]
    problems += desk.expect(
        any("another session holds this run folder" in text for text in said), "it does not say why"
    )
    problems += account.settle() + account.cleared()
    problems += desk.expect(bed.starts().total() == 2, f"{bed.starts().total()} agents for 2 trials")
    tokens = {read_plan(folder).token for folder in bed.run_folders()}
    problems += desk.expect(len(tokens) == 1, "two plans in one folder")
    problems += desk.expect(not store.gather(bed.last_run).strangers, "records of two runs in one folder")
    desk.point(f"one run id {number}", problems, pair[0])
