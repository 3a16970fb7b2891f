"""Case files: every mistake has a file, a line and a key; what is asked has a fingerprint."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_skilleval.cases import assert_unique, load_case_file
from pytest_skilleval.cases.schema import case_schema
from pytest_skilleval.casespec import CaseSpec, Lane
from pytest_skilleval.documents import yamlfile
from pytest_skilleval.errors import CaseMistake
from pytest_skilleval.model import Case

CONDITIONS = ["none", "self-load", "preloaded", "stale"]
ANTI_PATTERNS = ["rerun-until-green", "one-run"]


def write(root: Path, text: str, name: str = "cases/execution/x.yaml") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(textwrap.dedent(text).lstrip("\n").encode())
    return path


def load(root: Path, text: str, name: str = "cases/execution/x.yaml") -> list[Case]:
    return load_case_file(write(root, text, name), root=root, conditions=CONDITIONS, anti_patterns=ANTI_PATTERNS)


def mistake(root: Path, text: str, name: str = "cases/execution/x.yaml") -> CaseMistake:
    with pytest.raises(CaseMistake) as caught:
        load(root, text, name)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{name}:")
    return caught.value


# ------------------------------------------------------------------------------------------------------------- reading


def test_a_file_with_one_case_takes_its_id_and_lane_from_its_place(tmp_path: Path) -> None:
    (case,) = load(tmp_path, "# a comment\n\nprompt: |\n  Do it.\n  Now.\n", "cases/dogfood/tidy-up.yaml")
    assert (case.lane, case.id, case.line) == (Lane.DOGFOOD, "tidy-up", 3)
    assert case.spec.prompt == "Do it.\nNow.\n"
    assert case.path == tmp_path / "cases/dogfood/tidy-up.yaml"


def test_the_ending_case_yaml_is_no_part_of_the_id(tmp_path: Path) -> None:
    (case,) = load(tmp_path, "prompt: x\nlane: prompt\n", "somewhere/greet.case.yaml")
    assert (case.lane, case.id) == (Lane.PROMPT, "greet")


def test_a_lane_in_the_case_wins_over_the_folder(tmp_path: Path) -> None:
    assert load(tmp_path, "prompt: x\nlane: dogfood\n")[0].lane is Lane.DOGFOOD


def test_the_folders_above_the_root_say_nothing_about_the_lane(tmp_path: Path) -> None:
    path = write(tmp_path, "prompt: x\n", "prompt/project/cases/x.yaml")
    with pytest.raises(CaseMistake, match="lane: is required outside"):
        load_case_file(path, root=tmp_path / "prompt/project")


def test_defaults_merge_into_mappings_and_are_replaced_everywhere_else(tmp_path: Path) -> None:
    first, second = load(
        tmp_path,
        """
        defaults:
          category: trigger
          budget: {timeout: 60, steps: 5}
          expect: [a, b]
        cases:
          - {id: one, prompt: x}
          - {id: two, prompt: y, category: other, budget: {steps: 9}, expect: [c]}
        """,
        "cases/prompt/x.yaml",
    )
    assert (first.spec.category, first.spec.budget.timeout, first.spec.budget.steps) == ("trigger", 60, 5)
    assert first.spec.expect == ("a", "b")
    assert (second.spec.category, second.spec.budget.timeout, second.spec.budget.steps) == ("other", 60, 9)
    assert second.spec.expect == ("c",)
    assert (first.line, second.line) == (6, 7)


def test_json_of_the_same_shape_gives_the_same_case(tmp_path: Path) -> None:
    data = {
        "prompt": "Grüße 😀",
        "skill": "greet",
        "checks": [{"id": "a", "kind": "file", "path": "x", "contains": "é"}],
    }
    (from_json,) = load(tmp_path, json.dumps({"$schema": "x.json", **data}), "cases/execution/x.json")
    (from_yaml,) = load(tmp_path, yaml.safe_dump(data, allow_unicode=True), "cases/execution/x.yaml")
    assert from_json.spec == from_yaml.spec
    assert from_json.fingerprint == from_yaml.fingerprint


def test_the_lines_of_json_cases_are_counted(tmp_path: Path) -> None:
    text = '{\n  "cases": [\n    {"id": "a",\n     "prompt": "x"},\n\n    {"id": "b", "prompt": "y"}\n  ]\n}\n'
    assert [case.line for case in load(tmp_path, text, "cases/execution/x.json")] == [3, 6]


def test_a_byte_order_mark_and_crlf_change_nothing(tmp_path: Path) -> None:
    text = "id: a\nprompt: |\n  one\n  two\nchecks:\n  - {id: c, kind: text, contains: x}\n"
    (plain,) = load(tmp_path, text)
    path = tmp_path / "cases/execution/x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (windows,) = load_case_file(path, root=tmp_path)
    assert windows.spec == plain.spec


def test_anchors_and_merge_keys_are_read(tmp_path: Path) -> None:
    text = """
        defaults: {workspace: {env: &env {A: "1", B: "2"}}}
        cases:
          - {id: a, prompt: x, workspace: {env: {<<: *env, B: "3"}}}
        """
    assert load(tmp_path, text)[0].spec.workspace.env == {"A": "1", "B": "3"}


def test_what_both_versions_of_yaml_read_alike_needs_no_quotes(tmp_path: Path) -> None:
    text = """
        prompt: x
        budget: {timeout: 1.5, steps: 0x10}
        checks:
          - {id: j, kind: json, path: a.json, equals: [1, -2, 0.5, true, null, ~, "yes", 1.0e+3]}
        """
    (case,) = load(tmp_path, text)
    assert case.spec.budget.steps == 16
    assert case.spec.checks[0].equals == [1, -2, 0.5, True, None, None, "yes", 1000.0]  # type: ignore[union-attr]


def test_the_reader_in_python_reads_what_libyaml_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'cases:\n  - {id: a, prompt: "x", expect: [&p "a b", *p]}\n  - id: b\n    prompt: |\n      two\n'
    fast = load(tmp_path, text, "cases/prompt/x.yaml")
    monkeypatch.setattr(yamlfile, "_LOADER", type("Slow", (yamlfile._AsWritten, yaml.SafeLoader), {}))
    assert load(tmp_path, text, "cases/prompt/x.yaml") == fast
    assert mistake(tmp_path, "prompt: x\nskil: y\n").line == 2


# ------------------------------------------------------------------------------------------------------------ mistakes

MISTAKES = {
    # name: text, line, key, words of the message
    "an unknown key": ("prompt: x\nskil: y\n", 2, "skil", "unknown key; did you mean skill?"),
    "an unknown key far from any": ("prompt: x\nzzzzzz: y\n", 2, "zzzzzz", "unknown key; allowed: id, lane, skill"),
    "an unknown key of a check": (
        "prompt: x\nchecks:\n  - id: a\n    kind: file\n    pth: b\n",
        5,
        "checks[0].pth",
        "did you mean path?",
    ),
    "an unknown key in a nested mapping": (
        "prompt: x\nworkspace:\n  setup:\n    - run: [a]\n      timout: 3\n",
        5,
        "workspace.setup[0].timout",
        "did you mean timeout? allowed: run, timeout",
    ),
    "a duplicate key": ("prompt: x\nskill: a\nprompt: y\n", 3, "prompt", "is given twice; the first is on line 1"),
    "a duplicate key deep down": (
        "prompt: x\nbudget:\n  steps: 1\n  timeout: 2\n  steps: 3\n",
        5,
        "budget.steps",
        "the first is on line 3",
    ),
    "a number for a text": ("prompt: 5\n", 1, "prompt", "must be text, not 5; write '5' in quotes"),
    "a number in a command": (
        "prompt: x\nchecks:\n- id: a\n  kind: command\n  run: [sleep, 5]\n",
        5,
        "checks[0].run[1]",
        "'5'",
    ),
    "text for a number": ('prompt: x\nbudget:\n  steps: "3"\n', 3, "budget.steps", 'must be a whole number, not "3"'),
    "a fraction for a whole number": ("prompt: x\nbudget:\n  steps: 1.5\n", 3, "budget.steps", "whole number, not 1.5"),
    "true for a number": ("prompt: x\nbudget:\n  steps: true\n", 3, "budget.steps", "whole number, not true"),
    "a text for a list": (
        "prompt: x\nconditions: none\n",
        2,
        "conditions",
        'must be a list, not "none"; write ["none"]',
    ),
    "a list for a mapping": ("prompt: x\nbudget: [1]\n", 2, "budget", "must be a mapping, not [1]"),
    "nothing for a mapping": (
        "prompt: x\nbudget:\nskill: y\n",
        2,
        "budget",
        "must be a mapping, not null; leave the key out",
    ),
    "a value out of range": (
        "prompt: x\nbudget: {timeout: 0}\n",
        2,
        "budget.timeout",
        "0 is not allowed; must be more than 0",
    ),
    "an unknown kind of check": (
        "prompt: x\nchecks:\n  - {id: a, kind: text, contains: b}\n  - {id: b, kind: fil}\n",
        4,
        "checks[1].kind",
        "did you mean file? allowed: file, json, command",
    ),
    "a check without a kind": (
        "prompt: x\nchecks:\n  - id: a\n",
        3,
        "checks[0].kind",
        "is required; allowed: file, json",
    ),
    "a check without a path": ("prompt: x\nchecks:\n  - id: a\n    kind: file\n", 3, "checks[0].path", "is required"),
    "a check that is no mapping": (
        "prompt: x\nchecks:\n  - a\n",
        3,
        "checks[0]",
        'a mapping with `id` and `kind`, not "a"',
    ),
    "a value that is not in the list": (
        "prompt: x\nbudget: {on_timeout: fial}\n",
        2,
        "budget.on_timeout",
        '"fial" is not allowed; did you mean fail? allowed: fail, error, grade',
    ),
    "an unknown lane": ("lane: executon\nprompt: x\n", 1, "lane", "did you mean execution?"),
    "an empty prompt": ('skill: a\nprompt: ""\n', 2, "prompt", "must not be empty"),
    "no prompt": ("# first\nskill: a\n", 2, "prompt", "is required"),
    "an id with a bracket": ("prompt: x\nid: a[1]\n", 2, "id", "without spaces, slashes, colons and brackets"),
    "a bad regular expression": (
        "prompt: x\nworkflow:\n  - id: a\n    must:\n      - ok\n      - '('\n",
        6,
        "workflow[0].must[1]",
        "bad regular expression: missing ), unterminated subpattern at position 0 in '('",
    ),
    "a bad regular expression in a check": (
        "prompt: x\nchecks:\n  - {id: a, kind: file, path: b, matches: '[a'}\n",
        3,
        "checks[0].matches",
        "unterminated character set at position 0",
    ),
    "a bad regular expression in an anti-pattern": (
        "prompt: x\nanti_patterns:\n  - id: a\n    patterns: ['a**']\n",
        4,
        "anti_patterns[0].patterns[0]",
        "multiple repeat at position 2",
    ),
    "a bad regular expression in an event": (
        "prompt: x\nchecks:\n  - id: a\n    kind: event-log\n    path: b\n    events:\n      - {type: /ok/}\n      - {type: '/*/'}\n",
        8,
        "checks[0].events[1].type",
        "nothing to repeat at position 0",
    ),
    "flags in the middle of a pattern": (
        "prompt: x\nlane: prompt\nexpect:\n  - a\n  - b(?i)c\n",
        5,
        "expect[1]",
        "global flags not at the start",
    ),
    "an unknown condition": ("prompt: x\nconditions: [none, preload]\n", 2, "conditions[1]", "did you mean preloaded?"),
    "a condition twice": (
        "prompt: x\nconditions:\n  - none\n  - stale\n  - none\n",
        5,
        "conditions[2]",
        "taken by conditions[0]",
    ),
    "a gate for an unknown condition": (
        "prompt: x\nmin_pass_rate:\n  preloaded: 0.5\n  selfload: 0.5\n",
        4,
        "min_pass_rate.selfload",
        "did you mean self-load?",
    ),
    "a gate for a condition that the case leaves out": (
        "prompt: x\nconditions: [none, self-load]\nmin_pass_rate:\n  self-load: 0.5\n  preloaded: 0.8\n",
        5,
        "min_pass_rate.preloaded",
        "'preloaded' is none of this case's conditions (none, self-load)",
    ),
    "a rate beyond one": (
        "prompt: x\nstub:\n  solve_rate:\n    none: 0.5\n    stale: 50\n",
        5,
        "stub.solve_rate.stale",
        "50 is not allowed; must be at most 1",
    ),
    "a rate that is text": (
        "prompt: x\nmin_pass_rate: high\n",
        2,
        "min_pass_rate",
        "a number from 0 to 1, or a mapping of conditions",
    ),
    "an unknown built-in anti-pattern": (
        "prompt: x\nanti_patterns:\n  - rerun-untl-green\n",
        3,
        "anti_patterns[0]",
        "did you mean rerun-until-green? allowed: rerun-until-green, one-run",
    ),
    "an anti-pattern that is a number": (
        "prompt: x\nanti_patterns: [5]\n",
        2,
        "anti_patterns[0]",
        "the name of a built-in",
    ),
    "two checks with one id": (
        "prompt: x\nchecks:\n  - {id: a, kind: text, contains: b}\n  - {id: a, kind: text, contains: c}\n",
        4,
        "checks[1].id",
        "'a' is taken by checks[0]",
    ),
    "two steps with one id": (
        "prompt: x\nworkflow:\n  - {id: a, must: [b]}\n  - id: a\n    must: [c]\n",
        4,
        "workflow[1].id",
        "'a' is taken by workflow[0]",
    ),
    "a step after an unknown one": (
        "prompt: x\nworkflow:\n  - {id: read, must: [b]}\n  - id: write\n    must: [c]\n    after: [raed]\n",
        6,
        "workflow[1].after[0]",
        "'raed' is no step of this workflow; did you mean read? allowed: read, write",
    ),
    "steps that wait for each other": (
        "prompt: x\nworkflow:\n  - {id: a, must: [b]}\n  - {id: c, must: [d], after: [e]}\n  - {id: e, must: [f], after: [c]}\n",
        4,
        "workflow[1].after",
        "the steps c, e wait for each other",
    ),
    "a step that asks for nothing": ("prompt: x\nworkflow:\n  - id: a\n", 3, "workflow[0]", "give must or never"),
    "a check that cannot fail": ("prompt: x\nchecks:\n  - {id: a, kind: text}\n", 3, "checks[0]", "can never fail"),
    "text of a file that must be absent": (
        "prompt: x\nchecks:\n  - id: a\n    kind: file\n    path: b\n    exists: false\n    contains: c\n",
        7,
        "checks[0].contains",
        "cannot hold for a file that must be absent",
    ),
    "a skill check without a skill": ("prompt: x\nchecks:\n  - {id: a, kind: skill}\n", 3, "checks[0]", "give name"),
    "a range upside down": (
        "prompt: x\nchecks:\n  - {id: a, kind: json, path: b, min: 3, max: 2}\n",
        3,
        "checks[0].max",
        "2 is less than min 3",
    ),
    "expect outside the prompt lane": ("prompt: x\nexpect: [a]\n", 2, "expect", "read in the prompt lane only"),
    "a bundle outside the dogfood lane": (
        "prompt: x\nbundle: {path: p}\n",
        2,
        "bundle",
        "read in the dogfood lane only",
    ),
    "an absolute path": ("prompt: x\nsolution: /bin/true\n", 2, "solution", "is absolute"),
    "a path of another system": ("prompt: x\nartifacts:\n  - path: 'C:\\x'\n", 3, "artifacts[0].path", "is absolute"),
    "a path that goes up": ("prompt: x\nworkspace: {template: ../y}\n", 2, "workspace.template", "leaves its folder"),
    "a workspace file that goes up": (
        "prompt: x\nworkspace:\n  files:\n    a.txt: b\n    ../c.txt: d\n",
        5,
        "workspace.files['../c.txt']",
        "leaves its folder",
    ),
    "a workspace file in the repository": (
        "prompt: x\nworkspace:\n  files:\n    .git/config: b\n",
        4,
        "workspace.files['.git/config']",
        "lies in the workspace's own repository",
    ),
    "a copy onto the repository": (
        "prompt: x\nworkspace:\n  copies:\n    ./.git: x.yaml\n",
        4,
        "workspace.copies['./.git']",
        "run git in workspace.setup",
    ),
    "a file below a file": (
        "prompt: x\nworkspace:\n  files:\n    a: b\n    c: d\n    a/b/e: f\n",
        6,
        "workspace.files['a/b/e']",
        "'a/b/e' needs a folder where 'a' is a file",
    ),
    "a copy below a file": (
        "prompt: x\nworkspace:\n  copies: {a/b: x.yaml}\n  files: {./a: b}\n",
        3,
        "workspace.copies['a/b']",
        "where './a' is a file",
    ),
    "a file below a copied file": (
        "prompt: x\nworkspace:\n  copies: {a: x.yaml}\n  files:\n    a/b: c\n",
        5,
        "workspace.files['a/b']",
        "'a/b' needs a folder where 'a' is a file",
    ),
    "the home in the variables": (
        "prompt: x\nworkspace:\n  env:\n    LANG: C\n    HOME: /root\n",
        5,
        "workspace.env.HOME",
        "belongs to the trial's isolated home",
    ),
    "a variable with an equals sign": (
        'prompt: x\nworkspace:\n  env: {"A=B": c}\n',
        3,
        "workspace.env['A=B']",
        '"A=B" is no name of a variable',
    ),
    "a variable without a name": (
        'prompt: x\nworkspace:\n  env: {"": c}\n',
        3,
        "workspace.env['']",
        '"" is no name of a variable',
    ),
    "a NUL in a variable": (
        'prompt: x\nworkspace:\n  env: {A: "b\\0c"}\n',
        3,
        "workspace.env.A",
        "holds a NUL",
    ),
    "a missing solution": ("prompt: x\nsolution: run.sh\n", 2, "solution", "'run.sh' is not there"),
    "a missing template": ("prompt: x\nworkspace:\n  template: t\n", 3, "workspace.template", "'t' is not there"),
    "a missing file to copy": (
        "prompt: x\nworkspace:\n  copies:\n    in.csv: data/a.csv\n",
        4,
        "workspace.copies['in.csv']",
        "'data/a.csv' is not there",
    ),
    "a file to copy from above": (
        "prompt: x\nworkspace:\n  copies:\n    in.csv: ../a.csv\n",
        4,
        "workspace.copies['in.csv']",
        "leaves its folder",
    ),
    "a check of the output that cannot fail": (
        "prompt: x\nchecks:\n  - {id: a, kind: output}\n",
        3,
        "checks[0]",
        "give contains, matches or never",
    ),
    "a missing stale skill": ("prompt: x\nstale: old\n", 2, "stale", "'old' is not there"),
    "a missing failure script": ("prompt: x\nstub:\n  failure: f.sh\n", 3, "stub.failure", "'f.sh' is not there"),
    "a missing python file": (
        "prompt: x\nchecks:\n  - id: a\n    kind: python\n    function: v.py::f\n",
        5,
        "checks[0].function",
        "'v.py' is not there",
    ),
    "a missing file of a command": (
        "prompt: x\nchecks:\n  - {id: a, kind: command, run: [diff, out.txt, '{case}/want.txt']}\n",
        3,
        "checks[0].run[2]",
        "'want.txt' is not there",
    ),
    "a function that is written otherwise": (
        "prompt: x\nchecks:\n  - {id: a, kind: python, function: v.py}\n",
        3,
        "checks[0].function",
        "write file.py::function",
    ),
    "yes without quotes": ("prompt: yes\n", 1, "prompt", "yes without quotes is true in YAML 1.1 and text in YAML 1.2"),
    "on as a key": ("prompt: x\nworkspace:\n  env:\n    on: a\n", 4, "workspace.env.on", "write true or 'on'"),
    "a number as a key": ("prompt: x\nworkspace:\n  files:\n    1: a\n", 4, "workspace.files.1", "write '1' in quotes"),
    "a date": ("prompt: x\nskill: 2026-11-30\n", 2, "skill", "YAML 1.1 reads a date in 2026-11-30; write '2026-11-30'"),
    "an octal number": (
        "prompt: x\nbudget: {steps: 010}\n",
        2,
        "budget.steps",
        "YAML 1.1 reads an octal number in 010",
    ),
    "a time": ("prompt: x\nbudget: {timeout: 1:30}\n", 2, "budget.timeout", "a number to the base 60"),
    "a number with underscores": (
        "prompt: x\nbudget: {tokens: 20_000}\n",
        2,
        "budget.tokens",
        "YAML 1.2 text in 20_000",
    ),
    "a power of ten": ("prompt: x\nbudget: {tokens: 1e5}\n", 2, "budget.tokens", "YAML 1.2 a number in 1e5"),
    "not a number": ("prompt: x\nbudget:\n  timeout: .nan\n", 3, "budget.timeout", "write a finite number"),
    "infinity": (
        "prompt: x\nchecks:\n- {id: a, kind: json, path: b, max: .inf}\n",
        3,
        "checks[0].max",
        "write a finite number",
    ),
    "a number beyond all floats": (
        "prompt: x\nbudget: {timeout: 1.0e+999}\n",
        2,
        "budget.timeout",
        "write a finite number",
    ),
    "a tag": ("skill: a\nprompt: !!python/name:os.system x\n", 2, "prompt", "write plain values without tags"),
    "an own tag": ("skill: a\nprompt: !secret x\n", 2, "prompt", "the tag '!secret' is not allowed"),
    "a tab": ("prompt: x\nbudget:\n\ttimeout: 3\n", 3, "", "indented with spaces, never with tabs"),
    "a colon in text": ("skill: a\nprompt: do this: now\n", 2, "", "text that holds ': ' needs quotes"),
    "an open quote": ("skill: a\nprompt: 'x\n", 3, "", "not YAML: found unexpected end of stream"),
    "an unknown alias": ("skill: a\nprompt: *nope\n", 2, "", "needs its anchor before it"),
    "two documents": ("prompt: x\n---\nprompt: y\n", 2, "", "put several cases under `cases:`"),
    "a control character": ("skill: a\nprompt: a\x07b\n", 2, "", "is not allowed"),
    "an empty file": ("", 1, "", "is empty"),
    "a comment alone": ("# nothing\n", 1, "", "is empty"),
    "a text alone": ("hello\n", 1, "", 'must hold a mapping, not "hello"'),
    "a list alone": ("- prompt: x\n", 1, "", "put the cases under the key `cases:`"),
    "no cases": ("defaults: {}\ncases: []\n", 2, "cases", "must be a list of at least one case, not []"),
    "cases that are a mapping": ("cases: {a: {prompt: x}}\n", 1, "cases", "must be a list of at least one case"),
    "defaults alone": ("# x\ndefaults: {prompt: x}\n", 2, "defaults", "needs `cases:` beside it"),
    "an id in the defaults": (
        "defaults:\n  id: a\ncases:\n  - prompt: x\n",
        2,
        "defaults.id",
        "give each case its own",
    ),
    "a key beside cases": ("skill: a\ncases:\n  - {id: a, prompt: x}\n", 1, "skill", "goes under `defaults:`"),
    "a case of several without id": (
        "cases:\n  - {id: a, prompt: x}\n  - prompt: y\n",
        3,
        "cases[1].id",
        "is required",
    ),
    "a case that is a text": ("cases:\n  - {id: a, prompt: x}\n  - hello\n", 3, "cases[1]", 'not "hello"'),
    "a mistake in the second case": (
        "cases:\n  - {id: a, prompt: x}\n  - id: b\n    prompt: y\n    budget:\n      stesp: 3\n",
        6,
        "cases[1].budget.stesp",
        "did you mean steps?",
    ),
    "a mistake in the defaults": (
        "defaults:\n  budget:\n    stesp: 3\ncases:\n  - {id: a, prompt: x}\n",
        3,
        "defaults.budget.stesp",
        "did you mean steps?",
    ),
    "a bad pattern in the defaults": (
        "defaults:\n  lane: prompt\n  expect: ['(']\ncases:\n  - {id: a, prompt: x}\n",
        3,
        "defaults.expect[0]",
        "bad regular expression",
    ),
    "the first of two mistakes": ("zzz: 1\nprompt: 5\n", 1, "zzz", "unknown key"),
    "two cases with one id": (
        "cases:\n  - {id: a, prompt: x}\n  - {id: b, prompt: x}\n  - {id: a, prompt: y}\n",
        4,
        "id",
        "the execution case 'a' is already at cases/execution/x.yaml:2",
    ),
    "a bomb of aliases": (
        "prompt: x\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)),
        7,
        "f",
        "aliases repeat more than 1,000,000 values",
    ),
    "an anchor that holds itself": ("prompt: x\na: &a\n  - *a\n", 2, "a", "an anchor that holds itself"),
    "brackets without end": ("prompt: x\na: " + "[" * 5000, 2, "", "not YAML"),
    "nesting without end": ("prompt: x\na: " + "[" * 200 + "]" * 200, 2, "a", "nested deeper than 100 levels"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_file_line_and_key(name: str, tmp_path: Path) -> None:
    text, line, key, words = MISTAKES[name]
    found = mistake(tmp_path, text)
    assert (found.line, found.key) == (line, key)
    assert words in found.message


JSON_MISTAKES = {
    "a duplicate key": ('{"prompt": "x",\n "skill": "a",\n "prompt": "y"}', 3, "prompt", "the first is on line 1"),
    "a duplicate key deep down": (
        '{"cases": [{"id": "a", "prompt": "x"},\n {"id": "b",\n  "prompt": "y",\n  "id": "c"}]}',
        4,
        "cases[1].id",
        "the first is on line 2",
    ),
    "an unknown key": ('{"prompt": "x",\n\n "skil": "a"}', 3, "skil", "did you mean skill?"),
    "a wrong type": ('{"prompt": "x",\n "budget": {\n  "steps": "3"}}', 3, "budget.steps", "must be a whole number"),
    "not a number": ('{"prompt": "x",\n "budget": {"timeout": NaN}}', 2, "budget.timeout", "NaN is not allowed"),
    "infinity": (
        '{"prompt": "x",\n "budget": {"timeout": -Infinity}}',
        2,
        "budget.timeout",
        "-Infinity is not allowed",
    ),
    "a number beyond all floats": ('{"prompt": "x",\n "budget": {"timeout": 1e999}}', 2, "budget.timeout", "finite"),
    "a number without end": (
        '{"prompt": "x",\n "budget": {"steps": ' + "9" * 5000 + "}}",
        2,
        "budget.steps",
        "5000 digits",
    ),
    "a trailing comma": (
        '{"prompt": "x",\n "skill": "a",\n}',
        2,
        "",
        "a comma may not stand before a closing bracket (column 14)",
    ),
    "no JSON at all": ("prompt: x\n", 1, "", "not JSON"),
    "an open object": ('{"prompt": "x",\n', 2, "", "not JSON"),
    "an empty file": (" \n", 1, "", "is empty"),
    "half a surrogate pair": ('{"skill": "a",\n "prompt": "\\ud83d"}', 2, "prompt", "half of a surrogate pair"),
    "nesting without end": ('{"prompt": ' + "[" * 100_000, 1, "", "nested deeper than 100 levels"),
    "deep nesting": ('{"prompt": ' + "[" * 300 + "]" * 300 + "}", 1, "", "nested deeper than 100 levels"),
    "a list": ('[{"prompt": "x"}]', 1, "", "put the cases under the key `cases:`"),
    "a control character": ('{"skill": "a",\n "prompt": "a\x07"}', 2, "", "not JSON: Invalid control character"),
}


@pytest.mark.parametrize("name", JSON_MISTAKES)
def test_a_mistake_in_json_is_named_with_its_file_line_and_key(name: str, tmp_path: Path) -> None:
    text, line, key, words = JSON_MISTAKES[name]
    found = mistake(tmp_path, text, "cases/execution/x.json")
    assert (found.line, found.key) == (line, key)
    assert words in found.message


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"prompt: x\nskill: caf\xe9\n", 2, "the byte 0xe9 is not UTF-8"),
        ("prompt: x\n".encode("utf-16"), 1, "is UTF-16; save it as UTF-8"),
    ],
)
def test_a_file_that_is_not_utf_8_is_named(data: bytes, line: int, words: str, tmp_path: Path) -> None:
    path = write(tmp_path, "")
    path.write_bytes(data)
    with pytest.raises(CaseMistake, match=words) as caught:
        load_case_file(path, root=tmp_path)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "name",
    [
        *("HOME", "TMPDIR", "TMP", "TEMP", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "SKILLEVAL_HOME"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"),
    ],
)
def test_what_points_at_the_trials_home_is_no_variable_of_a_case(name: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, f"prompt: x\nworkspace: {{env: {{{name}: /x}}}}\n").key == f"workspace.env.{name}"


def test_a_text_may_lie_in_a_copied_folder(tmp_path: Path) -> None:
    (tmp_path / "cases/execution/data").mkdir(parents=True)
    text = "prompt: x\nworkspace: {copies: {in: data}, files: {in/a.txt: b, in/.git: c, .gitignore: d}}\n"
    assert load(tmp_path, text)[0].spec.workspace.copies == {"in": "data"}


def test_a_file_that_is_not_there_or_is_a_pipe_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for name, words in (("nope.yaml", "No such file"), ("pipe.yaml", "is no file"), ("", "is no file")):
        with pytest.raises(CaseMistake, match=words):
            load_case_file(tmp_path / name, root=tmp_path)


def test_a_stem_that_is_no_id_asks_for_one(tmp_path: Path) -> None:
    found = mistake(tmp_path, "skill: a\nprompt: x\n", "cases/execution/my case.yaml")
    assert (found.line, found.key) == (1, "id")
    assert "'my case'" in found.message


def test_equal_ids_in_two_files_name_both_places(tmp_path: Path) -> None:
    one = load(tmp_path, "# a\nid: greet\nprompt: x\n", "cases/execution/one.yaml")
    two = load(tmp_path, "id: greet\nprompt: x\n", "cases/execution/sub/two.yaml")
    other_lane = load(tmp_path, "id: greet\nprompt: x\n", "cases/prompt/three.yaml")
    assert_unique(one + other_lane)
    with pytest.raises(CaseMistake) as caught:
        assert_unique(one + two, root=tmp_path)
    assert str(caught.value).startswith("cases/execution/sub/two.yaml:1: id: the execution case 'greet'")
    assert "cases/execution/one.yaml:2" in str(caught.value)


# --------------------------------------------------------------------------------------------------------- named files


def test_a_link_that_leaves_the_cases_folder_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "cases" / "secret"
    secret.mkdir(parents=True)
    (secret / "run.sh").write_text("true\n")
    (tmp_path / "cases/execution").mkdir()
    (tmp_path / "cases/execution/in").symlink_to(secret)
    assert "leaves the case's folder" in mistake(tmp_path, "prompt: x\nsolution: in/run.sh\n").message
    assert "leaves the case's folder" in mistake(tmp_path, "prompt: x\nworkspace: {template: in}\n").message


def test_a_link_inside_a_template_may_not_leave_it(tmp_path: Path) -> None:
    template = tmp_path / "cases/execution/t"
    template.mkdir(parents=True)
    (template / "a.txt").write_text("a")
    (template / "ok.txt").symlink_to("a.txt")
    (tmp_path / "cases/execution/out.txt").write_text("b")
    text = "prompt: x\nworkspace: {template: t}\n"
    assert sorted(load(tmp_path, text)[0].digests) == ["t/a.txt", "t/ok.txt"]
    (template / "bad.txt").symlink_to("../out.txt")
    assert "'t/bad.txt' is a link that leaves 't'" in mistake(tmp_path, text).message


def test_a_pipe_in_a_template_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "cases/execution/t").mkdir(parents=True)
    os.mkfifo(tmp_path / "cases/execution/t/pipe")
    assert "neither a file nor a folder" in mistake(tmp_path, "prompt: x\nworkspace: {template: t}\n").message


def test_a_template_that_is_a_file_and_a_solution_that_is_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cases/execution/d").mkdir(parents=True)
    (tmp_path / "cases/execution/f").write_text("")
    assert "'f' is no folder" in mistake(tmp_path, "prompt: x\nworkspace: {template: f}\n").message
    assert "'d' is no file" in mistake(tmp_path, "prompt: x\nsolution: d\n").message


def test_a_stale_skill_may_lie_beside_the_lanes_but_not_outside_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "p/cases/stale/greet").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "p"
    assert load(root, "prompt: x\nstale: ../stale/greet\n")[0].spec.stale == "../stale/greet"
    assert "leaves the project" in mistake(root, "prompt: x\nstale: ../../../elsewhere\n").message


def test_a_check_function_must_be_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "cases/execution").mkdir(parents=True)
    (tmp_path / "cases/execution/v.py").write_text("def verdict(run):\n    return True\n")
    text = "prompt: x\nchecks:\n  - {id: a, kind: python, function: 'v.py::%s'}\n"
    assert list(load(tmp_path, text % "verdict")[0].digests) == ["v.py"]
    assert "did you mean verdict? allowed: verdict" in mistake(tmp_path, text % "verdit").message


def test_a_check_function_must_not_be_async(tmp_path: Path) -> None:
    (tmp_path / "cases/execution").mkdir(parents=True)
    (tmp_path / "cases/execution/v.py").write_text("async def verdict(run):\n    return True\n")
    found = mistake(tmp_path, "prompt: x\nchecks:\n  - {id: a, kind: python, function: 'v.py::verdict'}\n")
    assert (found.line, found.key) == (3, "checks[0].function")
    assert "'verdict' in v.py is async" in found.message
    assert "write a plain function" in found.message


# --------------------------------------------------------------------------------------------------------- fingerprint

BASE = """
    skill: greet
    prompt: Say hello.
    workspace: {template: t, files: {a.txt: b}}
    budget: {steps: 3}
    checks: [{id: a, kind: python, function: 'v.py::f'}, {id: b, kind: json, path: x.json}]
    solution: run.sh
    """


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "cases/execution"
    (folder / "t/sub").mkdir(parents=True)
    (folder / "t/sub/one.txt").write_text("one")
    (folder / "v.py").write_text("def f(run): ...\n")
    (folder / "run.sh").write_text("true\n")
    (folder / "run2.sh").write_text("true\n")
    return tmp_path


def fingerprint(project: Path, change: tuple[str, str] = ("", "")) -> str:
    assert change[0] in BASE
    (case,) = load(project, BASE.replace(*change) if change[0] else BASE)
    return case.fingerprint


def test_a_fingerprint_is_sixteen_hex_digits_and_stays(project: Path) -> None:
    first = fingerprint(project)
    assert len(first) == 16
    assert int(first, 16) >= 0
    assert fingerprint(project) == first


@pytest.mark.parametrize(
    "change",
    [
        ("Say hello.", "Say hello!"),
        ("skill: greet", "skill: wave"),
        ("steps: 3", "steps: 4"),
        ("a.txt: b", "a.txt: c"),
        ("path: x.json", "path: y.json"),
        ("path: x.json", "path: x.json, equals: null"),
        ("path: x.json", "path: x.json, weight: 2"),
        ("skill: greet", "skill: greet\n    lane: dogfood"),
        ("skill: greet", "skill: greet\n    context: Be kind."),
        ("skill: greet", "skill: greet\n    workflow: [{id: w, must: [a]}]"),
        ("skill: greet", "skill: greet\n    anti_patterns: [one-run]"),
        ("skill: greet", "skill: greet\n    artifacts: [{path: a}]"),
        ("skill: greet", "skill: greet\n    scoring: {pass_at: 0.5}"),
    ],
)
def test_what_is_asked_or_how_it_is_judged_changes_the_fingerprint(change: tuple[str, str], project: Path) -> None:
    assert fingerprint(project, change) != fingerprint(project)


@pytest.mark.parametrize(
    "change",
    [
        ("skill: greet", "skill: greet\n    description: For people."),
        ("skill: greet", "skill: greet\n    category: other"),
        ("skill: greet", "skill: greet\n    id: renamed"),
        ("skill: greet", "skill: greet\n    min_pass_rate: 0.5"),
        ("skill: greet", "skill: greet\n    answer: hello"),
        ("skill: greet", "skill: greet\n    stub: {solve_rate: 0.9}"),
        ("skill: greet", "skill: greet\n    conditions: [none]"),
        ("run.sh", "run2.sh"),
        ("path: x.json", "path: x.json, description: For people."),
        ("path: x.json", "path: x.json, required: true"),
        ("steps: 3", "steps: 3, on_timeout: fail"),
    ],
)
def test_what_is_neither_asked_nor_judged_leaves_the_fingerprint(change: tuple[str, str], project: Path) -> None:
    assert fingerprint(project, change) == fingerprint(project)


@pytest.mark.parametrize("name", ["t/sub/one.txt", "v.py"])
def test_the_bytes_of_named_files_change_the_fingerprint(name: str, project: Path) -> None:
    before = fingerprint(project)
    path = project / "cases/execution" / name
    path.write_text(path.read_text() + "\n# more\n")
    assert fingerprint(project) != before


def test_the_digest_of_a_named_file_is_its_sha_256(project: Path) -> None:
    (case,) = load(project, BASE)
    assert sorted(case.digests) == ["t/sub/one.txt", "v.py"]
    # printf one | sha256sum
    assert case.digests["t/sub/one.txt"] == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"


def test_the_bytes_of_the_solution_and_of_caches_leave_the_fingerprint(project: Path) -> None:
    before = fingerprint(project)
    (project / "cases/execution/run.sh").write_text("false\n")
    (project / "cases/execution/t/__pycache__").mkdir()
    (project / "cases/execution/t/__pycache__/x.pyc").write_text("x")
    assert fingerprint(project) == before


# -------------------------------------------------------------------------------------------------------------- schema


def test_the_schema_names_every_key_of_a_case() -> None:
    schema = case_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    single = schema["$defs"]["SingleCase"]
    assert set(single["properties"]) == set(CaseSpec.model_fields) | {"$schema"}
    assert single["required"] == ["prompt"]
    assert single["additionalProperties"] is False
    assert single["properties"]["min_pass_rate"]["description"].startswith("A gate")
    assert "id" not in schema["$defs"]["Defaults"]["properties"]
    assert schema["$defs"]["CaseItem"].get("required") is None


def test_every_key_of_the_schema_is_described() -> None:
    definitions = case_schema()["$defs"]
    bare = [
        f"{name}.{key}"
        for name, definition in definitions.items()
        for key, value in definition.get("properties", {}).items()
        if "description" not in value and "$ref" not in value
    ]
    assert bare == []


def test_every_reference_of_the_schema_resolves_and_it_is_json() -> None:
    text = json.dumps(case_schema(), allow_nan=False)
    definitions = case_schema()["$defs"]
    references = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert references <= set(definitions)
    assert {"FileCheck", "RubricCheck", "AntiPattern", "CaseItem", "SeveralCases"} <= set(definitions)


# ------------------------------------------------------------------------------------------------------------ odd files

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["none", "file", "a", "x.py::f"]),
)
KEYS = st.sampled_from(
    [*CaseSpec.model_fields, "cases", "defaults", "kind", "path", "run", "after", "must", "$schema", "é"]
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(KEYS, st.text(max_size=3)), inner, max_size=4)
    ),
    max_leaves=12,
)


def reads_or_says_why(path: Path) -> None:
    """Nothing but cases or a mistake comes out; any other exception fails the test by itself."""
    said: list[CaseMistake] = []
    cases: list[Case] = []
    try:
        cases = load_case_file(path, root=path.parent, lane=Lane.EXECUTION)
    except CaseMistake as exc:
        said.append(exc)
    assert bool(cases) != bool(said)
    assert all(isinstance(case, Case) for case in cases)
    for mistake in said:
        assert "\n" not in str(mistake)
        assert mistake.line is None or mistake.line >= 1
        assert mistake.message


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=80))
def test_odd_bytes_give_cases_or_a_mistake_and_nothing_else(data: bytes, tmp_path: Path) -> None:
    for name in ("x.yaml", "x.json"):
        (tmp_path / name).write_bytes(data)
        reads_or_says_why(tmp_path / name)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet="abc:-[]{}&*!|>'\"#%@`?,<~. \n\t0123456789yesnoptrmk\\\x00\x85\u2028", max_size=60))
def test_odd_yaml_gives_cases_or_a_mistake_and_nothing_else(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(("prompt: x\n" + text).encode())
    reads_or_says_why(tmp_path / "x.yaml")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=st.dictionaries(KEYS, TREES, max_size=6))
def test_odd_trees_give_cases_or_a_mistake_and_nothing_else(tree: object, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(tree))
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(tree, allow_unicode=True), encoding="utf-8", errors="replace")
    reads_or_says_why(tmp_path / "x.json")
    reads_or_says_why(tmp_path / "x.yaml")


WHOLE: dict[str, object] = {
    "skill": "greet",
    "prompt": "x",
    "conditions": ["none", "stale"],
    "workspace": {"files": {"a": "b"}, "env": {"A": "b"}, "setup": [{"run": ["git"], "timeout": 3}]},
    "budget": {"timeout": 1, "steps": 2},
    "checks": [
        {"id": "a", "kind": "file", "path": "b", "matches": "c"},
        {"id": "b", "kind": "json", "path": "c", "equals": {}},
    ],
    "workflow": [{"id": "a", "must": ["b"]}, {"id": "c", "never": ["d"], "after": ["a"]}],
    "anti_patterns": ["one-run", {"id": "a", "patterns": ["b"]}],
    "artifacts": [{"path": "a", "min": 2}],
    "stub": {"solve_rate": {"none": 0.5}},
    "min_pass_rate": 0.5,
    "scoring": {"weights": {"a": 1}, "pass_at": 0.5},
}


def places(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, child in inner for place in [(*at, key), *places(child, (*at, key))]]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(places(WHOLE)), odd=TREES)
def test_one_odd_value_in_a_whole_case_gives_a_case_or_a_mistake(
    place: tuple[str | int, ...], odd: object, tmp_path: Path
) -> None:
    case = json.loads(json.dumps(WHOLE))
    inner = case
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = odd
    (tmp_path / "x.json").write_text(json.dumps(case))
    reads_or_says_why(tmp_path / "x.json")
