"""How much a home holds: looked up now and then while the agent works, and once when it has ended."""

from __future__ import annotations

import os
import time

_FIRST = 0.5
_EVERY = 1.0
_SHARE = 20  # looking takes at most one part in so many of the time


class Quota:
    """Limits on what lies below a folder; hard links are counted each time, links are not followed.

    Args:
        folder: Where to look.
        disk: Bytes on disk, or None.
        files: Files and folders, or None.
    """

    def __init__(self, folder: bytes, disk: int | None, files: int | None) -> None:
        self._folder = folder
        self._disk = disk
        self._files = files
        self.due = time.monotonic() + _FIRST if disk is not None or files is not None else float("inf")
        """When to look next, by the monotonic clock."""

    def exceeded(self) -> str:
        """Look, and return what is over its limit in a sentence, or nothing."""
        if self.due == float("inf"):
            return ""
        started = time.monotonic()
        disk, files = self._usage()
        ended = time.monotonic()
        self.due = ended + max(_EVERY, _SHARE * (ended - started))
        if self._files is not None and files > self._files:
            return f"more than {self._files} files in its home (limit {self._files})"
        if self._disk is not None and disk > self._disk:
            return f"{disk} bytes on disk in its home (limit {self._disk})"
        return ""

    def _usage(self) -> tuple[int, int]:
        disk = files = 0
        pending = [self._folder]
        while pending:
            try:
                with os.scandir(pending.pop()) as entries:
                    for entry in entries:
                        files += 1
                        try:
                            if entry.is_dir(follow_symlinks=False):
                                pending.append(entry.path)
                            disk += entry.stat(follow_symlinks=False).st_blocks * 512
                        except OSError:
                            continue  # gone while we looked
            except OSError:
                continue  # gone, or closed to us
            if self._files is not None and files > self._files:
                break
        return disk, files
