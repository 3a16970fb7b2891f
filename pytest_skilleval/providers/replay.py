"""Recording what an agent did, and playing it again: `--skilleval-record` and the `replay` provider."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.model import Case
from pytest_skilleval.records import ProviderInfo
from pytest_skilleval.redaction import Redactor

from .base import Answer, Ask, Detected, Launch, ProcessOutput, Provider, ProviderSettings
from .classes import policy
from .recording import FILE_BYTES, Change, Parts, Recording, apply_changes, load, parts_of, save, snapshot
from .stream import open_regular

__all__ = ["Recorder", "Replay"]


@dataclass(frozen=True)
class _Pending:
    """A question that was asked and not yet answered."""

    parts: Parts
    before: Mapping[str, str]
    redactor: Redactor


class Recorder:
    """Another provider, whose answers are kept.

    Args:
        provider: Who answers.
        settings: What the user chose; `record` is the folder.
    """

    def __init__(self, provider: Provider, settings: ProviderSettings) -> None:
        if settings.record is None:
            raise OptionMistake("--skilleval-record: names no folder")
        self.provider = provider
        self.settings = settings
        self.root = settings.record
        self.id = provider.id
        self.simulated = provider.simulated
        self.paid = provider.paid
        self.tells_cost = getattr(provider, "tells_cost", False)
        self._info: ProviderInfo | None = None
        self._pending: dict[str, _Pending] = {}

    def detect(self) -> Detected:
        """Find the other provider's program."""
        found = self.provider.detect()
        self._info = found.info
        return found

    def credentials(self) -> Mapping[str, str]:
        """Return what the other provider needs."""
        return self.provider.credentials()

    def skill_root(self, home: Path) -> Path | None:
        """Return where the other provider's agent discovers skills."""
        return self.provider.skill_root(home)

    def objection(self, case: Case) -> str | None:
        """Return why the other provider cannot be asked that case honestly, or None."""
        objection = getattr(self.provider, "objection", None)
        return objection(case) if objection is not None else None

    def prepare(self, ask: Ask) -> Launch | None:
        """Note what is asked, and let the other provider prepare it."""
        before = snapshot(ask.workspace)
        parts = parts_of(ask, self.id, self.settings.model, self.settings.effort, before)
        launch = self.provider.prepare(ask)
        secrets = launch.secrets if launch is not None else ()
        self._pending[ask.id.key] = _Pending(parts, before, Redactor((*secrets, *self.credentials().values())))
        return launch

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:
        """Return the other provider's answer, kept unless it could not be measured: an outage is not worth playing."""
        answer = self.provider.read(ask, output)
        pending = self._pending.pop(ask.id.key, None)
        if pending is not None and (answer.error is None or policy(answer.error.error_class).outcome != "error"):
            self._keep(ask, answer, pending)
        return answer

    def _keep(self, ask: Ask, answer: Answer, pending: _Pending) -> None:
        after = snapshot(ask.workspace)
        written: dict[str, Change] = {}
        contents: dict[str, bytes] = {}
        left_out: list[str] = []
        for name, digest in after.items():
            if pending.before.get(name) == digest:
                continue
            data = _bytes(ask.workspace / name)
            if data is None:
                left_out.append(name)
                continue
            clean = pending.redactor.bytes(data[0])
            key = hashlib.sha256(clean).hexdigest()
            written[name], contents[key] = Change(digest=key, executable=data[1]), clean
        info = self._info or ProviderInfo(id=self.id, model=self.settings.model, effort=self.settings.effort)
        recording = Recording(
            parts=pending.parts,
            info=info,
            transcript=answer.transcript,
            error=answer.error,
            written=written,
            removed=tuple(sorted(pending.before.keys() - after.keys())),
            left_out=tuple(left_out),
        )
        clean_text = pending.redactor.text(recording.model_dump_json(by_alias=True))
        save(self.root, ask, Recording.model_validate_json(clean_text), contents)


def _bytes(path: Path) -> tuple[bytes, bool] | None:
    try:
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            data = file.read(FILE_BYTES + 1)
    except OSError:
        return None
    return None if len(data) > FILE_BYTES else (data, bool(status.st_mode & stat.S_IXUSR))


class Replay:
    """Recorded answers of one provider: nothing is run, and a question that was never asked is an error.

    Args:
        settings: What the user chose; `replay` is the folder.
        provider: Whose answers; by default those of the only provider that the folder holds.
    """

    id = "replay"
    simulated = False
    paid = False

    def __init__(self, settings: ProviderSettings, provider: str | None = None) -> None:
        if settings.replay is None:
            raise OptionMistake("--skilleval-provider=replay: what to play is missing; add --skilleval-replay DIR")
        self.settings = settings
        self.root = settings.replay
        self.provider = provider or self._only()

    def _only(self) -> str:
        found = sorted(unquote(path.name) for path in self.root.glob("*") if path.is_dir() and path.name[0] != ".")
        if not found:
            raise OptionMistake(
                f"--skilleval-replay={self.root}: holds no recordings; make some with --skilleval-record"
            )
        if len(found) > 1:
            raise OptionMistake(
                f"--skilleval-replay={self.root}: holds recordings of {', '.join(found)}; "
                "choose one with --skilleval-provider"
            )
        return found[0]

    def detect(self) -> Detected:
        """Return whose answers are played."""
        info = ProviderInfo(
            id=f"replay:{self.provider}", model=self.settings.model, effort=self.settings.effort, path=str(self.root)
        )
        return Detected(info)

    def credentials(self) -> Mapping[str, str]:
        """Return nothing: no one is asked."""
        return {}

    def skill_root(self, home: Path) -> Path | None:
        """Return the folder that most agents share: what is installed there is part of the key."""
        return home / ".agents" / "skills"

    def prepare(self, ask: Ask) -> Launch | None:
        """Return None: nothing is run.

        Raises:
            TrialFault: No recording fits; the message says what changed.
        """
        self._recording(ask)
        return None

    def read(self, ask: Ask, output: ProcessOutput | None) -> Answer:  # noqa: ARG002 - nothing was run
        """Do in the workspace what the recorded agent did, and return its answer.

        Raises:
            TrialFault: No recording fits, or it is damaged.
        """
        return apply_changes(self.root, ask, self._recording(ask))

    def _recording(self, ask: Ask) -> Recording:
        before = snapshot(ask.workspace)
        return load(self.root, ask, parts_of(ask, self.provider, self.settings.model, self.settings.effort, before))
