"""What every provider must keep to, as tests: a plugin that brings a provider runs them over its own.

class TestMine(ProviderContract):
def provider(self, settings):
return Mine(settings)
"""

# ruff: noqa: S101 - these are tests

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from pytest_skilleval.casespec import CaseSpec, Lane
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.model import CONDITIONS, Case, Skill, TrialId

from .base import Answer, Ask, ProcessOutput, Provider, ProviderSettings

__all__ = ["ProviderContract", "make_ask"]

ARGUMENT_BYTES = 131_071
"""The longest single argument that Linux takes."""


def make_ask(folder: Path, *, condition: str = "self-load", lane: Lane = Lane.EXECUTION, **spec: object) -> Ask:
    """Return a question with folders of its own below `folder`.

    Args:
        folder: An empty folder.
        condition: A built-in condition.
        lane: The case's lane.
        spec: Keys of the case file.
    """
    case = Case(
        lane=lane,
        id="greet",
        spec=CaseSpec.model_validate({"prompt": "Write hello into out.txt.", "skill": "greeter", **spec}),
        path=folder / "cases" / "greet.yaml",
        line=1,
    )
    places = {name: folder / name for name in ("home", "workspace", "tmp", "scratch", "cases")}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    chosen = CONDITIONS[condition]
    skill = Skill(
        name="greeter",
        description="Writes greetings.",
        path=places["cases"] / "greeter",
        digest="0" * 64,
        body="# Greeter\n\nWrite the greeting with printf.\n",
        files=("SKILL.md",),
    )
    return Ask(
        id=TrialId(lane, case.id, condition, 1),
        case=case,
        kind=lane.kind,
        condition=chosen,
        prompt=case.spec.prompt,
        system=skill.body if chosen.preloads else "",
        skills=(skill,) if chosen.installs != "nothing" else (),
        under_test=None if condition == "none" else skill,
        home=places["home"],
        workspace=places["workspace"],
        tmp=places["tmp"],
        scratch=places["scratch"],
        env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(places["home"]), "TMPDIR": str(places["tmp"])},
        budget=case.spec.budget,
    )


class ProviderContract:
    """The promises of a provider. Subclasses say how to make one, and what it needs of the environment."""

    environ: ClassVar[Mapping[str, str]] = {}
    """Variables without which the provider cannot be asked, such as a key."""
    lane: ClassVar[Lane] = Lane.EXECUTION
    """A lane that the provider serves."""

    def provider(self, settings: ProviderSettings) -> Provider:
        """Make the provider under test."""
        raise NotImplementedError

    @pytest.fixture
    def canary(self) -> str:
        """A value in the user's environment that no agent may see."""
        return secrets.token_hex(16)

    @pytest.fixture
    def made(self, canary: str, tmp_path: Path) -> Provider:
        """The provider, in a session whose environment holds the canary."""
        environ = {"PATH": os.environ.get("PATH", os.defpath), **self.environ, "CANARY": canary}
        return self.provider(ProviderSettings(environ=environ, rootpath=tmp_path))

    @pytest.fixture(params=["none", "self-load", "preloaded", "stale"])
    def question(self, request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
        """A question in each condition."""
        return make_ask(tmp_path / "trial", condition=str(request.param), lane=self.lane)

    def test_it_is_a_provider_with_a_name(self, made: Provider) -> None:
        """It has all that the protocol names."""
        assert isinstance(made, Provider)
        assert made.id
        assert isinstance(made.simulated, bool)
        assert isinstance(made.paid, bool)
        assert not (made.simulated and made.paid)

    def test_its_credentials_are_variables_of_the_user(self, made: Provider) -> None:
        """A key that nobody set cannot be passed on."""
        assert set(made.credentials().values()) <= set(self.environ.values())

    def test_skills_are_discovered_inside_the_home(self, made: Provider, question: Ask) -> None:
        """A folder outside the home would be shared by all trials."""
        root = made.skill_root(question.home)
        assert root is None or (root.is_relative_to(question.home) and root != question.home)

    def test_what_it_prepares_passes_no_secret_on_the_command_line(self, made: Provider, question: Ask) -> None:
        """Every user of the machine can read a command line."""
        launch = made.prepare(question)
        for secret in made.credentials().values():
            assert launch is None or not any(secret in part for part in launch.argv)
            assert launch is None or secret in launch.secrets

    def test_what_it_prepares_passes_nothing_else_of_the_users_environment(
        self, made: Provider, question: Ask, canary: str
    ) -> None:
        """The environment is an allow-list."""
        launch = made.prepare(question)
        assert launch is None or canary not in (*launch.argv, *launch.env.values())

    def test_preparing_leaves_the_workspace_as_it_is(self, made: Provider, question: Ask) -> None:
        """What lies in the workspace is the case's and the agent's."""
        made.prepare(question)
        assert list(question.workspace.iterdir()) == []

    def test_a_long_prompt_can_be_asked(self, made: Provider, tmp_path: Path) -> None:
        """One argument holds no more than 128 KiB."""
        question = make_ask(tmp_path / "long", lane=self.lane, prompt="word " * 40_000)
        launch = made.prepare(question)
        assert launch is None or all(len(os.fsencode(part)) <= ARGUMENT_BYTES for part in launch.argv)

    @pytest.mark.parametrize(
        ("reason", "expected"),
        [
            ("timeout", ErrorClass.TIMEOUT),
            ("quota", ErrorClass.DISK),
            ("spawn_failed", ErrorClass.SPAWN),
            ("cancelled", ErrorClass.NO_RESULT),
            ("exited", ErrorClass.NO_RESULT),
        ],
    )
    def test_an_agent_that_was_stopped_without_a_word_has_not_finished(
        self, made: Provider, question: Ask, reason: str, expected: ErrorClass
    ) -> None:
        """No terminal event, no result: exit status None is a signal."""
        answer = self._read(made, question, b"", None, reason)
        if answer is not None:
            assert answer.error is not None
            assert answer.error.error_class is expected
            assert not answer.transcript.finished
            assert answer.transcript.final_text == ""

    @pytest.mark.parametrize(
        "stream",
        [
            b"",
            b"\x00\xff\xfe\x80",
            b"{}\n[]\nnull\n1\n",
            b'{"type": ' * 5000,
            b"[" * 200_000,
            b'{"type":"result"}\n{"type":"assistant","message":7}\n{"type":"item.completed","item":[1]}\n',
            b'{"type":"turn.completed","usage":"x"}\n{"type":"result","modelUsage":[1],"is_error":"no"}\n',
            b'{"type":"text","part":{"text":"\\ud800"}}\n{"a":NaN}\n{"a":1e999}\n',
        ],
        ids=["nothing", "bytes", "no events", "open", "deep", "wrong types", "wrong numbers", "half characters"],
    )
    def test_a_stream_that_makes_no_sense_ends_no_trial_with_an_exception(
        self, made: Provider, question: Ask, stream: bytes
    ) -> None:
        """Whatever an agent prints, there is an answer; the same bytes give the same one."""
        first = self._read(made, question, stream, 0, "exited")
        assert first == self._read(made, question, stream, 0, "exited")

    def _read(self, made: Provider, ask: Ask, stdout: bytes, status: int | None, reason: str) -> Answer | None:
        """Read a stream; None where the provider runs no command, or refuses to be asked like that."""
        if made.prepare(ask) is None:
            return None
        for name, data in (("stdout", stdout), ("stderr", b"")):
            (ask.scratch / name).write_bytes(data)
        return made.read(ask, ProcessOutput(ask.scratch / "stdout", ask.scratch / "stderr", status, reason))
