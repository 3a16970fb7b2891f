"""The report inside a proof bundle: its sections, references, named findings and commands."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote

__all__ = ["Account", "Share", "parse_account"]

ACCOUNT_CHARS = 500_000

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-{2,})[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w+-]*)")
_SHELLS = {"sh", "bash", "shell", "zsh"}
_SESSIONS = {"", "console", "terminal", "shell-session", "text"}
"""Blocks in which a prompt tells a command from what it printed."""
_ITEM = re.compile(r"^ {0,3}(?:[-*+]|\d{1,3}[.)])[ \t]+(.+)$")
_ROW = re.compile(r"^ {0,3}\|(.+)\|[ \t]*$")
_RULE_ROW = re.compile(r"^[\s|:-]+$")
_TARGETS = (
    re.compile(r"\]\(\s*<([^<>\n]{1,500})>"),
    re.compile(r"\]\(\s*([^\s()<>]{1,500}(?:\([^\s()]{0,100}\)[^\s()]{0,100})?)"),
    re.compile(r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*<?([^\s<>]{1,500})", re.MULTILINE),
    re.compile(
        r"<(?:img|a|source|video)\b[^<>\n]{0,300}?\b(?:src|href)\s*=\s*[\"']([^\"'\n]{1,500})[\"']", re.IGNORECASE
    ),
)
_NOTHING_FOUND = re.compile(r"(?i)\b(?:no|none|nothing|not any)\b")
_FINDINGS = ("issue", "finding", "problem")


class Share(NamedTuple):
    """A share in [0, 1], and why."""

    value: float
    reason: str


class Account(NamedTuple):
    """A report in Markdown, taken apart."""

    sections: tuple[tuple[str, str], ...]
    """Heading and the text below it, up to the next heading of any level."""
    prose: str
    """The text without its code blocks."""
    commands: tuple[tuple[str, str], ...]
    """Heading of the section, and a shell command of a code block in it."""

    def completeness(self, wanted: tuple[str, ...]) -> tuple[Share, tuple[str, ...]]:
        """Return the share of wanted sections that are there with something in them, and those that are not."""
        missing = tuple(name for name in wanted if not self._body(name))
        have = len(wanted) - len(missing)
        reason = f"{have} of {len(wanted)} sections"
        return Share(
            have / len(wanted) if wanted else 1.0, f"{reason}; not: {', '.join(missing)}" if missing else reason
        ), missing

    def _body(self, name: str) -> str:
        """Return the text below the headings that hold a section's name as whole words, their sub-headings included."""
        pattern = re.compile(rf"(?i)\b{re.escape(name)}\b")
        return "\n".join(body for heading, body in self.sections if pattern.search(heading)).strip()

    def references(self) -> tuple[str, ...]:
        """Return the local paths that links and pictures of the report name, as written, each once."""
        found: dict[str, None] = {}
        for pattern in _TARGETS:
            for match in pattern.finditer(self.prose):
                target = match[1].strip()
                if not re.match(r"(?i)[a-z][a-z0-9+.-]*:|#|//", target):
                    found[target] = None
        return tuple(found)

    def unresolved(self, own_name: str, names: Collection[str]) -> tuple[str, ...]:
        """Return the references that name no file of the bundle.

        Args:
            own_name: The report's path in the bundle: references start from its folder.
            names: The paths of all files of the bundle.
        """
        folders = {parent for name in names for parent in _parents(name)}
        missing = []
        for reference in self.references():
            path = unquote(re.split(r"[?#]", reference, maxsplit=1)[0])
            place = posixpath.normpath(posixpath.join(posixpath.dirname(own_name), path))
            if not path or (place not in names and place not in folders):
                missing.append(reference)
        return tuple(missing)

    def taxonomy(self, words: tuple[str, ...]) -> Share:
        """Return the share of findings that are named by a word of the taxonomy.

        Findings are the list items and table rows of sections on issues, findings or problems. A section that says that
        nothing was found is as good as one that names what was.
        """
        named = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in words), re.IGNORECASE)
        texts = [body for heading, body in self.sections if any(word in heading.lower() for word in _FINDINGS)]
        findings = [item for text in texts for item in _items(text)]
        if not findings:
            if any(_NOTHING_FOUND.search(text) for text in texts):
                return Share(1.0, "the report says that nothing was found")
            used = named.search(self.prose)
            return Share(
                float(used is not None), "no finding is listed" + (f"; {used[0]!r} is used in the text" if used else "")
            )
        good = sum(named.search(finding) is not None for finding in findings)
        return Share(good / len(findings), f"{good} of {len(findings)} findings are named by the taxonomy")

    def reproducibility(self) -> Share:
        """Return whether the report gives commands to run again: all of it in Setup or Steps, half of it elsewhere."""
        if not self.commands:
            return Share(0.0, "no shell command is given in a code block")
        placed = [
            text for heading, text in self.commands if re.search(r"(?i)\b(?:set-?\s?up|steps?|reproduc\w*)\b", heading)
        ]
        if placed:
            return Share(1.0, f"{len(placed)} commands in Setup or Steps, such as {placed[0][:80]!r}")
        return Share(0.5, f"{len(self.commands)} commands, none of them in Setup or Steps")


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return [".", *("/".join(parts[:end]) for end in range(1, len(parts)))]


def _items(text: str) -> list[str]:
    """Return the top items of lists, and the rows of tables below their head."""
    found, rows = [], 0
    for line in text.splitlines():
        item, row = _ITEM.match(line), _ROW.match(line)
        rows = rows + 1 if row else 0
        if item:
            found.append(item[1])
        elif row and rows > 2 and not _RULE_ROW.match(line):
            found.append(row[1])
    return found


def parse_account(text: str) -> Account:
    """Take a Markdown report apart."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    prose: list[str] = []
    commands: list[tuple[str, str]] = []
    fence, language = "", ""
    for line in text[:ACCOUNT_CHARS].splitlines():
        mark = _FENCE.match(line)
        if fence:
            sections[-1][1].append(line)
            if mark and mark[1].startswith(fence) and not mark[2]:
                fence = ""
            elif command := _command(line, language):
                commands.append((sections[-1][0], command))
        elif mark:
            fence, language = mark[1], mark[2].lower()
            sections[-1][1].append(line)
        elif heading := _HEADING.match(line):
            sections.append((heading[2], []))
        elif _UNDERLINE.match(line) and prose and prose[-1].strip() and not prose[-1].lstrip().startswith("|"):
            title = prose.pop()
            sections[-1][1].pop()
            sections.append((title.strip(), []))
        else:
            sections[-1][1].append(line)
            prose.append(line)
    return Account(
        tuple((heading, "\n".join(lines).strip()) for heading, lines in sections), "\n".join(prose), tuple(commands)
    )


def _command(line: str, language: str) -> str | None:
    """Return the shell command of a line in a code block, if it is one."""
    text = line.strip()
    prompted = re.match(r"^[$%>]\s+(?=\S)", text)
    if language not in _SHELLS and not (prompted and language in _SESSIONS):
        return None
    text = text[prompted.end() :] if prompted else text
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return None
    return text if words and re.match(r"^(?:[A-Za-z_]\w*=\S*|[\w./~+-]+)$", words[0]) else None
