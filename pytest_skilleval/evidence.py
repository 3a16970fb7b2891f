"""What a trial leaves in the run folder beside its record: transcript, streams, and what changed in the workspace."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import shutil
import stat
from typing import TYPE_CHECKING, Any

from pytest_skilleval.records import ArtifactRef, FileRef
from pytest_skilleval.scoring.bundle import load
from pytest_skilleval.scoring.folder import Folder, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pytest_skilleval.model import Case
    from pytest_skilleval.records import Transcript

__all__ = [
    "bundle_artifacts",
    "copy_into",
    "drop_evidence",
    "keep_artifacts",
    "keep_files",
    "keep_tree",
    "small_files",
    "snapshot",
    "workspace_changes",
    "write_transcript",
]

SNAPSHOT_FILES = 20_000
"""Files of a workspace that are compared; the rest is left out and said."""
SNAPSHOT_BYTES = 64 * 1024 * 1024
"""A larger file is compared by its size alone."""
_KEPT = ("transcript.jsonl", "stdout", "stderr")
_DIFF_BYTES = 200_000
_TEXT_BYTES = 100_000


def snapshot(workspace: Path) -> dict[str, str]:
    """Return relative path and SHA-256 of each file, `.git` left out; links are named, never followed."""
    return {name: _digest(path) for name, path in _files(workspace)}


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != ".git")
        base = root / os.path.relpath(folder, root) if folder != str(root) else root
        for name in sorted(files):
            count += 1
            if count > SNAPSHOT_FILES:
                return
            path = base / name
            yield path.relative_to(root).as_posix(), path


def _digest(path: Path) -> str:
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return f"link:{path.readlink()}"
        if not stat.S_ISREG(status.st_mode):
            return f"special:{stat.S_IFMT(status.st_mode):o}"
        if status.st_size > SNAPSHOT_BYTES:
            return f"size:{status.st_size}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"unreadable:{error.strerror}"


def workspace_changes(
    workspace: Path, before: Mapping[str, str], after: Mapping[str, str], given: Mapping[str, bytes]
) -> str:
    """Return what the agent added, changed and removed, small text files as a unified diff.

    Args:
        workspace: The finished workspace.
        before: Its snapshot when the agent started.
        after: Its snapshot now.
        given: Bytes of the small files that the agent was given.
    """
    parts: list[str] = []
    size = 0
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name):
            continue
        if size > _DIFF_BYTES:
            parts.append("... more changes are left out\n")
            break
        part = _one_change(workspace, name, before.get(name), after.get(name), given.get(name))
        size += len(part)
        parts.append(part)
    return "".join(parts)


def _one_change(workspace: Path, name: str, old: str | None, new: str | None, given: bytes | None) -> str:
    word = "added" if old is None else "removed" if new is None else "changed"
    old_lines = _text_lines(given) if old is not None else []
    new_lines = _text_lines(_small(workspace / name)) if new is not None else []
    if old_lines is None or new_lines is None:
        return f"{word} {name}\n"
    diff = difflib.unified_diff(
        old_lines, new_lines, f"a/{name}" if old else "/dev/null", f"b/{name}" if new else "/dev/null"
    )
    return f"{word} {name}\n" + "".join(line if line.endswith("\n") else f"{line}\n" for line in diff)


def _small(path: Path) -> bytes | None:
    try:
        status = path.lstat()
        return path.read_bytes() if stat.S_ISREG(status.st_mode) and status.st_size <= _TEXT_BYTES else None
    except OSError:
        return None


def small_files(workspace: Path, names: Mapping[str, str]) -> dict[str, bytes]:
    """Return the bytes of the small files among these, for a later diff."""
    found = ((name, _small(workspace / name)) for name in names)
    return {name: data for name, data in found if data is not None}


def _text_lines(data: bytes | None) -> list[str] | None:
    if data is None or b"\0" in data:
        return None
    return data.decode("utf-8", "replace").splitlines(keepends=True)


def write_transcript(
    path: Path, prompt: str, system: str, transcript: Transcript, redact: Callable[[str], str]
) -> None:
    """Write one JSON object a line: the prompt, each tool call in order, the answer."""
    lines: list[dict[str, Any]] = [{"type": "prompt", "text": prompt}]
    if system:
        lines.insert(0, {"type": "context", "text": system})
    lines += [{"type": "tool", **call.model_dump(mode="json", exclude_defaults=True)} for call in transcript.tool_calls]
    lines += [{"type": "skill", **use.model_dump(mode="json")} for use in transcript.skills_used]
    lines.append({"type": "answer", "text": transcript.final_text, "finished": transcript.finished})
    text = "".join(json.dumps(line, ensure_ascii=True, sort_keys=True) + "\n" for line in lines)
    path.write_bytes(redact(text).encode("ascii"))


def keep_files(folder: Path, run_folder: Path, cut: Mapping[str, bool]) -> dict[str, FileRef]:
    """Name a trial's transcript and streams, as far as they are there; empty ones are removed.

    Args:
        folder: The trial's folder.
        run_folder: What their paths are relative to.
        cut: Stream to whether it was cut.
    """
    found = {name: _keep_file(folder / name, run_folder, cut=cut.get(name, False)) for name in _KEPT}
    return {name: file for name, file in found.items() if file is not None}


def _keep_file(path: Path, run_folder: Path, *, cut: bool) -> FileRef | None:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.file_digest(file, "sha256").hexdigest() if size else ""
    except FileNotFoundError:
        return None
    if not size:
        path.unlink()
        return None
    return FileRef(path=path.relative_to(run_folder).as_posix(), bytes=size, digest=digest, truncated=cut)


def keep_artifacts(
    case: Case,
    workspace: Path,
    before: Mapping[str, str],
    folder: Path,
    run_folder: Path,
    *,
    redact: Callable[[bytes], bytes],
) -> tuple[ArtifactRef, ...]:
    """Copy the artifacts that a case asks for into the trial's folder, under names made of digests.

    Args:
        case: What names them.
        workspace: The finished workspace.
        before: Its snapshot when the agent started; what was given is no artifact.
        folder: The trial's folder.
        run_folder: What paths are relative to.
        redact: Takes secrets out of a file.
    """
    kept: dict[str, ArtifactRef] = {}
    reader = Folder(workspace)
    for artifact in case.spec.artifacts:
        with contextlib.suppress(Refused):
            for name in reader.matches(artifact.path)[:_ARTIFACTS]:
                with contextlib.suppress(Refused):
                    data = reader.read(name)
                    if before.get(name) == hashlib.sha256(data).hexdigest():
                        continue
                    data = redact(data)
                    digest = hashlib.sha256(data).hexdigest()
                    target = folder / "artifacts" / f"{digest[:20]}{_suffix(name)}"
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(data)
                    path = target.relative_to(run_folder).as_posix()
                    kept[name] = ArtifactRef(path=path, bytes=len(data), digest=digest, name=name, kind=artifact.kind)
    return tuple(kept[name] for name in sorted(kept))


def bundle_artifacts(bundle: Path, run_folder: Path) -> tuple[ArtifactRef, ...]:
    """Name the files of a collected bundle."""
    return tuple(
        ArtifactRef(
            path=(bundle / file.path).relative_to(run_folder).as_posix(),
            bytes=file.bytes,
            digest=file.digest,
            name=file.name,
            kind=file.kind,
        )
        for file in load(bundle).files
    )


_ARTIFACTS = 100
"""Files that one demand for artifacts keeps."""
_SUFFIXES = (
    ".txt",
    ".md",
    ".json",
    ".jsonl",
    ".png",
    ".jpg",
    ".cast",
    ".webm",
    ".mp4",
    ".csv",
    ".yaml",
    ".yml",
    ".xml",
)


def _suffix(name: str) -> str:
    """Return an ending that a viewer may act on, and never one that a browser would run."""
    ending = "." + name.rpartition(".")[2].lower()
    return ending if ending in _SUFFIXES else ".bin"


def drop_evidence(folder: Path) -> None:
    """Remove what an earlier attempt left in a trial's folder beside its intent, its record and its workspace."""
    for name in (*_KEPT, "workspace.diff"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "artifacts", ignore_errors=True)


def copy_into(source: Path, target: Path) -> None:
    """Copy a file or a folder to a place whose folders are made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        keep_tree(source, target)
    else:
        shutil.copy(source, target)


def keep_tree(workspace: Path, target: Path) -> None:
    """Copy a workspace into the run; links stay links, special files are left out."""

    def special(folder: str, names: list[str]) -> list[str]:
        modes = ((name, os.lstat(os.path.join(folder, name)).st_mode) for name in names)  # noqa: PTH118
        return [name for name, mode in modes if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))]

    shutil.copytree(workspace, target, symlinks=True, ignore=special, dirs_exist_ok=True)
