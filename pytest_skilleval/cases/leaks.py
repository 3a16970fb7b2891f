"""What of a case gives the answer, the skill or the condition away before the agent has done anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_skilleval.documents import Loc
from pytest_skilleval.model import Case, Skill

from .namedfiles import file_digest
from .spec import Problem, shown

__all__ = ["EXPLICIT", "leaks"]

EXPLICIT = "explicit"
"""The category of cases whose prompt names the skill on purpose."""
COPIED_WORDS = 8
"""So many words in a row are no chance: of 5-grams, common English phrases still collide."""
MAX_TEXT = 200_000
"""Characters of a workspace file that are compared with the skill's text."""

_WORD = re.compile(r"[\u2e80-\U0003ffff]|[^\W\u2e80-\U0003ffff]+")
"""A word, or one character of a script that writes without spaces."""
_CONDITION_WORDS = re.compile(
    r"(?i)(?<![a-z])(?:self[-_ ]?load(?:ed)?|preload(?:ed)?|stale|(?:with|without|no)[-_]skill)(?![a-z])"
    r"|(?:^|/)none(?:\.[^/]*)?(?=/|$)"
)
_ANSWER_WORDS = re.compile(r"(?i)(?<![a-z])(?:answers?|solutions?|expected|rubric|grader|checker)(?![a-z])")


def leaks(case: Case, skill: Skill | None, *, search: Callable[[str, str], object] = re.search) -> list[Problem]:
    """Return what a case gives away, each with its key.

    Args:
        case: The case.
        skill: The skill that it should use, where it has one.
        search: How a pattern is looked for in a text; who does not trust the patterns gives one with a time limit.
    """
    found = [*_in_prompt(case), *_in_paths(case), *_in_expectations(case, search)]
    if skill is not None and case.skill == skill.name:
        found += _of_skill(case, skill)
    return found


def _of_skill(case: Case, skill: Skill) -> Iterator[Problem]:
    spec = case.spec
    for key in ("prompt", "context"):
        text = getattr(spec, key)
        name = _named(skill.name, text)
        if name and spec.category != EXPLICIT:
            news = f"names the skill ({shown(name)}), so `none` hears of it and `self-load` is led to it"
            yield Problem((key,), f"{news}; reword it, or say `category: {EXPLICIT}`")
        if copied := _copied(text, skill):
            yield Problem((key,), _COPY.format(shown(copied, 90)))
    for file, text in _workspace_texts(case):
        if copied := _copied(text, skill):
            yield Problem(("workspace",), f"{file} {_COPY.format(shown(copied, 90))}")


_COPY = "holds words of SKILL.md ({}), so `none` reads them too; use others"


def _named(name: str, text: str) -> str | None:
    """Return how a text names a skill; a name of one word must be marked as one, since `pdf` is also a word."""
    spelt = r"[-_ ]".join(map(re.escape, re.split(r"[-_ ]", name)))
    marked = rf"(?:[$/`]{spelt}|\bskills? (?:named |called )?[\"'`]?{spelt}|{spelt}[\"'`]? skill)\b"
    pattern = rf"\b{spelt}\b" if re.search(r"[-_ ]", name) else marked
    match = re.search(pattern, text, re.IGNORECASE)
    return match[0] if match else None


def _copied(text: str, skill: Skill) -> str | None:
    """Return the longest run of words that a text shares with a skill, when it is no chance."""
    theirs = _words(f"{skill.description}\n{skill.body}")
    runs = {tuple(theirs[start : start + COPIED_WORDS]) for start in range(len(theirs) - COPIED_WORDS + 1)}
    words = _words(text)
    best: list[str] = []
    start = 0
    while start + COPIED_WORDS <= len(words):
        end = start
        while tuple(words[end : end + COPIED_WORDS]) in runs:
            end += 1
        if end > start:
            best = max(best, words[start : end - 1 + COPIED_WORDS], key=len)
        start = end + 1
    return " ".join(best) or None


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:MAX_TEXT].lower())


def _workspace_files(case: Case) -> Iterator[tuple[str, Path]]:
    """Yield the name in the workspace and the place on disk of each file of the template."""
    template = case.spec.workspace.template
    if template is not None:
        prefix = f"{template.rstrip('/')}/"
        for path in case.digests:
            if path.startswith(prefix):
                yield path.removeprefix(prefix), case.folder / path


def _workspace_texts(case: Case) -> Iterator[tuple[str, str]]:
    yield from case.spec.workspace.files.items()
    for name, path in _workspace_files(case):
        if path.is_file():
            with path.open("rb") as file:
                yield name, file.read(MAX_TEXT).decode("utf-8", "replace")


def _in_prompt(case: Case) -> Iterator[Problem]:
    if case.spec.prompt.lstrip().startswith("/"):
        yield Problem(("prompt",), "starts with '/', which Claude Code runs as a command of its own; reword it")


def _in_paths(case: Case) -> Iterator[Problem]:
    names: list[tuple[Loc, str]] = [(("workspace", "files", name), name) for name in case.spec.workspace.files]
    names += [(("workspace", "template"), name) for name, _ in _workspace_files(case)]
    for loc, name in names:
        sight = f"the agent sees the file {shown(name)}, which"
        if match := _CONDITION_WORDS.search(name):
            yield Problem(loc, f"{sight} names a condition ({match[0].strip('/')}); rename it")
        elif match := _ANSWER_WORDS.search(name.rpartition("/")[2]):
            yield Problem(loc, f"{sight} sounds like the answer ({match[0]}); rename it")
    solution = case.folder / case.spec.solution if case.spec.solution else None
    if solution is not None and solution.is_file():
        digest = file_digest(solution)
        for name, path in _workspace_files(case):
            if case.digests[path.relative_to(case.folder).as_posix()] == digest:
                yield Problem(("solution",), f"lies in the workspace as {shown(name)}; keep it out of the template")


def _in_expectations(case: Case, search: Callable[[str, str], object]) -> Iterator[Problem]:
    for index, pattern in enumerate(case.spec.expect):
        if search(pattern, case.spec.prompt):
            news = f"{shown(pattern)} is found in the prompt already, so an echo would match"
            yield Problem(("expect", index), f"{news}; ask for more")
