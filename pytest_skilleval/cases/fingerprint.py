"""The fingerprint of a case: equal exactly when the same is asked and judged in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_skilleval.model import CaseSpec, Lane, canonical_json, digest_text

__all__ = ["fingerprint"]

NOT_COVERED = frozenset(
    {
        "id",
        "lane",
        "category",
        "description",
        "conditions",
        "stale",
        "solution",
        "answer",
        "stub",
        "min_pass_rate",
    }
)
"""What may change while old results stay comparable. (The lane is covered: it is added resolved.)"""


def fingerprint(lane: Lane, spec: CaseSpec, digests: Mapping[str, str]) -> str:
    """Return 16 hex digits over what is asked and how it is judged.

    Only what differs from a default enters, so that a key which a later version adds changes no fingerprint.

    Args:
        lane: The case's lane.
        spec: The case.
        digests: SHA-256 of each file that it names, by relative path; for a Python case, of its source.
    """
    asked: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True, exclude=set(NOT_COVERED))
    for check, given in zip(asked.get("checks", ()), spec.checks, strict=False):
        check.pop("description", None)
        if given.kind == "json" and given.equals is None and "equals" in given.model_fields_set:
            check["equals"] = None
    return digest_text(canonical_json(["case/1", lane.value, asked, dict(digests)]))[:16]
