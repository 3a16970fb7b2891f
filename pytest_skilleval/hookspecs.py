"""What a conftest.py or another plugin may extend; a conftest's answer wins over the built-in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_skilleval.model import Condition
    from pytest_skilleval.providers.base import Provider, ProviderSettings
    from pytest_skilleval.records import TrialRecord
    from pytest_skilleval.results import Report


@pytest.hookspec
def pytest_skilleval_providers(config: pytest.Config) -> Mapping[str, Callable[[ProviderSettings], Provider]]:  # type: ignore[empty-body]
    """Name further providers; each name maps to a callable that makes one.

    Example::

        def pytest_skilleval_providers(config):
            return {"my-agent": MyAgent}
    """


@pytest.hookspec
def pytest_skilleval_conditions(config: pytest.Config) -> Sequence[Condition]:  # type: ignore[empty-body]
    """Name further conditions, which cases and `--skilleval-condition` may then use.

    Example::

        def pytest_skilleval_conditions(config):
            return [Condition(name="preloaded-stale", control=True, installs="stale", preloads=True)]
    """


@pytest.hookspec
def pytest_skilleval_trial_finished(config: pytest.Config, record: TrialRecord) -> None:
    """Learn that a trial's record is on disk; called in the process that ran it.

    Example::

        def pytest_skilleval_trial_finished(config, record):
            print(record.id.key, record.outcome)
    """


@pytest.hookspec
def pytest_skilleval_report_finished(config: pytest.Config, report: Report, paths: Mapping[str, str]) -> None:
    """Learn that the run is judged and its reports are written; called once, in the controller.

    Example::

        def pytest_skilleval_report_finished(config, report, paths):
            upload(paths["json"])
    """
