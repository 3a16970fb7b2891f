"""A test bed: a project whose agents leave marks, the runs started in it, and what is seen of them from outside."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:hypothesispytest",
    "-p",
    "no:syrupy",
)
PATIENCE = 120.0
"""Seconds after which a run counts as hung: this machine may be busy with other things."""


def wait_for(condition: Callable[[], Any], seconds: float = PATIENCE, every: float = 0.01) -> bool:
    """Wait until a condition holds; False when it does not in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(every)
    return True


class Session:
    """A pytest process, leader of a process group of its own as it would be in a terminal."""

    def __init__(self, argv: Sequence[str], folder: Path, env: Mapping[str, str], output: Path) -> None:
        self.output = output
        with output.open("wb") as sink:
            self.process = subprocess.Popen(
                argv,
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=_listen,
            )
        self.pid = self.process.pid
        self.hung = False

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self.output.read_bytes().decode("utf-8", "replace")

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def workers(self) -> list[int]:
        """Return its xdist workers."""
        return [pid for pid in children(self.pid) if "import sys;exec(eval(" in _text(pid, "cmdline")]

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def signal_group(self, number: int) -> None:
        os.killpg(self.pid, number)

    def wait(self, seconds: float = PATIENCE) -> int | None:
        """Return its exit status, or None when it hangs; then it is killed."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.hung = True
            self.kill()
            return None

    @property
    def status(self) -> int | None:
        """Its exit status; None when it hung."""
        return None if self.hung else self.process.returncode

    def kill(self) -> None:
        """Kill it, its workers too."""
        with contextlib.suppress(ProcessLookupError):
            self.signal_group(signal.SIGKILL)
        self.process.wait()


def _listen() -> None:
    """Hear signals in the child although the board may run in the background, where some are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Bed:
    """A fresh project, with a temp directory of its own.

    Its agents write one line for each start into a file outside their homes: the names of their run and trial.

    Args:
        folder: A new folder for all of it.
        cases: How many cases.
        agent: What their agents do, in shell; they must leave hello in out.txt to pass.
        stale: Whether the agents have an older version of a skill, which every process takes from git.
        more: Further keys of the cases.
    """

    def __init__(
        self, folder: Path, *, cases: int = 2, agent: str = "sleep 0.2", stale: bool = False, **more: Any
    ) -> None:
        self.folder = folder
        self.path = folder / "project"
        self.temp = folder / "temp"
        self.marks = folder / "starts"
        for path in (self.path, self.temp):
            path.mkdir(parents=True)
        self.marks.touch()
        (self.path / "pytest.ini").write_text("[pytest]\n")
        if stale:
            more |= {"skill": "greeter", "conditions": ["stale"]}
            self._skill_in_two_commits()
        for number in range(1, cases + 1):
            self.case(f"case{number}", agent, **more)
        self._sessions = 0

    def _skill_in_two_commits(self) -> None:
        git = ("git", "-C", str(self.path), "-c", "user.name=Test", "-c", "user.email=test@example.invalid")
        subprocess.run((*git, "init", "-q"), check=True)
        for version in ("old", "new"):
            text = f"---\nname: greeter\ndescription: Greets people by name.\n---\n\nSay hello, the {version} way.\n"
            self.write("skills/greeter/SKILL.md", text)
            subprocess.run((*git, "add", "skills"), check=True)
            subprocess.run((*git, "commit", "-q", "-m", version), check=True)

    def case(self, name: str, agent: str, *, then: str = "echo hello > out.txt", **more: Any) -> None:
        """Write a case whose agent always solves it."""
        mark = f'run=${{SKILLEVAL_HOME%/*}}; echo "${{run##*/}}/${{SKILLEVAL_HOME##*/}}" >> {self.marks}'
        self.write(f"cases/execution/{name}.sh", f"{mark}\n{agent}\n{then}\n")
        case = {
            "prompt": "Write hello into out.txt.",
            "conditions": ["none"],
            "checks": [{"id": "said", "kind": "file", "path": "out.txt", "equals": "hello"}],
            "solution": f"{name}.sh",
            "stub": {"solve_rate": 1.0},
        }
        self.write(f"cases/execution/{name}.yaml", json.dumps(case | more))

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    @property
    def env(self) -> dict[str, str]:
        """The environment of its runs; LD_LIBRARY_PATH goes down to every process of ours and so tells them apart."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "SKILLEVAL"))}
        return kept | {"TMPDIR": str(self.temp), "LD_LIBRARY_PATH": str(self.temp), "COLUMNS": "150"}

    def start(self, *args: str, before: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Session:
        """Start pytest.

        Args:
            args: Its arguments.
            before: What stands before it on the command line, such as `strace` with its options.
            env: Variables besides.
        """
        self._sessions += 1
        output = self.folder / f"said-{self._sessions}"
        return Session((*before, *PYTEST, *args), self.path, self.env | dict(env or {}), output)

    def command(self, argv: Sequence[str]) -> Session:
        """Start another command in the project."""
        self._sessions += 1
        return Session(argv, self.path, self.env, self.folder / f"said-{self._sessions}")

    def run(self, *args: str, **more: Any) -> Session:
        """Run pytest to its end."""
        session = self.start(*args, **more)
        session.wait()
        return session

    # ------------------------------------------------------------------------------------- seen from outside

    @property
    def output(self) -> Path:
        return self.path / ".skilleval" / "runs"

    def run_folders(self) -> list[Path]:
        """Return the run folders that hold a plan, oldest first."""
        return sorted(path.parent for path in self.output.glob("*/plan.json"))

    @property
    def last_run(self) -> Path:
        """The newest of them; a path that is not there when there is none."""
        return (self.run_folders() or [self.output / "none"])[-1]

    def records(self) -> dict[str, bytes]:
        """Return the bytes of each finished trial's record, by run and trial folder."""
        return {f"{path.parts[-4]}/{path.parts[-2]}": path.read_bytes() for path in self.output.glob(_RECORDS)}

    def starts(self) -> Counter[str]:
        """Return how often each trial's agent was started, by run and trial folder."""
        places = (line.partition("/") for line in self.marks.read_text().split())
        return Counter(f"{run}/{trial.partition('-')[0]}" for run, _, trial in places)

    def processes(self) -> dict[int, str]:
        """Return the living processes of its runs: pytest, workers, fork servers, supervisors, agents."""
        wanted = (f"LD_LIBRARY_PATH={self.temp}".encode(), f"SKILLEVAL_HOME={self.temp}/".encode())
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                ours = any(variable.startswith(wanted) for variable in variables)
                alive = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
            except OSError:
                continue
            if ours and alive:
                found[int(entry.name)] = _text(int(entry.name), "cmdline")[:120]
        return found

    def homes(self) -> list[str]:
        """Return what its runs have left in the temp directory, pytest's own folders apart."""
        return sorted(
            str(path.relative_to(self.temp))
            for path in self.temp.rglob("*")
            if not path.relative_to(self.temp).parts[0].startswith("pytest-of-")
        )

    def report(self) -> dict[str, Any]:
        """Read the newest run's report.json."""
        value: dict[str, Any] = json.loads((self.last_run / "report.json").read_bytes())
        return value

    def clear(self) -> None:
        """Kill what is left of its runs; the board counts before it clears."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


_RECORDS = "*/trials/*/record.json"


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except OSError:
            continue
    return found


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
