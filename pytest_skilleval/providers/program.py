"""A provider's program: its table of options, where it is, which version, and what a sandbox must show of it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.frozen import Frozen

__all__ = ["CliOptions", "program_folders", "read_options", "version_of"]

Options = TypeVar("Options", bound=Frozen)

DETECT_SECONDS = 60.0
_VERSION = re.compile(r"\d+\.\d+\.\d+[\w.+-]*")


class CliOptions(Frozen):
    """`[tool.skilleval.providers.NAME]` of an agent CLI."""

    program: str | None = None
    """The program, by path or name; its usual name on PATH by default."""
    args: tuple[str, ...] = ()
    """Further arguments."""
    env: dict[str, str] = Field(default_factory=dict)
    """Further variables for the agent."""
    pass_env: tuple[str, ...] = ()
    """Further names that pass from the user's environment."""
    login_file: str | None = None
    """A login to copy into each trial's home, readable by its owner only; `~` is the user's home."""
    base_url: str | None = None
    """Where the model is asked, for gateways."""


def read_options(kind: type[Options], name: str, table: Mapping[str, object]) -> Options:
    """Return a provider's table, checked.

    Raises:
        OptionMistake: A key or value that is not allowed.
    """
    try:
        return kind.model_validate(dict(table))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        allowed = ", ".join(kind.model_fields)
        raise OptionMistake(f"tool.skilleval.providers.{name}.{key}: {first['msg']}; allowed keys: {allowed}") from None


def version_of(argv: tuple[str, ...], path: str, home: Path) -> tuple[str | None, str]:
    """Run a version command in a throw-away home and return the version and all that it said.

    Args:
        argv: The command.
        path: PATH.
        home: An empty folder that the caller removes; `home` and `tmp` are made in it.

    Raises:
        OSError: It cannot be started.
    """
    for name in ("home", "tmp"):
        (home / name).mkdir()
    inside = str(home / "home")
    env = {
        "PATH": path,
        "HOME": inside,
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "CLAUDE_CONFIG_DIR": f"{inside}/.claude",
        "CODEX_HOME": f"{inside}/.codex",
        "XDG_CONFIG_HOME": f"{inside}/.config",
        "XDG_CACHE_HOME": f"{inside}/.cache",
        "XDG_DATA_HOME": f"{inside}/.local/share",
        "DISABLE_AUTOUPDATER": "1",
    }
    with subprocess.Popen(
        argv,
        cwd=inside,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            said = process.communicate(timeout=DETECT_SECONDS)[0].decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            said = f"no answer within {DETECT_SECONDS:g} s"
        finally:
            # Wrappers start a child of their own; the group goes, not only the one that was started.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    found = _VERSION.search(said) if process.returncode == 0 else None
    return (found[0] if found else None), " ".join(said.split())[-500:]


def program_folders(program: Path, path: str) -> tuple[Path, ...]:
    """Return the folders that a program is read from, for a sandbox: its own, its package's, its interpreter's."""
    real = program.resolve()
    package = next((parent for parent in real.parents if parent.name == "node_modules"), real.parent)
    folders = [program.parent, package]
    try:
        with real.open("rb") as file:
            head = file.readline(200)
    except OSError:
        head = b""
    if head.startswith(b"#!") and b"node" in head and (node := shutil.which("node", path=path)):
        folders.append(Path(node).resolve().parent.parent)
    return tuple(dict.fromkeys(folders))
