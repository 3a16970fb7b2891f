"""What the reference solutions share: commands recorded in a terminal, the run's report kept, and report.md written.

Two equal runs of the stub are to leave equal bundles, byte for byte. So what differs between them (run ids, seconds, the
folder's path, when a chunk of output came) is settled in the evidence; nothing else of it is touched.
"""

from __future__ import annotations

import json
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, "tools")
from record import Screen  # noqa: E402 - the lab's own tool

FOLDER = Path("proof")
RUN_ID, DAY = "20260101T000000Z-0000", "2026-01-01T00:00:00Z"
LINE_S = 0.05
SECTIONS = ("Summary", "Setup", "Steps", "Results", "Evidence", "Issues")
_typed: list[str] = []
_kept: dict[str, str] = {}


def record(name: str, *command: str, about: str) -> int:
    """Run a command in a recorded terminal: `<name>.cast`, `<name>.txt`, `<name>.png`. Returns its exit status."""
    cast, screen = FOLDER / f"{name}.cast", FOLDER / f"{name}.txt"
    program = [sys.executable, "-m", command[0], *command[1:]]
    status = subprocess.run([sys.executable, "-I", "-S", "tools/record.py", str(cast), "--", *program], check=False).returncode
    settle_recording(cast, screen, shlex.join(command))
    subprocess.run([sys.executable, "tools/picture.py", str(screen), str(FOLDER / f"{name}.png")], check=True)
    _typed.append(f"$ {shlex.join(command)}\n# exit status {status}")
    keep(f"{name}.cast", f"the terminal while {about}, as an asciicast")
    keep(f"{name}.txt", "its last screen as text")
    keep(f"{name}.png", "its last screen as a picture")
    return status


def settled(text: str) -> str:
    """Return a text without what differs between two equal runs."""
    text = re.sub(r"\b\d{8}T\d{6}Z-[0-9a-f]{4}\b", RUN_ID, text.replace(str(Path.cwd()), "/lab"))
    # How often a line is drawn again while pytest collects depends on the time that it takes.
    text = re.sub(r"^collecting .*\r(?=collect)", "", text, flags=re.MULTILINE)
    # pytest's last line fills the width, so that the number of its = tells the seconds too.
    return re.sub(r"^\S*=+ .*\bin [\d.]+s.*=\S*\r?$", _timeless, text, flags=re.MULTILINE)


def _timeless(line: re.Match[str]) -> str:
    return re.sub(r"={3,}", "=" * 30, re.sub(r"\bin [\d.]+s(?: \([\d:]+\))?", "in N.NNs", line.group()))


def settle_recording(cast: Path, screen: Path, command: str) -> None:
    """Write a recording anew, a line an event on an even beat, and the screen that it ends with."""
    header, *events = map(json.loads, cast.read_text("utf-8").splitlines())
    lines = settled("".join(event[2] for event in events)).splitlines(keepends=True)
    header |= {"timestamp": 1767225600, "command": command}
    beats = [[round(LINE_S * (beat + 1), 2), "o", line] for beat, line in enumerate(lines)]
    cast.write_text("".join(json.dumps(line) + "\n" for line in [header, *beats]), "utf-8")
    shown = Screen()
    shown.feed("".join(lines))
    screen.write_text(shown.text, "utf-8")


def keep_run(name: str, about: str) -> dict[str, Any]:
    """Copy the report of the newest run into the bundle and return it."""
    newest = max(Path("runs").glob("*/report.json"), key=lambda path: path.stat().st_mtime_ns)
    report = json.loads(settled(newest.read_text("utf-8")))
    report["run"] |= {"started": DAY, "finished": DAY, "commit": None}
    report["timing"] = {}
    (FOLDER / name).write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    keep(name, f"report.json of {about}; its times and its id are settled")
    return load(FOLDER / name)


def load(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    return json.loads(path.read_text("utf-8"))  # type: ignore[no-any-return]


def write_json(name: str, value: object, about: str) -> None:
    """Put a finding into the bundle as JSON."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / name).write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8")
    keep(name, about)


def keep(name: str, about: str) -> None:
    """Name a file of the bundle in the report's Evidence."""
    _kept[name] = about


def groups(report: dict[str, Any], condition: str = "self-load") -> dict[str, dict[str, Any]]:
    """Return the groups of a condition by case."""
    return {group["case"]: group for group in report["groups"] if group["condition"] == condition}


def rate(group: dict[str, Any]) -> str:
    """Write a pass rate with its n and interval."""
    if not group["n"]:
        return f"not measured (n = 0, {group['errors']} errors)"
    low, high = group["pass_rate"]["ci"]
    errors = f", {group['errors']} errors beside it" if group["errors"] else ""
    return f"{group['passed']}/{group['n']} = {group['pass_rate']['rate']:.2f} (95 % interval {low:.2f} to {high:.2f}{errors})"


def write_report(report: dict[str, Any], *, summary: str, results: list[str], issues: str) -> None:
    """Write report.md in its sections."""
    run = report["run"]
    skill = run["skills"][0]
    setup = [
        f"- provider {run['provider']['id']}: simulated, no agent was run; seed {run['seed']}, {run['trials']} {'trial' if run['trials'] == 1 else 'trials'} a group",
        f"- skill {skill['name']}, digest {skill['digest'][:12]}; run {run['id']}, status {run['status']}",
        f"- Python {platform.python_version()} on {platform.system()}, in the folder of the lab",
    ]
    texts = {
        "Summary": summary,
        "Setup": "\n".join(setup),
        "Steps": "Typed in this order:\n\n```console\n" + "\n".join(_typed) + "\n```",
        "Results": "\n".join(results),
        "Evidence": "\n".join(f"- [{name}]({name}): {about}" for name, about in sorted(_kept.items())),
        "Issues": issues,
    }
    body = "\n\n".join(f"## {section}\n\n{texts[section].strip()}" for section in SECTIONS)
    (FOLDER / "report.md").write_text(f"# What was found in the lab\n\n{body}\n", "utf-8")
