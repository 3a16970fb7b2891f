"""Progress while a run goes on: a live line on a terminal, lines elsewhere, whole logs under -v."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from pytest_skilleval.reports.live import Moment, progress_line

if TYPE_CHECKING:
    from tests.conftest import Project

FAST = "import pytest_skilleval.progress as progress\nprogress.EVERY = progress.TICK = 0.2\n"


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (Moment(planned=60), "skilleval: 0/60 trials; 0 passed; 0 running"),
        (
            Moment(60, passed=10, missed=2, failed=1, errors=3, not_run=4, running=5),
            "skilleval: 20/60 trials; 10 passed, 2 missed, 1 failed, 3 errors, 4 not run; 5 running",
        ),
        (
            Moment(60, running=2, waits=((3, "kind:agent=2", 14.0), (1, "a login", 75.0))),
            "skilleval: 0/60 trials; 0 passed; 2 running; 3 waiting for kind:agent=2 (14 s); 1 waiting for a login (1 min 15 s)",
        ),
        (
            Moment(3, passed=1, tokens=12_300, cost_usd=0.12, left_s=125.0),
            "skilleval: 1/3 trials; 1 passed; 0 running; 12.3k tokens, $0.1200; about 2 min 05 s left",
        ),
        (Moment(3, passed=1, tokens=0), "skilleval: 1/3 trials; 1 passed; 0 running; 0 tokens"),
    ],
)
def test_the_line_says_what_is_there_and_nothing_that_is_unknown(moment: Moment, text: str) -> None:
    assert progress_line(moment) == text


def on_a_terminal(project: Project, *args: str, columns: int = 100) -> str:
    """Run pytest on a terminal of its own; return all that it wrote."""
    main, side = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "24"}
    environ.pop("CI", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", *args],
        cwd=project.path,
        stdin=side,
        stdout=side,
        stderr=side,
        env=environ,
    )
    os.close(side)
    said = bytearray()
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if select.select([main], [], [], 1.0)[0]:
            try:
                data = os.read(main, 65536)
            except OSError:  # how Linux tells that the other side is closed
                break
            if not data:
                break
            said += data
    os.close(main)
    assert process.wait(timeout=60) == 0, said.decode(errors="replace")
    return said.decode(errors="replace")


def screen(said: str, width: int) -> list[str]:  # noqa: C901 - a terminal has so many cases
    """Return the lines that a terminal shows in the end: the sequences that a live line needs, and no others."""
    rows, row, column = [[]], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|.", said, re.DOTALL):
        line: list[str] = rows[row]
        if part == "\n":
            row += 1  # the terminal has put a carriage return before it
            if row == len(rows):
                rows.append([])
        elif part == "\r":
            column = 0
        elif part.startswith("\x1b]"):
            continue
        elif len(part) > 1:
            number = int(re.sub(r"\D", "", part) or 1)
            if part[-1] == "K":
                del line[column:]
            elif part[-1] == "A":
                row = max(0, row - number)
            elif part[-1] == "G":
                column = number - 1
            else:
                assert part[-1] == "m", f"unexpected {part!r}"
        else:
            if column == width:
                row, column = row + 1, 0
                rows.insert(row, [])
                line = rows[row]
            line.extend(" " * (column + 1 - len(line)))
            line[column] = part
            column += 1
    return ["".join(found).rstrip() for found in rows]


@pytest.mark.parametrize("mode", [(), ("-n2",)])
def test_a_terminal_shows_one_live_line_and_nothing_of_it_is_left(project: Project, mode: tuple[str, ...]) -> None:
    project.write("conftest.py", FAST)
    project.case("one", stub={"solve_rate": 1.0, "sleep": 1.0, "tokens": 50})
    said = on_a_terminal(project, *mode, "--trials", "3", "--skilleval-cap=kind:agent=1")
    assert len(re.findall(r"skilleval: \d/3 trials; ", said)) >= 3
    assert "skilleval: 0/3 trials; 0 passed; 1 running" in said
    assert "100 tokens" in said
    if mode:
        assert re.search(r"2 waiting for kind:agent=1 \(\d", said)
    left = screen(said, width=100)
    assert not [line for line in left if "/3 trials" in line], left
    assert any(" 3 passed in " in line for line in left)
    if not mode:
        dots = [line for line in left if line.startswith("cases/execution/one.yaml")]
        assert [line.split()[1] for line in dots] == ["..."], "the live line tore pytest's own line"


def test_a_narrow_terminal_cuts_the_line(project: Project) -> None:
    project.write("conftest.py", FAST)
    project.case("one", stub={"solve_rate": 1.0, "sleep": 0.8, "tokens": 50})
    said = on_a_terminal(project, "--trials", "2", columns=40)
    found = re.findall(r"skilleval: [^\r\n\x1b]*", said)
    lines = [line for line in found if "/2 trials" in line]
    assert lines
    assert max(map(len, lines)) <= 39


def test_without_a_terminal_a_line_is_written_now_and_then_also_while_a_cap_holds_all(project: Project) -> None:
    project.write("conftest.py", FAST)
    project.case("one", stub={"solve_rate": 1.0, "sleep": 1.0})
    result = project.run("-n2", "--trials", "2", "--skilleval-cap=kind:agent=1")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["skilleval: 0/2 trials; 0 passed; 1 running; 1 waiting for kind:agent=1 (*)"])
    result.stdout.fnmatch_lines(["skilleval: 1/2 trials; 1 passed; 1 running; about * left"])
    assert "\x1b[1A" not in result.stdout.str()


def test_a_quiet_run_and_a_run_without_evals_show_no_progress(project: Project) -> None:
    project.write("conftest.py", FAST)
    project.case("one", stub={"solve_rate": 1.0, "sleep": 0.8})
    quiet = project.run("-q", "--trials", "2")
    assert quiet.ret == 0
    assert "/2 trials" not in quiet.stdout.str()
    project.write("test_plain.py", "import time\n\ndef test_one():\n    time.sleep(0.5)\n")
    plain = project.run("test_plain.py")
    assert plain.ret == 0
    assert "skilleval: " not in plain.stdout.str()


def test_a_verbose_run_prints_each_trials_log_whole_and_led_by_its_key(any_mode: Project) -> None:
    any_mode.case("one", rate=1.0)
    any_mode.case("two", rate=0.0)
    result = any_mode.run("-v", "--trials", "2")
    lines = result.stdout.lines
    keys = [f"execution:{name}:none:{trial}" for name in ("one", "two") for trial in (1, 2)]
    for key in keys:
        places = [number for number, line in enumerate(lines) if line.startswith(f"{key} | ")]
        assert places == list(range(places[0], places[0] + len(places))), "something came between"
        text = "\n".join(lines[places[0] : places[-1] + 1])
        assert f"{key} | prompt: Write hello into out.txt." in text
        solved = ":one:" in key
        assert (f"{key} | tool sh (ok): echo hello > out.txt" in text) == solved
        word = "ok" if solved else "MISSED"
        assert f"{key} | check said (file): {word}" in text
        assert re.search(rf"{key} \| {'passed' if solved else 'failed'}, \d", text.splitlines()[-1])
