"""Failures that other runners have had, each made to happen here under the id of its recipe.

`docs/reference/bug-recipes.md` names the test of every recipe, also of those that lie beside what they test.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.faults import crowd
from benchmarks.faults.account import Account, Totals, judge
from benchmarks.faults.agents import MIB, watched
from benchmarks.faults.bed import Bed, wait_for
from pytest_skilleval.errors import RunFolderMistake
from pytest_skilleval.journal import Journal, claim_run, read_plan
from pytest_skilleval.model import TrialId
from pytest_skilleval.resume import remaining
from tests.scheduling.virtual import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Project

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@pytest.fixture
def make_bed(tmp_path: Path) -> Iterator[Callable[..., Bed]]:
    """Projects whose runs are killed and interrupted from outside."""
    beds: list[Bed] = []

    def make(**more: object) -> Bed:
        beds.append(Bed(tmp_path / f"bed{len(beds) + 1}", **more))  # type: ignore[arg-type]
        return beds[-1]

    yield make
    for bed in beds:
        bed.clear()


# ------------------------------------------------------------------------------------------- stopped, killed, resumed


@linux
def test_b01_an_interrupted_run_says_so_and_is_no_success(make_bed: Callable[..., Bed]) -> None:
    bed = make_bed(cases=1, agent="sleep 0.4")
    session = bed.start("-n0", "--trials", "6")
    assert wait_for(lambda: len(bed.records()) >= 2)
    session.signal(signal.SIGINT)
    assert session.wait() == 2
    run = bed.report()["run"]
    assert (run["status"], run["planned"], run["counts"]["missing"]) == ("interrupted", 6, 6 - len(bed.records()))
    assert run["counts"]["passed"] == len(bed.records()) >= 2
    assert run["counts"]["missing"] >= 1
    assert bed.report()["comparison"] is None
    assert "run interrupted: " in session.said
    assert "6 passed" not in session.said


@linux
def test_b02_a_cancelled_run_keeps_its_summary_and_a_comparison_says_that_it_is_partial(
    make_bed: Callable[..., Bed],
) -> None:
    bed = make_bed(cases=0)
    bed.case("greet", f'[ "$(wc -l < {bed.marks})" = 2 ] && exit 0; [ "$(wc -l < {bed.marks})" = 4 ] && sleep 20')
    session = bed.start("-n0", "--trials", "6")
    assert wait_for(lambda: len(bed.records()) == 3)
    session.signal(signal.SIGTERM)
    assert session.wait() == 143
    for report in bed.last_run.glob("report.*"):
        report.unlink()
    rebuild = bed.command((sys.executable, "-m", "pytest_skilleval.cli", "rebuild", "latest"))
    assert rebuild.wait() == 2, rebuild.said
    (group,) = bed.report()["groups"]
    assert (group["passed"], group["n"], group["missing"]) == (2, 3, 3)
    # Wilson at 2 of 3, z = 1.959964: centre 0.57308, half width 0.36542.
    assert group["pass_rate"]["ci"] == [pytest.approx(0.20766, abs=1e-4), pytest.approx(0.93851, abs=1e-4)]
    assert bed.report()["run"]["status"] == "interrupted"
    refused = bed.run("-n0", "--trials", "6", f"--compare-baseline={bed.last_run.name}")
    assert refused.status == 4
    assert "interrupted" in refused.said or "incomplete" in refused.said


@linux
def test_b03_pressing_ctrl_c_again_ends_it_in_good_order(make_bed: Callable[..., Bed]) -> None:
    bed = make_bed(cases=2, agent="trap '' INT TERM HUP; sleep 30 & sleep 1")
    session = bed.start("-n4", "--trials", "20")
    assert wait_for(lambda: len(bed.records()) >= 2)
    for _ in range(3):
        if session.running:
            session.signal_group(signal.SIGINT)
        time.sleep(0.15)
    assert session.wait(60) in (2, 130, -signal.SIGINT)
    account = Account(bed, Totals())
    assert [*account.settle(session), *account.cleared()] == [], "processes, homes, records"
    assert session.said.count("stopping; press Ctrl-C again to force") == 1
    counts = bed.report()["run"]["counts"]
    assert counts["passed"] == len(bed.records()) >= 2
    assert counts["missing"] == 40 - counts["passed"]


def test_b09_a_record_that_is_cut_at_any_byte_costs_that_trial_alone(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    trials = [TrialId("execution", "greet", "none", number) for number in range(1, 6)]
    claim_run(folder, crowd.plan(folder, trials))
    journal = Journal(folder, "one")
    for trial in trials:
        journal.write_intent(crowd.intent(folder, trial))
        journal.write_record(crowd.record(folder, trial))
    path = journal.folder(trials[4]) / "record.json"
    whole = path.read_bytes()
    assert remaining(folder, read_plan(folder)) == []
    for size in range(len(whole) - 1):  # the last byte is the end of its only line
        path.write_bytes(whole[:size])
        report = judge(folder)
        assert (report.run.counts["passed"], report.run.counts["missing"]) == (4, 1), size
        (named,) = (reason for reason in report.run.reasons if "record.json" in reason)
        assert trials[4].folder in named
        assert remaining(folder, read_plan(folder)) == [trials[4]]


@linux
def test_b12_two_runs_that_start_together_get_a_folder_each(make_bed: Callable[..., Bed], tmp_path: Path) -> None:
    bed = make_bed(cases=1)
    pair = [bed.start("-n0", "--trials", "2") for _ in range(2)]
    assert [session.wait() for session in pair] == [0, 0]
    assert len(bed.run_folders()) == 2
    for folder in bed.run_folders():
        assert judge(folder).run.counts["passed"] == 2
    trials = [TrialId("execution", "greet", "none", 1)]
    folder = tmp_path / "runs" / "same"
    claim_run(folder, crowd.plan(folder, trials, token="one"))
    with pytest.raises(RunFolderMistake, match="another session holds this run folder"):
        claim_run(folder, crowd.plan(folder, trials, token="other"))


@linux
def test_b10_what_a_killed_controller_leaves_ends_and_its_trial_runs_again(make_bed: Callable[..., Bed]) -> None:
    bed = make_bed(cases=0)
    bed.case("greet", f'[ "$(wc -l < {bed.marks})" = 1 ] && sleep 60')
    session = bed.start("-n2")
    assert wait_for(bed.starts)
    session.signal(signal.SIGKILL)
    session.process.wait()
    account = Account(bed, Totals())
    assert account.settle() == [], "processes, homes, records"
    listing = bed.command((sys.executable, "-m", "pytest_skilleval.cli", "rebuild", "latest"))
    assert listing.wait() == 2
    (trial,) = bed.report()["trials"]
    assert (trial["outcome"], trial["reason"]) == ("missing", "started, but never finished")
    assert bed.run("-n2", "--skilleval-resume").status == 0
    (trial,) = bed.report()["trials"]
    assert trial["outcome"] == "passed"
    assert bed.starts().total() == 2


POISON = """
import os, pytest

@pytest.mark.skilleval(conditions=["none"])
def test_poison(skilleval):
    skilleval.run("hi")
    if skilleval.trial == 3:
        os._exit(1)
"""


# Not by scope: there pytest-xdist 3.8 itself may hang after a worker's death (its issues 1323, 1327, 1378).
@pytest.mark.parametrize("dist", ["", "load", "worksteal"])
def test_b51_b52_a_trial_that_kills_its_worker_is_an_error_once_and_all_reports_are_written(
    project: Project, dist: str
) -> None:
    project.write("test_poison.py", POISON)
    project.case()
    result = project.run("-n2", *([f"--dist={dist}"] if dist else []), "--trials", "4", "--junitxml=junit.xml")
    assert result.ret == 1
    report = project.report()
    assert report["run"]["counts"] == {"passed": 7, "failed": 0, "error": 1, "missing": 0}
    (poisoned,) = (trial for trial in report["trials"] if trial["outcome"] == "error")
    assert (poisoned["key"], poisoned["error"]["class"]) == ("execution:poison:none:3", "worker_died")
    folder = project.path / ".skilleval/latest"
    assert {path.name for path in folder.glob("report.*")} == {"report.json", "report.md", "report.html"}
    assert "worker_died" in (folder / "report.html").read_text()
    assert len(list(ET.parse(project.path / "junit.xml").iter("error"))) <= 1


def test_b52_a_trial_whose_report_was_lost_with_its_worker_counts_by_its_record(project: Project) -> None:
    project.case()
    project.write(
        "conftest.py",
        "import os\n\ndef pytest_skilleval_trial_finished(record):\n    if record.trial == 2:\n        os._exit(1)\n",
    )
    result = project.run("-n2", "--trials", "4")
    assert result.ret == 0
    assert project.outcomes() == {"passed": 4}
    assert result.parseoutcomes()["passed"] == 4


@linux
def test_b63_nothing_stays_in_the_temp_directory_whatever_became_of_a_trial(make_bed: Callable[..., Bed]) -> None:
    fill = 'for place in "$TMPDIR" "$HOME" .; do head -c 2000000 /dev/zero > "$place/big"; done'
    bed = make_bed(cases=2, agent=f"{fill}; sleep 0.2", budget={"timeout": 20})
    bed.case("slow", f"{fill}; sleep 30", budget={"timeout": 0.3})
    session = bed.start("-n2", "--trials", "3", "--skilleval-keep=failed")
    assert wait_for(lambda: len(bed.records()) >= 1)
    subprocess.run(["kill", "-9", str(session.workers()[0])], check=True)
    status = session.wait()
    counts = bed.report()["run"]["counts"]
    assert (status, counts["missing"]) == (1 if counts["error"] else 0, 0)
    assert counts["failed"] >= 2, "the slow ones ran into their wall"
    assert Account(bed, Totals()).cleared() == []
    kept = list(bed.output.glob("*/trials/*/workspace/big"))
    assert all(path.parts[-3] in _unfinished(bed) for path in kept), "a passed trial's workspace was kept"


def test_b63_what_could_not_be_cleared_up_is_said(project: Project) -> None:
    project.case()
    project.write(
        "conftest.py",
        """
from pytest_skilleval.workspace.trial_lease import TrialLease

close = TrialLease.close

def closed(self):
    close(self)
    self.problems = ("its home could not be removed: busy",)

TrialLease.close = closed
""",
    )
    for mode in ("-n0", "-n1"):
        result = project.run(mode)
        assert result.ret == 0
        wanted = "*its home could not be removed: busy; the next run tries again"
        result.stdout.fnmatch_lines([wanted])


def _unfinished(bed: Bed) -> set[str]:
    return {key.partition("/")[2] for key, data in bed.records().items() if b'"outcome":"passed"' not in data}


# --------------------------------------------------------------------------------------------- what is collected, named


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_b06_two_cases_of_one_id_are_one_usage_error_that_names_both_files(project: Project, mode: str) -> None:
    project.case("first", id="greet")
    project.case("second", id="greet")
    result = project.run(mode)
    assert result.ret == 4
    (said,) = (row for row in result.stderr.str().splitlines() if "greet" in row)
    assert "first.yaml" in said
    assert "second.yaml" in said
    assert not (project.path / ".skilleval").exists(), "something has run"


def test_b48_names_of_any_length_make_short_paths(project: Project) -> None:
    names = ["a" * 400, "\U0001f40d" * 100]
    for number, name in enumerate(names):
        case = project.case(f"case{number}", id=name)
        case.write_text(json.dumps(json.loads(case.read_text()), ensure_ascii=False), encoding="utf-8")
    assert project.run("-n0").ret == 0
    trials = project.report()["trials"]
    assert {trial["case"] for trial in trials} == set(names)
    run = (project.path / ".skilleval/latest").resolve()
    for trial in trials:
        assert (run / trial["transcript"]["path"]).is_file(), "the way from id to file"
    assert max(len(path.name.encode()) for path in run.rglob("*")) <= 100


def test_b50_the_order_of_a_set_never_matters(project: Project) -> None:
    project.skill()
    project.write(
        "test_set.py",
        "import pytest\n\n@pytest.mark.skilleval(skill='greeter', conditions={'preloaded', 'none', 'self-load'})\n"
        "def test_set(skilleval):\n    skilleval.run('hi')\n",
    )
    for name in ("z", "a", "m"):
        project.case(name)
    orders = set()
    for seed in ("1", "2", "random"):
        result = project.run("-n2", "--trials", "2", env={"PYTHONHASHSEED": seed})
        assert result.ret == 0
        assert project.outcomes() == {"passed": 12}
        orders.add(tuple(trial["key"] for trial in project.report()["trials"]))
    assert len(orders) == 1


def test_b54_long_trials_in_a_row_do_not_pile_up_on_one_worker() -> None:
    world = World([5.0] * 4 + [0.05] * 40, workers=4)
    assert world.run() <= 1.6 * world.bound()


def test_b17_a_number_says_over_how_many_cases_it_stands(project: Project) -> None:
    project.case("good")
    for name in ("bad1", "bad2", "bad3"):
        project.case(name, workspace={"setup": [{"run": ["sh", "-c", "exit 3"]}]})
    assert project.run("-n0").ret == 1
    report = project.report()
    assert {group["case"]: (group["n"], group["errors"]) for group in report["groups"]} == {
        "good": (1, 0), "bad1": (0, 1), "bad2": (0, 1), "bad3": (0, 1),
    }  # fmt: skip
    assert all(group["pass_rate"]["rate"] is None for group in report["groups"] if group["case"] != "good")
    (lane,) = report["lanes"]
    assert (lane["n"], lane["errors"], lane["pass_rate"]["n"]) == (1, 3, 1)
    folder = project.path / ".skilleval/latest"
    for name in ("report.md", "report.html"):
        text = (folder / name).read_text()
        assert all(case in text for case in ("bad1", "bad2", "bad3")), name


# ------------------------------------------------------------------------------------------------ trials kept apart


def test_b22_the_control_has_nothing_of_the_skill_and_a_prompt_that_quotes_it_is_named(project: Project) -> None:
    sentence = "Always answer with a friendly salute and the full name of the person who asked."
    project.skill(body=sentence)
    project.case(
        prompt=f"Use greeter: {sentence}",
        skill="greeter",
        conditions=["none"],
        checks=[{"id": "clean", "kind": "file", "path": "found.txt", "equals": "0"}],
    )
    project.write("cases/execution/greet.sh", f'grep -rlF "{sentence}" "$HOME" "$TMPDIR" . | wc -l > found.txt\n')
    assert project.run("-n0", "--skilleval-condition=none").ret == 0
    assert project.outcomes() == {"passed": 1}
    check = subprocess.run(
        [sys.executable, "-m", "pytest_skilleval.cli", "check"],
        cwd=project.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = check.stdout + check.stderr
    assert re.search(r"leak: .*greet\.yaml:\d+: prompt: holds words of SKILL\.md", said), said


def test_b34_each_parallel_trial_sees_exactly_one_skill(project: Project) -> None:
    project.skill()
    project.case(
        skill="greeter",
        conditions=["self-load"],
        checks=[{"id": "one", "kind": "file", "path": "count.txt", "equals": "1"}],
    )
    project.write("cases/execution/greet.sh", 'ls -A "$HOME/.agents/skills" | wc -l > count.txt\n')
    assert project.run("-n4", "--trials", "12").ret == 0
    assert project.outcomes() == {"passed": 12}


CLOCK = """
import glob, time
real = time.time
time.time = lambda: real() + ({step} if glob.glob(".skilleval/runs/*/trials/*/intent.json") else 0)
"""


@pytest.mark.parametrize("step", [-3600, 7 * 86400])
def test_b55_a_stepping_clock_bends_no_duration_and_fires_no_time_out(project: Project, step: int) -> None:
    project.case(stub={"solve_rate": 1.0, "sleep": 1.0}, budget={"timeout": 60})
    project.write("conftest.py", CLOCK.format(step=step))
    assert project.run("-n0", "--skilleval-budget=time=10m").ret == 0
    (trial,) = project.report()["trials"]
    (timing,) = project.report()["timing"]["trials"].values()
    assert 1.0 <= timing["agent_s"] <= timing["duration_s"] < 60
    (note,) = (note for note in trial["notes"] if "clock" in note)
    assert f"{step:+d} s" in note.replace(f"{step + 1:+d}", f"{step:+d}").replace(f"{step - 1:+d}", f"{step:+d}")


# ---------------------------------------------------------------------------------------- hostile skills and outputs


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("---\nname: greeter\ndescription: Greets: people\n---\n\nHi.\n", "SKILL.md:3"),
        ("---\nname: [greeter]\ndescription: Greets people.\n---\n\nHi.\n", "SKILL.md:2"),
        ("---\nname: greeter\ndescription: Greets people.\n\nHi.\n", "SKILL.md"),
    ],
)
def test_b56_a_skill_that_agents_would_drop_is_refused_with_its_line(project: Project, text: str, wanted: str) -> None:
    project.write("skills/greeter/SKILL.md", text)
    project.case(skill="greeter", conditions=["none", "self-load"])
    result = project.run("-n0")
    assert result.ret == 4
    assert wanted in result.stderr.str()
    assert not (project.path / ".skilleval").exists(), "something has run"


@pytest.mark.parametrize("plant", ["outside", "fifo", "loop"])
def test_b58_a_skill_folder_takes_nothing_from_outside_along(project: Project, tmp_path: Path, plant: str) -> None:
    project.skill()
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    place = project.path / "skills/greeter/more"
    if plant == "outside":
        place.symlink_to(secret)
    elif plant == "fifo":
        subprocess.run(["mkfifo", str(place)], check=True)
    else:
        place.symlink_to(place.parent)
    project.case(skill="greeter", conditions=["self-load"])
    result = project.run("-n0")
    assert result.ret == 4
    assert "more" in result.stderr.str()
    assert not (project.path / ".skilleval").exists(), "something has run"


def test_b60_a_pattern_that_would_never_end_is_cut_off_and_its_neighbour_is_unharmed(project: Project) -> None:
    project.case("slow", checks=[{"id": "slow", "kind": "file", "path": "out.txt", "matches": r"^(a|aa)+$"}])
    project.write("cases/execution/slow.sh", f"printf '%s' {'a' * 40}b > out.txt\n")
    project.case("good")
    started = time.monotonic()
    project.run("-n2")
    assert time.monotonic() - started < 60, "it would take years"
    found = {trial["case"]: trial for trial in project.report()["trials"]}
    assert found["good"]["outcome"] == "passed"
    assert found["slow"]["outcome"] in ("failed", "error")
    assert found["slow"]["outcome"] == "failed" or "took longer" in found["slow"]["reason"]


HOSTILE = '" onmouseover="x() </script><script>x()</script> <img src=x onerror=x()> [a](javascript:x()) {{ 7*7 }} -->'


def test_b45_what_an_agent_says_stays_text_in_every_report(project: Project) -> None:
    project.case(
        prompt=HOSTILE,
        answer=HOSTILE,
        description=HOSTILE,
        checks=[{"id": "said", "kind": "file", "path": HOSTILE.replace("/", "|"), "equals": HOSTILE}],
    )
    project.run("-n0")
    folder = (project.path / ".skilleval/latest").resolve()
    for page in folder.rglob("*.html"):
        text = page.read_text()
        assert "<script>x()" not in text
        assert "<img src=x" not in text
        assert "Content-Security-Policy" in text
        assert "49" not in re.findall(r"\{\{ (\S+) \}\}", text)
    markdown = (folder / "report.md").read_text()
    assert "<script>" not in markdown
    assert "](javascript:" not in markdown


CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
ESCAPES = r"\033[2J\033]8;;http://x\007\033]52;c;eA==\007\302\233\342\200\256\001"
CONTROL = "".join(map(chr, range(1, 32))) + "\x1b[2J\x1b]8;;http://x\x07\x1b]52;c;eA==\x07\x9b\u202e\ufffe"


def test_b46_control_characters_break_neither_xml_nor_the_terminal(project: Project) -> None:
    project.write(
        "test_case.py",
        "import pytest\n\n@pytest.mark.skilleval(conditions=['self-load'], skill='greeter')\n"
        f"def test_case(skilleval):\n    skilleval.run('hi')\n    pytest.fail({CONTROL!r})\n",
    )
    project.skill()
    result = project.run("-n0", "-v", "--junitxml=junit.xml", "--skilleval-report=junit=groups.xml", "--color=no")
    assert result.ret == 1
    for name in ("junit.xml", "groups.xml"):
        assert ET.parse(project.path / name).getroot().tag == "testsuites"
    # What pytest itself prints of a user's own message, in its failures and its short summary, is pytest's.
    said = result.stdout.str()
    ours = [line for line in said.splitlines() if line.startswith("execution:")]
    ours += said.partition("skill evals")[2].partition("short test summary")[0].splitlines()
    assert len(ours) > 5
    assert not [line for line in ours if CONTROLS.search(line)]


def test_b46_what_an_agent_wrote_reaches_the_terminal_escaped(project: Project) -> None:
    project.skill()
    project.case(skill="greeter", conditions=["self-load"])
    project.write("cases/execution/greet.sh", f"printf '{ESCAPES}' > out.txt\n")
    result = project.run("-n0", "-v", "--color=no")
    assert result.ret == 1
    assert "out.txt" in result.stdout.str()
    assert not [line for line in result.stdout.str().splitlines() if CONTROLS.search(line)]


@linux
def test_b07_writing_the_report_takes_no_memory_for_what_agents_printed(make_bed: Callable[..., Bed]) -> None:
    bed = make_bed(
        cases=2, agent='yes "a line of what an agent prints, eighty characters long or nearly so" | head -c 20000000'
    )
    with watched(bed) as peaks:
        session = bed.start("-n2", "--trials", "3")
        assert session.wait() == 0
    assert max(peaks.values()) < 300 * MIB
    kept = [path.stat().st_size for path in bed.output.glob("*/trials/*/stdout")]
    assert len(kept) == 6
    assert min(kept) == 20_000_000
    assert (bed.last_run / "report.json").stat().st_size < 100_000
    assert all("path" in trial["transcript"] and "digest" in trial["transcript"] for trial in bed.report()["trials"])


# --------------------------------------------------------------------------------------------------------- the table


ROOT = Path(__file__).parents[1]
ABSENT = (5, 8, 11, 16, 18, 20, 21, 26, 27, 30, 33, 38, 41, 42, 44, 47, 49, 53, 57, 59)
"""Numbers that no recipe has."""
IDS = [f"{number:02d}" for number in range(1, 64) if number not in ABSENT]


def test_every_recipe_has_a_row_that_names_a_test_that_is_there() -> None:
    text = (ROOT / "docs/reference/bug-recipes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| b(\d\d) \| [^|]+ \| (.+?) \|$", text, re.MULTILINE)
    assert [number for number, _ in rows] == IDS
    for number, where in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", where)
        assert named, f"b{number}"
        for file, test in named:
            assert re.search(rf"^ *def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test
            assert f"b{number}" in test.split("_"), f"{test} does not carry b{number}"


def test_no_test_carries_the_id_of_a_recipe_that_is_not_there() -> None:
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^ *def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            found |= set(re.findall(r"(?:^|_)b(\d\d)(?=_|$)", name))
    assert sorted(found) == IDS
