from __future__ import annotations

from pytest_skilleval.reports.terminal import closing_lines, resume_command

from .made import compared, lane, made
from .payloads import ANSI, CONTROLS, poisoned_report

LIFT = {
    "lane": "execution",
    "metric": "realised",
    "of": "pass_rate",
    "value": 0.43,
    "ci": (0.06, 0.81),
    "cases": 10,
    "note": "",
}
PATHS = {"json": ".skilleval/runs/r/report.json", "html": ".skilleval/runs/r/report.html"}


def text(report, **more) -> str:
    return "\n".join(line.text for line in closing_lines(report, PATHS, **more))


def test_the_closing_lines_of_a_run_without_a_baseline() -> None:
    report = made(lift=[LIFT], readings=[{"lane": "execution", "diagnosis": "works", "text": "The skill helps."}])
    assert text(report) == (
        "stub: simulated, no agent was run\n"
        "lane       condition   n  pass rate  95% interval  mean score  95% interval  errors  missing\n"
        "---------  ---------  --  ---------  ------------  ----------  ------------  ------  -------\n"
        "execution  none *     30        70%  [42%, 88%]         0.775  [0.54, 0.91]       0        0\n"
        "execution  self-load  30        70%  [42%, 88%]         0.775  [0.54, 0.91]       0        0\n"
        "* control; intervals are for cases like these (clustered by case)\n"
        "execution: realised lift (self-load - none): +0.430 [+0.06, +0.81] (10 cases)\n"
        "execution: The skill helps.\n"
        "noise: two trials of the same case disagree in 23.3% [14%, 36%] of pairs (40 groups)\n"
        "report: .skilleval/runs/r/report.json\n"
        "report: .skilleval/runs/r/report.html\n"
        "next: change the skill, then pytest --trials 3 --compare-baseline 20261130T004211Z-3f9c"
    )


def test_a_narrow_terminal_loses_the_least_telling_columns_first() -> None:
    assert text(made(), width=60).splitlines()[1:4] == [
        "condition   n  pass rate  95% interval  mean score",
        "---------  --  ---------  ------------  ----------",
        "none *     30        70%  [42%, 88%]         0.775",
    ]
    assert text(made(), width=20).splitlines()[1] == "condition  pass rate  95% interval"


def test_errors_and_missing_trials_are_never_dropped() -> None:
    report = made(lanes=[lane("none", errors=2), lane("self-load", missing=1)])
    assert text(report, width=20).splitlines()[1:5] == [
        "condition  pass rate  95% interval  errors  missing",
        "---------  ---------  ------------  ------  -------",
        "none *           70%  [42%, 88%]         2        0",
        "self-load        70%  [42%, 88%]         0        1",
    ]


def test_two_lanes_keep_their_names_on_a_narrow_terminal() -> None:
    report = made(lanes=[lane("none"), lane("none", lane="prompt")])
    assert text(report, width=30).splitlines()[1].startswith("lane       condition")


def test_quiet_leaves_the_table_the_verdict_and_the_gate() -> None:
    report = made(lift=[LIFT], gate={"passed": False, "mode": "auto", "reasons": ["overall: worse"]})
    assert text(report, quiet=True).splitlines()[4:] == [
        "execution  self-load  30        70%  [42%, 88%]         0.775  [0.54, 0.91]       0        0",
        "* control; intervals are for cases like these (clustered by case)",
        "gate: overall: worse",
    ]


def test_each_verdict_ends_with_the_command_that_helps() -> None:
    def last(verdict: str) -> str:
        comparison = compared(verdict, skills=[])
        comparison["overall"]["text"] = f"{verdict}: pass rate -20 points"
        comparison["baseline"]["trials"] = 3
        return text(made(comparison=comparison)).splitlines()[-1]

    assert last("improved") == "next: skilleval bless 20261130T004211Z-3f9c main  (then --compare-baseline main)"
    assert (
        last("inconclusive")
        == "next: skilleval plan 20261130T004211Z-3f9c --detect 0.05  (what would see a change that small)"
    )
    assert last("regressed") == "next: open .skilleval/runs/r/report.html  (each trial stands beside its baseline's)"


def test_an_interrupted_run_says_so_and_how_to_go_on() -> None:
    lines = text(made(run={"status": "interrupted", "reasons": ["2 of 6 planned trials have no result"]})).splitlines()
    assert "run interrupted: 2 of 6 planned trials have no result" in lines
    assert lines[-1] == "next: pytest --trials 3 --skilleval-resume=20261130T004211Z-3f9c  (runs only what is missing)"


def test_a_run_is_resumed_with_its_own_options_but_its_budget() -> None:
    def command(*argv: str) -> str:
        return resume_command(made(run={"id": "r", "argv": argv}).run)

    assert command() == "pytest --skilleval-resume=r"
    assert (
        command("--trials", "5", "--skilleval-budget", "usd=1", "--skilleval-budget=time=1s", "-k", "a or b", "cases")
        == "pytest --trials 5 -k 'a or b' cases --skilleval-resume=r"
    )
    assert command("--compare-baseline=main", "--skilleval-resume", "old", "-q") == (
        "pytest --compare-baseline=main -q --skilleval-resume=r"
    )
    assert command("--skilleval-resume", "-n2", "--skilleval-resume=x", "a") == "pytest -n2 a --skilleval-resume=r"
    assert command("skilleval", "merge", "r1", "r2") == "pytest --skilleval-resume=r"


def test_a_real_provider_is_named_with_its_model_and_version() -> None:
    report = made(run={"provider": {"id": "claude", "version": "2.1.0", "model": "opus"}})
    assert text(report).splitlines()[0] == "provider claude opus 2.1.0"


def test_no_text_of_an_agent_reaches_the_terminal_raw() -> None:
    report = poisoned_report((ANSI, CONTROLS))
    lines = list(closing_lines(report, {}))
    assert lines
    assert all(line.text.isprintable() for line in lines)
    assert any("\\x1b[2J" in line.text for line in lines)
