"""Fixtures that run the plugin as its user would: in a fresh project, in a process of its own."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell, tests would hand on that interrupts are ignored; some send one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as above, by nohup

MODES = {"plain": (), "n0": ("-n0",), "n2": ("-n2",)}


class Project:
    """A fresh project of one test, with a temp directory of its own that must be empty in the end."""

    def __init__(self, pytester: pytest.Pytester, temp: Path) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.temp = temp
        self.mode: tuple[str, ...] = ()

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def skill(self, name: str = "greeter", body: str = "Say hello.") -> Path:
        """Write a skill."""
        return self.write(
            f"skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: Greets people by name.\n---\n\n{body}\n"
        )

    def case(self, name: str = "greet", *, rate: object = 1.0, lane: str = "execution", **more: Any) -> Path:
        """Write a case that a stub solves at this rate: it must write hello into out.txt."""
        self.write(f"cases/{lane}/{name}.sh", "echo hello > out.txt\n")
        case = {
            "prompt": "Write hello into out.txt.",
            "conditions": ["none"],
            "checks": [{"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}],
            "solution": f"{name}.sh",
            "stub": {"solve_rate": rate},
        }
        return self.write(f"cases/{lane}/{name}.yaml", json.dumps(case | more))

    def run(self, *args: str, env: dict[str, str] | None = None) -> pytest.RunResult:
        """Run pytest in a process of its own."""
        with pytest.MonkeyPatch.context() as patch:
            for key, value in (env or {}).items():
                patch.setenv(key, value)
            return self.pytester.runpytest_subprocess(*self.mode, "-p", "no:randomly", *args)

    def report(self) -> dict[str, Any]:
        """Read the newest run's report.json."""
        value: dict[str, Any] = json.loads((self.path / ".skilleval/latest/report.json").read_text())
        return value

    def outcomes(self) -> dict[str, int]:
        """Return the newest run's counts that are not zero."""
        return {name: count for name, count in self.report()["run"]["counts"].items() if count}


@pytest.fixture
def project(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A fresh project; after the test its temp directory must hold nothing."""
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    made = Project(pytester, temp)
    yield made
    left = sorted(path.name for path in temp.iterdir() if not path.name.startswith("pytest-of-"))
    assert left == [], "folders are left in the temp directory"


@pytest.fixture(params=sorted(MODES))
def any_mode(request: pytest.FixtureRequest, project: Project) -> Project:
    """The project, run plainly, with -n0 and with -n2."""
    project.mode = MODES[request.param]
    return project


@pytest.fixture
def strip_volatile() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that drops what may differ between two equal runs."""

    def strip(report: dict[str, Any]) -> dict[str, Any]:
        run = {key: value for key, value in report["run"].items() if key not in {"id", "started", "finished", "argv"}}
        return {**{key: value for key, value in report.items() if key != "timing"}, "run": run}

    return strip
