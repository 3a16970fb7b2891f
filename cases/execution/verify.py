"""Checks of the execution cases that a pattern cannot make: they read what the agent wrote as the plugin would."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from pytest_skilleval.cases import load_case_file
from pytest_skilleval.errors import CaseMistake, SkillevalError
from pytest_skilleval.casespec import CaseSpec, FileCheck, JsonCheck
from pytest_skilleval.scoring.patterns import search


def _no_for_rubbish(function: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """An agent's file may hold anything: what cannot be read as meant is a no, not an error of the check."""

    @functools.wraps(function)
    def wrapped(run: Any) -> bool:
        try:
            return function(run)
        except (SkillevalError, OSError, ValueError, TypeError, AttributeError, LookupError) as error:
            message = f"not as meant: {type(error).__name__}: {error}"
            raise AssertionError(message) from None

    return wrapped


def _case(run: Any, name: str) -> CaseSpec:
    path = run.workspace / "cases" / "execution" / name
    assert path.is_file(), f"cases/execution/{name} is not there"
    try:
        cases = load_case_file(path, root=Path(run.workspace))
    except CaseMistake as mistake:
        raise AssertionError(str(mistake)) from None
    assert [case.id for case in cases] == [path.stem], f"it holds {[case.id for case in cases]}"
    return cases[0].spec


def _file_check(check: FileCheck, text: str) -> bool:
    return all(
        (
            check.exists,
            check.equals is None or check.equals.rstrip("\n") == text.rstrip("\n"),
            check.contains is None or check.contains in text,
            check.matches is None or search(check.matches, text) is not None,
            check.never is None or search(check.never, text) is None,
        )
    )


# ------------------------------------------------------------------------------------------------- start-project


@_no_for_rubbish
def first_case_asks(run: Any) -> bool:
    """The first case asks for what the note wants, within what it may cost."""
    spec = _case(run, "trim-header.yaml")
    assert spec.skill == "csv-cleaner", f"skill is {spec.skill}"
    assert spec.category == "cleaning", f"category is {spec.category}"
    assert "clean.csv" in spec.prompt, "the prompt does not ask for clean.csv"
    assert (spec.budget.timeout, spec.budget.steps) == (240, 25), f"budget is {spec.budget}"
    return True


@_no_for_rubbish
def first_case_brings_the_table(run: Any) -> bool:
    """The agent would find orders.csv, as the note has it."""
    spec = _case(run, "trim-header.yaml")
    text = spec.workspace.files.get("orders.csv")
    if text is None and spec.workspace.template is not None:
        text = (run.workspace / "cases" / "execution" / spec.workspace.template / "orders.csv").read_text("utf-8")
    assert text is not None, "no orders.csv in the workspace"
    assert [line.strip() for line in text.strip().splitlines()] == ["ID ; City ;Amount", "7 ; Lyon; 31,4", "12;Porto ; 208,05"]
    return True


@_no_for_rubbish
def first_case_judges(run: Any) -> bool:
    """Its checks of clean.csv hold for a right one and not for the table as it came."""
    spec = _case(run, "trim-header.yaml")
    checks = [check for check in spec.checks if isinstance(check, FileCheck) and check.path == "clean.csv"]
    assert checks, "no file check of clean.csv"
    right = "id,city,amount\n7,Lyon,31.40\n12,Porto,208.05\n"
    assert all(_file_check(check, right) for check in checks), "a right clean.csv does not pass"
    for wrong in (right.replace("id,city", "ID,City"), right.replace("31.40", "31.4"), "ID ; City ;Amount\n7 ; Lyon; 31,4\n"):
        assert not all(_file_check(check, wrong) for check in checks), f"a wrong clean.csv passes: {wrong.splitlines()[:2]}"
    return True


@_no_for_rubbish
def first_case_is_solvable(run: Any) -> bool:
    """It names a script that is there."""
    assert _case(run, "trim-header.yaml").solution is not None, "no solution"
    return True


# ------------------------------------------------------------------------------------------------------ add-case


@_no_for_rubbish
def added_case_fits(run: Any) -> bool:
    """The new case keeps the conventions of its neighbours."""
    spec = _case(run, "miles-to-km.yaml")
    assert (spec.skill, spec.category) == ("unit-converter", "imperial-to-metric"), f"{spec.skill}, {spec.category}"
    assert spec.conditions == ("none", "self-load"), f"conditions are {spec.conditions}"
    assert (spec.budget.timeout, spec.budget.steps) == (75, 12), f"budget is {spec.budget}"
    assert "26.2" in spec.prompt, "the prompt does not name the distance"
    assert "result.json" in spec.prompt, "the prompt does not name result.json"
    return True


@_no_for_rubbish
def added_case_judges(run: Any) -> bool:
    """Its checks know the right value and unit."""
    spec = _case(run, "miles-to-km.yaml")
    found = {check.at: check.equals for check in spec.checks if isinstance(check, JsonCheck)}
    assert found.get("unit") == "km", f"unit is {found.get('unit')!r}"
    assert found.get("value") == 42.165, f"value is {found.get('value')!r}"
    assert "42.165" not in spec.prompt, "the prompt gives the answer away"
    return True


# ----------------------------------------------------------------------------------------------------- mend-case


@_no_for_rubbish
def mended_case_loads(run: Any) -> bool:
    """The plugin takes the file."""
    _case(run, "rename-columns.yaml")
    return True


@_no_for_rubbish
def mended_case_asks_the_same(run: Any) -> bool:
    """Skill, prompt, budget and table are what they were meant to be."""
    spec = _case(run, "rename-columns.yaml")
    assert (spec.skill, spec.category) == ("ledger-keeper", "columns"), f"{spec.skill}, {spec.category}"
    for piece in ("old column names", "new.csv", 'rows.json as {"rows": N}'):
        assert piece in spec.prompt, f"the prompt lost {piece!r}"
    assert (spec.budget.timeout, spec.budget.steps) == (120, 15), f"budget is {spec.budget}"
    template = spec.workspace.template or ""
    assert (run.workspace / "cases" / "execution" / template / "ledger.csv").is_file(), "no ledger.csv in the template"
    return True


@_no_for_rubbish
def mended_case_judges_the_same(run: Any) -> bool:
    """No check was thrown out or made lax."""
    spec = _case(run, "rename-columns.yaml")
    checks = {check.id: check for check in spec.checks}
    assert sorted(checks) == ["days", "header", "rows"], f"checks are {sorted(checks)}"
    header, days, rows = checks["header"], checks["days"], checks["rows"]
    assert isinstance(header, FileCheck), "header is no file check"
    assert isinstance(days, FileCheck), "days is no file check"
    assert isinstance(rows, JsonCheck), "rows is no json check"
    assert (rows.path, rows.at, rows.equals) == ("rows.json", "rows", 4), "rows is lax"
    assert _file_check(header, "day,text,cents\n"), "header refuses the right names"
    assert not _file_check(header, "Date,What,Cent\n"), "header takes the old names"
    assert _file_check(days, "day,text,cents\n2026-03-01,stamps,480\n"), "days refuses the right format"
    assert not _file_check(days, "day,text,cents\n1.3.2026,stamps,480\n"), "days takes the old format"
    return True


# ------------------------------------------------------------------------------------------------------- ci-step


def _jobs(run: Any) -> tuple[dict[Any, Any], dict[str, Any], list[dict[str, Any]]]:
    path = run.workspace / ".github" / "workflows" / "evals.yml"
    assert path.is_file(), ".github/workflows/evals.yml is not there"
    try:
        flow = yaml.safe_load(path.read_text("utf-8"))
    except yaml.YAMLError as error:
        message = f"evals.yml is no YAML: {error}"
        raise AssertionError(message) from None
    assert isinstance(flow, dict), "evals.yml is no mapping"
    jobs = [job for job in (flow.get("jobs") or {}).values() if "skilleval-lane" in json.dumps(job, default=str)]
    assert len(jobs) == 1, f"{len(jobs)} jobs run the evals"
    return flow, jobs[0], [step for step in jobs[0].get("steps", []) if isinstance(step, dict)]


@_no_for_rubbish
def workflow_runs_for_pull_requests(run: Any) -> bool:
    """Trigger, machine, Python and limit are the agreed ones."""
    flow, job, steps = _jobs(run)
    triggers = flow.get("on", flow.get(True))  # YAML 1.1 reads a bare `on` as true
    assert "pull_request" in (triggers if isinstance(triggers, (list, dict)) else [triggers]), f"on: {triggers}"
    assert job.get("runs-on") == "ubuntu-24.04", f"runs-on: {job.get('runs-on')}"
    assert job.get("timeout-minutes") == 45, f"timeout-minutes: {job.get('timeout-minutes')}"
    assert any(str((step.get("with") or {}).get("python-version")) == "3.13" for step in steps), "not Python 3.13"
    return True


@_no_for_rubbish
def workflow_keeps_the_run(run: Any) -> bool:
    """The run folder is kept, also of a red job."""
    _, _, steps = _jobs(run)
    kept = [step for step in steps if str(step.get("uses", "")).startswith("actions/upload-artifact")]
    assert kept, "no artifact is kept"
    options = kept[0].get("with") or {}
    assert re.search(r"always\(\)|!\s*cancelled\(\)", str(kept[0].get("if", ""))), "not kept when the job is red"
    assert str(options.get("path", "")).strip("./\n ") == "eval-runs", f"path: {options.get('path')}"
    assert options.get("retention-days") == 21, f"retention-days: {options.get('retention-days')}"
    return True


@_no_for_rubbish
def workflow_hands_over_the_key(run: Any) -> bool:
    """The agent gets its key from the agreed secret."""
    flow, job, steps = _jobs(run)
    scopes = [flow.get("env"), job.get("env"), *(step.get("env") for step in steps)]
    keys = [str(scope["ANTHROPIC_API_KEY"]) for scope in scopes if isinstance(scope, dict) and "ANTHROPIC_API_KEY" in scope]
    assert keys, "ANTHROPIC_API_KEY is not set"
    assert all(re.fullmatch(r"\$\{\{\s*secrets\.EVALS_KEY\s*\}\}", key.strip()) for key in keys), f"from {keys}"
    return True
