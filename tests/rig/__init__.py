"""A model server on the loopback interface, so that real agents can be tested without a model."""

from __future__ import annotations

from .script import Call, Cut, Fail, Hang, Question, Reply, Say, by_turn, load, shell
from .server import ModelServer

__all__ = [
    "Call",
    "Cut",
    "Fail",
    "Hang",
    "ModelServer",
    "Question",
    "Reply",
    "Say",
    "by_turn",
    "load",
    "shell",
]
