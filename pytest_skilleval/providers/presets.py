"""Agents that are driven by a declaration alone, as it stands in pyproject.toml."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["PRESETS"]

_OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    # Its own agent `plan` runs commands that write: the prompt lane gets an agent without such tools.
    "agent": {
        "plan-only": {
            "mode": "primary",
            "tools": {"bash": False, "edit": False, "write": False, "patch": False, "task": False},
        }
    },
}

PRESETS: dict[str, dict[str, Any]] = {
    "opencode": {
        "command": ["opencode", "run", "--format", "json", "--auto", ["--model", "{model}"], "{prompt}"],
        "plan_command": [
            *("opencode", "run", "--format", "json", "--auto"),
            *("--agent", "plan-only"),
            ["--model", "{model}"],
            "{prompt}",
        ],
        "tested": ["1.18.33"],
        "needs": {"rg": "without ripgrep its skill tool fails"},
        "prompt_via": "arg",
        "env": {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_SHARE": "1",
        },
        "keys": ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"],
        "files": {".config/opencode/opencode.json": json.dumps(_OPENCODE)},
        "skill_root": "{home}/.config/opencode/skills",
        "parse": {
            "success": {"type": "step_finish", "part.reason": "stop"},
            "result_marker": ['"type":"step_finish"', '"reason":"stop"'],
            "text": {"match": {"type": "text"}, "path": "part.text"},
            "session": {"path": "sessionID"},
            "turn": {"type": "step_start"},
            "usage": {
                "match": {"type": "step_finish"},
                "add": True,
                "input": "part.tokens.input",
                "cached": "part.tokens.cache.read",
                "output": "part.tokens.output",
                "reasoning": "part.tokens.reasoning",
                "cost": "part.cost",
                "input_includes_cached": False,
                "output_includes_reasoning": False,
            },
            "tools": {
                "match": {"type": "tool_use"},
                "name": "part.tool",
                "input": "part.state.input",
                "status": "part.state.status",
                "output": "part.state.output",
                "exit_status": "part.state.metadata.exit",
            },
            "errors": [
                {"match": {"type": "error"}, "message": "error.data.message", "status": "error.data.statusCode"}
            ],
            "skill_tools": [{"tool": "^skill$"}],
        },
    },
    "gemini": {
        "command": [
            "gemini",
            *("-o", "stream-json"),
            *("--approval-mode", "yolo"),
            "--skip-trust",
            ["-m", "{model}"],
            *("-p", "{prompt}"),
        ],
        # Without yolo only tools are offered that are allowed by name: none that runs commands or writes.
        "plan_command": [
            "gemini",
            *("-o", "stream-json"),
            *("--allowed-tools", "activate_skill"),
            "--skip-trust",
            ["-m", "{model}"],
            *("-p", "{prompt}"),
        ],
        "tested": ["0.61.0"],
        "prompt_via": "arg",
        "env": {"GEMINI_CLI_NO_RELAUNCH": "true"},
        "keys": ["GEMINI_API_KEY"],
        "pass_env": ["GOOGLE_GEMINI_BASE_URL"],
        "files": {
            ".gemini/settings.json": (
                '{"privacy": {"usageStatisticsEnabled": false}, '
                '"security": {"auth": {"selectedType": "gemini-api-key"}}}'
            )
        },
        "skill_root": "{home}/.gemini/skills",
        "parse": {
            "success": {"type": "result", "status": "success"},
            "result_marker": ['"type":"result"'],
            "text": {
                "match": {"type": "message", "role": "assistant"},
                "path": "content",
                "join": "concat",
                "restart": {"type": "tool_result"},
            },
            "session": {"match": {"type": "init"}, "path": "session_id"},
            "model": {"match": {"type": "init"}, "path": "model"},
            "usage": {
                "match": {"type": "result"},
                "input": "stats.input_tokens",
                "cached": "stats.cached",
                "output": "stats.output_tokens",
            },
            "tools": {
                "match": {"type": "tool_use"},
                "name": "tool_name",
                "input": "parameters",
                "id": "tool_id",
                "result": {"type": "tool_result"},
                "status": "status",
                "output": "output",
            },
            "errors": [{"match": {"type": "result", "status": "error"}, "message": "error.message"}],
            "exit_codes": {
                "145": "auth",
                "147": "auth",
                "173": "rate_limit",
                "244": "server_error",
                "247": "overloaded",
            },
            "skill_tools": [{"tool": "^activate_skill$"}],
        },
    },
}
"""Name to declaration. The exit codes are HTTP statuses modulo 256."""
