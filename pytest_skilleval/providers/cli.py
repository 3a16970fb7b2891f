"""What the agent CLIs share: finding the program, its version, keys and login files, and closing a transcript."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pytest_skilleval.errors import ErrorClass, TrialFault, UserMistake
from pytest_skilleval.model import Case
from pytest_skilleval.records import ProviderInfo

from .base import Answer, Ask, Detected, Launch, ProcessOutput, ProviderSettings
from .closing import Found, close
from .draft import Draft
from .program import CliOptions, read_options, version_of
from .stream import Stream

__all__ = ["AgentCli"]

_SECRET_NAME = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)


class AgentCli(ABC):
    """A program that is asked on the command line and answers with a stream of JSON lines."""

    id: ClassVar[str]
    program: ClassVar[str]
    """Its usual name on PATH."""
    install: ClassVar[str]
    """How to get it."""
    tested: ClassVar[tuple[str, ...]]
    """Versions that this project was run against."""
    keys: ClassVar[tuple[str, ...]]
    """Variables that log in, any of which is enough."""
    elsewhere: ClassVar[tuple[Path, ...]]
    """System-wide configuration that no home can hide."""
    simulated = False
    paid = True

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings
        self.options = read_options(CliOptions, self.id, settings.options)

    # ------------------------------------------------------------------------------------------- before a trial

    @property
    def path(self) -> str:
        """The user's PATH."""
        return self.settings.environ.get("PATH", os.defpath)

    def found(self) -> Path:
        """Return where the program is.

        Raises:
            UserMistake: It is nowhere.
        """
        name = self.options.program or self.program
        if "/" in name:
            name = str(self.settings.rootpath / Path(name).expanduser())
        found = shutil.which(name, path=self.path)
        if found is None:
            raise UserMistake(
                f"{name}: not found on PATH; install it with `{self.install}`, or name it in "
                f"[tool.skilleval.providers.{self.id}] program"
            )
        return Path(found).absolute()

    def detect(self) -> Detected:
        """Find the program and ask for its version in a throw-away home.

        Raises:
            UserMistake: It is not there, cannot be started, or nothing can log it in.
        """
        program = self.found()
        with tempfile.TemporaryDirectory(prefix="skilleval-detect-") as home:
            try:
                version, said = version_of((str(program), "--version"), self.path, Path(home))
            except OSError as error:
                raise UserMistake(f"{program}: cannot be started: {error.strerror}") from None
        if version is None:
            raise UserMistake(f"{program} --version: no version in its answer: {said or 'nothing'}")
        self._check_login()
        warnings = [
            f"{path} exists: it reaches the agent in every condition, and no isolated home can hide it"
            for path in self.elsewhere
            if path.exists()
        ]
        if version not in self.tested:
            warnings.append(f"{self.id} {version} was never tested with this plugin; tested: {', '.join(self.tested)}")
        info = ProviderInfo(
            id=self.id, version=version, model=self.settings.model, effort=self.settings.effort, path=str(program)
        )
        return Detected(info, tuple(warnings))

    def credentials(self) -> Mapping[str, str]:
        """Return the keys that are set, and further secret variables that the user lets pass."""
        names = (*self.keys, *(name for name in self.options.pass_env if _SECRET_NAME.search(name)))
        return {name: self.settings.environ[name] for name in names if self.settings.environ.get(name)}

    def _check_login(self) -> None:
        if self.options.login_file is not None:
            self._login_bytes()
        elif not (self.credentials() or self.options.base_url or self.options.pass_env):
            raise UserMistake(
                f"{self.id}: nothing logs it in, and it cannot see your own login; set one of {', '.join(self.keys)}, "
                f"or login_file in [tool.skilleval.providers.{self.id}]"
            )

    def _login_bytes(self) -> bytes:
        path = self.settings.rootpath / Path(self.options.login_file or "").expanduser()
        try:
            return path.read_bytes()
        except OSError as error:
            raise UserMistake(
                f"tool.skilleval.providers.{self.id}.login_file: {path}: {error.strerror}; log in first, or set one of "
                f"{', '.join(self.keys)}"
            ) from None

    def copy_login(self, target: Path) -> tuple[str, ...]:
        """Copy the login file, readable by its owner only, and return the secrets in it; nothing without one."""
        if self.options.login_file is None:
            return ()
        data = self._login_bytes()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(mode=0o600)
        target.write_bytes(data)
        return tuple(re.findall(r'"([^"\\\s]{20,})"', data.decode("utf-8", "replace")))

    def further_env(self) -> dict[str, str]:
        """Return what the user adds to the agent's environment."""
        environ = self.settings.environ
        return {name: environ[name] for name in self.options.pass_env if name in environ} | self.options.env

    def objection(self, case: Case) -> str | None:  # noqa: ARG002 - for the agents that have one
        """Return why this agent cannot be asked that case honestly, or None."""
        return None

    def refuse(self, ask: Ask) -> None:
        """Refuse a question that would not measure what it asks.

        Raises:
            TrialFault: There is an objection.
        """
        if (objection := self.objection(ask.case)) is not None:
            raise TrialFault(ErrorClass.SETUP, objection)

    # -------------------------------------------------------------------------------------------- after a trial

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:
        """Turn the recorded stream into an answer: the terminal event decides, never the exit status alone."""
        if output is None:
            raise TrialFault(ErrorClass.INTERNAL, f"{self.id} always runs a command; none was run")
        stream, draft = Stream(output.stdout), Draft()
        found = self.follow(ask, stream, draft)
        self.complete(ask, draft)
        return close(ask, output, stream, draft, found)

    @abstractmethod
    def follow(self, ask: Ask, stream: Stream, draft: Draft) -> Found:
        """Fill the draft from the stream and return how it ended."""

    @abstractmethod
    def complete(self, ask: Ask, draft: Draft) -> None:
        """Add what only the agent's own files in its home say."""

    @abstractmethod
    def prepare(self, ask: Ask) -> Launch:
        """Write what the agent needs and return its command."""

    @abstractmethod
    def skill_root(self, home: Path) -> Path:
        """Return where the agent discovers skills."""
