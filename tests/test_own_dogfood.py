"""The project's own dogfood cases: their lab, its tools, and what the reference solutions prove."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from pytest_skilleval.cases import load_case_file
from pytest_skilleval.model import CONDITIONS, Case
from pytest_skilleval.records import Transcript
from pytest_skilleval.results import Report
from pytest_skilleval.scoring.account import parse_account
from pytest_skilleval.scoring.antipatterns import BUILT_IN
from pytest_skilleval.scoring.facts import CommandResult, Facts
from pytest_skilleval.scoring.proof import completeness, look_over
from pytest_skilleval.scoring.verifiers import verify_all

ROOT = Path(__file__).parent.parent
DOGFOOD = ROOT / "cases" / "dogfood"
LAB = DOGFOOD / "fixtures" / "lab"


def load(path: Path, root: Path) -> Case:
    [case] = load_case_file(path, root=root, conditions=CONDITIONS, anti_patterns=BUILT_IN)
    return case


CASES = {path.stem: load(path, ROOT) for path in sorted(DOGFOOD.glob("*.yaml"))}


def workspace(case: Case, folder: Path) -> Path:
    assert case.spec.workspace.template is not None
    shutil.copytree(case.folder / case.spec.workspace.template, folder)
    for name, text in case.spec.workspace.files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def facts(case: Case, folder: Path) -> Facts:
    return Facts(
        case=case,
        condition=CONDITIONS["self-load"],
        transcript=Transcript(finished=True),
        workspace=folder,
        run_command=lambda _argv, _limit: CommandResult(None),
        python=sys.executable,
    )


def solve(case: Case, folder: Path) -> None:
    assert case.spec.solution is not None
    command = [sys.executable, str(case.folder / case.spec.solution)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


# ------------------------------------------------------------------------------------------------------- the cases


def test_there_are_six_dogfood_cases_under_four_conditions() -> None:
    assert len(CASES) == 6
    for name, case in CASES.items():
        spec = case.spec
        assert case.skill == "eval-guide", name
        assert spec.conditions in (None, ("none", "self-load", "preloaded", "stale")), name
        assert spec.bundle, name
        assert spec.report, name
        assert spec.report.taxonomy, name
        assert all(word in spec.prompt for word in spec.report.taxonomy), name
    profiles = Counter(case.spec.bundle.profile for case in CASES.values() if case.spec.bundle)
    assert profiles == {"interactive": 2, "reporting": 4}


@pytest.mark.parametrize("name", CASES)
def test_no_check_passes_in_a_lab_that_nobody_touched(name: str, tmp_path: Path) -> None:
    verified = verify_all(CASES[name].spec.checks, facts(CASES[name], workspace(CASES[name], tmp_path / "w")))
    assert verified.faults == ()
    assert verified.results
    assert [result.id for result in verified.results if result.passed is not False] == []


@pytest.mark.parametrize("name", CASES)
def test_the_solution_proves_what_the_case_asks(name: str, tmp_path: Path) -> None:
    case, folder = CASES[name], workspace(CASES[name], tmp_path / "w")
    solve(case, folder)
    verified = verify_all(case.spec.checks, facts(case, folder))
    assert verified.faults == ()
    assert {result.id: result.reason for result in verified.results if not result.passed} == {}
    assert case.spec.bundle
    assert case.spec.report
    manifest = look_over(folder / "proof")
    assert manifest.refused == ()
    assert [file for file in manifest.files if file.problem] == []
    assert completeness(manifest, case.spec.bundle.profile, "report.md").missing == ()
    account = parse_account((folder / "proof" / "report.md").read_text("utf-8"))
    assert account.completeness(case.spec.report.sections)[1] == ()
    assert len(account.references()) == len(manifest.files) - 1
    assert account.unresolved("report.md", {file.name for file in manifest.files}) == ()
    assert account.taxonomy(case.spec.report.taxonomy).value == 1.0


def test_two_equal_runs_leave_equal_bundles(tmp_path: Path) -> None:
    case, left = CASES["noise-report"], []
    for name in ("first", "another-and-longer-name"):
        folder = workspace(case, tmp_path / name)
        solve(case, folder)
        left.append(digests(folder / "proof"))
    assert left[0] == left[1]
    assert {"again.cast", "again.png", "again.json", "report.md"} <= set(left[0])


# --------------------------------------------------------------------------------------------------------- the lab


def test_the_earlier_run_of_the_lab_is_one_of_its_cases_as_they_are() -> None:
    [path] = LAB.glob("runs/*/report.json")
    report = Report.model_validate_json(path.read_bytes())
    assert report.run.id == path.parent.name
    assert report.run.status == "finished"
    lab = {path.stem: load(path, LAB) for path in LAB.glob("cases/execution/*.yaml")}
    assert {group.case: group.fingerprint for group in report.groups} == {
        name: case.fingerprint for name, case in lab.items()
    }
    assert str(ROOT) not in path.read_text("utf-8")
    assert "/tmp" not in path.read_text("utf-8")


def test_the_recorder_keeps_what_a_terminal_shows_and_how_the_command_ended(tmp_path: Path) -> None:
    # What ECMA-48 makes of it: CR goes to the line's start, CSI K clears the rest, CSI A goes up, SGR shows nothing.
    shell = r"printf 'one\ntwo\rTWOS and more\033[8D\033[K!\n\033[32mgreen\033[0m\n\033[Ared\n'; test -t 1; exit $(($? + 3))"
    command = [sys.executable, "tools/record.py", "p/x.cast", "--screen", "p/x.txt", "--", "sh", "-c", shell]
    shutil.copytree(LAB / "tools", tmp_path / "tools")
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert (ran.returncode, ran.stderr) == (3, "")
    assert (tmp_path / "p" / "x.txt").read_text("utf-8") == "one\nTWOS !\nreden\n"
    header, *events = map(json.loads, (tmp_path / "p" / "x.cast").read_text("utf-8").splitlines())
    assert (header["version"], header["width"], header["height"]) == (2, 110, 40)
    assert [event[1] for event in events] == ["o"] * len(events)
    assert [event[0] for event in events] == sorted(event[0] for event in events)


def test_the_recorder_ends_a_command_that_does_not_end(tmp_path: Path) -> None:
    command = [sys.executable, str(LAB / "tools" / "record.py"), "x.cast", "--limit", "0.3", "--", "sleep", "60"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode != 0


def test_the_picture_shows_more_ink_for_more_text(tmp_path: Path) -> None:
    ink = []
    for name, text in (("few", "a\n"), ("many", "pytest skill evals 42 passed\n" * 5)):
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
        subprocess.run(
            [sys.executable, str(LAB / "tools" / "picture.py"), f"{name}.txt", f"{name}.png"], cwd=tmp_path, check=True
        )
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert picture.format == "PNG"
            histogram = picture.convert("L").histogram()
        ink.append(sum(histogram[128:]))
    assert 0 < ink[0] < ink[1] / 20
