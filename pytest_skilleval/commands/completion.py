"""`skilleval completion`: a script that lets a shell complete commands and options, made from the parser itself."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .answer import Answer

__all__ = ["add_arguments", "completions", "run"]

EXAMPLES = """\
examples:
  eval "$(skilleval completion bash)"                                      in ~/.bashrc
  skilleval completion zsh > "${fpath[1]}/_skilleval"                      once
  skilleval completion fish > ~/.config/fish/completions/skilleval.fish    once
"""


class _Option(NamedTuple):
    """One option."""

    help: str
    value: str
    """What its value is called; "" for one without."""


class _Command(NamedTuple):
    """What can be completed after a command."""

    help: str
    options: Mapping[str, _Option]
    words: tuple[str, ...]
    """Words that a positional argument may be."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=sorted(_SHELLS), help="bash, zsh or fish")


def run(arguments: Namespace) -> Answer:
    """Print the script."""
    text = _SHELLS[arguments.shell](completions(arguments.parser))
    return Answer({"shell": arguments.shell, "script": text}, text.splitlines())


def completions(parser: ArgumentParser) -> dict[str, _Command]:
    """Return what a parser knows, by command."""
    subparsers = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - argparse has no public way to ask
    helps = {action.dest: action.help or "" for action in subparsers._get_subactions()}  # noqa: SLF001 - the same
    return {name: _command(helps.get(name, ""), one) for name, one in subparsers.choices.items()}


def _command(summary: str, parser: ArgumentParser) -> _Command:
    options = {}
    words: tuple[str, ...] = ()
    for action in parser._actions:  # noqa: SLF001 - the same
        for option in action.option_strings:
            summary = (action.help or "").split(";")[0].split(" (")[0].split(":")[0]
            value = "" if action.nargs == 0 else str(action.metavar or action.dest).lower()
            options[option] = _Option(summary, value)
        if not action.option_strings and action.choices:
            words = tuple(map(str, action.choices))
    return _Command(summary, options, words)


def _bash(commands: Mapping[str, _Command]) -> str:
    cases = "\n".join(
        f"    {name}) words='{' '.join((*command.options, *command.words))}' ;;" for name, command in commands.items()
    )
    return f"""\
_skilleval() {{
  local words current="${{COMP_WORDS[COMP_CWORD]}}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(commands)} --help --version' -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words='' ;;
  esac
  if [ -n "$current" ] && [ "${{current#-}}" = "$current" ]; then
    COMPREPLY=($(compgen -W "$words $(_skilleval_runs)" -- "$current") $(compgen -f -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}}
_skilleval_runs() {{
  local folder
  for folder in .skilleval/runs/*/ .skilleval/blessed/*/ .skilleval/latest/; do
    [ -d "$folder" ] && basename "$folder"
  done
}}
complete -o filenames -F _skilleval skilleval
"""


def _zsh(commands: Mapping[str, _Command]) -> str:
    described = "\n".join(f"    {_quoted(f'{name}:{command.help}')}" for name, command in commands.items())
    cases = "\n".join(f"    {name}) _arguments {_zsh_arguments(command)} ;;" for name, command in commands.items())
    return f"""\
#compdef skilleval
_skilleval_runs() {{
  local -a runs
  runs=(.skilleval/runs/*(N/:t) .skilleval/blessed/*(N/:t) latest)
  compadd -a runs
  _files
}}
_skilleval() {{
  local -a commands
  commands=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="${{words[2]}}"
  shift words
  (( CURRENT-- ))
  case "$command" in
{cases}
  esac
}}
if [ "$funcstack[1]" = "_skilleval" ]; then _skilleval "$@"; else compdef _skilleval skilleval; fi
"""


def _zsh_arguments(command: _Command) -> str:
    options = [_zsh_option(name, option) for name, option in command.options.items()]
    return " ".join([*options, f"'1:word:({' '.join(command.words)})'" if command.words else "'*:run:_skilleval_runs'"])


def _zsh_option(name: str, option: _Option) -> str:
    text = option.help.replace("[", "(").replace("]", ")")
    value = option.value.replace("[", "").replace("]", "")
    return _quoted(f"{name}[{text}]" + (f":{value}:_files" if value else ""))


def _fish(commands: Mapping[str, _Command]) -> str:
    lines = ["complete -c skilleval -f"]
    for name, command in commands.items():
        lines.append(f"complete -c skilleval -n __fish_use_subcommand -a {name} -d {_quoted(command.help)}")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for word, option in command.options.items():
            flag = f"-l {word.removeprefix('--')}" if word.startswith("--") else f"-s {word.removeprefix('-')}"
            value = " -r" if option.value else ""
            lines.append(f"complete -c skilleval {seen} {flag}{value} -d {_quoted(option.help)}")
        if command.words:
            lines.append(f"complete -c skilleval {seen} -a {_quoted(' '.join(command.words))}")
        lines.append(f"complete -c skilleval {seen} -F")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Quote for zsh and fish alike."""
    return "'" + text.replace("\\", "\\\\").replace("'", "'\\''") + "'"


_SHELLS: dict[str, Callable[[Mapping[str, _Command]], str]] = {"bash": _bash, "fish": _fish, "zsh": _zsh}
