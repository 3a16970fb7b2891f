"""What a supervisor is asked to run, and what it answers."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .sandbox import SandboxPlan

Reason = Literal["exited", "timeout", "cancelled", "quota", "lingered", "spawn_failed"]
"""Why a command ended: by itself, at the wall, with its worker, over a quota, after its result, or never began."""

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Kernel limits of the command and all it starts; `None` leaves what the worker has. Never above the hard limit."""

    file_size: int | None = 2048 * MIB
    """Bytes in one file (RLIMIT_FSIZE)."""
    processes: int | None = None
    """Processes of this user on the machine, not of this trial (RLIMIT_NPROC); root is exempt from it."""
    open_files: int | None = 8192
    """Open files in one process (RLIMIT_NOFILE)."""
    core: int = 0
    """Bytes of a core dump (RLIMIT_CORE)."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command of a trial."""

    argv: tuple[str, ...]
    """Program and arguments. The program is looked up in the PATH of `env`."""
    cwd: Path
    env: Mapping[str, str]
    """The whole environment; nothing of the worker's is added."""
    stdout: Path
    """Where the output goes; the folder exists."""
    stderr: Path
    stdin: Path | None = None
    """A file to read from; without one the command reads end of file at once."""
    timeout: float
    """Seconds by the monotonic clock until `stop` begins."""
    stop: tuple[tuple[int, float], ...] = ((signal.SIGINT, 2.5), (signal.SIGTERM, 1.0))
    """Signals sent to the command's process group at the wall, each with its seconds of grace; then all is killed."""
    output_limit: int = 64 * MIB
    """Bytes kept of each stream."""
    line_limit: int = 8 * MIB
    """Bytes of a line that is kept whole; 64 KiB at least."""
    json_lines: bool = True
    """Where stdout is cut, say so by a JSON object on a line of its own, else by a line of text as in stderr."""
    secrets: tuple[str, ...] = ()
    """Values that are masked in both streams before the first byte is written."""
    result_markers: tuple[bytes, ...] = ()
    """A whole line of stdout that holds all of these is the command's last word; it is kept over `output_limit`."""
    linger: float = 2.0
    """Seconds the command may live on after that line."""
    limits: Limits = field(default_factory=Limits)
    disk_limit: int | None = None
    """Bytes on disk below the home; looked up about once a second and at the end."""
    file_limit: int | None = None
    """Files and folders below the home."""
    sandbox: SandboxPlan | None = None


@dataclass(frozen=True, kw_only=True)
class Stream:
    """What came out of one stream."""

    bytes_total: int
    """Bytes read from the command."""
    bytes_kept: int
    """Bytes in the file."""
    truncated: bool
    """True when anything was cut, a line or the rest."""
    sha256: str
    """Digest of all bytes after redaction, cut ones too: of the file itself when nothing was cut."""
    cut_lines: int
    """Lines that were longer than `line_limit`."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended; by then its process tree is dead (see `tree`)."""

    exit_status: int | None
    """As the command gave it; a sandboxed command that died of signal n shows 128 + n."""
    signal: int | None
    reason: Reason
    message: str
    """One sentence for people; empty for a plain exit."""
    duration: float
    """Seconds from start to the end of the command itself, by the monotonic clock."""
    cpu: float | None
    """User and system seconds of the tree, as far as it was waited for."""
    stdout: Stream
    stderr: Stream
    killed: int
    """Processes that were still there after the end and were killed."""
    tree: Literal["dead", "unproven"]
    """`dead` when the kernel has confirmed that no descendant is left."""
    last_output_age: float | None
    """Seconds from the last byte of output to the end; None without output."""
    sandbox: Literal["bubblewrap", "none"]
    max_rss: int | None
    """Peak bytes of the largest process of the tree."""
