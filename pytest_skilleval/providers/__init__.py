"""Who answers: simulated agents, recorded ones, agent CLIs, chat endpoints."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

from pytest_skilleval.errors import OptionMistake

from .base import Provider, ProviderSettings

__all__ = ["BUILTIN", "Factory", "make_provider"]

Factory = Callable[[ProviderSettings], Provider]

BUILTIN: dict[str, str] = {
    "stub": "stub:Stub",
    "oracle": "stub:Oracle",
    "noop": "stub:Noop",
    "claude": "claude:Claude",
    "codex": "codex:Codex",
    "chat": "chat:Chat",
}
"""Name to `module:class`; a module is imported when its provider is asked for."""


def make_provider(name: str, settings: ProviderSettings, extra: Mapping[str, Factory]) -> Provider:
    """Make the provider of that name; one that a plugin or conftest.py offers wins over a built-in one.

    With `settings.replay` its recorded answers are played instead; with `settings.record` its answers are kept.

    Args:
        name: As on the command line.
        settings: What the user chose.
        extra: The answers to `pytest_skilleval_providers`, by name.

    Raises:
        OptionMistake: No provider has that name.
        UserMistake: Its settings are wrong.
    """
    if name == "replay" or settings.replay is not None:
        return _replay(name, settings)
    provider = _make(name, settings, extra)
    return provider if settings.record is None else _recorder(provider, settings)


def _make(name: str, settings: ProviderSettings, extra: Mapping[str, Factory]) -> Provider:
    if name in extra:
        return extra[name](settings)
    if name in BUILTIN:
        return _builtin(BUILTIN[name])(settings)
    if name.startswith("command:"):
        return _declared(name.removeprefix("command:"), settings)
    known = sorted({*BUILTIN, *extra, "command:NAME", "replay"})
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise OptionMistake(f"--skilleval-provider: {name!r} is not known.{hint} Known: {', '.join(known)}")


def _declared(name: str, settings: ProviderSettings) -> Provider:
    from .command import Command  # noqa: PLC0415 - imported when a declared provider is asked for

    return Command(name, settings)


def _replay(name: str, settings: ProviderSettings) -> Provider:
    from .replay import Replay  # noqa: PLC0415 - imported when something is played

    # Without a choice of one's own the provider is the stub, and `replay` names nobody: then the folder tells.
    return Replay(settings, None if name in ("replay", "stub") else name)


def _recorder(provider: Provider, settings: ProviderSettings) -> Provider:
    from .replay import Recorder  # noqa: PLC0415 - imported when something is recorded

    return Recorder(provider, settings)


def _builtin(where: str) -> Factory:
    module, _, attribute = where.partition(":")
    return cast("Factory", getattr(import_module(f"{__name__}.{module}"), attribute))
