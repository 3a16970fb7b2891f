"""Anti-patterns, and the sentences that advise against them."""

from __future__ import annotations

import pytest

from pytest_skilleval.casespec import AntiPattern, Lane
from pytest_skilleval.errors import TrialFault
from pytest_skilleval.records import Transcript
from pytest_skilleval.scoring.antipatterns import BUILT_IN, detect
from pytest_skilleval.scoring.workflow import Deeds

from .trials import ran


def said(answer: str) -> Deeds:
    return Deeds.of(Transcript(final_text=answer), Lane.PROMPT)


def did(command: str) -> Deeds:
    return Deeds.of(Transcript(tool_calls=(ran(command),)), Lane.EXECUTION)


GUILTY = [
    ("rerun-until-green", "Just rerun it until it is green."),
    ("rerun-until-green", "Keep running the suite until everything passes."),
    ("rerun-until-green", "If it is not green, retry until it passes."),
    ("rerun-until-green", "If it does not pass, rerun the eval until it's green."),
    ("rerun-until-green", "Do not hesitate to rerun it until it passes."),
    ("rerun-until-green", "Don't trust the first result but rerun it until it is green."),
    ("one-run-comparison", "Run each version once and compare the scores."),
    ("one-run-comparison", "Run it once with and without the skill."),
    ("one-run-comparison", "One run each is enough to see it."),
    ("one-run-comparison", "pytest --trials 1 --compare-baseline main"),
    ("mean-without-interval", "Simply compare the pass rates."),
    ("mean-without-interval", "The mean went up, so the skill helps."),
    ("dropped-errors", "Exclude the errored trials and take the rest."),
    ("dropped-errors", "Then drop all errors from the table."),
    ("dropped-errors", "Count the errors as failures."),
    ("best-seed", "Try a few seeds and pick the best one."),
    ("best-seed", "Report the best run."),
    ("best-seed", "Choose the best-scoring seed."),
    ("trials-until-significant", "Keep adding trials until the difference is significant."),
    ("loosened-check", "Remove the failing check so that the case passes."),
    ("edited-results", "Edit the report.json by hand."),
    ("hidden-failure", "pytest cases -n 4 || true"),
]


@pytest.mark.parametrize(("name", "sentence"), GUILTY)
def test_a_sentence_that_advises_a_habit_is_found(name: str, sentence: str) -> None:
    (hit,) = detect((name,), said(f"Here is my plan.\n{sentence}\nThat is all."))
    assert hit.id == name
    assert hit.severity == BUILT_IN[name].severity
    assert hit.line == sentence
    assert hit.fix


INNOCENT = [
    ("rerun-until-green", "Do not rerun it until it is green."),
    ("rerun-until-green", "Don\u2019t rerun the suite until it passes."),
    ("rerun-until-green", "Never rerun until green; it biases the rate."),
    ("rerun-until-green", "Avoid rerunning until it is green."),
    ("rerun-until-green", "Use --trials 5 instead of rerunning it until it passes."),
    ("rerun-until-green", "Rather than rerun until green, fix the number of trials."),
    ("rerun-until-green", "Rerunning until it is green is not a measurement."),
    ("rerun-until-green", "You should never, ever, drop errors or rerun it until it passes."),
    ("rerun-until-green", "## What not to do\n\n- run one trial\n- rerun until green"),
    ("rerun-until-green", "Avoid:\n1. rerun until it passes\n2. picking the best seed"),
    ("rerun-until-green", "Run it five times and read the interval."),
    ("rerun-until-green", "Run the agent until it has finished."),
    ("one-run-comparison", "One run each is not enough."),
    ("one-run-comparison", "Don't just run each version once and compare them."),
    ("mean-without-interval", "Do not just compare the means; read the interval."),
    ("mean-without-interval", "The mean went up from 0.4 to 0.6, and the interval holds 0, so nothing is shown yet."),
    ("dropped-errors", "Errors must stay: do not drop the errors."),
    ("dropped-errors", "Report errors beside the rate, without dropping the errored trials."),
    ("best-seed", "Never pick the best seed."),
    ("best-seed", "Picking the best seed is cheating."),
    ("loosened-check", "Don't remove the failing check to get it to pass."),
    ("sleep-instead-of-wait", "Do not add a sleep; wait for the file."),
    ("edited-results", "Never edit the results by hand."),
]


@pytest.mark.parametrize(("name", "text"), INNOCENT)
def test_a_sentence_that_advises_against_a_habit_is_not_a_hit(name: str, text: str) -> None:
    assert detect((name,), said(f"Here is my plan.\n{text}\n")) == ()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("rerun-until-green", "until pytest cases -q; do :; done"),
        ("rerun-until-green", "while ! python3 -m pytest; do true; done"),
        ("rerun-until-green", "pytest --reruns 5"),
        ("rerun-until-green", "pytest -q || pytest -q"),
        ("best-seed", "for seed in 1 2 3; do pytest --skilleval-seed $seed && break; done"),
        ("edited-results", "sed -i 's/failed/passed/' .skilleval/runs/x/report.json"),
        ("edited-results", "echo '{}' > trials/ab/record.json"),
        ("sleep-instead-of-wait", "make serve & sleep 10 && curl localhost"),
        ("sleep-instead-of-wait", "python -c 'import time; time.sleep(5)'"),
        ("unbounded-wait", "while true; do ls; done"),
        ("hidden-failure", "pytest cases || true"),
    ],
)
def test_a_command_that_is_a_habit_is_found(name: str, command: str) -> None:
    assert [hit.id for hit in detect((name,), did(command))] == [name]


@pytest.mark.parametrize(
    "command", ["pytest --trials 5 -n 4", "grep -r 'sleep' docs", "cat record.json", "pytest -q && echo ok"]
)
def test_an_ordinary_command_is_no_habit(command: str) -> None:
    assert detect(tuple(BUILT_IN), did(command)) == ()


def test_a_case_may_bring_its_own_with_severity_and_fix() -> None:
    own = AntiPattern(id="eyeballing", severity="error", patterns=("looks better",), fix="Read the interval")
    (hit,) = detect((own,), said("It looks better to me."))
    assert (hit.severity, hit.fix) == ("error", "Read the interval")
    assert "Read the interval" in hit.reason
    assert detect((own,), said("Do not say that it looks better.")) == ()


def test_one_habit_counts_once_however_often_it_is_named() -> None:
    assert len(detect(("best-seed",), said("Pick the best seed.\nPick the best run.\n"))) == 1


def test_an_unknown_name_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(TrialFault, match="no anti-pattern is called 'rerun'; built in are best-seed"):
        detect(("rerun",), said("x"))


def test_the_output_of_tools_and_what_was_only_read_is_no_habit() -> None:
    call = ran("cat SKILL.md", output="Never rerun until green. Rerun it until it is green.", reads_only=True)
    deeds = Deeds.of(Transcript(tool_calls=(call,)), Lane.EXECUTION)
    assert detect(tuple(BUILT_IN), deeds) == ()
