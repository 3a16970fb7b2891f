"""Checks of files in the finished workspace: file and snapshot."""

from __future__ import annotations

from pytest_skilleval.casespec import FileCheck, SnapshotCheck, TextConditions
from pytest_skilleval.errors import ErrorClass, TrialFault

from .facts import Facts
from .finding import Finding, no, yes
from .folder import Folder, Refused
from .patterns import cut_note, one_line, search
from .terminal import plain_text

__all__ = ["check_file", "check_snapshot", "text_problem"]


def text_problem(wanted: TextConditions, text: str) -> str | None:
    """Return what of a text is not as wanted, or None.

    Raises:
        TrialFault: A pattern runs out of time.
    """
    shown = one_line(text, 80)
    if wanted.equals is not None and text.rstrip("\r\n") != wanted.equals.rstrip("\r\n"):
        return f"is {shown!r}, wanted {one_line(wanted.equals, 80)!r}"
    if wanted.contains is not None and wanted.contains not in text:
        return f"does not contain {one_line(wanted.contains, 80)!r}; it begins {shown!r}"
    if wanted.matches is not None and search(wanted.matches, text) is None:
        return f"does not match {wanted.matches!r}{cut_note(text)}; it begins {shown!r}"
    if wanted.never is not None:
        hit = search(wanted.never, text)
        if hit:
            return f"must not match {wanted.never!r}, and does: {hit.line!r}"
    return None


def _has_text_conditions(wanted: TextConditions) -> bool:
    return any(value is not None for value in (wanted.equals, wanted.contains, wanted.matches, wanted.never))


def check_file(check: FileCheck, facts: Facts) -> Finding:
    """Look at a file: there, absent, its text, and whether it differs from what the agent was given."""
    folder = Folder(facts.workspace)
    try:
        if not check.exists:
            found = folder.matches(check.path)
            return no(f"{found[0]} is there, and must not be") if found else yes("it is absent")
        name = folder.find(check.path)
        problem, note = _change_problem(check, facts, folder, name), ""
        if problem is None:
            if _has_text_conditions(check):
                text = folder.text(name)
                problem, note = text_problem(check, text), cut_note(text)
            else:
                folder.read(name)
    except Refused as refusal:
        return no(str(refusal))
    return yes(f"{name} is as wanted{note}") if problem is None else no(f"{name} {problem}")


def _change_problem(check: FileCheck, facts: Facts, folder: Folder, name: str) -> str | None:
    if check.changed is None:
        return None
    if facts.before is None:
        raise TrialFault(ErrorClass.CHECK, "what the agent was given is not known, so no change can be told")
    given = facts.before.get(name)
    same = given is not None and folder.digest(name) == given
    if check.changed:
        return "is still what the agent was given" if same else None
    if given is None:
        return "was not there when the agent started, so it cannot be unchanged"
    return None if same else "was changed, and must not be"


def check_snapshot(check: SnapshotCheck, facts: Facts) -> Finding:
    """Look at the text of a terminal screen, without its colours."""
    folder = Folder(facts.workspace)
    try:
        name = folder.find(check.path)
        text = plain_text(folder.text(name))
    except Refused as refusal:
        return no(str(refusal))
    if not text.strip():
        return no(f"{name} is an empty screen")
    problem = text_problem(check, text)
    return yes(f"{name} is as wanted") if problem is None else no(f"{name} {problem}")
