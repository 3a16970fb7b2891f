"""The contract, over every provider of this project."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pytest_skilleval.casespec import Lane
from pytest_skilleval.providers.chat import Chat
from pytest_skilleval.providers.claude import Claude
from pytest_skilleval.providers.codex import Codex
from pytest_skilleval.providers.command import Command
from pytest_skilleval.providers.contract import ProviderContract
from pytest_skilleval.providers.stub import Noop, Oracle, Stub


class TestStub(ProviderContract):
    def provider(self, settings):
        return Stub(settings)


class TestOracle(ProviderContract):
    def provider(self, settings):
        return Oracle(settings)


class TestNoop(ProviderContract):
    def provider(self, settings):
        return Noop(settings)


class TestClaude(ProviderContract):
    environ: ClassVar = {"ANTHROPIC_API_KEY": "sk-one-secret-value"}

    def provider(self, settings):
        return Claude(replace(settings, options={"program": "/bin/sh"}))


class TestCodex(ProviderContract):
    environ: ClassVar = {"CODEX_API_KEY": "sk-another-secret-value"}

    def provider(self, settings):
        return Codex(replace(settings, options={"program": "/bin/sh"}))


class TestCommand(ProviderContract):
    environ: ClassVar = {"MY_KEY": "one-secret-of-mine"}

    def provider(self, settings):
        table = {"command": ["/bin/sh", "-c", "cat"], "keys": ["MY_KEY"], "parse": {"success": {"type": "result"}}}
        return Command("mine", replace(settings, options=table))


class TestChat(ProviderContract):
    environ: ClassVar = {"OPENAI_API_KEY": "sk-a-third-secret-value"}
    lane = Lane.PROMPT

    def provider(self, settings):
        return Chat(replace(settings, model="m"))
