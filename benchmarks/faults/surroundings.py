"""F13, F21, F26: clocks that jump, hooks and formats that raise, strange environments."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from .bed import wait_for
from .board import Desk, line

_CLOCK = """
import time
real, steps = time.time, []

def stepped():
    now = real()
    steps or steps.append(now)
    return {how}

time.time = stepped
"""
_STEPS = {
    "an hour back": "now - (3600 if now - steps[0] > 1.5 else 0)",
    "a week ahead": "now + (604800 if now - steps[0] > 1.5 else 0)",
    "standing still": "steps[0]",
}


@line("F13", "clock step")
def clock_step(desk: Desk) -> None:
    """The clock steps in mid-trial, or stands still: durations hold, no time-out and no budget is caused by it."""
    for what, how in _STEPS.items():
        for mode in ("-n0", "-n2") if desk.full else ("-n0",):
            bed = desk.bed(cases=1, agent="sleep 2.5", budget={"timeout": 30})
            bed.write("conftest.py", _CLOCK.format(how=how))
            account = desk.account(bed)
            session = bed.run(mode, "--trials", "2", "-q", "--skilleval-budget", "time=10m")
            problems = desk.expect(session.status == 0, f"exit status {session.status}")
            problems += account.settle(session) + account.cleared()
            if not problems:
                report = bed.report()
                times = [trial["agent_s"] for trial in report["timing"]["trials"].values()]
                problems += desk.expect(all(2.4 < seconds < 25 for seconds in times), f"durations {times}")
                problems += desk.expect(report["run"]["counts"]["passed"] == 2, f"counts {report['run']['counts']}")
                notes = [note for trial in report["trials"] for note in trial["notes"] if "clock" in note]
                problems += desk.expect(notes, "no trial notes that the clock stepped")
            desk.point(f"{what} {mode}", problems, session)


_RAISING = {
    "pytest_skilleval_trial_finished": "def pytest_skilleval_trial_finished(record):\n    raise ValueError('boom')\n",
    "pytest_skilleval_report_finished": "def pytest_skilleval_report_finished(report):\n    raise ValueError('boom')\n",
    "pytest_skilleval_providers": "def pytest_skilleval_providers():\n    raise ValueError('boom')\n",
    "pytest_skilleval_conditions": "def pytest_skilleval_conditions():\n    raise ValueError('boom')\n",
    "another plugin's makereport": "def pytest_runtest_makereport(item, call):\n    if call.when == 'call' and 'none-1' in"
    " item.name:\n        raise ValueError('boom')\n",
    "another plugin's logreport": "def pytest_runtest_logreport(report):\n    raise ValueError('boom')\n",
    "a provider that raises": """
from pytest_skilleval.providers.stub import Stub

class Raising(Stub):
    def read(self, ask, output):
        if ask.id.trial == 1:
            raise ValueError("boom")
        return super().read(ask, output)

def pytest_skilleval_providers():
    return {"stub": Raising}
""",
    "a template that raises": """
from pytest_skilleval.reports import html, markdown

def raising(*args, **more):
    raise ValueError("boom")

markdown.as_markdown = html.as_html = raising
""",
}


@line("F21", "hook or format raises")
def raising(desk: Desk) -> None:
    """Whatever raises, each trial is settled once, the others go on, and the other formats are written."""
    for what, code in _RAISING.items():
        for mode in ("-n0", "-n2") if desk.full else ("-n0",):
            bed = desk.bed(cases=1, agent=":")
            bed.write("conftest.py", code)
            account = desk.account(bed)
            session = bed.run(mode, "--trials", "2")
            status = session.status
            problems = desk.expect(status not in (0, None), f"exit status {status}")
            problems += account.settle(session) + account.cleared()
            problems += desk.expect("boom" in session.said, "it does not say what was raised")
            counts = bed.starts()
            problems += desk.expect(all(count == 1 for count in counts.values()), f"agents started {counts}")
            if bed.run_folders() and "another plugin's" not in what:  # pytest ends the session for those two
                problems += desk.expect((bed.last_run / "report.json").is_file(), "no report.json")
                problems += desk.expect(len(bed.records()) == 2, f"{len(bed.records())} records of 2 trials")
            desk.point(f"{what} {mode}", problems, session)


_SHELL = ("sh", "-c")
_SURROUNDINGS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "LC_ALL=C": ((), {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "TZ=Asia/Kathmandu": ((), {"TZ": "Asia/Kathmandu"}),
    "PYTHONHASHSEED": ((), {"PYTHONHASHSEED": "4711"}),
    "HOME unset": (("env", "-u", "HOME"), {}),
    "umask 000": ((*_SHELL, 'umask 000; exec "$@"', "sh"), {}),
    "umask 077": ((*_SHELL, 'umask 077; exec "$@"', "sh"), {}),
    "umask 777": ((*_SHELL, 'umask 777; exec "$@"', "sh"), {}),
    "a narrow terminal": ((), {"COLUMNS": "20", "NO_COLOR": "1"}),
}


def _numbers(folder: Path) -> dict[str, Any]:
    value = json.loads((folder / "report.json").read_bytes())
    value.pop("timing")
    for name in ("id", "started", "finished", "argv", "notes"):
        value["run"].pop(name, None)
    return dict(value)


@line("F26", "environment")
def strange_surroundings(desk: Desk) -> None:
    """Locale, time zone, hash seed, HOME, umask: the same ids and numbers; a vanished working folder: an honest end."""
    plain = None
    bed = desk.bed(cases=2, agent="echo grüße >> out2.txt", stub={"solve_rate": 0.5}, description="Schöne Grüße ✓")
    account = desk.account(bed)
    for what, (before, env) in {"plain": ((), {}), **_SURROUNDINGS}.items():
        session = bed.run("-n2" if desk.full else "-n0", "--trials", "4", before=before, env=env)
        problems = desk.expect(session.status == 0, f"exit status {session.status}")
        problems += account.settle(session) + account.cleared()
        if not problems:
            numbers = _numbers(bed.last_run)
            plain = plain or numbers
            differ = [key for key, value in numbers.items() if value != plain[key]]
            problems += desk.expect(not differ, f"{', '.join(differ)} differ from those of a plain run")
        desk.point(what, problems, session)
    _folder_gone(desk)


def _folder_gone(desk: Desk) -> None:
    bed = desk.bed(agent="sleep 0.2")
    here = bed.path / "here"
    here.mkdir()
    account = desk.account(bed)
    command = ("env", "-C", str(here))
    session = bed.start("-n0", "--trials", "6", "--rootdir", str(bed.path), str(bed.path / "cases"), before=command)
    wait_for(lambda: not session.running or bed.records())
    shutil.rmtree(here)
    status = session.wait()
    problems = desk.expect(status is not None, "the session hangs")
    problems += account.settle(session) + account.cleared()
    desk.point("working folder gone", problems, session)
