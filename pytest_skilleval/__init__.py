"""Evals for Agent Skills as pytest tests; the public names, loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_skilleval.model import Condition
    from pytest_skilleval.providers.base import Answer, Ask, Detected, Launch, ProcessOutput, Provider, ProviderSettings
    from pytest_skilleval.records import TrialRecord
    from pytest_skilleval.results import Report
    from pytest_skilleval.trial import Run, Trial
    from pytest_skilleval.workspace.home import Home

__all__ = [
    "Answer",
    "Ask",
    "Condition",
    "Detected",
    "Home",
    "Launch",
    "ProcessOutput",
    "Provider",
    "ProviderSettings",
    "Report",
    "Run",
    "Trial",
    "TrialRecord",
]

_PLACES = {
    "Condition": "model",
    "Home": "workspace.home",
    "Report": "results",
    "Run": "trial",
    "Trial": "trial",
    "TrialRecord": "records",
}


def __getattr__(name: str) -> object:
    """Load a public name on first use: a session without evals imports none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - the same

    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'providers.base')}"), name)
