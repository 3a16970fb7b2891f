"""Checks of all that the agent produced."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_skilleval.scoring.verifiers import verify_all

from .trials import MakeFacts

FILES = {
    "given.txt": "alpha",
    "edited.txt": "beta two",
    "made/new.py": "gamma()\n",
    "data.bin": b"delta\x00",
    ".git/x": "eps",
}
BEFORE = {"given.txt": "alpha", "edited.txt": "beta one"}


@pytest.mark.parametrize(
    ("check", "holds", "reason"),
    [
        ({"contains": "omega"}, True, "the answer and 2 files are as wanted"),
        ({"contains": "gamma()"}, True, "as wanted"),
        ({"contains": "beta two"}, True, "as wanted"),
        ({"contains": "alpha"}, False, "the answer and 2 files do not contain 'alpha'"),
        ({"contains": "delta"}, False, "do not contain"),
        ({"contains": "eps"}, False, "do not contain"),
        ({"matches": "^gamma"}, True, "as wanted"),
        ({"matches": "^amma"}, False, "do not match '^amma'"),
        ({"never": "beta"}, False, "edited.txt must not match 'beta', and does: 'beta two'"),
        ({"never": "omega"}, False, "the answer must not match"),
        ({"never": "alpha"}, True, "as wanted"),
        ({"contains": "omega", "never": "gamma"}, False, "made/new.py must not match"),
    ],
)
def test_the_answer_and_changed_text_files_are_looked_at(
    check: dict[str, Any], holds: bool, reason: str, make_facts: MakeFacts
) -> None:
    facts = make_facts(
        checks=[{"id": "it", "kind": "output", **check}], files=FILES, before=BEFORE, answer="Done: omega."
    )
    (result,) = verify_all(facts.case.spec.checks, facts).results
    assert (result.passed, result.error) == (holds, False)
    assert reason in result.reason
