"""Values that never change: their base class, their one JSON text, and the digest of a text."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from pytest_skilleval.described import Described

__all__ = ["NOTHING", "Frozen", "canonical_json", "digest_text"]

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, ASCII, no spaces, NaN refused."""
    return _CANONICAL.encode(value)


def digest_text(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes as 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


NOTHING: Any = Field(default_factory=dict, json_schema_extra={"default": {}})
"""An empty mapping as a default; pydantic would copy one that it is given, which costs more than making it."""


class Frozen(Described, BaseModel):
    """A value: immutable, and strict about names it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return itself: a value is never changed, and pydantic copies each default that holds a mapping."""
        return self
