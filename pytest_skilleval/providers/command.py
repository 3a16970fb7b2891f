"""Any command line as a provider: declared in `[tool.skilleval.providers.NAME]`, asked for as `command:NAME`."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

from pytest_skilleval.casespec import Kind
from pytest_skilleval.errors import ErrorClass, OptionMistake, TrialFault, UserMistake
from pytest_skilleval.records import ProviderInfo

from .base import Answer, Ask, Detected, Launch, ProcessOutput, ProviderSettings
from .closing import Found, close
from .commandspec import CommandSpec, merged
from .commandstream import Reader
from .draft import Draft
from .presets import PRESETS
from .program import program_folders, read_options, version_of
from .stream import Stream, open_regular
from .templates import check, fill, fill_command, names_in

__all__ = ["Command"]

ARGUMENT_BYTES = 131_071
"""The longest single argument that Linux takes."""
TEXT_BYTES = 8 * 1024 * 1024
"""How much of a plain-text answer is read."""


class Command:
    """A declared agent.

    Args:
        name: Its name in pyproject.toml.
        settings: What the user chose.
    """

    simulated = False

    def __init__(self, name: str, settings: ProviderSettings) -> None:
        self.id = f"command:{name}"
        self.settings = settings
        self._where = f"tool.skilleval.providers.{name}"
        preset = settings.options.get("preset", name)
        if "preset" in settings.options and preset not in PRESETS:
            raise OptionMistake(f"{self._where}.preset: {preset!r}; allowed: {', '.join(sorted(PRESETS))}")
        base = dict(PRESETS.get(str(preset), {}))
        if "command" in settings.options:
            base.pop("plan_command", None)  # it belongs to the command that is replaced
        if not base and "command" not in settings.options:
            raise OptionMistake(
                f"--skilleval-provider={self.id}: [{self._where}] declares no `command`; write "
                f'command = ["PROGRAM", "--flag"], or take a preset: {", ".join(sorted(PRESETS))}'
            )
        self.spec = read_options(CommandSpec, name, merged(base, dict(settings.options)))
        self.paid = self.spec.paid
        usage = self.spec.parse.usage
        self.tells_cost = usage is not None and usage.cost is not None
        self._check()

    def _check(self) -> None:
        spec, passing = self.spec, (*self.spec.keys, *self.spec.pass_env)
        commands = [spec.command, *([spec.plan_command] if spec.plan_command is not None else [])]
        for command in commands:
            parts = [text for part in command for text in ((part,) if isinstance(part, str) else part)]
            for text in parts:
                check(f"{self._where}.command", text, passing)
            named = {name for text in parts for name in names_in(text)}
            if secret := sorted(name for name in named if name.startswith("env:")):
                raise OptionMistake(
                    f"{self._where}.command: {{{secret[0]}}}: every user of the machine can read a command line; "
                    "pass it through env or files"
                )
            wanted = {"arg": "prompt", "file": "prompt_file"}.get(spec.prompt_via)
            if wanted is not None and wanted not in named:
                raise OptionMistake(
                    f"{self._where}.command: prompt_via is {spec.prompt_via!r} and {{{wanted}}} is missing"
                )
        for key, texts in (("env", spec.env), ("files", spec.files)):
            for name, text in texts.items():
                check(f"{self._where}.{key}.{name}", text, passing)

    # ------------------------------------------------------------------------------------------- before a trial

    @property
    def _path(self) -> str:
        return self.settings.environ.get("PATH", os.defpath)

    def _program(self, name: str) -> Path:
        given = str(self.settings.rootpath / Path(name).expanduser()) if "/" in name else name
        found = shutil.which(given, path=self._path)
        if found is None:
            raise UserMistake(f"{self.id}: {name}: not found on PATH; install it, or correct {self._where}.command")
        return Path(found).absolute()

    def detect(self) -> Detected:
        """Find the program and ask for its version in a throw-away home.

        Raises:
            UserMistake: It is not there, or none of its keys is set.
        """
        command = fill_command(self.spec.command, {})
        program = self._program(command[0])
        given = self.spec.version_command or (command[0], "--version")
        with tempfile.TemporaryDirectory(prefix="skilleval-detect-") as home:
            try:
                version, said = version_of((str(self._program(given[0])), *given[1:]), self._path, Path(home))
            except OSError as error:
                raise UserMistake(f"{given[0]}: cannot be started: {error.strerror}") from None
        if self.spec.keys and not self.credentials():
            raise UserMistake(f"{self.id}: nothing logs it in; set one of {', '.join(self.spec.keys)}")
        missing = {name: why for name, why in self.spec.needs.items() if shutil.which(name, path=self._path) is None}
        warnings = [f"{self.id}: {name} is not on PATH; {why}" for name, why in missing.items()]
        if version is None:
            warnings.append(f"{' '.join(given)}: no version in its answer: {said or 'nothing'}")
        elif self.spec.tested and version not in self.spec.tested:
            warnings.append(f"{self.id} {version} was never tested; tested: {', '.join(self.spec.tested)}")
        chosen = self.settings
        info = ProviderInfo(id=self.id, version=version, model=chosen.model, effort=chosen.effort, path=str(program))
        return Detected(info, tuple(warnings))

    def credentials(self) -> Mapping[str, str]:
        """Return the keys that are set."""
        environ = self.settings.environ
        return {name: environ[name] for name in self.spec.keys if environ.get(name)}

    def skill_root(self, home: Path) -> Path | None:
        """Return where the agent discovers skills."""
        return None if self.spec.skill_root is None else Path(fill(self.spec.skill_root, {"home": str(home)}))

    # ------------------------------------------------------------------------------------------------- a trial

    def prepare(self, ask: Ask) -> Launch:
        """Write prompt and files, and return the command."""
        spec, values = self.spec, self._values(ask)
        Path(values["prompt_file"]).write_text(values["prompt"], encoding="utf-8")
        if ask.system:
            Path(values["system_prompt_file"]).write_text(ask.system, encoding="utf-8")
        for name, text in spec.files.items():
            target = ask.home / name
            if not target.resolve().is_relative_to(ask.home.resolve()):
                raise TrialFault(ErrorClass.SETUP, f"{self._where}.files: {name} leaves the home")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(fill(text, values), encoding="utf-8")
            target.chmod(0o600)  # it may hold a key
        command = spec.plan_command if ask.kind is Kind.PLAN and spec.plan_command is not None else spec.command
        name, *arguments = fill_command(command, values)
        program = self._program(name)
        if longest := [part for part in arguments if len(os.fsencode(part)) > ARGUMENT_BYTES]:
            raise TrialFault(
                ErrorClass.SETUP,
                f"{self.id}: an argument of {len(os.fsencode(longest[0]))} bytes; the system takes {ARGUMENT_BYTES}. "
                "Shorten the prompt, or set prompt_via to stdin or file",
            )
        environ = self.settings.environ
        env = {name: environ[name] for name in (*spec.keys, *spec.pass_env) if name in environ}
        env |= {name: fill(text, values) for name, text in spec.env.items()}
        return Launch(
            argv=(str(program), *arguments),
            env=env,
            stdin=Path(values["prompt_file"]) if spec.prompt_via == "stdin" else None,
            secrets=tuple(self.credentials().values()),
            result_markers=tuple(text.encode() for text in spec.parse.result_marker),
            reads=program_folders(program, self._path),
        )

    def _values(self, ask: Ask) -> dict[str, str]:
        settings, skill = self.settings, ask.under_test
        root = self.skill_root(ask.home)
        folder = str(root / skill.name) if skill is not None and skill in ask.skills and root is not None else ""
        prompt = ask.prompt
        if ask.system and self.spec.preload_via == "prompt":
            prompt = f"{ask.system}\n\n{prompt}"
        values = {
            "prompt": prompt,
            "prompt_file": str(ask.scratch / "prompt.txt"),
            "system_prompt_file": str(ask.scratch / "system.txt") if ask.system else "",
            "output_file": str(ask.scratch / "output.txt"),
            "model": settings.model or "",
            "effort": settings.effort or "",
            "base_url": self.spec.base_url or "",
            "workspace": str(ask.workspace),
            "home": str(ask.home),
            "tmp": str(ask.tmp),
            "config_dir": str(ask.home / ".config"),
            "skill_name": skill.name if skill is not None else "",
            "skill_dir": folder,
            "skill_file": f"{folder}/SKILL.md" if folder else "",
            "max_turns": str(ask.budget.steps or ""),
            "timeout_s": f"{ask.budget.timeout:g}",
            "session_id": str(uuid.uuid5(uuid.NAMESPACE_OID, str(ask.home))),
        }
        passing = {f"env:{name}": settings.environ.get(name, "") for name in (*self.spec.keys, *self.spec.pass_env)}
        return values | passing

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:
        """Turn what the command left into an answer, as the declaration says."""
        if output is None:
            raise TrialFault(ErrorClass.INTERNAL, f"{self.id} always runs a command; none was run")
        stream, draft = Stream(output.stdout), Draft()
        if self.spec.parse.format == "text":
            draft.final_text = _whole_text(output.stdout)
            return close(ask, output, stream, draft, Found(good=output.exit_status == 0 and bool(draft.final_text)))
        reader = Reader(self.spec.parse, ask, draft)
        for event in stream:
            reader.read(event)
        return close(ask, output, stream, draft, reader.ended(), exit_codes=self.spec.parse.exit_codes)


def _whole_text(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(TEXT_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
