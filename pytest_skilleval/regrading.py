"""A pytest session that grades a finished run again: `skilleval regrade` loads this as a plugin.

1. The command writes an order: the run folder, and the keys of the trials that can be graded again.
2. Only these trials are left in the session.
3. Their provider puts the kept workspace in place and returns the recorded transcript; nothing is run.
4. Everything else is as in any run: checks under the supervisor with their time limits, redaction, one record a trial.
5. The command unites what the session found with what the run has on record.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_skilleval import collection, evidence, kept
from pytest_skilleval.errors import ErrorClass, TrialFault, UserMistake
from pytest_skilleval.journal import Journal, read_plan
from pytest_skilleval.providers import make_provider
from pytest_skilleval.providers.base import Answer, Ask, Detected, Launch, ProcessOutput, Provider, ProviderSettings
from pytest_skilleval.providers.project import provider_table
from pytest_skilleval.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

__all__ = ["FLAG", "PROVIDER", "Order", "Regrader"]

FLAG = "--skilleval-regrade-order"
PROVIDER = "regrade"


class Order(NamedTuple):
    """What is to be graded again."""

    folder: Path
    """The run folder."""
    keys: frozenset[str]
    """`lane:case:condition:trial` of each trial."""

    def write(self, path: Path) -> None:
        """Write it for the session."""
        path.write_text(json.dumps({"folder": str(self.folder), "keys": sorted(self.keys)}), encoding="utf-8")

    @classmethod
    def of(cls, config: pytest.Config) -> Order:
        """Read it."""
        value = json.loads(Path(config.getoption(FLAG)).read_text(encoding="utf-8"))
        return cls(Path(value["folder"]), frozenset(value["keys"]))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the order."""
    parser.getgroup("skilleval").addoption(FLAG, help=argparse.SUPPRESS)


def pytest_skilleval_providers(config: pytest.Config) -> Mapping[str, Callable[[ProviderSettings], Provider]]:
    """Name the provider that gives the recorded answers."""

    def others() -> dict[str, Callable[[ProviderSettings], Provider]]:
        answers = config.hook.pytest_skilleval_providers(config=config)
        return {name: make for answer in reversed(answers) for name, make in answer.items()}

    return {PROVIDER: lambda settings: Regrader(settings, Order.of(config).folder, others)}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Leave only the trials of the order."""
    yield
    keys = Order.of(config).keys
    works = [(item, collection.eval_item(item)) for item in items]
    mine = [item for item, work in works if work is not None and work.id.key in keys]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(mine)])
    items[:] = mine


class Regrader:
    """The recorded answers of a finished run, each in a copy of the workspace that its agent left.

    Args:
        settings: What the session asks for.
        folder: The run folder.
        others: All providers that hooks name, for the run's own among them.
    """

    id = PROVIDER
    simulated = False
    paid = False

    def __init__(
        self,
        settings: ProviderSettings,
        folder: Path,
        others: Callable[[], Mapping[str, Callable[[ProviderSettings], Provider]]],
    ) -> None:
        self.settings = settings
        self._folder = folder
        self._plan = read_plan(folder)
        self._journal = Journal(folder, self._plan.run)
        self._others = others
        self._asked: dict[str, kept.Kept] = {}
        self._secrets: Mapping[str, str] | None = None

    def detect(self) -> Detected:
        """Return who answered in that run."""
        return Detected(self._plan.provider)

    def credentials(self) -> Mapping[str, str]:
        """Return what the run's own provider would hand to its agent: no agent gets it here, and it is taken out."""
        if self._secrets is None:
            name = self._plan.provider.id.removeprefix("replay:")
            options = provider_table(self.settings.rootpath, name.removeprefix("command:"))
            try:
                provider = make_provider(name, replace(self.settings, options=options), self._others())
                self._secrets = dict(provider.credentials())
            except (UserMistake, ImportError):
                self._secrets = {}  # it is not there any more
        return self._secrets

    def skill_root(self, home: Path) -> Path | None:
        """Return the folder that most agents share."""
        return home / ".agents" / "skills"

    def prepare(self, ask: Ask) -> Launch | None:
        """Put the kept workspace in place, if the case still asks what it asked.

        Raises:
            TrialFault: It does not, or what was kept changed since.
        """
        record = self._journal.read(ask.id).record
        if record is None:
            raise TrialFault(ErrorClass.REPLAY, "it has no record any more")
        root = ask.workspace.parent
        found = kept.read_kept(self._journal.folder(ask.id), record)
        redactor = Redactor(tuple(self.credentials().values()))
        why = kept.mismatch(
            found,
            ask.prompt,
            ask.case.spec.context,
            evidence.snapshot(ask.workspace),
            lambda text: redactor.text(text).replace(str(root), kept.PLACE),
        )
        if why is not None:
            raise TrialFault(ErrorClass.REPLAY, why)
        if found.workspace is not None:
            _replace(ask.workspace, found.workspace)
        self._asked[ask.id.key] = kept.placed(found, root)
        return None

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:  # noqa: ARG002 - nothing was run
        """Return what the agent said and did then."""
        found = self._asked.pop(ask.id.key)
        return Answer(found.transcript, found.error)


def _replace(workspace: Path, by: Path) -> None:
    """Let a workspace hold what another one holds, and nothing else."""
    for path in workspace.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    evidence.keep_tree(by, workspace)
