"""Tools beside this plugin, each in a real session: what they show, and that the run comes out as it is.

`make neighbours` installs them; where one is missing its tests are skipped. `docs/reference/neighbours.md` says what holds.
"""

from __future__ import annotations

import html
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Project

ROOT = Path(__file__).parents[1]
PLUGINS = {
    "allure-pytest": ("allure_pytest",),
    "pytest-github-actions-annotate-failures": ("pytest_github_actions_annotate_failures",),
    "pytest-html": ("metadata", "html", "html_fixtures"),
    "pytest-json-report": ("metadata", "pytest_jsonreport"),
    "pytest-randomly": ("randomly",),
    "pytest-repeat": ("repeat",),
    "pytest-rerunfailures": ("rerunfailures",),
    "pytest-split": ("pytest-split",),
    "pytest-sugar": ("sugar",),
    "pytest-timeout": ("timeout",),
    "teamcity-messages": ("pytest-teamcity",),
}
"""Packages, and the names of the plugins that each brings."""
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
OURS = ("-p", "xdist", "-p", "skilleval")
TRIALS = [f"cases/execution/{name}.yaml::{name}::self-load-{trial}" for name in ("bad", "good") for trial in (1, 2)]
BAD, GOOD = TRIALS[:2], TRIALS[2:]
REASON = "said: out.txt is not there"
GATE = "pass rate 0.00 (95% interval 0.00 to 0.66, n=2) lies below min_pass_rate 0.9"  # Wilson, 0 of 2: up to 0.658


@pytest.fixture(params=["plain", "n2"])
def both(request: pytest.FixtureRequest, project: Project) -> Project:
    """A project of a case that always passes and one that never does, run plainly and with -n2."""
    project.mode = MODES[request.param]
    project.skill()
    for name, rate in (("good", 1.0), ("bad", 0.0)):
        project.case(name, rate=rate, skill="greeter", conditions=["self-load"], description=f"Is {name}.")
    return project


def run(project: Project, package: str, *args: str, env: dict[str, str] | None = None) -> pytest.RunResult:
    """Run a session with this plugin and one package's plugins, and no others."""
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed; `make neighbours` installs it")
    chosen = [word for name in PLUGINS[package] for word in ("-p", name)]
    return project.run(*OURS, *chosen, *args, env=ALONE | (env or {}))


def gated(project: Project) -> None:
    """Let the gate of the case that never passes be red."""
    project.case("bad", rate=0.0, skill="greeter", conditions=["self-load"], min_pass_rate=0.9)


def expect_measured(project: Project, result: pytest.RunResult, *, ret: int = 0) -> None:
    """Two trials each, all home, all reports written."""
    assert result.ret == ret, result.stdout.str() + result.stderr.str()
    assert project.outcomes() == {"passed": 2, "failed": 2}
    assert project.report()["run"]["status"] == "finished"
    assert (project.path / ".skilleval/latest/report.html").is_file()
    result.stdout.fnmatch_lines(["*skill evals*", "execution  self-load  4 *", "next: *"])


# --------------------------------------------------------------------------------------------------------- reports


def test_pytest_html_has_a_row_for_each_trial_and_each_red_gate(both: Project) -> None:
    gated(both)
    result = run(both, "pytest-html", "--trials", "2", "--html=page.html", "--self-contained-html")
    expect_measured(both, result, ret=1)
    blob = re.search(r'data-jsonblob="([^"]*)"', (both.path / "page.html").read_text())
    assert blob is not None
    tests = json.loads(html.unescape(blob[1]))["tests"]
    rows = {name: [(row["result"], html.unescape(row["log"])) for row in rows] for name, rows in tests.items()}
    assert sorted(rows) == [*TRIALS, "skilleval-gate::execution:bad:self-load"]
    assert all([row[0] for row in rows[name]] == ["Passed"] for name in GOOD)
    for name in BAD:
        ((outcome, log),) = rows[name]
        assert outcome == "Failed"
        assert REASON in log
    ((outcome, log),) = rows["skilleval-gate::execution:bad:self-load"]
    assert (outcome, log.strip()) == ("Failed", GATE)


def test_pytest_json_report_says_missed_and_the_sessions_own_exit_status(both: Project) -> None:
    result = run(both, "pytest-json-report", "--trials", "2", "--json-report", "--json-report-file=out.json")
    expect_measured(both, result)
    report = json.loads((both.path / "out.json").read_text())
    assert report["exitcode"] == 0
    assert {test["nodeid"]: test["outcome"] for test in report["tests"]} == (
        dict.fromkeys(BAD, "missed") | dict.fromkeys(GOOD, "passed")
    )
    assert {test["lineno"] for test in report["tests"]} == {0}


def test_pytest_json_report_says_the_exit_status_of_a_red_gate(both: Project) -> None:
    gated(both)
    result = run(both, "pytest-json-report", "--trials", "2", "--json-report", "--json-report-file=out.json")
    expect_measured(both, result, ret=1)
    report = json.loads((both.path / "out.json").read_text())
    assert (report["exitcode"], report["summary"]["failed"], report["summary"]["missed"]) == (1, 1, 2)


PYTHON_CASE = """
import pytest

@pytest.mark.skilleval(skill="greeter", conditions=["self-load"])
def test_greets(skilleval):
    "Greets politely."
    skilleval.run("Greet.")
"""


def test_allure_has_one_result_for_each_trial_under_its_file_and_case(both: Project) -> None:
    both.write("test_greets.py", PYTHON_CASE)
    result = run(both, "allure-pytest", "--trials", "2", "--alluredir=allure")
    assert result.ret == 0
    assert both.outcomes() == {"passed": 4, "failed": 2}
    results = [json.loads(path.read_text()) for path in (both.path / "allure").glob("*-result.json")]
    assert Counter((one["fullName"], one["status"]) for one in results) == {
        ("cases.execution.bad.bad#self-load-1", "failed"): 1,
        ("cases.execution.bad.bad#self-load-2", "failed"): 1,
        ("cases.execution.good.good#self-load-1", "passed"): 1,
        ("cases.execution.good.good#self-load-2", "passed"): 1,
        ("test_greets#test_greets", "passed"): 2,
    }
    assert len({one["historyId"] for one in results}) == 6
    assert {one["description"] for one in results} == {"Is bad.", "Is good.", "Greets politely."}
    labels = {label["name"]: label["value"] for one in results if "bad" in one["fullName"] for label in one["labels"]}
    assert [labels[name] for name in ("parentSuite", "suite", "subSuite")] == ["cases.execution", "bad", "bad"]
    values = {parameter["value"] for one in results for parameter in one.get("parameters", ())}
    assert values == {"execution:greets:self-load:1", "execution:greets:self-load:2"}
    assert all(REASON in one["statusDetails"]["message"] for one in results if one["status"] == "failed")


def test_teamcity_and_pycharm_hear_of_each_trial_once(both: Project) -> None:
    gated(both)
    result = run(both, "teamcity-messages", "--trials", "2", "--teamcity")
    expect_measured(both, result, ret=1)
    said = Counter(re.findall(r"##teamcity\[(\w+) [^\n]*?name='([^']*)'", result.stdout.str()))
    bad, good = ([f"cases.execution.{name}_yaml.{name}.self-load-{n}" for n in (1, 2)] for name in ("bad", "good"))
    gate = "skilleval-gate.execution:bad:self-load"
    assert said == Counter(
        [("testStarted", name) for name in (*bad, *good, gate)]
        + [("testFailed", name) for name in (*bad, gate)]
        + [("testFinished", name) for name in (*bad, *good, gate)]
    )


def test_github_annotations_name_the_case_file_of_failed_trials_and_of_red_gates(both: Project) -> None:
    gated(both)
    name = "pytest-github-actions-annotate-failures"
    result = run(both, name, "--trials", "2", env={"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(both.path)})
    expect_measured(both, result, ret=1)
    found = re.findall(r"::error file=([^,:]*)(?:,line=(\d+))?::(.*)", result.stderr.str())
    texts = {text.partition("%0A")[0]: (file, line, text) for file, line, text in found}
    assert len(found) == 3
    for trial in (1, 2):
        file, line, text = texts[f"bad [self-load #{trial}]"]
        assert (file, line) == ("cases/execution/bad.yaml", "1")
        assert REASON in text
    file, line, text = texts["execution:bad:self-load"]
    assert (file, line) == ("cases/execution/bad.yaml", "")
    assert text.endswith(GATE.replace("%", "%25"))


def test_pytest_sugar_shows_trials_its_own_way_and_the_closing_table(both: Project) -> None:
    gated(both)
    result = run(both, "pytest-sugar", "--trials", "2", "--force-sugar")
    expect_measured(both, result, ret=1)
    result.stdout.fnmatch_lines(
        ["Results (*", "*2 passed", "*3 failed", "*cases/execution/bad.yaml:1 bad*self-load #*"]
    )


# ------------------------------------------------------------------------------------------------- order and shares


def test_pytest_randomly_changes_no_result(both: Project) -> None:
    expect_measured(both, run(both, "pytest-randomly", "--trials", "2", "-p", "randomly"))


def test_the_groups_of_pytest_split_are_runs_of_their_own_that_merge_into_one(both: Project) -> None:
    found = []
    for group in ("1", "2"):
        result = run(both, "pytest-split", "--trials", "2", "--splits", "2", "--group", group)
        assert result.ret == 0, result.stdout.str()
        report = both.report()
        assert (report["run"]["planned"], report["run"]["status"]) == (2, "finished")
        found += [trial["key"] for trial in report["trials"]]
    assert sorted(found) == [f"execution:{name}:self-load:{trial}" for name in ("bad", "good") for trial in (1, 2)]
    runs = sorted(path.name for path in (both.path / ".skilleval/runs").iterdir() if path.is_dir())
    command = [sys.executable, "-m", "pytest_skilleval.cli", "merge", *runs]
    merged = subprocess.run(command, cwd=both.path, capture_output=True, text=True, check=False)
    assert merged.returncode == 0, merged.stdout + merged.stderr
    assert both.outcomes() == {"passed": 2, "failed": 2}


# --------------------------------------------------------------------------------------------------------- time-outs


def test_a_trial_that_pytest_timeout_ends_is_an_error_that_says_what_to_set(both: Project) -> None:
    both.case("good", stub={"solve_rate": 1.0, "sleep": 60}, conditions=["none"])
    result = run(both, "pytest-timeout", "--timeout=4", "--timeout-method=signal", "--skilleval-case=good")
    assert result.ret == 1
    (trial,) = both.report()["trials"]
    assert (trial["outcome"], trial["error"]["class"]) == ("error", "timeout")
    result.stdout.fnmatch_lines(["*Timeout (>4.0s) from pytest-timeout*set the case's budget.timeout*"])


def test_a_worker_that_pytest_timeout_kills_costs_the_trial_it_was_at(both: Project) -> None:
    if both.mode == MODES["plain"]:
        pytest.skip("without -n the method `thread` ends the session itself: the run can be resumed")
    both.case("slow", stub={"solve_rate": 1.0, "sleep": 60}, conditions=["none"])
    result = run(both, "pytest-timeout", "--timeout=6", "--timeout-method=thread")
    assert result.ret == 1
    found = {trial["case"]: trial["error"] and trial["error"]["class"] for trial in both.report()["trials"]}
    assert found == {"good": None, "bad": None, "slow": "worker_died"}


# ---------------------------------------------------------------------------------------------------------- refusals


def expect_refused(project: Project, result: pytest.RunResult, line: str) -> None:
    """One line, exit status 4, and no run."""
    assert result.ret == 4, result.stdout.str() + result.stderr.str()
    assert [text for text in result.stderr.lines if text.startswith("ERROR: ")] == [f"ERROR: {line}"]
    assert "INTERNALERROR" not in result.stdout.str()
    assert not (project.path / ".skilleval/runs").exists()


@pytest.mark.parametrize("flag", ["--reruns", "--force-reruns"])
def test_reruns_are_refused_before_the_first_trial(both: Project, flag: str) -> None:
    result = run(both, "pytest-rerunfailures", flag, "2")
    expect_refused(both, result, f"{flag}: reruns turn misses into passes; use --trials N, which counts each trial")


def test_a_flaky_mark_on_an_eval_is_refused_with_its_place(both: Project) -> None:
    both.write("test_greets.py", PYTHON_CASE.replace("def ", "@pytest.mark.flaky(reruns=2)\ndef "))
    line = f"{both.path}/test_greets.py:4: @pytest.mark.flaky: reruns turn misses into passes; "
    expect_refused(both, run(both, "pytest-rerunfailures"), line + "use --trials N, which counts each trial")


def test_installed_pytest_rerunfailures_reruns_no_eval_but_ordinary_tests(both: Project) -> None:
    both.write("pytest.ini", "[pytest]\nreruns = 2\n")
    both.case("bad", rate=0.0, skill="greeter", conditions=["self-load"], category="flaky")
    both.write("test_plain.py", "def test_plain():\n    assert False\n")
    result = run(both, "pytest-rerunfailures", "--trials", "2")
    assert result.parseoutcomes() == {"passed": 2, "missed": 2, "failed": 1, "rerun": 2}
    assert both.outcomes() == {"passed": 2, "failed": 2}


def test_repeats_are_refused_before_the_first_trial(both: Project) -> None:
    result = run(both, "pytest-repeat", "--count", "3")
    expect_refused(both, result, "--count: repeats share one work item; use --trials N, which keeps trials apart")


def test_a_repeat_mark_on_an_eval_is_refused_with_its_place(both: Project) -> None:
    both.write("test_greets.py", PYTHON_CASE.replace("def ", "@pytest.mark.repeat(3)\ndef "))
    line = f"{both.path}/test_greets.py:4: @pytest.mark.repeat: repeats would count as other cases; "
    expect_refused(both, run(both, "pytest-repeat"), line + "use --trials N, which keeps trials apart")


def test_installed_pytest_repeat_changes_nothing(both: Project) -> None:
    expect_measured(both, run(both, "pytest-repeat", "--trials", "2"))


# ------------------------------------------------------------------------------------------------------------ editors

LOOK = """
import json, pytest

def pytest_collection_finish(session):
    found = [
        {
            "id": item.nodeid,
            "chain": [
                [kind.__name__ for kind in (pytest.Module, pytest.Class, pytest.Function) if isinstance(node, kind)]
                for node in item.listchain() if not isinstance(node, (pytest.Session, pytest.Directory))
            ],
            "names": [node.name for node in item.listchain()][-3:],
            "path": str(item.path), "location": list(item.location),
        }
        for item in session.items
    ]
    open("seen.json", "w").write(json.dumps(found))
"""


def test_an_editor_can_fold_items_by_file_and_case_and_run_each_by_its_id(project: Project) -> None:
    project.skill()
    project.write(
        "cases/execution/two.yaml",
        "cases:\n"
        "  - {id: one, prompt: Go., skill: greeter, conditions: [self-load], stub: {solve_rate: 1.0},\n"
        "     solution: go.sh, checks: [{id: said, kind: file, path: out.txt, equals: hello}]}\n"
        "  - id: two\n"
        "    prompt: Go.\n"
        "    skill: greeter\n"
        "    conditions: [none, self-load]\n"
        "    stub: {solve_rate: 1.0}\n"
        "    solution: go.sh\n"
        "    checks: [{id: said, kind: file, path: out.txt, equals: hello}]\n",
    )
    project.write("cases/execution/go.sh", "echo hello > out.txt\n")
    project.write("conftest.py", LOOK)
    assert project.run(*OURS, "--collect-only", "-q", env=ALONE).ret == 0
    items = json.loads((project.path / "seen.json").read_text())
    file = "cases/execution/two.yaml"
    names = [("one", "self-load-1"), ("two", "none-1"), ("two", "self-load-1")]
    assert [item["id"] for item in items] == [f"{file}::{case}::{trial}" for case, trial in names]
    assert [item["names"] for item in items] == [["two.yaml", case, trial] for case, trial in names]
    assert all(item["chain"] == [["Module"], ["Class"], ["Function"]] for item in items)
    assert {item["path"] for item in items} == {str(project.path / file)}
    assert [item["location"] for item in items] == [
        [file, 1, "one [self-load #1]"],
        [file, 3, "two [none #1]"],
        [file, 3, "two [self-load #1]"],
    ]
    for item in items:
        result = project.run(*OURS, f"{project.path}/{item['id']}", env=ALONE)
        assert result.parseoutcomes() == {"passed": 1}
        (trial,) = project.report()["trials"]
        assert f"{file}::{trial['case']}::{trial['condition']}-{trial['trial']}" == item["id"]


def vscode_adapter() -> Path:
    """Return the folder that holds VS Code's adapter, as the Python extension of VS Code installs it."""
    named = os.environ.get("SKILLEVAL_VSCODE_ADAPTER")
    places = [Path(named)] if named else []
    for home in (".vscode", ".vscode-server", ".vscode-oss"):
        places += sorted(Path.home().glob(f"{home}/extensions/ms-python.python-*/python_files"), reverse=True)
    for place in places:
        if (place / "vscode_pytest/__init__.py").is_file():
            return place
    pytest.skip("no VS Code adapter here: SKILLEVAL_VSCODE_ADAPTER=.../python_files of the Python extension names it")


def messages(data: bytes) -> Iterator[Any]:
    """Yield what the adapter sent: JSON after a header with its length."""
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        length = int(dict(line.split(b": ") for line in head.split(b"\r\n"))[b"content-length"])
        yield json.loads(rest[:length])["params"]
        data = rest[length:]


def ask_adapter(adapter: Path, project: Project, *ids: str) -> list[Any]:
    """Run the adapter as the editor does: the ids in a file, the answers through a named pipe."""
    pipe, got = project.path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    env = {**os.environ, **ALONE, "TEST_RUN_PIPE": str(pipe), "PYTHONPATH": f"{adapter}{os.pathsep}{ROOT}"}
    ours = [*OURS, f"--rootdir={project.path}"]
    command = [sys.executable, "-m", "pytest", "-p", "vscode_pytest", "--collect-only", *ours]
    if ids:
        listed = project.write("ids.txt", "\n".join(ids))
        env["RUN_TEST_IDS_PIPE"] = str(listed)
        command = [sys.executable, str(adapter / "vscode_pytest/run_pytest_script.py"), *ours]
    done = subprocess.run(command, cwd=project.path, env=env, capture_output=True, text=True, timeout=120, check=False)
    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))  # a reader that nobody wrote to ends
    reader.join(10)
    pipe.unlink()
    assert got, done.stdout + done.stderr
    return list(messages(got[0]))


def leaves(node: dict[str, Any], *above: str) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yield the tests of the editor's tree, each with what it lies under."""
    if "children" not in node:
        yield [*above], node
    for child in node.get("children", ()):
        yield from leaves(child, *above, f"{node['type_']} {node['name']}")


def test_vscode_finds_every_trial_under_file_and_case_and_runs_one_by_its_id(project: Project) -> None:
    adapter = vscode_adapter()
    project.skill()
    for name, rate in (("good", 1.0), ("bad", 0.0)):
        project.case(name, rate=rate, skill="greeter", conditions=["none", "self-load"])
    (found,) = ask_adapter(adapter, project)
    assert (found["status"], found["error"]) == ("success", [])
    tests = [(above[1:], test["name"], test["lineno"]) for above, test in leaves(found["tests"])]
    assert sorted(tests) == [
        (["folder cases", "folder execution", f"file {name}.yaml", f"class {name}"], trial, "1")
        for name in ("bad", "good")
        for trial in ("none-1", "self-load-1")
    ]
    for name, outcome in (("good", "success"), ("bad", "failure")):
        (one,) = [
            t for above, t in leaves(found["tests"]) if (above[-1], t["name"]) == (f"class {name}", "self-load-1")
        ]
        run_id = one["runID"] if Path(one["runID"]).is_absolute() else f"{found['idBase']}/{one['runID']}"
        (answer,) = ask_adapter(adapter, project, run_id)
        assert list(answer["result"]) == [run_id]
        assert answer["result"][run_id]["outcome"] == outcome
        said = answer["result"][run_id]["message"] or ""
        assert said.partition("\n")[0] == ("" if name == "good" else f"execution:bad:self-load:1: {REASON}")
        assert [trial["key"] for trial in project.report()["trials"]] == [f"execution:{name}:self-load:1"]


# --------------------------------------------------------------------------------------------------------------- docs


def test_the_table_of_neighbours_names_every_tool_that_is_tried() -> None:
    text = (ROOT / "docs/reference/neighbours.md").read_text()
    rows = {
        name: cells
        for line in text.splitlines()
        if len(cells := line.split("|")) == 6
        for name in re.findall(r"`([\w-]+)`", cells[1])
    }
    assert set(PLUGINS) <= set(rows)
    for package in PLUGINS:
        assert re.fullmatch(r"\d+(\.\d+)+", rows[package][2].strip()), package


def test_the_neighbours_are_a_dependency_group_of_their_own() -> None:
    groups = (ROOT / "pyproject.toml").read_text().partition("\nneighbours = [")[2].partition("]")[0]
    names = set(re.findall(r'"([\w-]+)>=', groups))
    assert names == set(PLUGINS)
