"""Proof bundles: what an agent left as evidence, listed, copied into the run and made safe to look at.

The copy has this shape; all of it is written by this module, nothing in it is a link:

    manifest.json    what there is: original name, kind, size, digest, and what was refused and why
    index.html       the review page
    files/           the agent's files under safe names; what a browser would run is stored as text
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import ConfigDict, Field

from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.frozen import Frozen

from .folder import Folder, Refused
from .kinds import EvidenceKind, content_problem, kind_of

__all__ = ["BundleFile", "Limits", "Manifest", "Refusal", "collect", "load", "look_over"]

Redact = Callable[[bytes], bytes]

_SAFE_NAME = re.compile(r"^[\w+=@][\w .+=@-]{0,120}$")
_KEPT_SUFFIXES: dict[EvidenceKind, tuple[str, ...]] = {
    "screenshot": (".png", ".jpg", ".jpeg"),
    "video": (".webm", ".mp4"),
    "recording": (".cast", ".json"),
    "json": (".json", ".jsonl", ".ndjson"),
    "report": (".md", ".txt"),
    "notes": (".md", ".txt", ".log"),
    "other": (".bin",),
}


@dataclass(frozen=True)
class Limits:
    """What of a bundle is taken."""

    file_bytes: int = 50 * 1024 * 1024
    total_bytes: int = 200 * 1024 * 1024
    files: int = 1000


class BundleFile(Frozen):
    """One file of a bundle."""

    name: str
    """Its path in the agent's bundle."""
    path: str
    """Its path in the collected bundle."""
    kind: EvidenceKind
    bytes: int
    digest: str
    """SHA-256 of what is stored, 64 hex digits."""
    problem: str | None = None
    """Why its content is no good example of its kind."""


class Refusal(Frozen):
    """Something in a bundle that was not taken."""

    name: str
    why: str


class Manifest(Frozen):
    """manifest.json of a collected bundle."""

    schema_: Literal["skilleval-bundle/1"] = Field(default="skilleval-bundle/1", alias="schema")
    files: tuple[BundleFile, ...] = ()
    refused: tuple[Refusal, ...] = ()

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    def find(self, name: str) -> BundleFile | None:
        """Return the file that had this path in the agent's bundle."""
        return next((file for file in self.files if file.name == name), None)


def look_over(source: Path, limits: Limits | None = None) -> Manifest:
    """List a bundle where it lies, without copying it."""
    return _gather(source, limits or Limits(), None, None)


def collect(
    source: Path, target: Path, limits: Limits | None = None, *, title: str = "", redact: Redact | None = None
) -> Manifest:
    """Copy a bundle into a run, whole or not at all.

    An earlier attempt of the same trial, recognised by its manifest, is replaced; anything else at `target` is not.

    Args:
        source: The folder that the agent filled.
        target: Where it goes; its parents are made.
        limits: What is taken.
        title: What the review page is headed with.
        redact: Applied to every file's bytes before they are stored.

    Raises:
        TrialFault: Of class `record`: `target` holds something else, or cannot be written.
    """
    from .review import review_page  # noqa: PLC0415 - the template engine is needed for bundles alone

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not (target / "manifest.json").is_file():
            raise TrialFault(ErrorClass.RECORD, f"{target} is taken by something that is no bundle")
        aside = Path(tempfile.mkdtemp(prefix=".collecting-", dir=target.parent))
        try:
            (aside / "files").mkdir()
            manifest = _gather(source, limits or Limits(), aside, redact)
            text = manifest.model_dump_json(indent=1) + "\n"
            (aside / "manifest.json").write_text(text, encoding="utf-8")
            (aside / "index.html").write_text(review_page(manifest, aside, title), encoding="utf-8")
            # The folder was made for this process alone; a run is read by whoever may read its parent.
            aside.chmod(0o777 & ~_umask())
            if target.exists():
                shutil.rmtree(target)
            aside.rename(target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    except OSError as problem:
        raise TrialFault(ErrorClass.RECORD, f"the bundle cannot be stored at {target}: {problem.strerror}") from problem
    return manifest


def load(bundle: Path) -> Manifest:
    """Read the manifest of a collected bundle.

    Raises:
        TrialFault: Of class `record`: it cannot be read.
    """
    try:
        return Manifest.model_validate_json((bundle / "manifest.json").read_bytes())
    except (OSError, ValueError) as problem:
        raise TrialFault(ErrorClass.RECORD, f"{bundle / 'manifest.json'} cannot be read: {problem}") from problem


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _gather(source: Path, limits: Limits, store: Path | None, redact: Redact | None) -> Manifest:
    folder, files, refused = Folder(source), list[BundleFile](), list[Refusal]()
    taken: set[str] = set()
    total = 0
    for name in _names(source, refused):
        if len(files) >= limits.files:
            refused.append(Refusal(name=_shown(name), why=f"more than {limits.files} files"))
            break
        try:
            data = folder.read(name, limits.file_bytes)
        except Refused as refusal:
            refused.append(Refusal(name=_shown(name), why=_shown(str(refusal))))
            continue
        data = redact(data) if redact else data
        total += len(data)
        if total > limits.total_bytes:
            refused.append(Refusal(name=_shown(name), why=f"more than {limits.total_bytes} bytes altogether"))
            break
        kind = kind_of(name, data)
        digest = hashlib.sha256(data).hexdigest()
        stored = _stored_name(name, kind, digest, taken)
        if store is not None:
            path = store / stored
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(data)
        files.append(
            BundleFile(
                name=_shown(name),
                path=stored,
                kind=kind,
                bytes=len(data),
                digest=digest,
                problem=content_problem(name, data, kind),
            )
        )
    return Manifest(files=tuple(files), refused=tuple(refused))


def _names(source: Path, refused: list[Refusal]) -> Iterator[str]:
    """Yield the paths of all that is no folder, sorted; links to folders are refused, since they may loop or leave."""
    for here, folders, names in os.walk(source):
        folders.sort()
        for folder in list(folders):
            path = Path(here, folder)
            if path.is_symlink():
                folders.remove(folder)
                shown = _shown(path.relative_to(source).as_posix())
                refused.append(Refusal(name=shown, why="a link to a folder"))
        for name in sorted(names):
            yield Path(here, name).relative_to(source).as_posix()


def _shown(name: str) -> str:
    """Return a name as text that any reader can hold: bytes that are no UTF-8 become escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _stored_name(name: str, kind: EvidenceKind, digest: str, taken: set[str]) -> str:
    path = PurePosixPath(name)
    safe = len(path.parts) <= 8 and all(_SAFE_NAME.match(part) and part.isprintable() for part in path.parts)
    stored = name if safe else f"unsafe-name-{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}"
    kept = _KEPT_SUFFIXES[kind]
    if PurePosixPath(stored).suffix.lower() not in kept:
        # A page or script of the agent must not run in the reader's browser, so it is kept as what it was looked at as.
        stored += ".txt" if ".txt" in kept else kept[0]
    # Some file systems do not tell upper from lower case.
    if stored.lower() in taken:
        stored = f"{digest[:12]}-{len(taken)}{PurePosixPath(stored).suffix}"
    taken.add(stored.lower())
    return f"files/{stored}"
