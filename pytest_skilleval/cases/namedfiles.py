"""The files that a case names: that they are there, that they lie inside its folder, and their digests."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from pytest_skilleval.casespec import CaseSpec
from pytest_skilleval.documents import Loc

from .rules import path_problem, placing_problems
from .spec import Problem, did_you_mean

__all__ = ["NamedFiles", "file_digest"]

MAX_FILES = 20_000
"""Files of one template."""
_CASE_FOLDER = re.compile(r"\{case\}/([^\s'\"=:;,]+)")
_NOT_DIGESTED = frozenset({"__pycache__", ".DS_Store"})
"""Made by looking at a folder, never part of what is asked."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, 64 hex digits; read once while its size and time stay as they are."""
    about = path.stat()
    return _digest(str(path), about.st_ino, about.st_size, about.st_mtime_ns)


@functools.lru_cache(maxsize=65536)
def _digest(path: str, _inode: int, _size: int, _mtime_ns: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class NamedFiles:
    """The files named by the cases of one folder.

    Args:
        folder: What the paths of a case start from.
        root: What a `stale` folder may not leave.
        inside: What all others may not leave; `folder` by default.
    """

    def __init__(self, folder: Path, root: Path, *, inside: Path | None = None) -> None:
        self.folder = folder
        self._bounds = (root, inside or folder)
        self._trees: dict[str, dict[str, str] | str] = {}

    @functools.cached_property
    def _root(self) -> Path:
        return self._bounds[0].resolve()

    @functools.cached_property
    def _inside(self) -> Path:
        return self._bounds[1].resolve()

    def look(self, spec: CaseSpec) -> tuple[dict[str, str], list[Problem]]:
        """Return the digests that the fingerprint covers (by relative path, sorted) and what is wrong."""
        digests: dict[str, str] = {}
        problems: list[Problem] = []
        for loc, text, form, covered in _named(spec):
            found = self._tree(text, form, covered=covered, wide=loc == ("stale",))
            if isinstance(found, str):
                problems.append(Problem(loc, found))
            else:
                digests |= found
        copies = spec.workspace.copies
        single = [place for place, source in copies.items() if source in digests]
        for loc, message in placing_problems(spec.workspace.files, copies, single):
            problems.append(Problem(("workspace", *loc), message))
        for index, check in enumerate(spec.checks):
            if check.kind == "python":
                why = self._function_problem(check.function)
                if why:
                    problems.append(Problem(("checks", index, "function"), why))
        return dict(sorted(digests.items())), problems

    def _tree(self, text: str, form: str, *, covered: bool, wide: bool) -> dict[str, str] | str:
        key = f"{form}:{covered}:{text}"
        if key not in self._trees:
            self._trees[key] = self._read(text, form, covered=covered, wide=wide)
        return self._trees[key]

    def _read(self, text: str, form: str, *, covered: bool, wide: bool) -> dict[str, str] | str:
        """Return the digests of one named file or folder, or what is wrong with it."""
        boundary, where = (self._root, "project") if wide else (self._inside, "case's folder")
        try:
            target = (self.folder / text).resolve()
            if not target.is_relative_to(boundary):
                return f"{text[:60]!r} leaves the {where}; move the file into it"
            if not target.exists():
                return f"{text[:60]!r} is not there; it is looked for in {self.folder}"
            if target.is_dir() and form != "file":
                return self._walk(target, text) if covered else {}
            if form == "folder":
                return f"{text[:60]!r} is no folder"
            if not target.is_file():
                return f"{text[:60]!r} is no file"
            return {text: file_digest(target)} if covered else {}
        except (OSError, RuntimeError, ValueError) as exc:
            return f"{text[:60]!r} cannot be read: {getattr(exc, 'strerror', None) or exc}"

    def _walk(self, top: Path, text: str) -> dict[str, str] | str:
        digests: dict[str, str] = {}
        for path in _files_below(top):
            relative = f"{text.rstrip('/')}/{path.relative_to(top).as_posix()}"
            if len(digests) == MAX_FILES:
                return f"{text[:60]!r} holds more than {MAX_FILES:,} files"
            if not relative.isprintable() and relative.encode("utf-8", "replace").decode() != relative:
                return f"{relative[:80]!r} is not named in UTF-8; rename it"
            if path.is_symlink():
                if not path.resolve().is_relative_to(top):
                    return f"{relative[:80]!r} is a link that leaves {text[:60]!r}; copy the file instead"
                digests[relative] = hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
            elif stat.S_ISREG(path.lstat().st_mode):
                digests[relative] = file_digest(path)
            else:
                return f"{relative[:80]!r} is neither a file nor a folder; remove it"
        return digests

    def _function_problem(self, text: str) -> str | None:
        name, _, function = text.partition("::")
        if path_problem(name) or isinstance(self._tree(name, "file", covered=True, wide=False), str):
            return None
        try:
            tree = ast.parse((self.folder / name).read_bytes())
        except (SyntaxError, ValueError) as exc:
            return f"{name} is not Python: {exc}"
        known = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        if any(isinstance(node, ast.AsyncFunctionDef) and node.name == function for node in tree.body):
            return f"{function!r} in {name} is async, and nothing would await it; write a plain function (def)"
        return None if function in known else f"{function!r} is not in {name}; {did_you_mean(function, known)}"


def _given(spec: CaseSpec) -> Iterator[tuple[Loc, str, str, bool]]:
    """Yield what lies in the workspace when the agent starts, as `_named` does."""
    if spec.workspace.template is not None:
        yield ("workspace", "template"), spec.workspace.template, "folder", True
    for name, source in spec.workspace.copies.items():
        yield ("workspace", "copies", name), source, "either", True


def _named(spec: CaseSpec) -> Iterator[tuple[Loc, str, str, bool]]:
    """Yield place, path, what it must be, and whether the fingerprint covers it."""
    yield from _given(spec)
    if spec.stale is not None:
        yield ("stale",), spec.stale, "folder", False
    if spec.solution is not None:
        yield ("solution",), spec.solution, "file", False
    if spec.stub.failure is not None:
        yield ("stub", "failure"), spec.stub.failure, "file", False
    for index, check in enumerate(spec.checks):
        if check.kind == "python":
            yield ("checks", index, "function"), check.function.partition("::")[0], "file", True
        elif check.kind == "command":
            for position, argument in enumerate(check.run):
                for text in _CASE_FOLDER.findall(argument):
                    yield ("checks", index, "run", position), text, "either", True


def _files_below(top: Path) -> Iterator[Path]:
    """Yield everything below a folder that is no folder, links not followed, in sorted order."""
    for entry in sorted(os.scandir(top), key=lambda found: found.name):
        if entry.name in _NOT_DIGESTED:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(Path(entry.path))
        else:
            yield Path(entry.path)
