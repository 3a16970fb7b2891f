"""Fixtures of the provider tests: a question to ask, and a way to run what a provider prepares."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import skill_at

from pytest_skilleval.casespec import CaseSpec, Lane
from pytest_skilleval.model import CONDITIONS, Case, TrialId
from pytest_skilleval.providers.base import Ask, Launch, ProcessOutput

Asker = Callable[..., Ask]
Runner = Callable[..., ProcessOutput]


@pytest.fixture
def ask(tmp_path: Path) -> Asker:
    """A question with folders of its own; keywords of the case go into its spec."""

    def make(condition: str = "self-load", *, lane: Lane = Lane.EXECUTION, trial: int = 1, **spec: object) -> Ask:
        values = {"prompt": "Write hello into out.txt.", "skill": "greeter", **spec}
        case = Case(
            lane=lane,
            id="greet",
            spec=CaseSpec.model_validate(values),
            path=tmp_path / "cases" / "greet.yaml",
            line=1,
        )
        place = tmp_path / f"{condition}-{trial}"
        for name in ("home", "workspace", "tmp", "scratch"):
            (place / name).mkdir(parents=True, exist_ok=True)
        case.folder.mkdir(exist_ok=True)
        installs = CONDITIONS[condition].installs != "nothing"
        skill = skill_at(place / "installed", "greeter")
        other = skill_at(place / "installed", "other", "Do something else.")
        return Ask(
            id=TrialId(lane, "greet", condition, trial),
            case=case,
            kind=lane.kind,
            condition=CONDITIONS[condition],
            prompt=case.spec.prompt,
            system="",
            skills=(skill, other) if installs else (),
            under_test=skill if condition != "none" else None,
            home=place / "home",
            workspace=place / "workspace",
            tmp=place / "tmp",
            scratch=place / "scratch",
            env={"PATH": os.environ["PATH"], "HOME": str(place / "home"), "TMPDIR": str(place / "tmp")},
            budget=case.spec.budget,
        )

    return make


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Run what a provider prepared, the way a supervisor does: its own environment, no inherited stdin."""

    def start(ask: Ask, launch: Launch, timeout: float = 30.0) -> ProcessOutput:
        stdout, stderr = ask.scratch / "stdout", ask.scratch / "stderr"
        with (
            stdout.open("wb") as out,
            stderr.open("wb") as err,
            (launch.stdin or Path(os.devnull)).open("rb") as stdin,
        ):
            done = subprocess.run(
                launch.argv,
                cwd=ask.workspace,
                env={**ask.env, **launch.env},
                stdin=stdin,
                stdout=out,
                stderr=err,
                timeout=timeout,
                check=False,
            )
        return ProcessOutput(stdout, stderr, done.returncode if done.returncode >= 0 else None, "exited")

    return start
