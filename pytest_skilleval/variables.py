"""The variables that an isolated home owns: they point an agent at the home of its trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["HOME_VARIABLES"]

HOME_VARIABLES: Final[Mapping[str, str]] = {
    "HOME": "{home}",
    "XDG_CONFIG_HOME": "{home}/.config",
    "XDG_DATA_HOME": "{home}/.local/share",
    "XDG_STATE_HOME": "{home}/.local/state",
    "XDG_CACHE_HOME": "{home}/.cache",
    "XDG_RUNTIME_DIR": "{tmp}",
    "TMPDIR": "{tmp}",
    "TMP": "{tmp}",
    "TEMP": "{tmp}",
    "CLAUDE_CONFIG_DIR": "{home}/.claude",
    "CODEX_HOME": "{home}/.codex",
    "GEMINI_CLI_HOME": "{home}",
    "GIT_CONFIG_GLOBAL": "{home}/.gitconfig",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CEILING_DIRECTORIES": "{root}",
    "SKILLEVAL_HOME": "{root}",
}
"""Name to value; `root` is the trial's folder, `home` and `tmp` lie in it. A case that set one of them would undo the
isolation, so that none may."""
