"""What supervision and the sandbox cost a trial: medians of one run, the three kinds interleaved."""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pytest_skilleval.workspace.command import Command
from pytest_skilleval.workspace.sandbox import SandboxPlan, detect
from pytest_skilleval.workspace.spawn import Spawner

ARGV = ("/bin/sh", "-c", 'echo \'{"type":"result"}\'')
SECRETS = ("sk-ant-REDACTED", "another-secret-value")


def plain(folder: Path) -> None:
    """A trial as a script would run it: a home, the command, the home removed."""
    home = folder / "plain"
    home.mkdir()
    with (folder / "stdout").open("wb") as stdout:
        subprocess.run(ARGV, cwd=home, env={"PATH": os.defpath, "HOME": str(home)}, stdout=stdout, check=True)
    home.rmdir()


def supervised(spawner: Spawner, folder: Path, plan: SandboxPlan | None) -> None:
    """A trial as the plugin runs it: lease, home, command, proof of death, the home removed."""
    home = folder / "run" / "home"
    with spawner.lease(home, folder) as lease:
        home.mkdir()
        ended = lease.run(
            Command(
                argv=ARGV,
                cwd=home,
                env={"PATH": os.defpath, "HOME": str(home)},
                stdout=folder / "stdout",
                stderr=folder / "stderr",
                timeout=60,
                secrets=SECRETS,
                result_markers=(b'"type":"result"',),
                disk_limit=1 << 30,
                sandbox=plan,
            )
        )
    if ended.exit_status != 0:
        raise SystemExit(f"the command failed: {ended}")


def memory(pid: int | None) -> str:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return "unknown"
    values = {line.split()[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    private = values["Private_Clean:"] + values["Private_Dirty:"]
    return f"{values['Rss:'] / 1024:.1f} MiB resident, {private / 1024:.1f} MiB its own"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="Trials of each kind, default: 100")
    trials = parser.parse_args().trials
    sandbox = detect("auto")
    with tempfile.TemporaryDirectory() as name, Spawner() as spawner:
        folder = Path(name).resolve()
        kinds: dict[str, Callable[[], None]] = {
            "plain subprocess": lambda: plain(folder),
            "supervised": lambda: supervised(spawner, folder, None),
        }
        if sandbox.kind != "none":
            kinds["supervised, bubblewrap"] = lambda: supervised(spawner, folder, sandbox.plan())
        started = time.perf_counter()
        kinds["supervised"]()
        first = time.perf_counter() - started
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(trials):
            for kind, run in kinds.items():
                started = time.perf_counter()
                run()
                times[kind].append((time.perf_counter() - started) * 1000)
        base = statistics.median(times["plain subprocess"])
        version, load = sys.version.split()[0], os.getloadavg()[0]
        print(f"{trials} trials each, Python {version}, {os.cpu_count()} cores, load {load:.1f}")
        for kind, values in times.items():
            middle = statistics.median(values)
            high = sorted(values)[int(len(values) * 0.95)]
            print(f"{kind:24} median {middle:6.1f} ms   p95 {high:6.1f} ms   {middle - base:+6.1f} ms")
        print(f"first supervised trial   {first * 1000:.0f} ms (starts the fork server)")
        print(f"fork server              {memory(spawner.server)}")
        if sandbox.kind == "none":
            print(f"bubblewrap               {sandbox.reason}")
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"worker's own CPU         {(used.ru_utime + used.ru_stime) * 1000 / (trials * len(kinds)):.1f} ms a trial")


if __name__ == "__main__":
    main()
