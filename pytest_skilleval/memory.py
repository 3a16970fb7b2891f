"""The garbage collector, held while objects are made that stay."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["collector_held"]


@contextmanager
def collector_held() -> Iterator[None]:
    """Hold the garbage collector: walking the growing tree again and again costs four fifths of a large file's time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
