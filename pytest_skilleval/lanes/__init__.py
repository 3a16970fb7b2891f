"""What a lane asks of the agent, and what scores it."""

from __future__ import annotations
