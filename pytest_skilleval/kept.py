"""What a finished trial leaves for grading it again: its workspace as the agent left it, and what it said and did.

    trials/<digest>/workspace/        the workspace, copied before any check could change it
    trials/<digest>/workspace.json    digests of its files, and of what the agent was given

A trial is graded again only from what is as it was: digests of the transcript and of the workspace are compared first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from pytest_skilleval import evidence
from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import ErrorClass, JournalDamage, TrialFault
from pytest_skilleval.journal import read_sealed, write_sealed
from pytest_skilleval.records import Outcome, SkillUse, ToolCall, Transcript, TrialError, TrialRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["PLACE", "Kept", "copy_workspace", "drop_workspace", "keep_workspace", "mismatch", "placed", "read_kept"]

PLACE = "/trial"
"""What stands in a transcript for the folder of the trial's home, workspace and temp files."""
_PLACES = re.compile(rf"{PLACE}(?=/(?:home|work|tmp|scratch)\b)")
_SCHEMA = "skilleval-workspace/1"
_NOTE_CHARS = 300


class Kept(NamedTuple):
    """A trial as its agent left it."""

    transcript: Transcript
    error: TrialError | None
    """How the agent ended badly, where it did and was graded all the same."""
    prompt: str
    context: str
    workspace: Path | None
    """None where none is needed."""
    given: Mapping[str, str]
    """Relative path to SHA-256 of each file that the agent was given."""


def keep_workspace(
    workspace: Path, given: Mapping[str, str], folder: Path, redact: Callable[[bytes], bytes]
) -> list[str]:
    """Copy a workspace into a trial's folder, with all that grading it again needs.

    What cannot be kept is no fault of the agent: the trial goes on, and says so.

    Args:
        workspace: As the agent left it.
        given: Its snapshot before the agent.
        folder: The trial's folder.
        redact: Takes secrets out of a file.

    Returns:
        Notes for the record: why it could not be kept; nothing where it was.
    """
    try:
        copy_workspace(workspace, folder, redact)
        left = evidence.snapshot(folder / "workspace")
        write_sealed(folder / "workspace.json", {"schema": _SCHEMA, "given": dict(given), "left": left})
    except OSError as error:
        drop_workspace(folder)
        return [f"its workspace could not be kept: {str(error)[:_NOTE_CHARS]}"]
    return []


def copy_workspace(workspace: Path, folder: Path, redact: Callable[[bytes], bytes]) -> None:
    """Copy a workspace into a trial's folder, for people to look at, instead of what an earlier attempt left there.

    Raises:
        OSError: It cannot be copied.
    """
    drop_workspace(folder)
    target = folder / "workspace"
    evidence.keep_tree(workspace, target)
    for place, _, names in os.walk(target):
        for name in names:
            _clean(target / place / name, redact)


def _clean(path: Path, redact: Callable[[bytes], bytes]) -> None:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > evidence.SNAPSHOT_BYTES:
        return
    data = path.read_bytes()
    clean = redact(data)
    if clean != data:
        path.unlink()  # it may be read-only
        path.write_bytes(clean)
        path.chmod(stat.S_IMODE(status.st_mode))


def drop_workspace(folder: Path) -> None:
    """Remove a kept workspace, as far as there is one."""
    (folder / "workspace.json").unlink(missing_ok=True)
    shutil.rmtree(folder / "workspace", ignore_errors=True)


def read_kept(folder: Path, record: TrialRecord) -> Kept:
    """Read back what a trial left.

    Args:
        folder: The trial's folder.
        record: Its record.

    Raises:
        TrialFault: Of class `replay`: it cannot be graded again; the message says why.
    """
    error = record.error
    if record.outcome is Outcome.ERROR and error is not None and error.error_class is ErrorClass.CHECK:
        error = None  # its check broke, and not its agent
    lines = _transcript_lines(folder, record)
    of_kind: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        of_kind.setdefault(line.pop("type"), []).append(line)
    try:
        answer = of_kind["answer"][-1]
        transcript = Transcript(
            final_text=answer["text"],
            finished=answer["finished"],
            tool_calls=tuple(ToolCall.model_validate(line) for line in of_kind.get("tool", ())),
            skills_used=tuple(SkillUse.model_validate(line) for line in of_kind.get("skill", ())),
            skills_visible=record.exposure.listed,
            tokens=record.tokens,
            cost_usd=record.cost_usd,
        )
        prompt = of_kind["prompt"][0]["text"]
    except (ValidationError, KeyError):
        raise _fault("its transcript cannot be read") from None
    if not transcript.finished and error is None:
        raise _fault("how its agent ended is not on record")
    context = "".join(line["text"] for line in of_kind.get("context", ()))
    if record.lane == Lane.PROMPT and not (folder / "workspace").exists():
        return Kept(transcript, error, prompt, context, None, {})
    return Kept(transcript, error, prompt, context, folder / "workspace", _given(folder))


def _transcript_lines(folder: Path, record: TrialRecord) -> list[dict[str, Any]]:
    if record.transcript is None:
        raise _fault("it has no transcript")
    try:
        data = (folder / "transcript.jsonl").read_bytes()
    except OSError as error:
        raise _fault(f"its transcript cannot be read: {error.strerror or error}") from None
    if hashlib.sha256(data).hexdigest() != record.transcript.digest:
        raise _fault("its transcript changed since")
    try:
        return [dict(json.loads(line)) for line in data.splitlines()]
    except (ValueError, TypeError):
        raise _fault("its transcript cannot be read") from None


def _given(folder: Path) -> dict[str, str]:
    """Return what the agent was given, once the kept workspace is proven to be as it was.

    Raises:
        TrialFault: It is not there, or changed since.
    """
    if not (folder / "workspace").is_dir() or (folder / "workspace").is_symlink():
        raise _fault("its workspace was not kept (--skilleval-keep=all keeps them)")
    try:
        body = read_sealed(folder / "workspace.json")
        given, left = dict(body["given"]), dict(body["left"])
    except FileNotFoundError:
        raise _fault("its workspace was kept without saying what it held") from None
    except (JournalDamage, OSError, KeyError, TypeError, ValueError) as error:
        raise _fault(f"what its workspace held cannot be read: {error}") from None
    if evidence.snapshot(folder / "workspace") != left:
        raise _fault("its kept workspace changed since")
    return given


def placed(kept: Kept, root: Path) -> Kept:
    """Return a trial with the paths that it would have seen in another home.

    Args:
        kept: As it was read.
        root: The folder that now holds home, workspace and temp files.
    """
    text = kept.transcript.model_dump_json(by_alias=True)
    moved = _PLACES.sub(lambda _: json.dumps(str(root))[1:-1], text)
    return kept._replace(transcript=Transcript.model_validate_json(moved))


def mismatch(
    kept: Kept, prompt: str, context: str, given: Mapping[str, str], clean: Callable[[str], str]
) -> str | None:
    """Return why a case asks something else now than it asked then; None when it asks the same.

    Args:
        kept: What was asked, and given.
        prompt: What the case asks now.
        context: What it puts before the prompt now.
        given: What it gives now.
        clean: What was done to a text before it was stored.
    """
    if clean(prompt) != kept.prompt:
        return "its prompt changed since"
    if not kept.context.startswith(clean(context)):
        return "its context changed since"
    if kept.workspace is not None and dict(given) != dict(kept.given):
        names = sorted(name for name in {*given, *kept.given} if given.get(name) != kept.given.get(name))
        return f"what its agent is given changed since: {', '.join(names[:5])}"
    return None


def _fault(message: str) -> TrialFault:
    return TrialFault(ErrorClass.REPLAY, message)
