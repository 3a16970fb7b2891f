"""The plugin in use: collection, outcomes, exit statuses, reports; plain, with -n0 and with -n2."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Project


def test_a_solved_case_passes_and_is_reported(any_mode: Project) -> None:
    any_mode.case()
    result = any_mode.run("--trials", "3")
    assert result.ret == 0
    report = any_mode.report()
    assert report["schema"] == "skilleval-report/1"
    assert report["run"]["status"] == "finished"
    assert report["run"]["counts"] == {"passed": 3, "failed": 0, "error": 0, "missing": 0}
    (group,) = report["groups"]
    assert group["pass_rate"]["rate"] == 1.0
    # Wilson at 3 of 3: the lower end is 1 / (1 + z^2 / 3) with z = 1.959964.
    assert group["pass_rate"]["ci"] == [pytest.approx(0.438503, abs=1e-6), 1.0]
    result.stdout.fnmatch_lines(["*stub: simulated, no agent was run*", "*execution*none*3*100%*"])


def test_one_failed_trial_is_a_failed_test(any_mode: Project) -> None:
    any_mode.skill()
    any_mode.case(rate=0.0, skill="greeter", conditions=["self-load"])
    result = any_mode.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*said (file): *out.txt*", "*1 failed*"])
    assert any_mode.outcomes() == {"failed": 1}


def test_a_failed_trial_of_a_control_is_missed_and_never_red(any_mode: Project) -> None:
    any_mode.case(rate=0.0, conditions=["none"])
    result = any_mode.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*1 missed*"])


def test_of_many_trials_failed_ones_are_missed_and_do_not_fail_the_run(any_mode: Project) -> None:
    any_mode.skill()
    any_mode.case(rate=0.0, skill="greeter", conditions=["self-load"])
    result = any_mode.run("--trials", "4")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*4 missed*"])
    assert "Traceback" not in result.stdout.str()


def test_the_gate_on_trials_makes_each_failed_trial_red(project: Project) -> None:
    project.skill()
    project.case(rate=0.0, skill="greeter", conditions=["self-load"])
    result = project.run("--trials", "2", "--skilleval-gate", "trials")
    assert result.ret == 1
    result.assert_outcomes(failed=2)


def test_a_pass_rate_whose_interval_lies_below_its_floor_is_red(any_mode: Project) -> None:
    any_mode.skill()
    any_mode.case(rate=0.0, skill="greeter", conditions=["self-load"], min_pass_rate=0.8)
    result = any_mode.run("--trials", "5", "--junitxml=junit.xml")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*execution:greet:self-load*below min_pass_rate 0.8*"])
    assert "below min_pass_rate" in (any_mode.path / "junit.xml").read_text()


def test_a_pass_rate_that_may_reach_its_floor_is_not_red(project: Project) -> None:
    project.skill()
    # 0 of 2: Wilson's upper end is 0.66, above the floor.
    project.case(rate=0.0, skill="greeter", conditions=["self-load"], min_pass_rate=0.5)
    assert project.run("--trials", "2").ret == 0


def test_an_error_is_red_and_in_no_rate(any_mode: Project) -> None:
    any_mode.case(workspace={"setup": [{"run": ["sh", "-c", "echo broken >&2; exit 3"]}]})
    result = any_mode.run("--trials", "2")
    assert result.ret == 1
    report = any_mode.report()
    assert report["run"]["counts"]["error"] == 2
    assert report["groups"][0]["n"] == 0
    assert report["groups"][0]["pass_rate"]["rate"] is None
    assert report["run"]["status"] == "invalid"
    assert {trial["error"]["class"] for trial in report["trials"]} == {"setup"}
    result.stdout.fnmatch_lines(["*exit status 3: broken*"])


@pytest.mark.parametrize("mode", ["-n0", "-n4"])
@pytest.mark.parametrize(
    ("text", "line", "wanted"),
    [
        ("prompt: hi\nchekcs: []\n", 2, "chekcs"),
        ("prompt: hi\nprompt: ho\n", 2, "prompt"),
        ("prompt: hi\nchecks:\n  - {id: a, kind: file, path: x, matches: '(['}\n", 3, "matches"),
        ("prompt: hi\nbudget: {timeout: soon}\n", 2, "timeout"),
        ("prompt: hi\nsolution: gone.sh\n", 2, "solution"),
        ("prompt: hi\nsolution: ../../etc/passwd\n", 2, "solution"),
    ],
)
def test_a_mistake_in_a_case_file_is_one_line_and_status_4(
    project: Project, mode: str, text: str, line: int, wanted: str
) -> None:
    project.write("cases/execution/bad.yaml", text)
    project.case("good")
    result = project.run(mode)
    assert result.ret == 4
    said = [row for row in result.stderr.str().splitlines() if "bad.yaml" in row]
    assert len(said) == 1, result.stderr.str()
    assert f"cases/execution/bad.yaml:{line}" in said[0]
    assert wanted in said[0]
    assert not (project.path / ".skilleval").exists(), "something has run"


def test_twins_are_refused_with_both_places_named(project: Project) -> None:
    project.case("one", id="greet")
    project.case("two", id="greet")
    for mode in ("-n0", "-n2"):
        result = project.run(mode)
        assert result.ret == 4
        (said,) = [row for row in result.stderr.str().splitlines() if "greet" in row]
        assert "one.yaml" in said
        assert "two.yaml" in said


def test_items_are_named_by_file_case_condition_and_trial(project: Project) -> None:
    project.skill()
    project.case(skill="greeter", conditions=["none", "self-load"])
    result = project.run("--collect-only", "-q", "--trials", "2")
    rows = [row for row in result.outlines if "::" in row]
    assert rows == [
        "cases/execution/greet.yaml::greet::none-1",
        "cases/execution/greet.yaml::greet::self-load-1",
        "cases/execution/greet.yaml::greet::self-load-2",
        "cases/execution/greet.yaml::greet::none-2",
    ]
    assert not (project.path / ".skilleval").exists()


@pytest.mark.parametrize(
    ("select", "count"),
    [
        (("-k", "self-load"), 2),
        (("-m", "execution and not none"), 2),
        (("-m", "skilleval(condition='none')"), 2),
        (("-m", "skilleval(category='general', trial=1)"), 2),
        (("--skilleval-condition", "none"), 2),
        (("--skilleval-case", "gr*"), 4),
        (("--skilleval-case", "nothing"), 0),
        (("--skilleval-lane", "prompt"), 0),
        (("cases/execution/greet.yaml::greet::none-2",), 1),
        (("cases/execution/greet.yaml::greet",), 4),
    ],
)
def test_items_are_selected_by_name_marker_flag_and_node_id(
    project: Project, select: tuple[str, ...], count: int
) -> None:
    project.skill()
    project.case(skill="greeter", conditions=["none", "self-load"])
    result = project.run("--collect-only", "-q", "--trials", "2", *select)
    assert len([row for row in result.outlines if "::" in row]) == count


def test_a_flag_that_selects_evals_leaves_ordinary_tests_out(project: Project) -> None:
    project.case()
    project.write("test_plain.py", "def test_plain():\n    pass\n")
    assert project.run().parseoutcomes() == {"passed": 2}
    result = project.run("--skilleval-lane=execution")
    assert result.parseoutcomes() == {"passed": 1, "deselected": 1}


def test_a_flag_that_selects_evals_finds_them_although_testpaths_names_tests(project: Project) -> None:
    project.case()
    project.write("tests/test_plain.py", "def test_plain():\n    pass\n")
    project.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    assert project.run("--skilleval-lane=execution").parseoutcomes() == {"passed": 1}
    assert project.run().parseoutcomes() == {"passed": 1}


def test_missed_trials_run_again_with_lf(project: Project) -> None:
    project.case("bad", rate=0.0)
    project.case("good", rate=1.0)
    project.run("--trials", "2")
    result = project.run("--trials", "2", "--lf")
    assert result.parseoutcomes()["missed"] == 2
    assert "passed" not in result.parseoutcomes()


def test_a_session_stopped_by_x_is_interrupted_and_says_what_is_missing(project: Project) -> None:
    project.skill()
    project.case(rate=0.0, skill="greeter", conditions=["self-load"])
    result = project.run("--trials", "5", "-x")
    assert result.ret == 2
    report = project.report()
    assert report["run"]["status"] == "interrupted"
    assert report["run"]["counts"] == {"passed": 0, "failed": 1, "error": 0, "missing": 4}
    assert report["groups"][0]["n"] == 1
    assert report["groups"][0]["missing"] == 4


def test_serial_and_parallel_and_shuffled_runs_give_equal_reports(
    project: Project, strip_volatile: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    project.skill()
    for name in ("one", "two", "three"):
        project.case(name, rate={"none": 0.3, "self-load": 0.7}, skill="greeter", conditions=["none", "self-load"])
    reports = []
    for args in (("-n0",), ("-n2",), ("-n8",), ("-n2", "-p", "randomly", "-p", "no:cacheprovider")):
        assert project.run("--trials", "4", *args).ret == 0
        reports.append(json.dumps(strip_volatile(project.report()), sort_keys=True))
    assert reports[0] == reports[1] == reports[2] == reports[3]
    assert '"failed": 0' not in reports[0].split('"groups"')[0], (
        "the seed drew no failure: the test would prove nothing"
    )


def test_another_seed_gives_other_draws(project: Project) -> None:
    project.case(rate=0.5)
    drawn = set()
    for seed in range(4):
        project.run("--trials", "6", "--skilleval-seed", str(seed))
        drawn.add(tuple(trial["outcome"] for trial in project.report()["trials"]))
    assert len(drawn) > 1


PYTHON_CASE = """
import pytest

@pytest.mark.skilleval(skill="greeter", conditions=["none", "self-load"])
def test_greets(skilleval):
    run = skilleval.run("Greet.", files={"name.txt": "Ada"})
    assert (run.workspace / "name.txt").read_text() == "Ada"
    assert skilleval.home != skilleval.workspace
    skilleval.score("brevity", 0.5)
    if skilleval.condition.name == "none":
        assert 1 + 1 == 3, "the control is wrong"
    if skilleval.trial == 2:
        raise RuntimeError("the helper broke")
"""


def test_a_python_case_is_parametrized_and_its_asserts_are_its_checks(any_mode: Project) -> None:
    any_mode.skill()
    any_mode.write("test_case.py", PYTHON_CASE)
    result = any_mode.run("--trials", "2")
    assert result.ret == 1
    report = any_mode.report()
    found = {trial["key"]: trial["outcome"] for trial in report["trials"]}
    assert found == {
        "execution:greets:none:1": "failed",
        "execution:greets:none:2": "failed",
        "execution:greets:self-load:1": "passed",
        "execution:greets:self-load:2": "error",
    }
    scores = {trial["key"]: trial["score"] and trial["score"]["total"] for trial in report["trials"]}
    assert scores["execution:greets:self-load:1"] == pytest.approx((1 + 0.5) / 2)
    assert scores["execution:greets:none:1"] == pytest.approx((0 + 0.5) / 2)
    assert scores["execution:greets:self-load:2"] is None
    result.stdout.fnmatch_lines(["*RuntimeError: the helper broke*"])


def test_other_parameters_are_told_apart_by_pytests_own_ids(any_mode: Project) -> None:
    any_mode.write(
        "test_case.py",
        """
import pytest

class Setting:
    def __init__(self, number):
        self.number = number

@pytest.mark.skilleval(conditions=["none"])
@pytest.mark.parametrize("setting", [Setting(1), Setting(2)])
@pytest.mark.parametrize("word", ["a b", "a/b", pytest.param("x" * 200, id="long")])
def test_sets(skilleval, setting, word):
    skilleval.run(word)
    assert setting.number == 1
""",
    )
    assert any_mode.run("--trials", "2").ret == 0
    report = any_mode.report()
    assert report["run"]["counts"] == {"passed": 6, "failed": 6, "error": 0, "missing": 0}
    # The digits are SHA-256 of `a b-setting0` and so on, the first six.
    assert {trial["case"]: trial["outcome"] for trial in report["trials"]} == {
        "sets-a_b-setting0-e50e08": "passed",
        "sets-a_b-setting1-71a1bc": "failed",
        "sets-a_b-setting0-c6195a": "passed",
        "sets-a_b-setting1-289e56": "failed",
        "sets-long-setting0": "passed",
        "sets-long-setting1": "failed",
    }


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--skilleval-lane=prompt", "--skilleval-lane=prompt: no case is of it; there are: execution"),
        ("--skilleval-case=typo*", "--skilleval-case=typo*: fits no case; there are: greet"),
        (
            "--skilleval-condition=stale",
            "--skilleval-condition=stale: no case runs under it; there are: none, self-load",
        ),
    ],
)
def test_a_flag_that_fits_no_case_says_what_there_is(any_mode: Project, flag: str, said: str) -> None:
    any_mode.skill()
    any_mode.case(skill="greeter", conditions=["none", "self-load"])
    result = any_mode.run(flag)
    assert result.ret == 5
    result.stdout.fnmatch_lines([f"skilleval: {said.replace('*', '[*]')}"])


@pytest.mark.parametrize(
    ("conditions", "gate", "red"),
    [
        (["none", "self-load"], 0.8, []),
        (["none", "self-load"], {"none": 0.8}, ["execution:greet:none"]),
        (["none"], 0.8, ["execution:greet:none"]),
    ],
)
def test_a_bare_gate_asks_nothing_of_controls_beside_other_conditions(
    project: Project, conditions: list[str], gate: object, red: list[str]
) -> None:
    project.skill()
    project.case(rate={"none": 0.0, "self-load": 1.0}, skill="greeter", conditions=conditions, min_pass_rate=gate)
    result = project.run("--trials", "6")
    assert result.ret == (1 if red else 0)
    assert [reason.partition(": ")[0] for reason in project.report()["gate"]["reasons"]] == red


def test_a_marker_keeps_the_rules_of_case_files(any_mode: Project) -> None:
    any_mode.write(
        "test_case.py",
        """
import pytest

@pytest.mark.skilleval(conditions=["none"], min_pass_rate={"preloaded": 0.5})
def test_asks(skilleval):
    skilleval.run("hi")
""",
    )
    result = any_mode.run()
    assert result.ret == 4
    assert len([line for line in result.errlines + result.outlines if "test_case.py:4: min_pass_rate" in line]) == 1


def test_what_a_python_case_asks_is_part_of_its_fingerprint_wherever_it_stands_in_the_file(project: Project) -> None:
    text = """
import pytest

PROMPT = "one"

@pytest.mark.skilleval(conditions=["none"])
def test_asks(skilleval):
    skilleval.run(PROMPT)

@pytest.mark.skilleval(conditions=["none"])
def test_other(skilleval):
    skilleval.run("other")
"""

    def fingerprints(text: str) -> dict[str, str]:
        project.write("test_case.py", text)
        assert project.run().ret == 0
        return {group["case"]: group["fingerprint"] for group in project.report()["groups"]}

    first = fingerprints(text)
    assert fingerprints(text + "\n# a comment\n") == first
    changed = fingerprints(text.replace('"one"', '"two"'))
    assert changed["asks"] != first["asks"]
    other = fingerprints(text.replace('run("other")', 'run("another")'))
    assert other["asks"] == first["asks"]
    assert other["other"] != first["other"]


def test_the_home_fixture_isolates_any_test_and_is_removed(any_mode: Project) -> None:
    any_mode.write(
        "test_home.py",
        """
        import os, subprocess
        from pathlib import Path

        def test_home(skilleval_home, skilleval_workspace):
            env = subprocess.run(["env"], env=dict(skilleval_home.env), capture_output=True, text=True).stdout
            assert "CANARY" not in env
            assert f"HOME={skilleval_home.home}" in env
            assert skilleval_workspace.is_dir()
            top = subprocess.run(["git", "rev-parse", "--show-toplevel"], cwd=skilleval_workspace, env=dict(skilleval_home.env),
                                 capture_output=True, text=True).stdout.strip()
            assert Path(top) == skilleval_workspace
            Path("where.txt").write_text(str(skilleval_home.root))
        """.replace("\n        ", "\n"),
    )
    assert any_mode.run(env={"CANARY_SECRET": "1"}).ret == 0
    root = (any_mode.path / "where.txt").read_text()
    assert root
    assert not any_mode.path.__class__(root).exists()


def test_the_record_is_on_disk_before_the_test_returns(project: Project) -> None:
    project.case()
    project.write(
        "conftest.py",
        "import pytest\n"
        "@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_call(item):\n"
        "    result = yield\n"
        "    (record,) = item.config.rootpath.glob('.skilleval/runs/*/trials/*/record.json')\n"
        '    assert \'"outcome":"passed"\' in record.read_text()\n'
        "    item.config.rootpath.joinpath('seen.txt').write_text('yes')\n"
        "    return result\n",
    )
    assert project.run().ret == 0
    assert (project.path / "seen.txt").read_text() == "yes"


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (("--trials", "0"), "--trials=0"),
        (("--trials", "100001"), "--trials=100001: a whole number of at most 100,000 is needed"),
        (("--trials", "many"), "--skilleval-trials=many: a whole number"),
        (("--skilleval-lane", "promt"), "choose from prompt, execution, dogfood, all"),
        (("--skilleval-condition", "nothing"), "choose from none, self-load, preloaded, stale, all"),
        (("--skilleval-provider", "sub"), "stub"),
        (("--skilleval-cap", "claude=2"), "provider:NAME=N"),
        (("--skilleval-report", "pdf"), "choose from json, md, html"),
        (("--skilleval-max-errors", "2"), "from 0 to 1"),
    ],
)
def test_a_wrong_flag_is_one_line_and_status_4(project: Project, args: tuple[str, ...], wanted: str) -> None:
    project.case()
    result = project.run(*args)
    assert result.ret == 4
    assert wanted in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


def test_a_skill_that_is_nowhere_is_a_usage_error(project: Project) -> None:
    project.case(skill="greeter", conditions=["self-load"])
    result = project.run("-n2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*greet.yaml:1: skill: 'greeter' lies in none of skills*"])


def test_other_yaml_and_json_is_left_alone(project: Project) -> None:
    project.write("config.yaml", "prompt: [")
    project.write("cases/notes.yaml", "a: b")
    project.write("data/execution/x.yaml", "a: b")
    project.write("test_plain.py", "def test_plain():\n    pass\n")
    assert project.run().parseoutcomes() == {"passed": 1}


def test_a_session_without_cases_imports_nothing_heavy_and_prints_nothing(project: Project) -> None:
    project.write(
        "test_plain.py",
        "import sys\n\ndef test_light():\n"
        "    heavy = {'numpy', 'scipy', 'pydantic', 'jinja2', 'yaml'} & set(sys.modules)\n    assert not heavy\n",
    )
    result = project.run("-p", "no:hypothesispytest", "-p", "no:syrupy")
    assert result.ret == 0
    assert "skill" not in result.stdout.str().lower().replace(str(project.path).lower(), "").replace(
        "plugins:", ""
    ).replace("skilleval-0.1.0", "")


def test_reruns_are_refused_with_the_way_out(project: Project) -> None:
    project.case()
    project.write(
        "conftest.py", "def pytest_addoption(parser):\n    parser.addoption('--reruns', type=int, default=0)\n"
    )
    result = project.run("--reruns", "2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--reruns*use --trials N*"])


def test_workspaces_are_kept_when_asked_for(project: Project) -> None:
    project.case(rate=1.0)
    project.run("--skilleval-keep", "all")
    (kept,) = project.path.glob(".skilleval/runs/*/trials/*/workspace/out.txt")
    assert kept.read_text() == "hello\n"


def test_a_debugger_opens_at_a_failed_trial(project: Project) -> None:
    project.write(
        "test_case.py",
        PYTHON_CASE.replace('"greeter", conditions=["none", "self-load"]', '"none", conditions=["none"]'),
    )
    done = project.pytester.run(
        sys.executable, "-m", "pytest", "-p", "no:randomly", "--pdb", "test_case.py", stdin=b"p 40 + 2\nq\n"
    )
    assert "the control is wrong" in done.stdout.str()
    assert "42" in done.outlines or any(row.endswith(" 42") for row in done.outlines)
