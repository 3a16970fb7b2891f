"""Claude Code, headless: `claude -p` with a stream of JSON lines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from pytest_skilleval.casespec import Kind
from pytest_skilleval.model import Case

from .base import Ask, Launch
from .claudestream import Reader
from .cli import AgentCli
from .closing import Found
from .draft import Draft
from .program import program_folders
from .stream import Stream, at, integer, items, read_object

__all__ = ["Claude"]

PLAN_TURNS = 4
"""Turns in the prompt lane, where the case sets no budget: load a skill, read what it names, answer."""

_QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    # Else a sub-agent goes on after the first result, and there are two.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # Its default of 10 takes three minutes, even for a wrong key; the long retry is ours.
    "CLAUDE_CODE_MAX_RETRIES": "2",
}
_BUNDLED = frozenset({"plugin-authoring", "doctor"})
"""Skills of Claude Code's own that stay listed when its bundled ones are off."""


class Claude(AgentCli):
    """Claude Code."""

    id = "claude"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    tells_cost = True
    tested = ("2.1.197", "2.1.332")
    keys = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    elsewhere: ClassVar[tuple[Path, ...]] = (
        Path("/etc/claude-code"),
        Path("/Library/Application Support/ClaudeCode"),
    )

    def skill_root(self, home: Path) -> Path:
        """Return `.claude/skills`: with `--setting-sources user` the only place that is searched."""
        return home / ".claude" / "skills"

    def objection(self, case: Case) -> str | None:
        """Object to prompts that are commands of its own: they load a skill, or never reach the model."""
        if not case.spec.prompt.lstrip().startswith("/"):
            return None
        return (
            f"{case.path}:{case.line}: prompt starts with '/', which claude takes as its own command; put a word first"
        )

    def prepare(self, ask: Ask) -> Launch:
        """Write prompt and system text, and return the command."""
        self.refuse(ask)
        program = self.found()
        prompt = ask.scratch / "prompt.txt"
        prompt.write_text(ask.prompt, encoding="utf-8")
        config = ask.home / ".claude"
        config.mkdir(parents=True, exist_ok=True)
        secrets = self.copy_login(config / ".credentials.json")
        return Launch(
            argv=(str(program), *self._flags(ask), *self.options.args),
            env=self._env(config),
            stdin=prompt,
            secrets=(*self.credentials().values(), *secrets),
            result_markers=(b'"type":"result"',),
            reads=program_folders(program, self.path),
        )

    def _flags(self, ask: Ask) -> list[str]:
        budget, settings = ask.budget, self.settings
        flags = ["-p", "--output-format", "stream-json", "--verbose", "--setting-sources", "user"]
        flags += ["--strict-mcp-config", "--dangerously-skip-permissions"]
        if settings.model is not None:
            flags += ["--model", settings.model]
        if settings.effort is not None:
            flags += ["--effort", settings.effort]
        if ask.kind is Kind.PLAN:
            flags += ["--tools", "Skill,Read", "--max-turns", str(budget.steps or PLAN_TURNS)]
        elif budget.steps is not None:
            flags += ["--max-turns", str(budget.steps)]
        if budget.cost_usd is not None:
            flags += ["--max-budget-usd", f"{budget.cost_usd:g}"]
        if ask.system:
            system = ask.scratch / "system.txt"
            system.write_text(ask.system, encoding="utf-8")
            flags += ["--append-system-prompt-file", str(system)]
        return flags

    def _env(self, config: Path) -> dict[str, str]:
        env = {"CLAUDE_CONFIG_DIR": str(config), **_QUIET, **self.credentials()}
        if (url := self.options.base_url or self.settings.environ.get("ANTHROPIC_BASE_URL")) is not None:
            env["ANTHROPIC_BASE_URL"] = url
        if os.getuid() == 0:
            env["IS_SANDBOX"] = "1"  # else it refuses to skip permissions for root
        return env | self.further_env()

    # ------------------------------------------------------------------------------------------------ the stream

    def follow(self, ask: Ask, stream: Stream, draft: Draft) -> Found:
        """Fill the draft from the stream and return how it ended."""
        reader = Reader(ask, draft)
        for event in stream:
            reader.read(event)
        return reader.ended()

    def complete(self, ask: Ask, draft: Draft) -> None:
        """Add the listing and the loads that only the session's own files show."""
        config = ask.home / ".claude"
        names = {name for path in config.glob("projects/*/*.jsonl") for name in _listed(path)}
        if names:
            draft.visible = tuple(sorted(names))
        installed = {skill.name for skill in ask.skills}
        if draft.visible is not None:
            draft.visible = tuple(name for name in draft.visible if name in installed or name not in _BUNDLED)
        counted = at(read_object(config / ".claude.json"), "skillUsage")
        for name in counted if isinstance(counted, dict) else ():
            if integer(at(counted, name, "usageCount")) and all(use.name != name for use in draft.uses):
                draft.use(name, "tool", None, f".claude.json skillUsage counts {name}")


def _listed(path: Path) -> list[str]:
    """Return the names in the skill listings that a session file says were sent."""
    names: list[str] = []
    for event in Stream(path):
        if at(event, "attachment", "type") == "skill_listing":
            names += [name for name in items(at(event, "attachment", "names")) if isinstance(name, str)]
    return names
