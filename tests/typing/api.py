"""What the package promises to type checkers; read by them, never run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_skilleval import (
    Answer,
    Ask,
    Detected,
    Home,
    Launch,
    ProcessOutput,
    Provider,
    Report,
    Run,
    Trial,
    TrialRecord,
)
from pytest_skilleval.records import ProviderInfo, Transcript


def a_case(skilleval: Trial) -> None:
    run: Run = skilleval.run("Do it.", files={"a.txt": "x"}, timeout=5)
    used: bool = run.used_skill("eval-guide")
    text: str = run.final_text
    place: Path = run.workspace / text
    skilleval.score("brevity", float(used) if place.exists() else 0.5)
    condition: str = skilleval.condition.name
    trial: int = skilleval.trial
    print(condition, trial, skilleval.home, skilleval.workspace)


def a_test(skilleval_home: Home, skilleval_workspace: Path) -> Mapping[str, str]:
    return skilleval_home.env if skilleval_workspace.is_dir() else {}


class MyAgent:
    id = "my-agent"
    simulated = False
    paid = True

    def detect(self) -> Detected:
        return Detected(ProviderInfo(id=self.id))

    def credentials(self) -> Mapping[str, str]:
        return {}

    def skill_root(self, home: Path) -> Path | None:
        return home / ".agents" / "skills"

    def prepare(self, ask: Ask) -> Launch | None:
        return Launch(("my-agent", ask.prompt))

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:
        return Answer(Transcript(finished=output is not None))


provider: Provider = MyAgent()


def after(report: Report, record: TrialRecord) -> str:
    return f"{report.run.id} {record.id.key} {record.outcome.value}"
