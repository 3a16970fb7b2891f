"""Checks of all that the agent produced: its final answer, and the text files that it made or changed."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_skilleval.casespec import OutputCheck

from .facts import Facts
from .finding import Finding, no, yes
from .folder import Folder, Refused
from .patterns import one_line, search

__all__ = ["check_output", "produced"]


def check_output(check: OutputCheck, facts: Facts) -> Finding:
    """Look for pieces and patterns in each text; what must never be there may be in none.

    Raises:
        TrialFault: A pattern runs out of time.
    """
    texts = list(produced(facts))
    names = f"the answer and {len(texts) - 1} files"
    if check.contains is not None and not any(check.contains in text for _, text in texts):
        return no(f"{names} do not contain {one_line(check.contains, 80)!r}")
    if check.matches is not None and not any(search(check.matches, text) for _, text in texts):
        return no(f"{names} do not match {check.matches!r}")
    for name, text in texts:
        hit = search(check.never, text) if check.never is not None else None
        if hit:
            return no(f"{name} must not match {check.never!r}, and does: {hit.line!r}")
    return yes(f"{names} are as wanted")


def produced(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield name and text of the answer and of each text file that is not as the agent was given it."""
    yield "the answer", facts.transcript.final_text
    folder = Folder(facts.workspace)
    for name in folder.matches("**/*"):
        try:
            given = (facts.before or {}).get(name)
            if given is None or folder.digest(name) != given:
                text = folder.text(name)
                if "\0" not in text:
                    yield name, text
        except Refused:
            continue
