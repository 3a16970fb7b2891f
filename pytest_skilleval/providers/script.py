"""The commands that a script consists of, as an agent would have typed them."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["commands_in"]

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")


def commands_in(text: str, *, shell: bool = True) -> tuple[str, ...]:
    """Return a script's commands in order, without comments and blank lines.

    A here-document and lines joined by a backslash belong to one command, as they would in an agent's tool call.
    Nothing else of the language is understood: each line of a loop is a command of its own, said once however often
    it ran.

    Args:
        text: The script.
        shell: Whether it is a shell script; else each line is a command.
    """
    lines = iter(text.splitlines())
    return tuple(_shell(lines) if shell else (line for line in lines if _says_something(line)))


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _shell(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not _says_something(line):
            continue
        command = [line]
        while command[-1].endswith("\\") and (following := next(lines, None)) is not None:
            command.append(following)
        for found in _HEREDOC.finditer("\n".join(command)):
            for following in lines:
                command.append(following)
                if following.strip() == found[2]:
                    break
        yield "\n".join(command).strip()
