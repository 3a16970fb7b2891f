"""Settings of the tests of the statistics."""

from __future__ import annotations

from hypothesis import settings

# The machine that runs the tests may be busy; how long an example takes says nothing about the statistics.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
