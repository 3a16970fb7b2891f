"""Runs for the commands to work on: two made by pytest for all tests, and any number made by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_skilleval import store, verdicts
from pytest_skilleval.cli import main
from pytest_skilleval.commands.place import Place
from pytest_skilleval.commands.reference import settings_of
from pytest_skilleval.journal import Journal, write_plan
from pytest_skilleval.model import TrialId
from pytest_skilleval.records import (
    FileRef,
    Intent,
    Judging,
    Outcome,
    Plan,
    PlannedTrial,
    ProviderInfo,
    Score,
    SkillDigest,
    TrialRecord,
    TrialTiming,
)
from pytest_skilleval.reports.render import as_json

STARTED = 1_780_000_000.0
"""2026-05-28T20:26:40Z, counted by `date -u -d @1780000000`."""
_WORDS = {"p": Outcome.PASSED, "f": Outcome.FAILED, "e": Outcome.ERROR}


class Said(NamedTuple):
    """What a command said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        value: dict[str, Any] = json.loads(self.out)
        return value


class Shell:
    """`skilleval` in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys
        self.output = folder / ".skilleval/runs"

    def __call__(self, *words: str) -> Said:
        self.capsys.readouterr()
        status = main(words)
        said = self.capsys.readouterr()
        return Said(status, said.out, said.err)

    def run(
        self,
        name: str,
        results: Mapping[str, str],
        *,
        seed: int = 0,
        provider: str = "stub",
        model: str | None = None,
        skill: str = "a" * 64,
        fingerprint: str = "f" * 16,
        cost: float | None = None,
        **judging: Any,
    ) -> Path:
        """Write a run's plan and journal by hand.

        Args:
            name: Its id.
            results: `case:condition` (or `lane:case:condition`) to one letter a trial: passed, failed, error, `.` started
                and never ended, `-` never started.
            seed: Of the run.
            provider: Who answered.
            model: Its model.
            skill: Digest of the skill that agents could see, but under `none`.
            fingerprint: Of each case.
            cost: Of each trial.
            judging: Gate, most errors and baseline.
        """
        folder = self.output / name
        (folder / "trials").mkdir(parents=True)
        info = ProviderInfo(id=provider, model=model, version="1", simulated=provider in ("stub", "oracle", "noop"))
        trials, journal = [], Journal(folder, name)
        for group, letters in results.items():
            lane, case, condition = group.split(":") if group.count(":") == 2 else ("execution", *group.split(":"))
            digest = None if condition == "none" else skill
            for number, letter in enumerate(letters, start=1):
                key = TrialId(lane, case, condition, number)
                trials.append(
                    PlannedTrial(
                        **key._asdict(),
                        nodeid=f"{case}.yaml::{case}::{condition}-{number}",
                        control=condition == "none",
                        skill="greeter",
                        fingerprint=fingerprint,
                        skill_digest=digest,
                    )
                )
                if letter == "-":
                    continue
                self._write(journal, key, letter, provider=info, fingerprint=fingerprint, skill=digest, cost=cost)
        plan = Plan(
            run=name,
            token="t",
            started="2026-05-28T20:26:40Z",
            provider=info,
            seed=seed,
            judging=Judging(**judging),
            trials_each=max(map(len, results.values()), default=1),
            trials=tuple(trials),
            skills=(SkillDigest(name="greeter", digest=skill),),
        )
        write_plan(folder, plan)
        return folder

    def _write(self, journal: Journal, key: TrialId, letter: str, **facts: Any) -> None:
        folder = journal.write_intent(
            Intent(
                run=journal.run,
                **key._asdict(),
                fingerprint=facts["fingerprint"],
                started=STARTED,
                worker="main",
                pid=1,
            )
        )
        if letter == ".":
            return
        text = f"what the agent did in {key.key}"
        (folder / "transcript.jsonl").write_text(text)
        outcome = _WORDS[letter]
        journal.write_record(
            TrialRecord(
                run=journal.run,
                **key._asdict(),
                outcome=outcome,
                provider=facts["provider"],
                fingerprint=facts["fingerprint"],
                skill="greeter",
                control=key.condition == "none",
                exposure={"digest": facts["skill"]},
                cost_usd=facts["cost"],
                score=None if outcome is Outcome.ERROR else Score(total=float(outcome is Outcome.PASSED)),
                error={"class": "network", "message": "gone"} if outcome is Outcome.ERROR else None,
                transcript=FileRef(path=f"trials/{key.folder}/transcript.jsonl", bytes=len(text), digest="d" * 64),
                timing=TrialTiming(started=STARTED, duration_s=float(key.trial)),
            )
        )

    def judged(self, name: str, results: Mapping[str, str], **more: Any) -> Path:
        """Write a run by hand, and the report.json that pytest would have written."""
        folder = self.run(name, results, **more)
        gathered = store.gather(folder)
        settings = settings_of(gathered.plan, Place(self.folder, self.output))
        report = verdicts.judge(gathered.plan, gathered.entries, settings, finished="2026-05-28T21:00:00Z")
        (folder / "report.json").write_text(as_json(report))
        return folder


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """`skilleval` in an empty project."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    # Whether a file would survive a power cut is the journal's own question; asking the disk takes most of the time here.
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    return Shell(tmp_path, capsys)


@pytest.fixture(scope="session")
def stub_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which pytest has made two runs: the second with another seed, compared with the first."""
    folder = tmp_path_factory.mktemp("project")
    write_project(folder)
    for args in ((), ("--skilleval-seed=1", "--compare-baseline=latest", "--skilleval-threshold=pass_rate=0.2")):
        done = run_pytest(
            folder, "--trials=3", "--skilleval-report=json", "--skilleval-report=md", "--skilleval-report=html", *args
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
    return folder


@pytest.fixture
def a_session() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run pytest in a folder, in a process of its own."""
    return run_pytest


def write_project(folder: Path) -> None:
    """Write a skill and two cases."""
    for path, text in {
        "pytest.ini": "[pytest]\n",
        "skills/greeter/SKILL.md": "---\nname: greeter\ndescription: Greets people by name.\n---\n\nSay hello.\n",
        "cases/execution/hello.sh": "echo hello > out.txt\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for case in ("first", "second"):
        spec = {
            "skill": "greeter",
            "prompt": "Write hello into out.txt.",
            "conditions": ["none", "self-load"],
            "checks": [{"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}],
            "solution": "hello.sh",
            "stub": {"solve_rate": {"none": 0.3, "self-load": 0.7}},
        }
        (folder / f"cases/execution/{case}.yaml").write_text(json.dumps(spec))


def run_pytest(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, with a temp directory of its own."""
    temp = folder / "temp"
    temp.mkdir(exist_ok=True)
    dropped = ("PYTEST_XDIST_", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "COV_CORE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-q", *args],
        cwd=folder,
        env=environment | {"TMPDIR": str(temp)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
