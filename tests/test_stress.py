"""What parallel trials leave never mixes: every kept file is checked against the work item that its record names."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.model import CONDITIONS

if TYPE_CHECKING:
    from tests.conftest import Project

REPEATS = int(os.environ.get("SKILLEVAL_STRESS", "0"))
"""How often the whole suite runs under `-n 8`; `make stress` says 20."""

AGENT = r'''
import json
from pathlib import Path

from pytest_skilleval import Answer, Detected, Launch
from pytest_skilleval.records import ProviderInfo, Transcript

WORK = """
line="[[$1]] $SKILLEVAL_HOME"
echo "$line"
echo "$line" >&2
mkdir -p proof/shots
for round in 1 2 3 4 5; do
  for name in out.txt more.md proof/report.md proof/notes.txt proof/shots/again.md; do
    echo "$line $name" >> "$name"
  done
done
printf '{"item": "%s"}' "$line" > proof/data.json
"""


class Keyed:
    """An agent that writes the key of its work item, and where its home lies, into every file; all have equal names."""

    id = "keyed"
    simulated = True
    paid = False

    def __init__(self, settings):
        pass

    def detect(self):
        return Detected(ProviderInfo(id=self.id, version="1", simulated=True))

    def credentials(self):
        return {}

    def skill_root(self, home):
        return home / ".agents" / "skills"

    def prepare(self, ask):
        return Launch(argv=("sh", "-c", WORK, "sh", ask.id.key))

    def read(self, ask, output):
        said = "" if output is None else output.stdout.read_text("utf-8", errors="replace")
        return Answer(Transcript(final_text=said.strip(), finished=True))


def pytest_skilleval_providers(config):
    return {"keyed": Keyed}
'''

WROTE = {"id": "wrote", "kind": "file", "path": "out.txt", "matches": r"^\[\["}
LANES: dict[str, dict[str, Any]] = {
    "prompt": {"expect": [r"^\[\["]},
    "execution": {"checks": [WROTE], "artifacts": [{"path": "*.txt"}, {"path": "*.md"}]},
    "dogfood": {
        "checks": [WROTE],
        "artifacts": [{"path": "out.txt"}],
        "bundle": {"path": "proof", "profile": "reporting"},
    },
}
KEPT = {"prompt": 0, "execution": 2, "dogfood": 1 + 4}
"""Artifacts of a trial of each lane: what the case asks for, and the four files of the bundle."""


def write_suite(project: Project, cases: int) -> None:
    """Write equal cases of all lanes under all conditions."""
    project.write("conftest.py", AGENT)
    project.skill()
    project.write("stale/greeter/SKILL.md", "---\nname: greeter\ndescription: Greets.\n---\n\nSay good day.\n")
    for lane, keys in LANES.items():
        for number in range(cases):
            case = {"prompt": "Say who you are.", "skill": "greeter", "stale": "../../stale/greeter", **keys}
            project.write(f"cases/{lane}/who-{number}.yaml", json.dumps(case))


def keys_in(data: bytes) -> set[str]:
    """Return the work items that a file's content names."""
    return {found.decode() for found in re.findall(rb"\[\[([^\]]+)\]\]", data)}


def check_run(run: Path, planned: int) -> Counter[str]:
    """Check every file below a run's folder against the record that names it; return how many of each kind there are."""
    seen: Counter[str] = Counter()
    owner: dict[str, str] = {}
    homes: dict[str, str] = {}
    records = [json.loads(path.read_text())["body"] for path in sorted(run.glob("trials/*/record.json"))]
    assert len(records) == planned
    for record in records:
        key = ":".join(str(record[word]) for word in ("lane", "case", "condition", "trial"))
        assert record["error"] is None, key
        assert keys_in(record["final_text"].encode()) == {key}
        assert len(record["artifacts"]) == KEPT[record["lane"]], key
        files = [record[name] for name in ("transcript", "stdout", "stderr")] + record["artifacts"]
        for file in files:
            assert file["path"] not in owner, f"{file['path']} belongs to {owner.get(file['path'])} and to {key}"
            owner[file["path"]] = key
            data = (run / file["path"]).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["digest"]), file["path"]
            assert keys_in(data) == {key}, file["path"]
            seen["files"] += 1
        for file in record["artifacts"]:
            # The text files hold the same line five times: nobody else wrote into them, and nothing is lost.
            lines = (run / file["path"]).read_text().splitlines()
            assert len(lines) == (1 if file["name"].endswith(".json") else 5), file["path"]
            assert len(set(lines)) == 1, file["path"]
            home = lines[0].split("]] ")[1].split()[0].rstrip('"}')
            assert homes.setdefault(home, key) == key, f"{home} was the home of {homes[home]} and of {key}"
            seen["artifacts"] += 1
    # As many homes as work items that left a file: each trial had one of its own, and wrote into no other.
    assert sorted(homes.values()) == sorted(key for key in set(owner.values()) if not key.startswith("prompt:"))
    for path in sorted(run.glob("trials/*/workspace.diff")):
        name = path.with_name("transcript.jsonl").relative_to(run).as_posix()
        assert keys_in(path.read_bytes()) == {owner[name]}, path
        seen["diffs"] += 1
    for path in sorted(run.rglob("manifest.json")):
        folder = path.parent
        listed = {file["path"] for file in json.loads(path.read_text())["files"]}
        names = {(folder / one).relative_to(run).as_posix() for one in listed}
        assert len({owner[name] for name in names}) == 1, path
        page = (folder / "index.html").read_bytes()
        assert keys_in(page) == {owner[name] for name in names}, path
        seen["bundles"] += 1
    ours = {"intent.json", "record.json", "workspace.diff", "manifest.json", "index.html"}
    strays = [
        path.relative_to(run).as_posix()
        for top in ("trials", "bundles")
        for path in (run / top).rglob("*")
        if path.is_file() and path.name not in ours and path.relative_to(run).as_posix() not in owner
    ]
    assert strays == []
    return seen


def go(project: Project, cases: int, trials: int, workers: int) -> Counter[str]:
    """Run the suite in parallel and check what it left."""
    done = project.run(f"-n{workers}", f"--trials={trials}", "--skilleval-provider=keyed")
    planned = len(LANES) * cases * len(CONDITIONS) * trials
    assert sum(project.outcomes().values()) == planned, done.stdout.str()
    assert project.outcomes().get("error", 0) == 0, done.stdout.str()
    per_lane = cases * len(CONDITIONS) * trials
    seen = check_run((project.path / ".skilleval/latest").resolve(), planned)
    assert seen["artifacts"] == per_lane * sum(KEPT.values())
    assert seen["files"] == seen["artifacts"] + 3 * planned
    assert seen["bundles"] == per_lane
    return seen


def test_what_parallel_trials_of_all_lanes_leave_never_mixes(project: Project) -> None:
    write_suite(project, cases=1)
    assert go(project, cases=1, trials=1, workers=4)["diffs"] >= 2 * len(CONDITIONS)


@pytest.mark.skipif(not REPEATS, reason="takes minutes: `make stress`")
@pytest.mark.parametrize("repeat", range(REPEATS))
def test_what_eight_workers_leave_never_mixes_however_often(project: Project, repeat: int) -> None:
    write_suite(project, cases=2)
    go(project, cases=2, trials=2, workers=8)
