"""The simulation behind the published calibration page."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from .reference import rows

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def scripts():
    """The two modules of the calibration, which are run as a script and not installed."""
    if not SCRIPTS.exists():
        pytest.skip("benchmarks/ is not part of a source distribution")
    sys.path.insert(0, str(SCRIPTS))
    try:
        yield importlib.import_module("simulation"), importlib.import_module("calibrate")
    finally:
        sys.path.remove(str(SCRIPTS))
        for name in ("simulation", "calibrate"):
            sys.modules.pop(name, None)


@pytest.fixture
def simulation(scripts):
    return scripts[0]


@pytest.fixture
def calibrate(scripts):
    return scripts[1]


@pytest.mark.parametrize(("given_", "expected", "tol"), rows("beta_from_flip"))
def test_the_shape_of_the_rates_agrees_with_its_closed_form(simulation, given_, expected, tol):
    assert simulation.beta_shape(**given_) == pytest.approx(expected, abs=tol)


def test_an_impossible_flip_rate_is_refused(simulation):
    with pytest.raises(ValueError, match="impossible at a mean"):
        simulation.beta_shape(0.5, 0.7)


def test_simulated_trials_flip_as_often_as_asked_and_have_the_scores_that_are_called_true(simulation):
    rng = np.random.default_rng(3)
    suite = simulation.Suite.draw(rng, 40_000, 0.16, 0.7)
    run = suite.run(rng, 2)
    assert np.mean(run.passes[:, 0] != run.passes[:, 1]) == pytest.approx(0.16, abs=0.01)
    assert run.passes.mean() == pytest.approx(0.7, abs=0.01)
    assert run.scores.mean() == pytest.approx(suite.mean_score(suite.rates).mean(), abs=0.005)
    assert run.scores.min() >= 0
    assert run.scores.max() <= 1


def test_the_page_is_made_with_its_seed_and_numbers_and_repeats(calibrate, tmp_path, monkeypatch):
    # Two designs stand for all: the page is otherwise a matter of minutes.
    monkeypatch.setattr(calibrate, "quiet_runs", lambda _: ["## When nothing changed"])
    monkeypatch.setattr(calibrate, "power_runs", lambda _: ["## When something changed"])
    pages = []
    for name in ("one.md", "two.md"):
        calibrate.main(["--runs", "8", "--seed", "5", "--output", str(tmp_path / name)])
        pages.append((tmp_path / name).read_text())
    assert pages[0] == pages[1]
    assert "seed 5, 8 runs" in pages[0]
    assert "| group: pass rate |" in pages[0]
