"""A recorded trial on disk: its key, its answer, and the files that the agent changed.

    <folder>/<provider>/<key>/recording.json     answer and changes, without the paths of the trial's own folders
    <folder>/<provider>/<key>/<digest>           the bytes of a file, named by their SHA-256

The key holds everything that is asked, so an edited skill, prompt or workspace never plays an old answer. What the
agent did inside `.git` is not recorded.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import quote

from pydantic import Field, ValidationError

from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.frozen import Frozen, canonical_json, digest_text
from pytest_skilleval.records import ProviderInfo, Transcript, TrialError

from .base import Answer, Ask
from .stream import open_regular

__all__ = ["Parts", "Recording", "apply_changes", "load", "parts_of", "save", "snapshot"]

RECORDING_BYTES = 64 * 1024 * 1024
FILE_BYTES = 32 * 1024 * 1024
"""A larger file is not recorded; a replay then cannot play what depends on it, and says so."""


class Parts(Frozen):
    """What a key is made of: each part by itself, so that a miss can say which one differs."""

    provider: str
    model: str | None
    effort: str | None
    lane: str
    case: str
    condition: str
    trial: int
    prompt: str
    """SHA-256 of prompt and context."""
    skills: str
    """SHA-256 over the digests of all skills that the agent can see."""
    workspace: str
    """SHA-256 over the files that lie in the workspace before."""

    @property
    def key(self) -> str:
        """40 hex digits over all parts."""
        return digest_text(canonical_json(self.model_dump()))[:40]


class Change(Frozen):
    """A file that the agent wrote."""

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    executable: bool = False


class Recording(Frozen):
    """What came of a question."""

    schema_: Literal["skilleval-recording/1"] = Field(default="skilleval-recording/1", alias="schema")
    parts: Parts
    info: ProviderInfo
    transcript: Transcript
    error: TrialError | None = None
    written: dict[str, Change] = Field(default_factory=dict)
    removed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Files that were too large, or no files at all."""


def snapshot(workspace: Path) -> dict[str, str]:
    """Return the digest of each regular file below a workspace, by relative path; `.git` is left out.

    A link counts by where it points, and its target is not followed.
    """
    return dict(_digests(workspace))


def _digests(workspace: Path) -> Iterator[tuple[str, str]]:
    for folder, folders, names in os.walk(workspace):
        if folder == str(workspace) and ".git" in folders:
            folders.remove(".git")
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            relative = path.relative_to(workspace).as_posix()
            with contextlib.suppress(OSError):
                yield relative, _digest(path)


def _digest(path: Path) -> str:
    if path.is_symlink():
        return digest_text(f"link to {path.readlink()}")
    with open_regular(path) as file:
        mode = "x" if os.fstat(file.fileno()).st_mode & stat.S_IXUSR else "-"
        return f"{mode}{hashlib.file_digest(file, 'sha256').hexdigest()}"


def parts_of(ask: Ask, provider: str, model: str | None, effort: str | None, before: dict[str, str]) -> Parts:
    """Return what a question's key is made of.

    Args:
        ask: The question.
        provider: Who is asked.
        model: As the user chose it.
        effort: As the user chose it.
        before: The workspace's snapshot.
    """
    skills = sorted(
        (skill.name, skill.digest) for skill in {*ask.skills, *([ask.under_test] if ask.under_test else [])}
    )
    return Parts(
        provider=provider,
        model=model,
        effort=effort,
        lane=ask.id.lane,
        case=ask.id.case,
        condition=ask.id.condition,
        trial=ask.id.trial,
        prompt=digest_text(_placeless(ask, canonical_json([ask.prompt, ask.system]))),
        skills=digest_text(canonical_json(skills)),
        workspace=digest_text(canonical_json(before)),
    )


def _places(ask: Ask) -> dict[str, str]:
    places = {"workspace": ask.workspace, "home": ask.home, "tmp": ask.tmp, "scratch": ask.scratch}
    return {f"{{skilleval:{name}}}": str(path) for name, path in places.items()}


def _placeless(ask: Ask, text: str) -> str:
    for name, path in _places(ask).items():
        text = text.replace(path, name)
    return text


def _folder(root: Path, parts: Parts) -> Path:
    return root / quote(parts.provider, safe="") / parts.key


def save(root: Path, ask: Ask, recording: Recording, contents: dict[str, bytes]) -> Path:
    """Write a recording whole or not at all, over an older one of the same key.

    Args:
        root: The folder of all recordings.
        ask: What was asked.
        recording: What came of it.
        contents: Bytes by digest.

    Raises:
        OSError: It cannot be written.
    """
    target = _folder(root, recording.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    try:
        for digest, data in contents.items():
            (aside / digest).write_bytes(data)
        text = recording.model_dump_json(by_alias=True, indent=1)
        (aside / "recording.json").write_text(_placeless(ask, text), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def load(root: Path, ask: Ask, parts: Parts) -> Recording:
    """Return the recording of that key.

    Raises:
        TrialFault: There is none, or it cannot be read; the message says which part differs from the nearest one.
    """
    path = _folder(root, parts) / "recording.json"
    recording = _read(path, ask)
    if recording is None:
        raise TrialFault(ErrorClass.REPLAY, _why_not(root, ask, parts, damaged=path.exists()))
    return recording


def _read(path: Path, ask: Ask | None) -> Recording | None:
    try:
        with open_regular(path) as file:
            text = file.read(RECORDING_BYTES).decode("utf-8", "replace")
        for name, place in _places(ask).items() if ask is not None else ():
            text = text.replace(name, place)
        return Recording.model_validate_json(text)
    except (OSError, ValidationError):
        return None


def _why_not(root: Path, ask: Ask, parts: Parts, *, damaged: bool) -> str:
    item = f"{ask.id.key} of {parts.provider}"
    if damaged:
        return f"the recording of {item} in {root} is damaged; record it again"
    same = {"lane", "case", "condition", "trial"}
    wanted = parts.model_dump()
    for path in sorted((root / quote(parts.provider, safe="")).glob("*/recording.json")):
        found = _read(path, None)
        if found is None or any(found.parts.model_dump()[name] != wanted[name] for name in same):
            continue
        differs = [name for name, value in found.parts.model_dump().items() if value != wanted[name]]
        return f"no recording fits {item} in {root}: its {' and '.join(differs)} changed since; record it again"
    return f"no recording of {item} in {root}; record it with --skilleval-record {root}"


def apply_changes(root: Path, ask: Ask, recording: Recording) -> Answer:
    """Do in the workspace what the recorded agent did, and return its answer.

    Raises:
        TrialFault: A change would leave the workspace, or its bytes are not there.
    """
    source = _folder(root, recording.parts)
    for name in recording.removed:
        _inside(ask.workspace, name).unlink(missing_ok=True)
    for name, change in recording.written.items():
        target = _inside(ask.workspace, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        try:
            with open_regular(source / change.digest) as file:
                data = file.read(FILE_BYTES + 1)
        except OSError as error:
            raise TrialFault(ErrorClass.REPLAY, f"the recorded {name} cannot be read: {error}") from None
        if hashlib.sha256(data).hexdigest() != change.digest:
            raise TrialFault(ErrorClass.REPLAY, f"the recorded {name} is damaged; record it again")
        target.write_bytes(data)
        target.chmod(0o755 if change.executable else 0o644)
    return Answer(recording.transcript, recording.error)


def _inside(workspace: Path, name: str) -> Path:
    parts = PurePosixPath(name)
    target = workspace / parts
    outside = parts.is_absolute() or ".." in parts.parts or ".git" in parts.parts[:1]
    if outside or not target.parent.resolve().is_relative_to(workspace.resolve()):
        raise TrialFault(ErrorClass.REPLAY, f"the recording writes {name!r}, which leaves the workspace")
    return target
