"""Who answers: simulated agents, recorded ones, agent CLIs, chat endpoints."""

from __future__ import annotations
