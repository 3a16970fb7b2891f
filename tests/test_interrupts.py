"""Signals in a session: an orderly end with evals, nothing new without them, and handlers are put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

# The controller signals itself when the first trial or test is home.
STRIKE = """
import os, signal

class Strike:
    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            os.kill(os.getpid(), signal.{name})

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Strike())
"""


@pytest.mark.parametrize(
    ("mode", "name", "status"),
    [
        ("-n0", "SIGTERM", 143),
        ("-n2", "SIGTERM", 143),
        ("-n2", "SIGHUP", 129),
        ("-n0", "SIGINT", 2),
        ("-n2", "SIGINT", 2),
    ],
)
def test_a_signal_ends_the_run_with_a_report_of_what_is_home(
    project: Project, mode: str, name: str, status: int
) -> None:
    project.case()
    project.write("conftest.py", STRIKE.format(name=name))
    result = project.run(mode, "--trials", "30")
    assert result.ret == status
    report = project.report()
    assert report["run"]["status"] == "interrupted"
    counts = report["run"]["counts"]
    assert counts["passed"] >= 1
    assert counts["missing"] >= 1
    assert sum(counts.values()) == 30
    result.stdout.fnmatch_lines(["run interrupted: * of 30 planned trials have no result", "*skilleval-resume*"])
    pressed = name == "SIGINT"
    assert result.stdout.str().count("stopping; press Ctrl-C again to force") == pressed
    assert not list(project.path.glob(".skilleval/runs/*/session"))


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_session_without_evals_dies_of_a_signal_as_ever(project: Project, mode: str) -> None:
    project.write("test_plain.py", "import pytest\n\n@pytest.mark.parametrize('n', range(9))\ndef test(n):\n    pass\n")
    project.write("conftest.py", STRIKE.format(name="SIGTERM"))
    assert project.run(mode).ret == -15


def test_handlers_are_put_back_and_a_users_own_handler_stays(project: Project) -> None:
    project.case()
    project.write(
        "conftest.py",
        """
import atexit, signal

def mine(number, frame): ...

signal.signal(signal.SIGHUP, mine)
default = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

def pytest_runtest_logreport(report):
    if report.when == "call":
        now = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        print("changed", [a != b for a, b in zip(now, default)], signal.getsignal(signal.SIGHUP) is mine)

@atexit.register
def last():
    now = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    print("put back", now == default, signal.getsignal(signal.SIGHUP) is mine)
""",
    )
    result = project.run("-n0", "-s")
    result.stdout.fnmatch_lines(["*changed ?True, True? True", "put back True True"])


def test_an_ignored_signal_stays_ignored(project: Project) -> None:
    project.case()
    project.write("conftest.py", STRIKE.format(name="SIGHUP"))
    project.write("pytest.ini", "[pytest]\naddopts = -p quiet\n")
    project.write("quiet.py", "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n")
    result = project.run("-n0", "--trials", "3", env={"PYTHONPATH": str(project.path)})
    assert result.ret == 0
    assert project.outcomes() == {"passed": 3}


def test_a_worker_loads_no_numeric_library_to_its_very_end(project: Project) -> None:
    project.case()
    project.write(
        "conftest.py",
        """
import atexit, os, sys

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        name = config.workerinput["workerid"]
        heavy = lambda: sorted({"numpy", "scipy", "jinja2"} & set(sys.modules))
        config.add_cleanup(lambda: open(f"loaded-{name}", "w").write(repr(heavy())))
""",
    )
    assert project.run("-n2", "--trials", "2").ret == 0
    assert [path.read_text() for path in sorted(project.path.glob("loaded-*"))] == ["[]", "[]"]
