"""evals.json and trigger lists: every variation is read whole, counted exactly, or refused with the reason."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_skilleval.cases import assert_unique, load_cases, load_evals_file, load_trigger_file, sniff
from pytest_skilleval.casespec import Lane
from pytest_skilleval.errors import CaseMistake
from pytest_skilleval.model import Case

from .corpus import ASK, EVALS, REFUSED, SAYS, TRIGGERS, YES, File, Triggers, asserting, evals, one


def test_the_corpus_holds_more_than_60_files() -> None:
    assert len(EVALS) + len(TRIGGERS) >= 60


# --------------------------------------------------------------------------------------------------------- evals.json


@pytest.mark.parametrize("name", EVALS)
def test_an_evals_file_is_read_whole(name: str, tmp_path: Path) -> None:
    entry = EVALS[name]
    path = entry.write(tmp_path)
    found = load_cases(path, root=tmp_path)
    assert found.kind == "evals"
    assert found.skill_root == tmp_path / "skills/tide-tables"
    assert len(found.cases) == entry.cases
    kinds = Counter(check.kind for case in found.cases for check in case.spec.checks)
    assert kinds == Counter(entry.kinds or ({"rubric": entry.assertions} if entry.assertions else {}))
    assert sum(kinds.values()) == entry.assertions
    listed = [note.partition("kept and not used: ")[2] for note in found.notes if "kept and not used" in note]
    assert listed == ([entry.unused] if entry.unused else [])
    assert_unique(found.cases)
    assert all(case.lane is Lane.EXECUTION and case.path == path for case in found.cases)
    assert load_evals_file(path, tmp_path / "skills/tide-tables") == found.cases


def read(tmp_path: Path, content: Any, name: str = "evals/evals.json") -> list[Case]:
    return load_cases(File(content, 0, name=name).write(tmp_path), root=tmp_path).cases


def test_ids_are_made_of_the_skill_and_the_id_or_the_text(tmp_path: Path) -> None:
    ids = [case.id for case in read(tmp_path, evals(one(), {"id": "a b/c", "prompt": "x"}, {"prompt": "Why so late?"}))]
    assert ids[:2] == ["tide-tables-1", "tide-tables-a-b-c"]
    assert re.fullmatch(r"tide-tables-Why-so-late\?-[0-9a-f]{6}", ids[2])
    assert read(tmp_path, evals(one()), "evals/edge.json")[0].id == "tide-tables-edge-1"


def test_an_id_made_of_the_text_stays_when_another_case_is_put_before_it(tmp_path: Path) -> None:
    (alone,) = read(tmp_path, evals({"prompt": ASK}))
    _, second = read(tmp_path, evals({"prompt": "First?"}, {"prompt": ASK}))
    assert second.id == alone.id


def test_the_skill_is_the_one_of_the_folder_and_a_difference_is_said(tmp_path: Path) -> None:
    found = load_cases(EVALS["another skill_name"].write(tmp_path), root=tmp_path)
    assert found.cases[0].skill == "tide-tables"
    assert "says the skill is 'tides'; its SKILL.md says 'tide-tables', which counts" in found.notes[0]


def test_without_a_skill_folder_the_file_says_the_skill(tmp_path: Path) -> None:
    path = tmp_path / "evals/evals.json"
    path.parent.mkdir()
    path.write_text(json.dumps(evals(one())))
    found = load_cases(path, root=tmp_path)
    assert (found.cases[0].skill, found.skill_root) == ("tide-tables", None)
    path.write_text(json.dumps({"evals": [one()]}))
    with pytest.raises(CaseMistake, match="says no skill; put the file into the skill's folder"):
        load_cases(path, root=tmp_path)


def test_a_skill_above_the_project_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: above\ndescription: x\n---\nx\n")
    path = tmp_path / "project/evals/evals.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(evals(one())))
    assert load_cases(path, root=tmp_path / "project").skill_root is None


def test_both_names_of_assertions_are_merged_with_a_note(tmp_path: Path) -> None:
    found = load_cases(EVALS["assertions and expectations"].write(tmp_path), root=tmp_path)
    assert [check.statement for check in found.cases[0].spec.checks] == [SAYS, "A.", "B."]  # type: ignore[union-attr]
    assert sum("assertions and expectations are both given" in note for note in found.notes) == 1


def test_unknown_keys_are_kept_with_the_case_and_listed_once(tmp_path: Path) -> None:
    found = load_cases(
        File(evals(one(role="skipper"), {"id": 2, "prompt": "x", "role": "cook"}, version=3), 0).write(tmp_path),
        root=tmp_path,
    )
    assert [case.extra for case in found.cases] == [
        {"role": "skipper", "file": {"version": 3}},
        {"role": "cook", "file": {"version": 3}},
    ]
    assert found.notes[-1].endswith("keys that are kept and not used: role (2), version (1)")


def test_what_is_kept_of_an_assertion_stands_under_its_id(tmp_path: Path) -> None:
    (case,) = read(tmp_path, asserting({"id": 4, "text": SAYS, "passed": False, "evidence": "x"}))
    assert case.spec.checks[0].id == "assertion-4"
    assert case.extra["assertions"] == {"assertion-4": {"passed": False, "evidence": "x"}}


def test_names_description_and_expected_output_are_kept_for_people(tmp_path: Path) -> None:
    (case,) = read(
        tmp_path, evals(one(name="husum", description="Asks.", expected_output="A time.", category="lookup"))
    )
    assert (case.spec.description, case.spec.category) == ("husum\n\nAsks.\n\nA time.", "lookup")
    assert (case.spec.checks[0].id, case.spec.checks[0].kind) == ("expected-output", "rubric")


def test_prose_is_never_turned_into_a_pattern(tmp_path: Path) -> None:
    said = ["Output contains 'x'", {"name": "n", "check": "contains 12:40"}, {"description": "The file out.md exists"}]
    (case,) = read(tmp_path, asserting(*said))
    assert {check.kind for check in case.spec.checks} == {"rubric"}
    assert [check.statement for check in case.spec.checks] == [
        "Output contains 'x'",
        "contains 12:40",
        "The file out.md exists",
    ]  # type: ignore[union-attr]


def check(tmp_path: Path, assertion: dict[str, Any]) -> dict[str, Any]:
    (case,) = read(tmp_path, asserting(assertion))
    return case.spec.checks[0].model_dump(exclude_defaults=True, exclude={"id", "description"})


def rubric(statement: str) -> dict[str, Any]:
    return {"kind": "rubric", "statement": statement}


@pytest.mark.parametrize(
    ("assertion", "made"),
    [
        ({"type": "contains", "value": "a.b"}, {"kind": "output", "contains": "a.b"}),
        ({"type": "content_contains", "value": 12}, {"kind": "output", "contains": "12"}),
        ({"type": "code_contains", "check": "def f"}, {"kind": "output", "contains": "def f"}),
        ({"type": "does_not_contain", "value": "a.b"}, {"kind": "output", "never": "(?s)a\\.b"}),
        ({"type": "not-contains", "value": "a", "target": "answer"}, {"kind": "text", "never": "(?s)a"}),
        ({"type": "contains", "value": "a", "target": "src/x.py"}, {"kind": "file", "path": "src/x.py", "contains": "a"}),
        ({"type": "contains", "value": "a", "target": "the code"}, {"kind": "output", "contains": "a"}),
        ({"type": "contains", "value": "a", "case_sensitive": False}, {"kind": "output", "matches": "(?si)\\A(?=.*?a)"}),
        ({"type": "contains", "value": ["a", "b"]}, {"kind": "output", "matches": "(?s)\\A(?=.*?a)(?=.*?b)"}),
        ({"type": "regex", "pattern": "a+"}, {"kind": "output", "matches": "a+"}),
        ({"type": "code_count", "check": "x(", "min_count": 2}, {"kind": "output", "matches": "(?s)\\A(?>.*?x\\(){2}"}),
        ({"type": "count", "value": "x", "max_count": 2}, {"kind": "output", "never": "(?s)\\A(?>.*?x){3}"}),
        ({"type": "tool_use", "value": "Read"}, {"kind": "tool-call", "tool": "^(?:Read)$"}),
        ({"type": "no_tool_use", "value": "Bash"}, {"kind": "tool-call", "tool": "^(?:Bash)$", "max": 0}),
        ({"type": "file_exists", "value": "a.md"}, {"kind": "file", "path": "a.md"}),
        ({"type": "file_not_exists", "path": "a.md"}, {"kind": "file", "path": "a.md", "exists": False}),
        ({"type": "contains", "value": "a", "required": False}, {"kind": "output", "contains": "a", "required": False}),
        ({"type": "file_exists", "value": "../a"}, rubric('{"type":"file_exists","value":"../a"}')),
        ({"type": "contains", "value": "a", "target": "/etc/x.txt"}, rubric('{"target":"/etc/x.txt","type":"contains","value":"a"}')),
        ({"type": "llm_contains", "value": "a"}, rubric('{"type":"llm_contains","value":"a"}')),
        ({"type": "LLM-Judge", "value": "It is polite."}, rubric("It is polite.")),
        ({"type": "not_equals", "value": "TODO"}, rubric('{"type":"not_equals","value":"TODO"}')),
        ({"type": "starts_with", "text": "a", "name": "n"}, rubric('{"name":"n","text":"a","type":"starts_with"}')),
        ({"type": "not_regex", "pattern": "("}, rubric('{"pattern":"(","type":"not_regex"}')),
        ({"type": "does_not_contain_any", "value": ["a", "b"]}, rubric('{"type":"does_not_contain_any","value":["a","b"]}')),
        ({"type": "does_not_contain_any", "value": ["a", "b"], "description": "d"}, rubric('d: ["a","b"]')),
        ({"check": "not_contains", "value": "TODO"}, rubric('{"check":"not_contains","value":"TODO"}')),
        ({"operator": "differs", "value": "TODO"}, rubric('{"operator":"differs","value":"TODO"}')),
        ({"type": "llm", "value": "a", "description": "d"}, {"kind": "rubric", "statement": "d: a"}),
        ({"name": "n", "description": "d", "check": "c"}, {"kind": "rubric", "statement": "d"}),
    ],
)  # fmt: skip
def test_an_object_whose_type_says_how_is_run(assertion: dict[str, Any], made: dict[str, Any], tmp_path: Path) -> None:
    assert check(tmp_path, assertion) == made


def test_the_pattern_of_a_count_counts(tmp_path: Path) -> None:
    pattern = check(tmp_path, {"type": "count", "value": "ab", "min_count": 3})["matches"]
    assert re.search(pattern, "ab-ab\n-ab", re.MULTILINE)
    assert not re.search(pattern, "ab-ab" * 1 + "x" * 100, re.MULTILINE)
    # Without an atomic group this takes 2 to the power of 40 steps.
    many = check(tmp_path, {"type": "count", "value": "ab", "min_count": 41})["matches"]
    assert not re.search(many, "ab" * 40, re.MULTILINE)


def test_a_type_that_needs_a_judge_is_said_once(tmp_path: Path) -> None:
    found = load_cases(EVALS["types that need a judge"].write(tmp_path), root=tmp_path)
    assert sum("of type 'vibes' are left to a judge" in note for note in found.notes) == 1


def test_files_lie_in_the_workspace_under_their_bare_names(tmp_path: Path) -> None:
    (case,) = load_cases(EVALS["files of the skill"].write(tmp_path), root=tmp_path).cases
    assert case.spec.workspace.copies == {"husum.csv": "files/husum.csv", "notes.txt": "../notes.txt"}
    assert sorted(case.digests) == ["../notes.txt", "files/husum.csv"]


def test_a_file_keeps_its_path_where_the_prompt_says_it_or_names_meet(tmp_path: Path) -> None:
    (case,) = load_cases(EVALS["two files of one name"].write(tmp_path), root=tmp_path).cases
    assert case.spec.workspace.copies == {
        "evals/files/list.csv": "files/list.csv",
        "assets/list.csv": "../assets/list.csv",
    }
    (case,) = read(
        tmp_path, evals({"id": 1, "prompt": "Read evals/files/husum.csv.", "files": ["evals/files/husum.csv"]})
    )
    assert case.spec.workspace.copies == {"evals/files/husum.csv": "files/husum.csv"}


@pytest.mark.parametrize("key", ["path", "name", "filename", "file"])
def test_a_mapping_that_describes_a_file_names_it(key: str, tmp_path: Path) -> None:
    path = File(evals(one(files=[{key: "evals/files/husum.csv", "description": "tides"}])), 0).write(tmp_path)
    (path.parent / "files").mkdir(exist_ok=True)
    (path.parent / "files/husum.csv").write_text("x")
    (case,) = load_cases(path, root=tmp_path).cases
    assert case.spec.workspace.copies == {"husum.csv": "files/husum.csv"}
    assert case.spec.workspace.files == {}


def test_files_with_content_are_written(tmp_path: Path) -> None:
    (case,) = load_cases(EVALS["files with content"].write(tmp_path), root=tmp_path).cases
    assert case.spec.workspace.files == {"in/a.txt": "x", "b.txt": "y"}


@pytest.mark.parametrize(
    ("content", "line", "key", "words"),
    [
        (evals(one(), one()), 8, "evals[1]", "has the id '1' of the case on line 4"),
        (evals({"id": 1, "prompt": ""}), 6, "evals[0].prompt", "must be text that is not empty"),
        (evals({"id": 1, "name": "x"}), 4, "evals[0]", "has no prompt; its keys are id, name"),
        (evals(one(), "text"), 8, "evals[1]", 'must be a mapping with a prompt, not "text"'),
        (evals(one(assertions=["a", 3])), 9, "evals[0].assertions[1]", "must be text or a mapping"),
        (evals(one(files=["nope.csv"])), 8, "evals[0].files[0]", '"nope.csv" is not there'),
        (evals(one(files=["/etc/passwd"])), 8, "evals[0].files[0]", "is absolute"),
        (evals(one(files=["../../../x"])), 8, "evals[0].files[0]", "leaves its folder"),
        (evals(one(files=["https://example.org/a.csv"])), 8, "evals[0].files[0]", "is an address"),
        (evals(one(files=[3])), 8, "evals[0].files[0]", "must be a path"),
        (evals(one(files=[{"name": "a.csv", "content": 3}])), 8, "evals[0].files[0]", "must be a path, or a mapping"),
        (
            evals(one(files=[{"name": "nope.csv", "description": "x"}])),
            8,
            "evals[0].files[0]",
            '"nope.csv" is not there',
        ),
        (evals(one(files=[{"description": "sales"}])), 8, "evals[0].files[0]", 'not {"description": "sales"}'),
        (evals(one(files={"url": "x", "a.csv": "b"})), 7, "evals[0].files", "must be a path, or a mapping"),
        (evals(one(files={".git/config": "x"})), 7, "evals[0].files", "lies in the workspace's own repository"),
        (evals(one(files={"a": "x", "a/b": "y"})), 7, "evals[0].files", "needs a folder where 'a' is a file"),
        ({"skill_name": "a", "evals": []}, 3, "evals", "must be a list of at least one case"),
    ],
)
def test_a_mistake_in_an_evals_file_has_its_line(content: Any, line: int, key: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(CaseMistake) as caught:
        read(tmp_path, content)
    assert (caught.value.line, caught.value.key) == (line, key)
    assert words in caught.value.message
    assert "\n" not in str(caught.value)


def test_a_link_that_leaves_the_skill_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    path = File(evals(one(files=["evals/files/out.txt"])), 0).write(tmp_path)
    (path.parent / "files/out.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(CaseMistake, match="leaves the case's folder"):
        load_cases(path, root=tmp_path)


# -------------------------------------------------------------------------------------------------------- trigger lists


@pytest.mark.parametrize("name", TRIGGERS)
def test_a_trigger_list_is_read_whole(name: str, tmp_path: Path) -> None:
    entry = TRIGGERS[name]
    path = entry.write(tmp_path)
    found = load_cases(path, root=tmp_path)
    assert found.kind == "triggers"
    wanted = Counter(case.skill for case in found.cases)
    assert wanted == Counter({"tide-tables": entry.positive, None: entry.negative, **entry.others}) + Counter()
    listed = [note.partition("kept and not used: ")[2] for note in found.notes if "kept and not used" in note]
    assert listed == ([entry.unused] if entry.unused else [])
    assert_unique(found.cases)
    assert all(case.lane is Lane.PROMPT and case.spec.conditions == ("self-load",) for case in found.cases)
    assert load_trigger_file(path) == found.cases


def triggers(tmp_path: Path, content: Any, name: str = "evals/triggers.json") -> list[Case]:
    return load_cases(Triggers(content, 0, 0, name=name).write(tmp_path), root=tmp_path).cases


def test_splits_are_kept_from_the_item_and_from_the_files_name(tmp_path: Path) -> None:
    items = [{"query": "a", "should_trigger": True, "split": "train"}, {"query": "b", "should_trigger": False}]
    assert [case.extra for case in triggers(tmp_path, items)] == [{"split": "train"}, {}]
    assert [case.extra["split"] for case in triggers(tmp_path, items[1:], "evals/validation_queries.json")] == [
        "validation"
    ]


def test_reasons_and_categories_of_queries_are_kept(tmp_path: Path) -> None:
    items = [
        {"query": "a", "should_trigger": True, "why": "asks for a time"},
        {"query": "b", "should_trigger": False},
        {"id": "x", "query": "c", "should_trigger": True, "category": "direct"},
    ]
    cases = triggers(tmp_path, items)
    assert [case.spec.category for case in cases] == ["trigger", "near-miss", "direct"]
    assert cases[0].spec.description == "asks for a time"
    assert cases[2].id == "tide-tables-x"


def test_a_query_may_stand_twice_on_one_side(tmp_path: Path) -> None:
    twice = [{"query": "a", "should_trigger": True}, {"query": "a", "should_trigger": True}]
    assert len(triggers(tmp_path, twice)) == 2


def test_a_list_without_a_skill_needs_one_only_for_true(tmp_path: Path) -> None:
    path = tmp_path / "routing.json"
    path.write_text(json.dumps([{"query": "a", "should_trigger": "pdf"}, {"query": "b", "should_trigger": None}]))
    assert [case.skill for case in load_cases(path, root=tmp_path).cases] == ["pdf", None]
    path.write_text(json.dumps([{"query": "a", "should_trigger": True}]))
    with pytest.raises(CaseMistake, match="says no skill"):
        load_cases(path, root=tmp_path)


@pytest.mark.parametrize(
    ("content", "line", "key", "words"),
    [
        ([{"query": "a", "should_trigger": True}, {"query": "b"}], 6, "[1].should_trigger", "is required"),
        (
            [{"query": "a", "should_trigger": 3}],
            4,
            "[0].should_trigger",
            "must be true, false, a skill's name or null, not 3",
        ),
        (
            [{"query": "a b", "should_trigger": True}, {"query": " a  b", "should_trigger": False}],
            6,
            "[1]",
            "asks what the query on line 2 asks, and wants the opposite",
        ),
        ({"should_trigger": ["a"], "should_not_trigger": ["b", "a"]}, 7, "should_not_trigger[1]", "on line 3"),
        ([{"should_trigger": True, "x": 1}], 2, "[0]", "has no query; its keys are should_trigger, x"),
        ([{"query": "a", "should_trigger": True}, "b"], 6, "[1]", 'not "b"'),
        ({"should_trigger": ["a", ""]}, 4, "should_trigger[1].query", "must be text that is not empty"),
        ({"should_trigger": [], "should_not_trigger": []}, 1, "", "holds no query"),
        ({"should_trigger": ["a"], "should_not_trigger": "b"}, 5, "should_not_trigger", "must be a list of queries"),
    ],
)
def test_a_mistake_in_a_trigger_list_has_its_line(
    content: Any, line: int, key: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(CaseMistake) as caught:
        triggers(tmp_path, content)
    assert (caught.value.line, caught.value.key) == (line, key)
    assert words in caught.value.message


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_something_else_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    place, content, words = REFUSED[name]
    path = File(content, 0, name=place).write(tmp_path)
    with pytest.raises(CaseMistake) as caught:
        load_cases(path, root=tmp_path)
    assert words in caught.value.message
    assert "\n" not in str(caught.value)
    found = sniff(path)
    assert found.kind is None
    assert words in found.reason


def test_a_case_file_of_ours_is_told_from_all_others(tmp_path: Path) -> None:
    single = {"prompt": ASK, "skill": "tide-tables", "lane": "prompt", "expect": ["12:40"]}
    several = {"defaults": {"lane": "execution"}, "cases": [{"id": "a", "prompt": ASK}]}
    for content, count in ((single, 1), (several, 1)):
        path = File(content, 0, name="mine.json").write(tmp_path)
        assert sniff(path).kind == "case"
        assert load_cases(path, root=tmp_path).kind == "case"
        assert len(load_cases(path, root=tmp_path).cases) == count
    lane = tmp_path / "cases/execution/x.yaml"
    lane.parent.mkdir(parents=True)
    lane.write_text("prompt: x\nskil: y\n")
    with pytest.raises(CaseMistake, match=r"cases/execution/x.yaml:2: skil: unknown key"):
        load_cases(lane, root=tmp_path)


def test_each_loader_refuses_the_other_kind(tmp_path: Path) -> None:
    path = TRIGGERS["canonical"].write(tmp_path)
    with pytest.raises(CaseMistake, match="should_trigger"):
        load_evals_file(path)
    path = EVALS["agentskills.io"].write(tmp_path)
    with pytest.raises(CaseMistake, match="evals"):
        load_trigger_file(path)


# ----------------------------------------------------------------------------------------------------------- odd files

TEXTS = st.sampled_from(["", " ", "a", "a/b", "contains", "none", "../x", "é", "output", "x" * 300])
KEYS = st.sampled_from(
    [
        *("evals", "queries", "cases", "id", "prompt", "query", "assertions", "expectations", "files", "type", "value"),
        *("target", "name", "text", "expect", "skill_name", "skills", "should_trigger", "should_not_trigger", "path"),
        "content",
    ]
)
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=st.one_of(TREES, TREES.map(lambda tree: evals(one(assertions=tree))), TREES.map(lambda t: [YES, t])))
def test_odd_files_give_cases_or_a_mistake_and_nothing_else(tree: Any, tmp_path: Path) -> None:
    path = File(tree, 0).write(tmp_path)
    said: list[CaseMistake] = []
    cases: list[Case] = []
    try:
        cases = load_cases(path, root=tmp_path, lane=Lane.PROMPT).cases
    except CaseMistake as exc:
        said.append(exc)
    assert bool(cases) != bool(said)
    for mistake in said:
        assert "\n" not in str(mistake)
