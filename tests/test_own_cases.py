"""The project's own cases: what can be said of them without running the plugin."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from pytest_skilleval.cases import assert_unique, load_case_file
from pytest_skilleval.casespec import CaseSpec, FileCheck, JsonCheck, Lane, PythonCheck
from pytest_skilleval.model import CONDITIONS, Case
from pytest_skilleval.records import Transcript
from pytest_skilleval.scoring.antipatterns import BUILT_IN, detect
from pytest_skilleval.scoring.workflow import Deeds, follow

ROOT = Path(__file__).parent.parent
EXECUTION = ROOT / "cases" / "execution"


def load(lane: str) -> dict[str, Case]:
    files = sorted((ROOT / "cases" / lane).glob("*.yaml"))
    cases = [
        case
        for path in files
        for case in load_case_file(path, root=ROOT, conditions=CONDITIONS, anti_patterns=BUILT_IN)
    ]
    assert_unique(cases)
    return {case.id: case for case in cases}


CASES: dict[str, CaseSpec] = {name: case.spec for name, case in load("execution").items()}
PROMPTS = load("prompt")


# ------------------------------------------------------------------------------------------------- the two skills


@pytest.mark.parametrize("folder", ["skills/eval-guide", "cases/stale/eval-guide"])
def test_the_skill_keeps_to_the_specification(folder: str) -> None:
    # https://agentskills.io/specification: fields, lengths and characters; the stricter reading of its validators.
    text = (ROOT / folder / "SKILL.md").read_text("utf-8")
    match = re.match(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL)
    assert match
    front, body = yaml.safe_load(match[1]), match[2]
    assert set(front) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert front["name"] == Path(folder).name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front["name"])
    assert 1 <= len(front["description"]) <= 1024
    assert not set("<>") & set(front["description"])
    assert " --- " not in front["description"]  # one agent cuts a description there
    assert all(isinstance(value, str) for value in front.get("metadata", {}).values())
    assert body.strip()
    assert len(text.splitlines()) < 200
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)\)", body):
        assert (ROOT / folder / target).is_file(), target


def test_the_two_versions_of_the_skill_differ_in_their_advice() -> None:
    current = (ROOT / "skills/eval-guide/SKILL.md").read_text("utf-8")
    stale = (ROOT / "cases/stale/eval-guide/SKILL.md").read_text("utf-8")
    for flag in ("--trials", "--compare-baseline", "--skilleval-resume", "--skilleval-lane"):
        assert flag in current
        assert flag not in stale
    for flag in ("--repeat", "--jobs", "--baseline"):
        assert flag in stale
        assert not re.search(rf"(?<![\w-]){flag}\b", current)


# --------------------------------------------------------------------------------------------- the execution cases


def test_there_are_ten_execution_cases_under_four_conditions() -> None:
    assert len(CASES) == 10
    for name, case in CASES.items():
        assert case.skill == "eval-guide", name
        assert case.conditions is None, name
        assert isinstance(case.stub.solve_rate, dict), name
        assert set(case.stub.solve_rate) == set(CONDITIONS), name
        rates = case.stub.solve_rate
        assert max(rates["none"], rates["stale"]) < rates["self-load"] < rates["preloaded"], name


def workspace(name: str, tmp_path: Path) -> Path:
    case, folder = CASES[name], tmp_path / "w"
    template = case.workspace.template
    assert template is not None
    shutil.copytree(EXECUTION / template, folder)
    for path, text in case.workspace.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return folder


def verify() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_cases_verify", EXECUTION / "verify.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def passes(check: Any, folder: Path) -> bool:
    """Judge a check without the plugin's scorers."""
    if isinstance(check, PythonCheck):
        function = getattr(verify(), check.function.partition("::")[2])
        try:
            return function(SimpleNamespace(workspace=folder)) is True
        except AssertionError:
            return False
    assert isinstance(check, FileCheck | JsonCheck), check.kind
    if not (folder / check.path).is_file():
        return False
    text = (folder / check.path).read_text("utf-8")
    if isinstance(check, FileCheck):
        return (
            (check.contains is None or check.contains in text)
            and (check.matches is None or re.search(check.matches, text, re.MULTILINE) is not None)
            and (check.never is None or re.search(check.never, text, re.MULTILINE) is None)
            and check.equals is None
        )
    value = json.loads(text)
    for key in check.at.split("."):
        value = value[key]
    return (
        (check.equals is None or value == check.equals)
        and (check.matches is None or re.search(check.matches, value, re.MULTILINE) is not None)
        and (check.min is None or value >= check.min)
        and (check.max is None or value <= check.max)
        and (check.type is None or (check.type == "integer" and isinstance(value, int)))
    )


@pytest.mark.parametrize("name", CASES)
def test_no_check_passes_where_nothing_was_done(name: str, tmp_path: Path) -> None:
    folder = workspace(name, tmp_path)
    assert CASES[name].checks
    assert [check.id for check in CASES[name].checks if passes(check, folder)] == []


@pytest.mark.parametrize("name", CASES)
def test_every_check_passes_where_the_solution_ran(name: str, tmp_path: Path) -> None:
    folder = workspace(name, tmp_path)
    solution = CASES[name].solution
    assert solution is not None
    script = EXECUTION / solution
    ran = subprocess.run(["sh", str(script)], cwd=folder, capture_output=True, text=True, timeout=20, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [check.id for check in CASES[name].checks if not passes(check, folder)] == []
    for artifact in CASES[name].artifacts:
        assert len(list(folder.glob(artifact.path))) >= artifact.min


@pytest.mark.parametrize("name", CASES)
def test_nothing_that_the_agent_sees_names_the_case_or_the_condition(name: str) -> None:
    template = CASES[name].workspace.template
    assert template is not None
    paths = [str(path.relative_to(EXECUTION / template)) for path in (EXECUTION / template).rglob("*")]
    assert not [path for path in paths if name in path or re.search(r"self-load|preloaded|stale", path)]
    assert name not in CASES[name].prompt.split()


# ------------------------------------------------------------------------------------------------ the prompt cases


def misses(case: Case, answer: str) -> list[str]:
    """Name what the rule of the prompt lane would hold against an answer, skill selection aside."""
    spec, deeds = case.spec, Deeds.of(Transcript(final_text=answer), Lane.PROMPT)
    found = [pattern for pattern in spec.expect if not re.search(pattern, answer, re.MULTILINE)]
    found += [pattern for pattern in spec.forbid if re.search(pattern, answer, re.MULTILINE)]
    found += [hit.id for hit in detect(spec.anti_patterns, deeds) if hit.severity == "error"]
    return found if not spec.workflow or follow(spec.workflow, deeds).holds else [*found, "workflow"]


def test_there_are_24_prompt_cases_under_four_conditions_seven_of_which_want_no_skill() -> None:
    assert len(PROMPTS) == 24
    assert all(case.spec.conditions is None for case in PROMPTS.values())
    assert sum(case.skill is None for case in PROMPTS.values()) == 7
    assert Counter(case.spec.category for case in PROMPTS.values()) == {
        "trigger": 10,
        "near-miss": 6,
        "reasoning": 3,
        "bait": 5,
    }


@pytest.mark.parametrize("name", PROMPTS)
def test_the_right_answer_passes_and_neither_the_wrong_one_nor_silence_does(name: str) -> None:
    case = PROMPTS[name]
    assert misses(case, case.spec.answer) == []
    assert case.spec.stub.failure_answer
    assert misses(case, case.spec.stub.failure_answer)
    assert set(case.spec.expect) <= set(misses(case, ""))


@pytest.mark.parametrize("name", PROMPTS)
def test_an_echo_of_the_prompt_meets_no_expectation(name: str) -> None:
    case = PROMPTS[name]
    assert [pattern for pattern in case.spec.expect if re.search(pattern, case.spec.prompt, re.MULTILINE)] == []


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_does_not_name_the_skill_that_is_to_be_found(name: str) -> None:
    assert "eval-guide" not in PROMPTS[name].spec.prompt
    assert "eval-guide" not in PROMPTS[name].spec.answer


@pytest.mark.parametrize("name", [name for name, case in PROMPTS.items() if case.spec.category == "bait"])
def test_the_wrong_answer_to_a_bait_shows_the_habit_that_it_baits(name: str) -> None:
    spec = PROMPTS[name].spec
    assert detect(spec.anti_patterns, Deeds.of(Transcript(final_text=spec.stub.failure_answer), Lane.PROMPT))
