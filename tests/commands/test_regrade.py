"""`skilleval regrade`: a run graded again from what it kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval import evidence, kept
from pytest_skilleval.journal import Journal, hold, read_plan
from tests.commands.conftest import run_pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.commands.conftest import Said, Shell

SKILL = "---\nname: greeter\ndescription: Greets people by name.\n---\n\nSay hello.\n"
SAID = {"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}
HALF = {"none": 0.3, "self-load": 0.7}
HELLO: dict[str, Any] = {
    "skill": "greeter",
    "prompt": "Write hello into out.txt.",
    "conditions": ["none", "self-load"],
    "workspace": {"files": {"given.txt": "as it was\n"}},
    # The second check changes the workspace: what is kept must be what the agent left.
    "checks": [SAID, {"id": "leaves", "kind": "command", "run": ["touch", "late.txt"]}],
    "solution": "hello.sh",
    "stub": {"solve_rate": HALF, "tokens": 70},
}
ASK = {
    "skill": "greeter",
    "prompt": "Say yes.",
    "conditions": ["none", "self-load"],
    "expect": ["yes"],
    "answer": "yes, and why",
    "stub": {"solve_rate": HALF, "failure_answer": "no"},
}
PROOF = {
    "skill": "greeter",
    "prompt": "Prove that the greeting works.",
    "conditions": ["self-load"],
    "bundle": {"path": "proof", "profile": "minimal"},
    "solution": "proof.sh",
    "stub": {"solve_rate": 0.5},
}
PYTHON = """
import pytest

@pytest.mark.skilleval(skill="none", conditions=["none"])
def test_python(skilleval):
    done = skilleval.run("Do it.", files={"made.txt": "here"})
    assert (done.workspace / "made.txt").read_text() == "here"
    skilleval.score("half", 0.5)
"""


def write(folder: Path, name: str, text: object) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))


def make_project(folder: Path) -> None:
    for name, text in {
        "pytest.ini": "[pytest]\n",
        "skills/greeter/SKILL.md": SKILL,
        "cases/execution/hello.sh": "echo hello > out.txt\n",
        "cases/execution/hello.yaml": HELLO,
        "cases/prompt/ask.yaml": ASK,
        "cases/dogfood/proof.sh": "mkdir proof\necho it works > proof/log.txt\necho '# Summary' > proof/report.md\n",
        "cases/dogfood/proof.yaml": PROOF,
        "cases/test_python.py": PYTHON,
    }.items():
        write(folder, name, text)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of all lanes with one run, whose workspaces are kept."""
    folder = tmp_path_factory.mktemp("measured")
    make_project(folder)
    done = run_pytest(folder, "cases", "--trials=3", "--skilleval-keep=all")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def temp(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temp directory that must be empty in the end."""
    folder = shell.folder / "temp"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    yield folder
    assert [path.name for path in folder.iterdir() if not path.name.startswith("pytest-of-")] == []


@pytest.fixture
def run(shell: Shell, measured: Path, temp: Path) -> Path:
    """The run, in a copy of its project that is this test's own."""
    for name in ("cases", "skills", ".skilleval"):
        shutil.copytree(measured / name, shell.folder / name, symlinks=True)
    (found,) = shell.output.iterdir()
    return found


def own_run(shell: Shell, *args: str) -> Path:
    """Make a run of this test's own."""
    done = run_pytest(shell.folder, *args)
    assert "skill evals" in done.stdout, done.stdout + done.stderr
    return max(shell.output.iterdir())


def regrade(shell: Shell, *words: str) -> Said:
    """Grade again without workers: they start slower than these trials run."""
    return shell("regrade", *words, "-n", "0")


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in ("lock", "owner"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def report_of(said: Said) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((Path(said.json["path"]) / "report.json").read_text())
    return value


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {line["key"]: line["outcome"] for line in report["trials"]}


# ------------------------------------------------------------------------------------------------- the same checks


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_same_cases_give_the_same_grades_in_every_lane(shell: Shell, run: Path, workers: str) -> None:
    before = json.loads((run / "report.json").read_text())
    assert set(outcomes(before).values()) == {"passed", "failed"}, "both kinds are needed to tell"
    said = shell("regrade", run.name, "--json", "-n", workers)
    assert said.status == 0, said.err
    after = report_of(said)
    assert said.json["regraded"] == len(before["trials"]) == 18
    assert said.json["changed"] == said.json["not_regraded"] == []
    for key in ("groups", "lanes", "lift", "noise", "routing", "gate", "trials"):
        assert after[key] == before[key], key
    assert after["run"]["provider"] == before["run"]["provider"]
    assert f"regraded from {run.name}: 18 of 18 trials" in after["run"]["notes"][-1]


def test_a_run_that_was_graded_again_can_be_graded_again(shell: Shell, run: Path) -> None:
    once = regrade(shell, run.name, "--json").json
    twice = regrade(shell, once["run"], "--json")
    assert twice.status == 0, twice.err
    assert (twice.json["regraded"], twice.json["changed"]) == (18, [])
    assert twice.json["regraded_from"] == once["run"]


# -------------------------------------------------------------------------------------------------------- new checks


def test_new_checks_see_what_the_agent_left_and_the_old_run_stays_as_it_was(shell: Shell, run: Path) -> None:
    before, old = digests(run), json.loads((run / "report.json").read_text())
    checks = [
        {"id": "given", "kind": "file", "path": "given.txt", "changed": False},
        {"id": "wrote", "kind": "file", "path": "out.txt", "changed": True, "required": False},
        # The first grading's own command made this file, after the agent.
        {"id": "early", "kind": "file", "path": "late.txt", "exists": False},
    ]
    write(shell.folder, "cases/execution/hello.yaml", HELLO | {"checks": checks})
    said = regrade(shell, "latest", "--json")
    assert said.status == 0, said.err
    assert digests(run) == before
    new = report_of(said)
    mine = [line for line in new["trials"] if line["case"] == "hello"]
    solved = {line["key"]: line["outcome"] == "passed" for line in old["trials"] if line["case"] == "hello"}
    assert len(mine) == 6
    for line in mine:
        found = {check["id"]: check["passed"] for check in line["checks"]}
        assert found == {"given": True, "wrote": solved[line["key"]], "early": True}
        assert (line["outcome"], line["tokens"]["output"]) == ("passed", 70)
    wanted = {key for key, passed in solved.items() if not passed}
    assert {row["key"] for row in said.json["changed"]} == wanted
    assert {(row["before"], row["after"]) for row in said.json["changed"]} == {("failed", "passed")}
    fingerprints = {row["fingerprint"] for report in (old, new) for row in report["groups"] if row["case"] == "hello"}
    assert len(fingerprints) == 2, "another case now"


def test_its_records_name_the_run_whose_agents_they_were_and_keep_their_evidence(shell: Shell, run: Path) -> None:
    said = regrade(shell, "latest", "--json")
    folder = Path(said.json["path"])
    old, new = Journal(run, run.name), Journal(folder, folder.name)
    for planned in read_plan(folder).trials:
        before, after = old.read(planned.id).record, new.read(planned.id).record
        assert before is not None
        assert after is not None
        assert after.regraded_from == run.name
        for name in ("exposure", "isolation", "timing", "transcript", "attempts", "final_text", "skills_used"):
            assert getattr(after, name) == getattr(before, name), name
        assert after.transcript is not None
        text = (folder / after.transcript.path).read_bytes()
        assert hashlib.sha256(text).hexdigest() == after.transcript.digest
    assert (shell.folder / ".skilleval/latest").resolve() == folder
    listed = [row["id"] for row in shell("list", "--json").json["runs"]]
    assert sorted(listed) == sorted([run.name, folder.name])
    # A report of its journal alone has the same bytes.
    reported = (folder / "report.json").read_bytes()
    assert shell("rebuild", folder.name).status == 0
    assert (folder / "report.json").read_bytes() == reported


def test_skills_that_changed_or_are_gone_since_change_nothing(shell: Shell, run: Path) -> None:
    before = json.loads((run / "report.json").read_text())
    shutil.rmtree(shell.folder / "skills")
    said = regrade(shell, "latest", "--json")
    assert said.status == 0, said.err
    after = report_of(said)
    assert after["groups"] == before["groups"]
    assert after["run"]["skills"] == before["run"]["skills"]


# ---------------------------------------------------------------------------------- what cannot be graded again


def test_without_kept_workspaces_only_the_prompt_lane_is_graded_again_and_the_rest_is_named(
    shell: Shell, temp: Path
) -> None:
    make_project(shell.folder)
    run = own_run(shell, "--skilleval-lane=prompt", "--skilleval-lane=execution", "cases/execution", "cases/prompt")
    write(shell.folder, "cases/prompt/ask.yaml", ASK | {"expect": ["(yes|no)"]})
    said = regrade(shell, run.name, "--json")
    assert said.status == 2
    report = report_of(said)
    assert report["run"]["status"] == "interrupted"
    for line in report["trials"]:
        if line["lane"] == "prompt":
            assert {part["id"]: part["value"] for part in line["score"]["components"]}["expected-patterns"] == 1
        else:
            assert line["outcome"] == "missing"
            assert line["reason"] == ("not graded again: its workspace was not kept (--skilleval-keep=all keeps them)")
    assert {row["key"] for row in said.json["not_regraded"]} == {
        "execution:hello:none:1",
        "execution:hello:self-load:1",
    }


def test_a_run_of_which_nothing_is_kept_is_refused_and_no_run_is_written(shell: Shell, temp: Path) -> None:
    make_project(shell.folder)
    run = own_run(shell, "cases/execution")
    said = regrade(shell, run.name)
    assert (said.status, said.out) == (4, "")
    assert "its workspace was not kept" in said.err
    assert said.err.count("\n") == 1
    assert [path.name for path in shell.output.iterdir()] == [run.name]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("workspace/out.txt", "hello\n", "its kept workspace changed since"),
        ("transcript.jsonl", "{}\n", "its transcript changed since"),
        ("workspace.json", "{}", "what its workspace held cannot be read"),
    ],
)
def test_evidence_that_changed_since_is_not_graded(shell: Shell, run: Path, name: str, text: str, wanted: str) -> None:
    journal = Journal(run, run.name)
    failed = next(
        trial.id
        for trial in read_plan(run).trials
        if trial.case == "hello" and (record := journal.read(trial.id).record) and record.outcome.value == "failed"
    )
    write(journal.folder(failed), name, text)
    said = regrade(shell, "latest", "--json")
    assert said.status == 2
    (row,) = said.json["not_regraded"]
    assert row["key"] == failed.key
    assert wanted in row["reason"]
    assert outcomes(report_of(said))[failed.key] == "missing"


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"prompt": "Write bye into out.txt."}, "its prompt changed since"),
        ({"workspace": {"files": {"given.txt": "another\n"}}}, "what its agent is given changed since: given.txt"),
        ({"context": "Hurry."}, "its context changed since"),
        ({"conditions": ["none"]}, "no longer hold it"),
    ],
)
def test_a_case_that_asks_something_else_now_is_not_graded_again(
    shell: Shell, run: Path, change: dict[str, Any], wanted: str
) -> None:
    write(shell.folder, "cases/execution/hello.yaml", HELLO | change)
    said = regrade(shell, "latest", "--json")
    assert said.status == 2
    gone = [row for row in said.json["not_regraded"] if wanted in row["reason"]]
    count = 3 if "conditions" in change else 6
    assert len(gone) == len(said.json["not_regraded"]) == count
    assert all(row["key"].startswith("execution:hello:") for row in gone)


def test_only_the_cases_that_are_named_are_graded_again(shell: Shell, run: Path) -> None:
    said = regrade(shell, "latest", "--cases", "cases/execution/hello.yaml", "--json")
    assert said.status == 2
    report = report_of(said)
    assert {line["case"] for line in report["trials"] if line["outcome"] != "missing"} == {"hello"}
    assert said.json["regraded"] == 6


def test_a_case_file_that_is_not_there_is_one_line(shell: Shell, run: Path) -> None:
    said = regrade(shell, "latest", "--cases", "cases/gone.yaml")
    assert said.status == 4
    assert said.err == "skilleval: --cases cases/gone.yaml: no such file or folder\n"


def test_a_mistake_in_a_case_is_pytests_own_line(shell: Shell, run: Path) -> None:
    write(shell.folder, "cases/execution/hello.yaml", HELLO | {"chekcs": []})
    said = regrade(shell, "latest")
    assert said.status == 4
    assert "chekcs" in said.err
    assert said.err.count("\n") == 1
    assert [path.name for path in shell.output.iterdir()] == [run.name]


def test_a_run_that_still_goes_on_is_refused(shell: Shell, run: Path) -> None:
    descriptor = hold(run)
    try:
        said = regrade(shell, "latest")
    finally:
        os.close(descriptor)
    assert said.status == 4
    assert "still running" in said.err


# ------------------------------------------------------------------------------------------------------------ errors


def test_errors_stay_errors_but_a_check_that_broke_is_graded_again(shell: Shell, temp: Path) -> None:
    make_project(shell.folder)
    shutil.rmtree(shell.folder / "cases/dogfood")
    write(shell.folder, "cases/execution/look.py", "def check(run):\n    raise ValueError('mine')\n")
    broken = HELLO | {"checks": [{"id": "own", "kind": "python", "function": "look.py::check"}]}
    setup = HELLO | {"workspace": {"setup": [{"run": ["false"]}]}}
    write(shell.folder, "cases/execution/hello.yaml", broken)
    write(shell.folder, "cases/execution/setup.yaml", setup)
    run = own_run(shell, "cases/execution", "--skilleval-keep=all", "--skilleval-max-errors=1")
    assert set(outcomes(json.loads((run / "report.json").read_text())).values()) == {"error"}
    write(shell.folder, "cases/execution/look.py", "def check(run):\n    return True\n")
    write(shell.folder, "cases/execution/setup.yaml", HELLO)
    said = regrade(shell, run.name, "--json")
    report = report_of(said)
    assert outcomes(report) == {
        "execution:hello:none:1": "passed",
        "execution:hello:self-load:1": "passed",
        "execution:setup:none:1": "error",
        "execution:setup:self-load:1": "error",
    }
    kinds = {line["error"]["class"] for line in report["trials"] if line["outcome"] == "error"}
    assert kinds == {"setup"}
    assert report["gate"]["passed"] is False


def test_a_check_that_breaks_now_is_an_error_now(shell: Shell, run: Path) -> None:
    write(shell.folder, "cases/execution/look.py", "def check(run):\n    raise ValueError('mine')\n")
    broken = HELLO | {"checks": [{"id": "own", "kind": "python", "function": "look.py::check"}]}
    write(shell.folder, "cases/execution/hello.yaml", broken)
    said = regrade(shell, "latest", "--json")
    report = report_of(said)
    assert {line["error"]["class"] for line in report["trials"] if line["case"] == "hello"} == {"check"}
    assert report["run"]["status"] == "invalid"


def test_a_check_that_never_ends_is_stopped_and_leaves_no_process(shell: Shell, run: Path) -> None:
    slow = [{"id": "slow", "kind": "command", "run": ["sh", "-c", "sleep 300 & sleep 300"], "timeout": 0.3}]
    write(shell.folder, "cases/execution/hello.yaml", HELLO | {"checks": slow, "conditions": ["none"]})
    said = regrade(shell, "latest", "--json", "--cases", "cases/execution/hello.yaml")
    lines = [line for line in report_of(said)["trials"] if line["key"].startswith("execution:hello:none")]
    assert {line["outcome"] for line in lines} == {"failed"}
    assert all("did not end within 0.3 s" in line["checks"][0]["reason"] for line in lines)
    left = [path.parent.name for path in Path("/proc").glob("[0-9]*/cwd") if str(shell.folder / "temp") in _link(path)]
    assert left == []


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


# ------------------------------------------------------------------------------------------------ other kinds of runs


def test_the_older_side_of_a_run_is_graded_again_without_the_older_skill(shell: Shell, temp: Path) -> None:
    make_project(shell.folder)
    write(shell.folder, "older/greeter/SKILL.md", SKILL.replace("Say hello", "Say nothing"))
    stale = HELLO | {"conditions": ["self-load", "stale"], "stub": {"solve_rate": 0.5}}
    write(shell.folder, "cases/execution/hello.yaml", stale)
    args = ("--skilleval-against=older", "--skilleval-stale=older", "--trials=2", "--skilleval-keep=all")
    run = own_run(shell, "cases/execution", *args)
    before = json.loads((run / "report.json").read_text())
    assert {row["condition"] for row in before["groups"]} == {"self-load", "stale"}
    assert len(before["trials"]) == 6
    shutil.rmtree(shell.folder / "older")
    said = regrade(shell, run.name, "--json")
    assert said.status == 0, said.err
    after = report_of(said)
    assert after["trials"] == before["trials"]
    assert after["comparison"]["overall"] == before["comparison"]["overall"]


AGENT = """
import os, pathlib
pathlib.Path("note.txt").write_text("the key is " + os.environ["MY_KEY"])
print("done")
"""


def test_secrets_stay_out_of_what_new_checks_say(shell: Shell, temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hush-3141592653"
    monkeypatch.setenv("MY_KEY", secret)
    make_project(shell.folder)
    write(shell.folder, "agent.py", AGENT)
    command = json.dumps([sys.executable, str(shell.folder / "agent.py")])
    (shell.folder / "pytest.ini").unlink()
    write(
        shell.folder,
        "pyproject.toml",
        "[tool.pytest.ini_options]\n"
        f'[tool.skilleval.providers.mine]\ncommand = {command}\nprompt_via = "stdin"\nkeys = ["MY_KEY"]\n'
        'parse = {format = "text"}\n',
    )
    write(shell.folder, "cases/execution/hello.yaml", HELLO | {"conditions": ["none"], "checks": []})
    run = own_run(
        shell, "cases/execution", "--skilleval-provider=command:mine", "--skilleval-keep=all", "--skilleval-sandbox=off"
    )
    checks = [{"id": "empty", "kind": "file", "path": "note.txt", "equals": "nothing"}]
    write(shell.folder, "cases/execution/hello.yaml", HELLO | {"conditions": ["none"], "checks": checks})
    said = regrade(shell, run.name, "--json")
    (line,) = report_of(said)["trials"]
    assert line["outcome"] == "failed"
    assert "the key is [redacted]" in line["checks"][0]["reason"]
    folder = Path(said.json["path"])
    holders = [
        path.name
        for place in (run, folder)
        for path in place.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert holders == []
    assert "[redacted]" in next(run.glob("trials/*/workspace/note.txt")).read_text()
    assert said.json["regraded"] == 1
    assert report_of(said)["run"]["provider"]["id"] == "command:mine"


# -------------------------------------------------------------------------------------------------- what runs keep


def test_of_failed_trials_alone_only_those_are_graded_again(shell: Shell, temp: Path) -> None:
    make_project(shell.folder)
    run = own_run(shell, "cases/execution", "--trials=3", "--skilleval-keep=failed")
    before = outcomes(json.loads((run / "report.json").read_text()))
    said = regrade(shell, run.name, "--json")
    after = outcomes(report_of(said))
    assert after == {key: "failed" if word == "failed" else "missing" for key, word in before.items()}
    assert "passed" in before.values()
    assert not [path for path in run.glob("trials/*/workspace.json") if not (path.parent / "workspace").is_dir()]


FULL = """
from pytest_skilleval import evidence

def full(workspace, target):
    target.mkdir()
    raise OSError(28, "No space left on device", "out.txt")

evidence.keep_tree = full
"""


def test_a_workspace_that_cannot_be_kept_changes_no_outcome_and_is_said(shell: Shell, temp: Path) -> None:
    make_project(shell.folder)
    write(shell.folder, "conftest.py", FULL)
    write(shell.folder, "cases/execution/hello.yaml", HELLO | {"stub": {"solve_rate": 1}})
    run = own_run(shell, "cases/execution", "--skilleval-keep=all")
    lines = json.loads((run / "report.json").read_text())["trials"]
    assert {line["outcome"] for line in lines} == {"passed"}
    assert all("could not be kept: [Errno 28] No space left on device" in line["notes"][0] for line in lines)
    assert [path for name in ("workspace", "workspace.json") for path in run.glob(f"trials/*/{name}")] == []
    assert regrade(shell, run.name).status == 4


def test_the_summary_of_a_ci_job_is_left_alone(shell: Shell, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(shell.folder / "summary.md"))
    said = regrade(shell, "latest", "--json", "--cases", "cases/prompt")
    assert said.json["regraded"] == 6
    assert not (shell.folder / "summary.md").exists()


HOSTILE = "--skilleval-judge=command:gone --compare-baseline=gone --skilleval-budget=time=1s --maxfail=1 -k nothing"


@pytest.mark.parametrize("place", ["ini", "environment"])
def test_options_that_the_user_gives_to_every_session_touch_nothing_but_plugins_are_kept(
    place: str, shell: Shell, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shell.folder, "mine.py", "open('mine.txt', 'w').close()\n")
    words = f"{HOSTILE} -p mine --import-mode=importlib"
    if place == "ini":
        write(shell.folder, "pytest.ini", f"[pytest]\naddopts = {words}\n")
    else:
        monkeypatch.setenv("PYTEST_ADDOPTS", words)
    said = regrade(shell, run.name, "--json")
    assert (said.status, said.err) == (0, "")
    assert said.json["regraded"] == 18
    assert report_of(said)["comparison"] is None
    assert (shell.folder / "mine.txt").exists()


def test_what_an_earlier_attempt_left_is_gone_when_a_later_one_is_kept(tmp_path: Path) -> None:
    work, folder = tmp_path / "work", tmp_path / "trial"
    write(work, "first.txt", "1")
    folder.mkdir()
    kept.keep_workspace(work, {}, folder, bytes)
    (work / "first.txt").unlink()
    write(work, "second.txt", "2")
    kept.keep_workspace(work, evidence.snapshot(work), folder, bytes)
    assert [path.name for path in (folder / "workspace").iterdir()] == ["second.txt"]
    kept.drop_workspace(folder)
    assert list(folder.iterdir()) == []
