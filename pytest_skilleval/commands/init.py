"""`skilleval init`: a first case and what it needs; it runs as it is, and nothing is overwritten."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_skilleval.errors import OptionMistake
from pytest_skilleval.skills import is_skill_folder, load_skill

from .answer import Answer
from .place import CASE_FOLDERS, SKILL_FOLDERS, Place, add_output, place_of

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval init                        a first case for the project's skill, or for a sample skill where there is none
  skilleval init --skill changelog-style  for one of several skills
"""
SAMPLE = "changelog-style"
CASE = "first-case"
_SKILL = """\
---
name: changelog-style
description: House style of release notes. Use whenever release notes or a changelog entry are written or changed.
---

# Style of the changelog

- The first line is `# NAME VERSION (YYYY-MM-DD)`.
- What breaks comes first, under `## Breaking`; then `## Added`, then `## Fixed`. Leave out what is empty.
- One line a change, in the present tense, without a full stop.
"""
_SAMPLE_CASE = """\
# One eval case. All keys: `skilleval schema`, or the reference in the docs.
skill: changelog-style
category: writing
prompt: |
  Write the release notes of teapot 1.2.0, released on 2026-05-04, into NOTES.md. Changes: starting takes half the
  time; an empty order no longer crashes; the flag --brew is gone, --steep replaces it.
conditions: [none, self-load]            # without the skill, and with the skill where agents discover it
checks:                                  # facts about the workspace when the agent is done
  - {id: headline, kind: file, path: NOTES.md, matches: '\\A# teapot 1\\.2\\.0 \\(2026-05-04\\)$'}
  - {id: breaking-first, kind: file, path: NOTES.md, matches: '^## Breaking\\n[\\s\\S]*^## Fixed$'}
  - {id: names-the-new-flag, kind: file, path: NOTES.md, contains: --steep}
solution: first-case.sh                  # proves that the case can be passed: `skilleval check`
stub: {solve_rate: {none: 0.3, self-load: 0.9}}    # only for the simulated agent that is the default provider
"""
_SAMPLE_SOLUTION = """\
cat > NOTES.md <<'END'
# teapot 1.2.0 (2026-05-04)

## Breaking

- The flag --brew is gone; --steep replaces it

## Fixed

- Starting takes half the time
- An empty order no longer crashes
END
"""
_OWN_CASE = """\
# One eval case. All keys: `skilleval schema`, or the reference in the docs.
skill: {skill}
category: general
# Ask for real work that the skill is for, without naming the skill; then say below what must be there afterwards.
prompt: |
  Write a short summary of notes.txt into answer.md: one line that starts with "Summary:".
workspace:
  files:
    notes.txt: |
      The bridge opens on Monday. Lorries have to wait until the railing is painted, which takes two weeks.
conditions: [none, self-load]            # without the skill, and with the skill where agents discover it
checks:                                  # facts about the workspace when the agent is done
  - {{id: summary, kind: file, path: answer.md, matches: '^Summary: \\S'}}
solution: first-case.sh                  # proves that the case can be passed: `skilleval check`
stub: {{solve_rate: {{none: 0.3, self-load: 0.9}}}}    # only for the simulated agent that is the default provider
"""
_OWN_SOLUTION = """\
echo "Summary: the bridge opens on Monday, for lorries two weeks later." > answer.md
"""
_INI = """\
[pytest]
# Where cases lie: <folder>/<lane>/*.yaml
skilleval_paths = cases
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--skill", metavar="NAME", help="the skill that the case is for (default: the first one found)")
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Write what is not there yet."""
    place = place_of(arguments)
    skill = _skill(place, arguments.skill)
    folder = Path(place.listed("skilleval_paths", CASE_FOLDERS)[0]) / "execution"
    files: dict[Path, str] = {}
    if skill is None:
        skill = SAMPLE
        files[Path("skills") / SAMPLE / "SKILL.md"] = _SKILL
        files |= {folder / f"{CASE}.yaml": _SAMPLE_CASE, folder / f"{CASE}.sh": _SAMPLE_SOLUTION}
    else:
        files |= {folder / f"{CASE}.yaml": _OWN_CASE.format(skill=skill), folder / f"{CASE}.sh": _OWN_SOLUTION}
    if not place.configured:
        files[Path("pytest.ini")] = _INI
    taken = [path for path in files if (place.root / path).exists()]
    made = [] if taken else list(files)
    for path in made:
        (place.root / path).parent.mkdir(parents=True, exist_ok=True)
        with (place.root / path).open("x", encoding="utf-8") as file:
            file.write(files[path])
    if taken:
        raise OptionMistake(
            f"{', '.join(map(str, taken))}: is there already, and nothing is overwritten; `skilleval check` tells "
            "whether the cases are sound"
        )
    value = {"root": str(place.root), "skill": skill, "files": [path.as_posix() for path in made], "next": _NEXT}
    return Answer(value, [f"made {path.as_posix()}" for path in made] + _hints(place))


_NEXT = ["skilleval check", "pytest --trials 5"]


def _skill(place: Place, wanted: str | None) -> str | None:
    """Return the name of the skill that the case is for; None where there is none.

    Raises:
        OptionMistake: The one that is asked for is not there.
        SkillMistake: It cannot be used as it is.
    """
    folders = []
    for text in place.listed("skilleval_skills", SKILL_FOLDERS):
        top = place.root / text
        folders += [path for path in sorted(top.iterdir()) if is_skill_folder(path)] if top.is_dir() else []
    names = [load_skill(folder).name for folder in folders]
    if wanted is not None and wanted not in names:
        known = ", ".join(names) or f"no skill in {', '.join(SKILL_FOLDERS)}"
        raise OptionMistake(
            f"--skill {wanted}: is not there (there are: {known}); write skills/{wanted}/SKILL.md first"
        )
    return wanted or next(iter(names), None)


def _hints(place: Place) -> list[str]:
    paths = place.listed("testpaths", ())
    lines = []
    if paths and not any(Path(path).parts[:1] == ("cases",) for path in paths):
        lines.append(f"hint: `testpaths` holds {' '.join(paths)}: add cases to it, or run `pytest cases`")
    lines += [
        "hint: .skilleval/ keeps itself out of git; to share a baseline: git add -f .skilleval/blessed",
        f"next: {_NEXT[0]}  (can the case be passed, can its checks fail?)",
        f"then: {_NEXT[1]}  (a simulated agent; --skilleval-provider claude for a real one)",
    ]
    return lines
