"""Finished trials made by hand."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_skilleval.casespec import CaseSpec, Lane
from pytest_skilleval.model import CONDITIONS, Case
from pytest_skilleval.records import SkillUse, ToolCall, Transcript
from pytest_skilleval.scoring.facts import CommandResult, Facts

MakeFacts = Callable[..., Facts]


def ran(command: str, **fields: Any) -> ToolCall:
    return ToolCall(name=fields.pop("name", "Bash"), command=command, status=fields.pop("status", "ok"), **fields)


def loaded(name: str, how: str = "tool") -> SkillUse:
    return SkillUse(name=name, how=how, position=0, evidence=f"Skill({name})")  # type: ignore[arg-type]


@pytest.fixture
def make_facts(tmp_path: Path) -> MakeFacts:
    """Build the facts of a trial: the case's keys as a file says them, and what the agent did and left."""
    workspace = tmp_path / "work"
    folder = tmp_path / "cases"
    workspace.mkdir()
    folder.mkdir()

    def run_command(argv: Sequence[str], timeout: float) -> CommandResult:
        try:
            done = subprocess.run(argv, cwd=workspace, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return CommandResult(None, timed_out=True)
        except OSError as problem:
            return CommandResult(None, stderr=str(problem))
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def build(
        lane: str = "execution",
        condition: str = "self-load",
        *,
        answer: str = "",
        calls: Sequence[ToolCall] = (),
        used: Sequence[SkillUse] = (),
        finished: bool = True,
        files: dict[str, str | bytes] | None = None,
        before: dict[str, str] | None = None,
        digests: dict[str, str] | None = None,
        error: Any = None,
        collected: Path | None = None,
        **spec: Any,
    ) -> Facts:
        for name, content in (files or {}).items():
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        case = Case(
            lane=Lane(lane),
            id="made-by-hand",
            spec=CaseSpec.model_validate({"prompt": "Do it.", "skill": "eval-guide", **spec}),
            path=folder / "made-by-hand.yaml",
            line=1,
            digests=digests or {},
        )
        return Facts(
            case=case,
            condition=CONDITIONS[condition],
            transcript=Transcript(
                final_text=answer, tool_calls=tuple(calls), skills_used=tuple(used), finished=finished
            ),
            workspace=workspace,
            run_command=run_command,
            python=sys.executable,
            error=error,
            before={name: hashlib.sha256(text.encode()).hexdigest() for name, text in (before or {}).items()},
            bundle=collected,
        )

    return build
