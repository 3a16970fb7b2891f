"""This project's tests use pytester; nothing else belongs here."""

from __future__ import annotations

pytest_plugins = ["pytester"]
