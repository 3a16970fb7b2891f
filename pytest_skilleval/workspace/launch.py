"""A command becomes a process: in a session of its own, with nothing inherited that it was not given."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import stat
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
    if status >= 0:
        argv[1:1] = [b"--json-status-fd", b"%d" % status]
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        # The supervisor has one thread, so that a plain fork may do here what `preexec_fn` may not.
        try:
            _become(argv, env, order, (stdin, stdout, stderr), status)
        except BaseException as error:  # noqa: BLE001 - whatever it is, this process must end here
            text = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
            os.write(tell, text.encode(errors="replace"))
        os._exit(127)
    os.close(tell)
    try:
        failure = os.read(told, 4096)
    finally:
        os.close(told)
    if failure:
        os.waitpid(pid, 0)
        raise LaunchError(f"could not start {order['argv'][0]!r}: {failure.decode(errors='replace')}")
    return pid


def _become(
    argv: list[bytes], env: dict[bytes, bytes], order: dict[str, Any], streams: tuple[int, ...], status: int
) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        # Ignored signals survive exec: what the supervisor, or a shell's `&` before it, ignores must not reach here.
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for target, source in enumerate(streams):
        os.dup2(source, target)
    if status >= 0:
        os.set_inheritable(status, True)  # noqa: FBT003 - positional only
    os.umask(0o022)
    for name, value in order["limits"].items():
        if value is not None:
            hard = resource.getrlimit(_LIMITS[name])[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(_LIMITS[name], (most, most if name != "open_files" else hard))
    os.chdir(fs_bytes(order["cwd"]))
    _exec(argv, env)


def _exec(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    if b"/" in argv[0]:
        os.execve(argv[0], argv, env)  # noqa: S606 - the command a case names
    failure: OSError = FileNotFoundError(2, "not found in the PATH of the trial")
    for folder in env.get(b"PATH", b"").split(b":"):
        if not folder.startswith(b"/"):
            continue  # an empty or relative entry would be looked up in the agent's own folder
        try:
            os.execve(folder + b"/" + argv[0], argv, env)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            failure = error
    raise failure
