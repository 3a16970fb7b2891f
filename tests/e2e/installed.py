"""The real agents, installed from the npm registry into a folder of the checkout that git ignores."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".e2e-cache"
PINNED = {
    "claude": ("@anthropic-ai/claude-code", "2.1.332"),
    "codex": ("@openai/codex", "0.171.0"),
    "opencode": ("opencode-ai", "1.18.33"),
}


def install(agent: str) -> Path:
    """Return the program of an agent at its pinned version, installed where it is missing.

    The version is asked for by name: without one, npm takes the newest whose `engines` fit this node, an old one.
    """
    package, version = PINNED[agent]
    manifest = CACHE / "node_modules" / package / "package.json"
    if not manifest.exists() or json.loads(manifest.read_text())["version"] != version:
        CACHE.mkdir(exist_ok=True)
        npm_cache = CACHE / "npm-cache"
        subprocess.run(
            [
                "npm",
                "install",
                "--prefix",
                str(CACHE),
                "--cache",
                str(npm_cache),
                "--no-audit",
                "--no-fund",
                f"{package}@{version}",
            ],
            check=True,
            timeout=900,
        )
        shutil.rmtree(npm_cache, ignore_errors=True)
    return CACHE / "node_modules" / ".bin" / agent
