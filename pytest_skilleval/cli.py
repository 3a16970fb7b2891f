"""`skilleval`: works on finished runs, cases and skills; the command line, and nothing else."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from pytest_skilleval.errors import UserMistake
from pytest_skilleval.reports.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_skilleval.commands.answer import Answer

__all__ = ["COMMANDS", "command_line", "main"]

COMMANDS = {
    "init": ("init", "Write a first case, and what it needs, into this project"),
    "check": ("check", "Tell whether cases and skills are sound; runs the oracle and the no-op over them"),
    "doctor": ("doctor", "Show what a real agent would see of the skills in each condition, for nothing"),
    "list": ("runs", "List the runs, newest first"),
    "report": ("report", "Show a run again, or write a report of it in another format"),
    "rebuild": ("rebuild", "Judge a run anew from its journal alone and write its reports"),
    "regrade": ("regrade", "Grade a run again by its cases as they are now, from what it kept; runs no agent"),
    "compare": ("compare", "Compare a run with a baseline: improved, regressed or inconclusive"),
    "lifts": ("lifts", "Put what the skill changes for several providers side by side, and pool it"),
    "noise": ("noise", "Measure how often trials disagree, within two runs and between them"),
    "plan": ("plan", "Tell how many trials or cases a comparison needs to find a change"),
    "merge": ("merge", "Make one run of shards, or of repeats of the same trials"),
    "bless": ("bless", "Keep a run's report under a name, as a baseline"),
    "export": ("export", "Write a run in another tool's layout: skill-creator"),
    "schema": ("schema", "Print the JSON Schema of case files or of report.json"),
    "completion": ("completion", "Print a script that completes commands in bash, zsh or fish"),
}
"""Command to the module in `commands` that knows it, and what it does in a line."""

STOPPED, BROKEN, MISTAKE = 2, 3, 4
"""Exit statuses, as pytest's: stopped by the user; a defect of this program; a user's mistake."""
_DESCRIPTION = "Work on finished runs, on cases and on skills. No agent is started unless a command says so."
_EPILOG = "Each command has its own --help with examples, and --json for programs."


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are this program's: one line, exit status 4."""

    def error(self, message: str) -> NoReturn:
        """Refuse a command line.

        Raises:
            UserMistake: Always.
        """
        raise UserMistake(f"{message} (see {self.prog} --help)")


def command_line(chosen: Iterable[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser; only the modules of chosen commands are imported, for they are not cheap.

    Args:
        chosen: Commands whose own arguments will be needed.
    """
    parser = _Parser(prog="skilleval", description=_DESCRIPTION, epilog=_EPILOG, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    for name, (module, summary) in COMMANDS.items():
        if name not in chosen:
            commands.add_parser(name, help=summary, add_help=False)
            continue
        work = _module(module)
        one = commands.add_parser(
            name,
            help=summary,
            description=f"{summary}.",
            epilog=work.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        work.add_arguments(one)
        one.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    return parser


def _module(name: str) -> Any:
    return importlib.import_module(f"pytest_skilleval.commands.{name}")


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - 10 ms that only --version needs

    return f"skilleval {version('pytest-skilleval')}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status.

    Returns:
        0 all good; 1 found something bad; 2 something planned is missing, or stopped; 3 a defect of this program;
        4 a user's mistake, said in one line.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    try:
        answer = _answer(words)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    except UserMistake as mistake:
        return _refuse(str(mistake), as_json=as_json)
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        return _refuse(f"{error.filename or 'input or output'}: {error.strerror or error}", as_json=as_json)
    except KeyboardInterrupt:
        _write(sys.stderr, "skilleval: stopped")
        return STOPPED
    except Exception as error:  # noqa: BLE001 - a defect must not look like "regressed", exit status 1
        traceback.print_exc()
        if as_json:
            _write(sys.stdout, json.dumps({"error": f"{type(error).__name__}: {error}"}))
        return BROKEN
    try:
        _say(answer, as_json=as_json)
    except BrokenPipeError:
        return _reader_gone()
    return answer.status


def _answer(words: list[str]) -> Answer:
    chosen = command_line(words[:1]).parse_args(words)
    if chosen.command == "completion":
        chosen.parser = command_line()
    answer: Answer = _module(COMMANDS[chosen.command][0]).run(chosen)
    return answer


def _refuse(message: str, *, as_json: bool) -> int:
    line = plain(" ".join(message.split("\n")))
    if as_json:
        _write(sys.stdout, json.dumps({"error": line}))
    _write(sys.stderr, f"skilleval: {line}")
    return MISTAKE


def _say(answer: Answer, *, as_json: bool) -> None:
    for note in answer.notes:
        _write(sys.stderr, plain(note))
    if as_json:
        _write(sys.stdout, json.dumps(answer.value, indent=2, ensure_ascii=True, allow_nan=False))
    else:
        for line in answer.lines:
            _write(sys.stdout, plain(line))
    sys.stdout.flush()


def _write(stream: TextIO, line: str) -> None:
    """Write a line; what the console cannot show is written as escapes."""
    try:
        stream.write(f"{line}\n")
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _reader_gone() -> int:
    """Stop quietly when the reader of a pipe has seen enough, as `| head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
