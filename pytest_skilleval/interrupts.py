"""How a session is stopped: a signal becomes one orderly interrupt, and the workers learn of it at once.

    controller                                        worker
    1. holds <run>/session locked                 ->  waits for that lock in a thread, from its first trial on
    2. Ctrl-C, TERM, HUP: gives the lock up, as   ->  gets it: gives its trial up, clears its processes and homes,
       its death does, however it dies                ends; at the latest after ten seconds
    3. reports, exits with 2, 143 or 129
    *. Ctrl-C again: removes the file             ->  ends at once; its supervisors clear up

A session without workers needs no such file. Handlers that somebody else has set stay, and so does an ignored signal.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

__all__ = ["Stopped", "Stopping", "Watch", "shorten"]

_NAME = "session"
_ENDING = 10.0
"""Seconds that a worker may take to end: those that xdist gives it too."""
_REPORTING = 10.0
"""Seconds from the start of the reports in which a further Ctrl-C does not cut them off; they take one or two."""
_AGAIN = 2.0
"""Seconds after an interrupt in which another signal says nothing new: a terminal signals every process itself."""
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


class Stopped(KeyboardInterrupt):
    """The session was told to stop by a signal other than Ctrl-C."""


class _Handlers:
    """Signal handlers that replace Python's and the system's defaults, and only those, until they are put back."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, object] = {}

    def take(self, handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> None:
        """Handle these signals, as far as nobody else does; only a main thread may."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in numbers:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                self._before[number] = signal.signal(number, handler)

    def holds(self, number: signal.Signals) -> bool:
        """Tell whether a signal is handled here."""
        return number in self._before

    def give_back(self) -> None:
        """Put back what was there."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # as it was
        self._before.clear()


def shorten(excinfo: pytest.ExceptionInfo[BaseException], config: pytest.Config) -> None:
    """Keep of an interrupt's traceback the last entry, which is all that pytest shows of it.

    Rendering the sources of forty others takes it most of a second, in every worker.
    """
    if not config.getoption("fulltrace", default=False):
        excinfo.traceback = type(excinfo.traceback)(excinfo.traceback[-1:])


class Stopping:
    """The hooks that stop a session in good order; for the controller, and for a session without workers.

    Args:
        config: Of the session.
        folder: The run folder; while it is not there the session has no evals, and signals do what they always do.
    """

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self.exit_status: int | None = None
        """What the session ends with after a signal other than Ctrl-C."""
        self._folder = folder
        self._config = config
        self._handlers = _Handlers()
        self._session: int | None = None
        self._signals = 0
        self._shielded = 0.0

    def start(self) -> None:
        """Handle signals until the session's end."""
        self._handlers.take(self._on_signal, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    @property
    def pressed_again(self) -> bool:
        """Whether a further signal has come before the reports."""
        return self._signals > 1

    def shield(self) -> None:
        """Let no further Ctrl-C cut off the reports."""
        self._shielded = time.monotonic() + _REPORTING

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        ours = self._folder.is_dir()
        if not ours and number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        if ours and time.monotonic() < self._shielded:
            return
        self._signals += 1
        self._let_go()
        if self._signals > 1:
            self._remove()
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        self.exit_status = 128 + number
        raise Stopped(f"stopped by {signal.Signals(number).name}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Take the session file before the first trial is handed out."""
        if self._session is not None or not self._folder.is_dir():
            return
        # Without the file workers learn of the end by xdist, five seconds later.
        with contextlib.suppress(OSError):
            path = self._folder / _NAME
            path.unlink(missing_ok=True)  # a killed session's
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._session = descriptor

    def pytest_keyboard_interrupt(self) -> None:
        """Tell the workers, wherever the interrupt came from, and the user how to hurry it."""
        self._let_go()
        if self._signals == 1 and self.exit_status is None:
            terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
            if terminal is not None:
                with contextlib.suppress(OSError):
                    terminal.write_line("stopping; press Ctrl-C again to force")

    def pytest_unconfigure(self) -> None:
        """Leave nothing behind."""
        self._let_go()
        self._remove()
        self._handlers.give_back()

    def _let_go(self) -> None:
        if self._session is not None:
            os.close(self._session)
            self._session = None

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            (self._folder / _NAME).unlink()


class Watch:
    """A worker's ear for the end of its session.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._handlers = _Handlers()
        self.heard = False
        """Whether pytest has taken an interrupt in."""
        self._controller = os.getppid()
        self._ended = False
        self._interrupted = -_AGAIN

    @property
    def orphaned(self) -> bool:
        """Whether the controller has died."""
        return os.getppid() != self._controller

    def start(self) -> None:
        """Listen until `end`; the controller holds the file by now, or the session is over."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | _FLAGS)
        except OSError:
            return  # another machine's worker, or a controller that could not write: xdist will tell
        self._handlers.take(self._interrupt, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        threading.Thread(target=self._wait, args=(descriptor,), name="skilleval-watch", daemon=True).start()

    def end(self) -> None:
        """Stop listening: this process's trials are over."""
        self._ended = True
        self._handlers.give_back()

    def _wait(self, descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        until = time.monotonic() + _ENDING
        again = 0.0
        while not self._ended and time.monotonic() < until and self._path.exists():
            if not self.heard and time.monotonic() >= again:
                # Once more, since an exception that strikes in a destructor or a callback is dropped.
                again = time.monotonic() + _AGAIN
                self._tell()
            time.sleep(0.05)
        if not self._ended:
            os._exit(1)

    def _tell(self) -> None:
        """Interrupt the main thread by a real signal: it may be waiting in a system call."""
        if self._handlers.holds(signal.SIGTERM):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._ended or now - self._interrupted < _AGAIN / 2:
            return
        self._interrupted = now
        raise KeyboardInterrupt
