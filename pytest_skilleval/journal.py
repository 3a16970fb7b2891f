"""Intent and record of each trial: one small file each, written whole or not at all.

How a record reaches the disk, in this order, so that a reader never sees half of one:

1. The text is written to a hidden file beside its place (`.record.json.<pid>`), created exclusively.
2. That file is synced.
3. It is renamed to its place, which replaces what was there in one step.
4. The folder is synced, so that the name survives a power cut too.

A file is `{"checksum": "<sha256 of body>", "body": {...}}`; the body's text is canonical JSON.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from pytest_skilleval.errors import JournalDamage, RunFolderMistake
from pytest_skilleval.frozen import canonical_json
from pytest_skilleval.model import TrialId
from pytest_skilleval.records import Intent, Plan, TrialRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Entry",
    "Journal",
    "claim_run",
    "hold",
    "is_held",
    "read_plan",
    "read_sealed",
    "take_over",
    "write_aside",
    "write_plan",
    "write_sealed",
]

MAX_BYTES = 64 * 1024 * 1024
"""A larger journal file is damage: records name transcripts, they do not hold them."""

_SEAL = '{{"checksum":"{}","body":'
_END = "}\n"
_HEAD = len(_SEAL.format("0" * 64))
_TAIL = len(_END)

_Model = TypeVar("_Model", bound=BaseModel)


def write_aside(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: The disk is full, or the folder is gone or read-only. The file's former content is then untouched.
    """
    # Plain strings: this runs twice a trial, and path objects cost as much as the system calls.
    folder, name = os.path.split(path)
    folder = folder or "."
    aside = f"{folder}/.{name}.{os.getpid()}"
    descriptor = _open_aside(aside)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(aside, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)  # noqa: PTH108
        raise
    _sync_folder(folder)


def _open_aside(aside: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(aside, flags, 0o644)
    except FileExistsError:
        # A process with our number was killed here once.
        os.unlink(aside)  # noqa: PTH108
        return os.open(aside, flags, 0o644)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that their names survive a power cut too."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
    _sync_folder(str(folder.parent))


def write_sealed(path: Path, body: dict[str, Any]) -> None:
    """Write a body with its checksum, whole or not at all."""
    text = canonical_json(body)
    checksum = hashlib.sha256(text.encode("ascii")).hexdigest()
    write_aside(path, f"{_SEAL.format(checksum)}{text}{_END}".encode("ascii"))


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a body back.

    Raises:
        FileNotFoundError: There is no such file.
        JournalDamage: It is empty, torn, flipped, too large, or no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise JournalDamage(f"{path}: larger than {MAX_BYTES} bytes")
    if not data:
        raise JournalDamage(f"{path}: empty")
    try:
        sealed = json.loads(data)
        body = sealed["body"]
        # As we wrote it, the body's text lies between a head and a tail of known length; else it is made again.
        intact = sealed["checksum"] == hashlib.sha256(data[_HEAD:-_TAIL]).hexdigest() or (
            sealed["checksum"] == hashlib.sha256(canonical_json(body).encode("ascii")).hexdigest()
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise JournalDamage(f"{path}: torn, or not a journal file") from None
    if not intact or not isinstance(body, dict):
        raise JournalDamage(f"{path}: its checksum does not fit its content")
    return body


class Entry(NamedTuple):
    """What the journal holds of one trial."""

    intent: Intent | None
    record: TrialRecord | None
    damage: tuple[str, ...]
    """What could not be trusted, one line each."""


class Journal:
    """The trials folder of one run.

    Args:
        run_folder: `<output>/<run-id>`.
        run: The run's id: a record of another run is foreign.
    """

    def __init__(self, run_folder: Path, run: str) -> None:
        self.run_folder = run_folder
        self.run = run

    def folder(self, trial: TrialId) -> Path:
        """Return the trial's folder, whether or not it is there."""
        return Path(f"{self.run_folder}/trials/{trial.folder}")

    def attempts(self, trial: TrialId) -> int:
        """Return how often a trial was started before."""
        if not self.folder(trial).exists():
            return 0
        intent = self.read(trial).intent
        return intent.attempt if intent is not None else 1

    def write_intent(self, intent: Intent) -> Path:
        """Say that a trial is about to start, and return its folder.

        Raises:
            OSError: It cannot be written, or the run folder is gone.
        """
        folder = self.folder(TrialId(intent.lane, intent.case, intent.condition, intent.trial))
        made = intent.attempt == 1 and self._make(folder)
        write_sealed(folder / "intent.json", intent.model_dump(mode="json", by_alias=True))
        if made:
            # After its content: a file system that has written the one has written the other, and is asked for nothing.
            _sync_folder(str(folder.parent))
        return folder

    def _make(self, folder: Path) -> bool:
        """Make a trial's folder; False when it was there."""
        try:
            os.mkdir(folder)  # noqa: PTH102
        except FileExistsError:
            return False
        except FileNotFoundError:
            if not self.run_folder.is_dir():
                raise FileNotFoundError(errno.ENOENT, "the run folder is gone", str(self.run_folder)) from None
            _make_folder(folder)
        return True

    def write_record(self, record: TrialRecord) -> None:
        """Say how a trial ended; on return it is on disk."""
        write_sealed(self.folder(record.id) / "record.json", record.model_dump(mode="json", by_alias=True))

    def read(self, trial: TrialId) -> Entry:
        """Read what is known of a trial; damage is named, never raised."""
        damage: list[str] = []
        intent = self._load(trial, "intent.json", Intent, damage)
        record = self._load(trial, "record.json", TrialRecord, damage)
        return Entry(intent, record, tuple(damage))

    def read_all(self, trials: Iterable[TrialId]) -> dict[TrialId, Entry]:
        """Read what is known of each trial."""
        return {trial: self.read(trial) for trial in trials}

    def strangers(self, trials: Iterable[TrialId]) -> tuple[str, ...]:
        """Return the names of trial folders that none of these trials owns, sorted."""
        known = {trial.folder for trial in trials}
        folder = self.run_folder / "trials"
        if not folder.is_dir():
            return ()
        return tuple(sorted(entry.name for entry in os.scandir(folder) if entry.name not in known))

    def _load(self, trial: TrialId, name: str, model: type[_Model], damage: list[str]) -> _Model | None:
        path = self.folder(trial) / name
        where = path.relative_to(self.run_folder)
        try:
            value = model.model_validate(read_sealed(path))
        except FileNotFoundError:
            return None
        except JournalDamage as error:
            damage.append(str(error).replace(str(path), str(where)))
            return None
        except OSError as error:
            damage.append(f"{where}: {error.strerror or error}")
            return None
        except ValidationError as error:
            damage.append(f"{where}: not a {model.__name__} ({error.error_count()} mistakes)")
            return None
        owner = TrialId(*(getattr(value, key) for key in TrialId._fields))
        if owner != trial or getattr(value, "run", None) != self.run:
            damage.append(f"{where}: belongs to {owner.key} of run {getattr(value, 'run', '?')}")
            return None
        return value


def write_plan(run_folder: Path, plan: Plan) -> None:
    """Write what the run set out to do."""
    write_sealed(run_folder / "plan.json", plan.model_dump(mode="json", by_alias=True))


def read_plan(run_folder: Path) -> Plan:
    """Read what the run set out to do.

    Raises:
        FileNotFoundError: The folder holds no plan.
        JournalDamage: The plan cannot be trusted.
    """
    try:
        return Plan.model_validate(read_sealed(run_folder / "plan.json"))
    except ValidationError as error:
        raise JournalDamage(f"{run_folder / 'plan.json'}: not a plan ({error.error_count()} mistakes)") from None


def claim_run(folder: Path, plan: Plan) -> None:
    """Take a run folder for this session; the processes of one session agree by their token.

    The first to come makes the folder and writes the plan; the others wait for it and compare tokens.

    Raises:
        RunFolderMistake: Another session holds the folder.
        OSError: The folder cannot be made.
    """
    _make_folder(folder.parent)
    ignore = folder.parent.parent / ".gitignore"
    if folder.parent.parent.name == ".skilleval" and not ignore.exists():
        ignore.write_text("*\n")
    try:
        folder.mkdir()
    except FileExistsError:
        holder = _wait_for_plan(folder)
        if holder.token != plan.token:
            raise RunFolderMistake(
                f"{folder}: another session holds this run folder; start again for a folder of your own"
            ) from None
        return
    _sync_folder(str(folder.parent))
    (folder / "trials").mkdir()
    write_plan(folder, plan)


def hold(folder: Path) -> int:
    """Say that this process works on a run, until the descriptor is closed or the process dies however it dies."""
    descriptor = _lock_file(folder)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def is_held(folder: Path) -> bool:
    """Tell whether some process works on a run now, or is about to."""
    return any(_is_locked(folder, name) for name in ("lock", "owner"))


def _is_locked(folder: Path, name: str) -> bool:
    if not (folder / name).exists():
        return False
    try:
        descriptor = _lock_file(folder, name)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def take_over(folder: Path, *, patience: float = 15.0) -> int:
    """Wait until no process works on a run any more, and keep others from taking it over.

    Two sessions may try at once: the one that owns the run waits for what is left of a killed one, the other for it.

    Args:
        folder: The run folder.
        patience: Seconds; the workers of a killed session need a few to notice and stop.

    Returns:
        A descriptor: the run is owned until it is closed, or this process dies.

    Raises:
        RunFolderMistake: Somebody still works on it.
    """
    deadline = time.monotonic() + patience
    owner = _lock_file(folder, "owner")
    try:
        _lock_alone(owner, folder, deadline)
        lock = _lock_file(folder)
        try:
            _lock_alone(lock, folder, deadline)
        finally:
            os.close(lock)
    except BaseException:
        os.close(owner)
        raise
    return owner


def _lock_alone(descriptor: int, folder: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise RunFolderMistake(f"{folder}: another session works on this run; wait for it or stop it") from None
            time.sleep(0.1)
        else:
            return


def _lock_file(folder: Path, name: str = "lock") -> int:
    return os.open(folder / name, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC, 0o644)


def _wait_for_plan(folder: Path) -> Plan:
    deadline = time.monotonic() + 30
    while True:
        try:
            return read_plan(folder)
        except FileNotFoundError:
            if time.monotonic() > deadline:
                raise RunFolderMistake(f"{folder}: the folder is there but holds no plan; remove it") from None
            time.sleep(0.01)
        except JournalDamage as error:
            raise RunFolderMistake(str(error)) from None
