"""Codex, headless: `codex exec --json` with a config file of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pytest_skilleval.casespec import Kind
from pytest_skilleval.model import Case

from .base import Ask, Launch
from .cli import AgentCli
from .closing import Found
from .codexstream import Reader, Rollout
from .draft import Draft
from .program import program_folders
from .stream import Stream

__all__ = ["Codex"]

_CONFIG = """\
check_for_update_on_startup = false
# A login shell resets PATH: the programs of the case would vanish.
allow_login_shell = false
web_search = "disabled"
{top}
[shell_environment_policy]
# Names with KEY, TOKEN or SECRET are hidden from the agent's commands.
inherit = "all"
ignore_default_excludes = false
{set}
[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false
apps = false
shell_snapshot = false
goals = false
[agents]
enabled = false
[skills.bundled]
enabled = false
{provider}"""

_PROVIDER = """\
[model_providers.skilleval]
name = "gateway"
base_url = {url}
wire_api = "responses"
env_key = "CODEX_API_KEY"
request_max_retries = 2
stream_max_retries = 2
"""


class Codex(AgentCli):
    """Codex CLI."""

    id = "codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    tested = ("0.171.0",)
    keys = ("CODEX_API_KEY",)
    elsewhere: ClassVar[tuple[Path, ...]] = (Path("/etc/codex"),)

    def credentials(self) -> Mapping[str, str]:
        """Return CODEX_API_KEY: OPENAI_API_KEY stands in for it, since codex itself does not send that one."""
        found = dict(super().credentials())
        stand_in = self.settings.environ.get("OPENAI_API_KEY")
        if not found.get("CODEX_API_KEY") and stand_in and self.options.login_file is None:
            found["CODEX_API_KEY"] = stand_in
        return found

    def skill_root(self, home: Path) -> Path:
        """Return `.codex/skills`: only codex itself looks there."""
        return home / ".codex" / "skills"

    def objection(self, case: Case) -> str | None:
        """Object to prompts that name a skill as `$name`: codex loads it before the model is asked."""
        if case.skill is None or not re.search(rf"\$\{{?{re.escape(case.skill)}\b", case.spec.prompt):
            return None
        return (
            f"{case.path}:{case.line}: prompt holds ${case.skill}, which makes codex load that skill by itself; "
            "write the name without $"
        )

    def prepare(self, ask: Ask) -> Launch:
        """Write prompt and configuration, and return the command."""
        self.refuse(ask)
        program = self.found()
        prompt = ask.scratch / "prompt.txt"
        prompt.write_text(ask.prompt, encoding="utf-8")
        config = ask.home / ".codex"
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(self._config(ask), encoding="utf-8")
        secrets = self.copy_login(config / "auth.json")
        flags = ["exec", "--json", "--color", "never", "--skip-git-repo-check"]
        if ask.kind is Kind.PLAN and not ask.sandboxed:
            # Its own sandbox needs user namespaces, which ours does not hand on: inside ours, ours is the wall.
            flags += ["--sandbox", "read-only"]
        else:
            flags += ["--dangerously-bypass-approvals-and-sandbox"]
        if self.settings.model is not None:
            flags += ["-m", self.settings.model]
        return Launch(
            argv=(str(program), *flags, *self.options.args, "-"),
            env={"CODEX_HOME": str(config), **self.credentials(), **self.further_env()},
            stdin=prompt,
            secrets=(*self.credentials().values(), *secrets),
            result_markers=(b'"type":"turn.completed"',),
            reads=program_folders(program, self.path),
        )

    def _config(self, ask: Ask) -> str:
        top = []
        if self.settings.effort is not None:
            top.append(f"model_reasoning_effort = {_toml(self.settings.effort)}")
        if ask.system:
            top.append(f"developer_instructions = {_toml(ask.system)}")
        if self.options.base_url is not None:
            top.append('model_provider = "skilleval"')
        # What the case itself sets is no secret of the user's, whatever its name.
        pairs = ", ".join(f"{_toml(name)} = {_toml(value)}" for name, value in ask.case.spec.workspace.env.items())
        return _CONFIG.format(
            top="\n".join(top),
            set=f"set = {{ {pairs} }}" if pairs else "",
            provider=_PROVIDER.format(url=_toml(self.options.base_url)) if self.options.base_url is not None else "",
        )

    # ------------------------------------------------------------------------------------------------ the stream

    def follow(self, ask: Ask, stream: Stream, draft: Draft) -> Found:
        """Fill the draft from the stream and return how it ended."""
        reader = Reader(ask, draft)
        for event in stream:
            reader.read(event)
        return reader.ended()

    def complete(self, ask: Ask, draft: Draft) -> None:
        """Add what only the session file knows: model, version, the listed skills, commands that the stream lost."""
        for path in sorted((ask.home / ".codex" / "sessions").glob("*/*/*/rollout-*.jsonl")):
            rollout = Rollout(ask, draft)
            for event in Stream(path):
                rollout.read(event)
            rollout.ended()


def _toml(text: str) -> str:
    """Return a TOML string: JSON's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
