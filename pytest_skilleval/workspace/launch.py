"""A command becomes a process: in a session of its own, with nothing inherited that it was not given."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LIMITS = {
    "file_size": resource.RLIMIT_FSIZE,
    "processes": resource.RLIMIT_NPROC,
    "open_files": resource.RLIMIT_NOFILE,
    "core": resource.RLIMIT_CORE,
}


class LaunchError(Exception):
    """The command could not be started; the text says why."""


def fs_bytes(text: str) -> bytes:
    """Return the file system bytes that the worker sent as latin-1 text."""
    return text.encode("latin-1")


def settle_signals() -> None:
    """Make this process deaf to what is meant for pytest, and what it starts deaf to nothing.

    An ignored signal stays ignored over exec (a shell's `&`, `nohup`), one with a handler goes back to its default.
    So the three have handlers that do nothing, and whatever was ignored is not any more.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, getattr(signal, "SIGXFSZ", signal.SIGPIPE)}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def open_input(path: bytes | None) -> int:
    """Open the file for standard input, or `/dev/null`: never a pipe or terminal that somebody else may hold open.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    if path is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{os.fsdecode(path)} is not a regular file")
    os.set_blocking(descriptor, True)
    return descriptor


def launch(order: dict[str, Any], stdin: int, stdout: int, stderr: int, status: int) -> int:
    """Start the command of an order.

    Args:
        order: `argv`, `cwd`, `env`, `limits` as the worker sent them.
        stdin: Descriptors the command gets as its first three.
        stdout: See stdin.
        stderr: See stdin.
        status: Descriptor that bubblewrap reports to, or -1 without a sandbox.

    Returns:
        The process id, leader of a session and a process group of its own.

    Raises:
        LaunchError: The folder or the program is not there, or may not be run.
    """
    argv = [fs_bytes(word) for word in order["argv"]]
    env = {fs_bytes(name): fs_bytes(value) for name, value in order["env"].items()}
    program = _find(argv[0], env)
    if status >= 0:
        argv[1:1] = [b"--json-status-fd", b"%d" % status]
        os.set_inheritable(status, True)  # noqa: FBT003 - positional only
    try:
        with _limited(order["limits"]):
            # Without a function to run before exec, subprocess can use vfork, which is a millisecond faster than fork.
            started = subprocess.Popen(
                argv,
                executable=program,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=fs_bytes(order["cwd"]),
                env=env,
                start_new_session=True,
                close_fds=False,  # all descriptors here close themselves at exec, but for `status`
                umask=0o022,
            )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise LaunchError(f"could not start {order['argv'][0]!r}: {error}") from None
    started.returncode = 0  # reaped elsewhere: the object must not wait for this process id again
    _harden(started.pid, order["limits"])
    return started.pid


def _find(name: bytes, env: dict[bytes, bytes]) -> bytes:
    if b"/" in name:
        return name
    for folder in env.get(b"PATH", b"").split(b":"):
        # An empty or relative entry would be looked up in the agent's own folder.
        path = os.path.join(folder, name)  # noqa: PTH118 - bytes
        if folder.startswith(b"/") and os.access(path, os.X_OK) and stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            return path
    raise LaunchError(f"could not start {os.fsdecode(name)!r}: not found in the PATH of the trial")


@contextmanager
def _limited(limits: dict[str, int | None]) -> Iterator[None]:
    """Lower this process's soft limits while a child is made, which inherits them."""
    before = [(_LIMITS[name], resource.getrlimit(_LIMITS[name]), value) for name, value in limits.items()]
    try:
        for kind, (_, hard), value in before:
            if value is not None:
                resource.setrlimit(kind, (_capped(value, hard), hard))
        yield
    finally:
        for kind, was, _ in before:
            resource.setrlimit(kind, was)


def _harden(pid: int, limits: dict[str, int | None]) -> None:
    """Make the soft limits final, so that the command cannot raise them again (Linux).

    It could within the first millisecond: the limits are there against accidents, not against an attack.
    """
    if not hasattr(resource, "prlimit"):
        return
    for name, value in limits.items():
        if value is not None and name != "open_files":  # programs raise their own within the system's hard limit
            try:
                most = _capped(value, resource.prlimit(pid, _LIMITS[name])[1])
                resource.prlimit(pid, _LIMITS[name], (most, most))
            except (OSError, ValueError):
                return  # it has ended already


def _capped(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
