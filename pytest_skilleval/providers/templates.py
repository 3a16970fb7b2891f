"""Variables in braces, in a declared provider's command, environment and files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_skilleval.errors import OptionMistake

__all__ = ["VARIABLES", "check", "fill", "fill_command", "names_in"]

VARIABLES = (
    "base_url",
    "config_dir",
    "effort",
    "home",
    "max_turns",
    "model",
    "output_file",
    "prompt",
    "prompt_file",
    "session_id",
    "skill_dir",
    "skill_file",
    "skill_name",
    "system_prompt_file",
    "timeout_s",
    "tmp",
    "workspace",
)
"""What may stand in braces; and `env:NAME` for a name that passes from the user's environment."""

_VARIABLE = re.compile(r"\{([a-z_]+|env:[A-Za-z_][A-Za-z0-9_]*)\}")


def names_in(text: str) -> set[str]:
    """Return the variables that a text holds."""
    return set(_VARIABLE.findall(text))


def check(where: str, text: str, passing: tuple[str, ...]) -> None:
    """Refuse variables that do not exist.

    Args:
        where: The key, for the message.
        text: What may hold variables.
        passing: Names of the user's environment that may be used.

    Raises:
        OptionMistake: One is not known, or names a variable of the environment that does not pass.
    """
    for name in sorted(names_in(text)):
        if name.startswith("env:"):
            if name[4:] not in passing:
                raise OptionMistake(f"{where}: {{{name}}}: {name[4:]} is not named in keys or pass_env; name it there")
        elif name not in VARIABLES:
            raise OptionMistake(f"{where}: {{{name}}} is no variable; allowed: {', '.join(VARIABLES)}, env:NAME")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its variables replaced; an empty or absent one is replaced by nothing."""
    return _VARIABLE.sub(lambda found: values.get(found[1], ""), text)


def fill_command(command: tuple[str | tuple[str, ...], ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command with its variables replaced; a group with an empty one is left out."""
    filled: list[str] = []
    for part in command:
        group = (part,) if isinstance(part, str) else part
        if isinstance(part, str) or all(values.get(name) for text in group for name in names_in(text)):
            filled += [fill(text, values) for text in group]
    return tuple(filled)
