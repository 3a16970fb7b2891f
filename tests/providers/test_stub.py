"""Simulated agents: what they draw, run and claim."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import ErrorClass, UserMistake
from pytest_skilleval.providers import make_provider
from pytest_skilleval.providers.base import ProcessOutput, Provider, ProviderSettings
from pytest_skilleval.providers.script import commands_in
from pytest_skilleval.providers.stub import Noop, Oracle, Stub

SOLUTION = "#!/bin/sh\n# writes it\nmkdir -p d\ncat > out.txt <<EOF\nhello\n# kept\nEOF\necho a \\\n  b > d/b.txt\n"


def solution(ask, text=SOLUTION, name="solution.sh"):
    folder = ask().case.folder
    (folder / name).write_text(text)
    return name


def test_the_oracle_runs_the_solution_in_the_workspace_and_answers(ask, run):
    question = ask(solution=solution(ask), answer="done")
    oracle = Oracle(ProviderSettings())
    launch = oracle.prepare(question)
    assert launch is not None
    answer = oracle.read(question, run(question, launch))
    assert (question.workspace / "out.txt").read_text() == "hello\n# kept\n"
    assert answer.error is None
    assert answer.transcript.finished
    assert answer.transcript.final_text == "done"


def test_a_solution_that_ended_well_is_reported_as_the_commands_it_consists_of(ask, run):
    question = ask(solution=solution(ask))
    oracle = Oracle(ProviderSettings())
    calls = oracle.read(question, run(question, oracle.prepare(question))).transcript.tool_calls
    assert [call.command for call in calls] == [
        "mkdir -p d",
        "cat > out.txt <<EOF\nhello\n# kept\nEOF",
        "echo a \\\n  b > d/b.txt",
    ]


def test_a_solution_that_fails_is_the_agents_failure_and_claims_no_command(ask, run):
    question = ask(solution=solution(ask, "echo x > out.txt\nexit 3\n"), answer="done")
    oracle = Oracle(ProviderSettings())
    answer = oracle.read(question, run(question, oracle.prepare(question)))
    assert answer.error is None
    assert answer.transcript.finished
    assert answer.transcript.tool_calls == ()
    assert answer.transcript.final_text == "solution.sh ended with exit status 3"


def test_a_python_solution_is_run_by_this_python(ask, run):
    name = solution(ask, "import sys\nopen('v', 'w').write(sys.version)\n", "solution.py")
    question = ask(solution=name)
    oracle = Oracle(ProviderSettings())
    run(question, oracle.prepare(question))
    import sys

    assert (question.workspace / "v").read_text() == sys.version


def test_a_missing_solution_is_a_user_mistake_that_names_it(ask):
    with pytest.raises(UserMistake, match=r"gone\.sh is not a file"):
        Oracle(ProviderSettings()).prepare(ask(solution="gone.sh"))


def test_the_noop_runs_nothing_and_finishes(ask):
    question = ask(solution=solution(ask), answer="done")
    noop = Noop(ProviderSettings())
    assert noop.prepare(question) is None
    answer = noop.read(question, None)
    assert answer.error is None
    assert (answer.transcript.finished, answer.transcript.final_text) == (True, "")


@pytest.mark.parametrize("seed", [0, 7])
def test_the_stub_succeeds_exactly_when_its_published_draw_says_so(ask, seed):
    stub = Stub(ProviderSettings(seed=seed))
    for trial in range(1, 31):
        question = ask(trial=trial, answer="yes", stub={"solve_rate": {"self-load": 0.4}, "failure_answer": "no"})
        drawn = random.Random(f"{seed}:execution:greet:self-load:{trial}").random() < 0.4
        assert stub.read(question, None).transcript.final_text == ("yes" if drawn else "no")


def test_a_rate_of_one_always_succeeds_and_a_rate_of_zero_never_does(ask):
    stub = Stub(ProviderSettings())
    for rate, text in ((1.0, "yes"), (0.0, "no")):
        answers = {
            stub.read(ask(trial=n, answer="yes", stub={"solve_rate": rate, "failure_answer": "no"}), None)
            .transcript.final_text
            for n in range(1, 20)
        }  # fmt: skip
        assert answers == {text}


def test_a_stub_that_fails_runs_its_failure_script(ask, run):
    question = ask(
        solution=solution(ask), stub={"solve_rate": 0.0, "failure": solution(ask, "echo bad > out.txt\n", "bad.sh")}
    )
    stub = Stub(ProviderSettings())
    run(question, stub.prepare(question))
    assert (question.workspace / "out.txt").read_text() == "bad\n"


def test_a_stub_sleeps_before_its_solution_in_the_same_process(ask, run):
    question = ask(solution=solution(ask), stub={"solve_rate": 1.0, "sleep": 0.01})
    stub = Stub(ProviderSettings())
    launch = stub.prepare(question)
    assert launch.argv[:3] == ("sh", "-c", 'sleep "$1" && shift && exec "$@"')
    answer = stub.read(question, run(question, launch))
    assert (question.workspace / "out.txt").exists()
    assert len(answer.transcript.tool_calls) == 3


def test_a_stub_claims_the_tokens_that_its_case_says_and_else_none(ask):
    stub = Stub(ProviderSettings())
    assert stub.read(ask(stub={"tokens": 120}), None).transcript.tokens.output == 120
    assert stub.read(ask(), None).transcript.tokens is None


@pytest.mark.parametrize(
    ("condition", "skill", "rate", "used"),
    [
        ("self-load", "greeter", 1.0, ["greeter"]),
        ("self-load", "greeter", 0.0, []),
        ("none", "greeter", 1.0, []),
        ("preloaded", "greeter", 1.0, []),
        ("self-load", "none", 1.0, []),
        ("none", "none", 0.0, []),
    ],
)
def test_a_stub_uses_a_skill_where_one_is_installed_and_the_case_and_the_draw_say_so(ask, condition, skill, rate, used):
    stub = Stub(ProviderSettings())
    question = ask(condition, lane=Lane.PROMPT, skill=skill, stub={"solve_rate": rate})
    assert [use.name for use in stub.read(question, None).transcript.skills_used] == used


def test_a_stub_that_fails_a_case_for_no_skill_uses_one_of_the_installed_skills(ask):
    stub = Stub(ProviderSettings())
    names = {
        use.name
        for n in range(1, 40)
        for use in stub.read(ask(trial=n, skill="none", stub={"solve_rate": 0.0}), None).transcript.skills_used
    }
    assert names == {"greeter", "other"}


@pytest.mark.parametrize(
    ("reason", "status", "expected"),
    [
        ("timeout", None, ErrorClass.TIMEOUT),
        ("quota", None, ErrorClass.DISK),
        ("spawn_failed", None, ErrorClass.SPAWN),
        ("cancelled", None, ErrorClass.NO_RESULT),
        ("exited", None, ErrorClass.NO_RESULT),
    ],
)
def test_a_simulated_agent_that_was_stopped_has_not_finished(ask, reason, status, expected):
    question = ask(solution=solution(ask), answer="done")
    empty = question.scratch / "empty"
    empty.write_bytes(b"")
    answer = Oracle(ProviderSettings()).read(question, ProcessOutput(empty, empty, status, reason))
    assert answer.error.error_class is expected
    assert (answer.transcript.finished, answer.transcript.final_text) == (False, "")


def test_a_shell_scripts_comments_and_blank_lines_are_no_commands():
    assert commands_in("#!/bin/sh\n\n  # x\ntrue\n\nfalse # y\n") == ("true", "false # y")


def test_an_unclosed_here_document_reaches_to_the_end():
    assert commands_in("cat <<'END' > a\n1\n2\n") == ("cat <<'END' > a\n1\n2",)


def test_an_unknown_provider_is_a_mistake_that_names_the_nearest_and_all():
    with pytest.raises(UserMistake, match=r"'stbu' is not known\. Did you mean 'stub'\? Known: .*noop.*oracle"):
        make_provider("stbu", ProviderSettings(), {})


def test_a_provider_from_outside_wins_over_a_built_in_one():
    made = make_provider("stub", ProviderSettings(), {"stub": Noop})
    assert isinstance(made, Noop)


@pytest.mark.parametrize("name", ["stub", "oracle", "noop"])
def test_simulated_providers_say_so_and_cost_nothing(name):
    provider = make_provider(name, ProviderSettings(), {})
    assert isinstance(provider, Provider)
    assert (provider.id, provider.simulated, provider.paid) == (name, True, False)
    assert provider.detect().info.simulated
    assert provider.skill_root(Path("/h")) == Path("/h/.agents/skills")
