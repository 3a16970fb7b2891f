"""Evals without a session: three cases of four trials under the four conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_skilleval.collection import Evals
from pytest_skilleval.options import Settings
from pytest_skilleval.workbench import Workbench

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project_of(tmp_path: Path) -> Evals:
    folder = tmp_path / "cases" / "execution"
    folder.mkdir(parents=True)
    paths = [folder / f"case-{number}.yaml" for number in range(3)]
    for path in paths:
        path.write_text("prompt: hi\nchecks: []\nconditions: [none, self-load, preloaded, stale]\n")
    bench = Workbench(Settings(rootpath=tmp_path, trials=4), run="r", token="t")
    evals = Evals(bench, paths)
    evals.preflight(paths)
    return evals
