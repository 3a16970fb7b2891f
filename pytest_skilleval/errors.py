"""Everything that can go wrong, in one tree.

SkillevalError
|-- UserMistake            bad input; one line, exit status 4, nothing has run
|   |-- OptionMistake      a flag or ini key
|   |-- CaseMistake        a case file: path, line and key
|   |-- SkillMistake       a SKILL.md folder
|   |-- BaselineMistake    a baseline that cannot be read or compared
|   `-- RunFolderMistake   a run folder that is taken, foreign or incomplete
|-- TrialFault             a trial that could not be measured: outcome `error`, with its class
`-- JournalDamage          a journal file that is torn, flipped, foreign or empty
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BaselineMistake",
    "CaseMistake",
    "ErrorClass",
    "JournalDamage",
    "OptionMistake",
    "RunFolderMistake",
    "SkillMistake",
    "SkillevalError",
    "TrialFault",
    "UserMistake",
]


class ErrorClass(StrEnum):
    """Why a trial could not be measured (or, for the graded ones, how it ended badly)."""

    RATE_LIMIT = "rate_limit"
    """The provider refused for a while (429)."""
    OVERLOADED = "overloaded"
    """The provider has no room (529, 503)."""
    SERVER_ERROR = "server_error"
    """The provider failed (5xx)."""
    NETWORK = "network"
    """No connection, or a stream that was cut."""
    AUTH = "auth"
    """No valid login or key."""
    QUOTA = "quota"
    """Credit, plan or usage limit is spent."""
    MODEL_NOT_FOUND = "model_not_found"
    """The provider does not know the model."""
    BAD_REQUEST = "bad_request"
    """A flag, setting or request that the provider does not take."""
    CONTEXT_TOO_LONG = "context_too_long"
    """The conversation no longer fits the model."""
    REFUSAL = "refusal"
    """The model declined to answer."""
    MAX_TURNS = "max_turns"
    """The step, token or cost budget of the case is used up."""
    TIMEOUT = "timeout"
    """The wall-clock budget of the case is used up."""
    NO_RESULT = "no_result"
    """The agent ended without its terminal event: a crash, or a signal."""
    SPAWN = "spawn"
    """The agent's command could not be started."""
    SETUP = "setup"
    """The workspace could not be made ready."""
    CHECK = "check"
    """A check, scorer or assertion helper raised, or a pattern ran out of time."""
    TAMPERED = "checker_tampered"
    """A file that a check needs changed during the run."""
    CONTAMINATED = "contaminated"
    """The agent could see a skill that its condition forbids."""
    DISK = "disk"
    """The trial went over its file or disk quota, or the disk is full."""
    RECORD = "record"
    """The record could not be written."""
    WORKER_DIED = "worker_died"
    """The process that ran the trial was killed."""
    REPLAY = "replay"
    """No recording fits this trial."""
    INTERNAL = "internal"
    """A defect of this plugin or of an extension."""


class SkillevalError(Exception):
    """Base of all errors that this package raises on purpose."""


class UserMistake(SkillevalError):
    """Bad input: said in one line, with what is allowed and what to do; pytest exits with status 4."""


class OptionMistake(UserMistake):
    """A flag or ini key with a value that is not allowed."""


class CaseMistake(UserMistake):
    """A mistake in a case file.

    Args:
        path: The case file.
        line: 1-based line of the mistake, or None when the file has no such line.
        key: Dotted path of the key, such as `cases[2].checks[0].kind`, or "".
        message: What happened and what is allowed.
    """

    def __init__(self, path: Path | str, line: int | None, key: str, message: str) -> None:
        self.path = path
        self.line = line
        self.key = key
        self.message = message
        where = f"{path}:{line}" if line else f"{path}"
        super().__init__(f"{where}: {key}: {message}" if key else f"{where}: {message}")


class SkillMistake(UserMistake):
    """A skill folder that cannot be used as it is."""


class BaselineMistake(UserMistake):
    """A baseline that cannot be found, read or trusted."""


class RunFolderMistake(UserMistake):
    """A run folder that is taken, foreign, or does not fit what was asked."""


class TrialFault(SkillevalError):
    """A trial that could not be measured.

    Args:
        error_class: What kind of fault.
        message: One line for the record.
    """

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        self.error_class = error_class
        self.message = message
        super().__init__(f"{error_class.value}: {message}")


class JournalDamage(SkillevalError):
    """A journal file that cannot be trusted; it is named, counted and its trial runs again."""
