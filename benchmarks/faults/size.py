"""F15: ten thousand trials."""

from __future__ import annotations

import time

from .agents import MIB, watched
from .board import Desk, line


@line("F15", "10,000 trials")
def many_trials(desk: Desk) -> None:
    """A trivial agent, two workers: in time, in bounded memory, with a report that opens and no file too many."""
    trials = desk.scale(100, 10_000)
    bed = desk.bed(cases=10, agent=":")
    account = desk.account(bed)
    started = time.monotonic()
    with watched(bed) as peaks:
        session = bed.start("-n2", "--trials", str(trials // 10), "-q")
        status = session.wait(3600)
    took = time.monotonic() - started
    problems = desk.expect(status == 0, f"exit status {status}")
    problems += account.settle(session) + account.cleared()
    most = max(peaks.values(), default=0)
    problems += desk.expect(most < 500 * MIB, f"peak memory {most // MIB} MiB")
    problems += desk.expect(took < 600 or not desk.full, f"{took:.0f} s")
    if not problems:
        problems += desk.expect(bed.report()["run"]["counts"]["passed"] == trials, "not all passed")
        each = [len(list(folder.iterdir())) for folder in (bed.last_run / "trials").iterdir()]
        problems += desk.expect(max(each) <= 5, f"{max(each)} files of one trial")
        sizes = {path.name: path.stat().st_size for path in bed.last_run.glob("report.*")}
        desk.remark(f"{trials} trials in {took:.0f} s, peak {most // MIB} MiB, {sum(each)} files, {sizes}")
    desk.point(f"{trials} trials", problems, session)
