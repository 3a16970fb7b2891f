"""Files as repositories hold them, of our own making: one for each variation that was seen, with its exact counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

SKILL = "---\nname: tide-tables\ndescription: Reads tide tables and answers questions about high water.\n---\n\nLook it up.\n"
ASK = "When is high water in Husum on Friday?"
SAYS = "The answer names a time."


class File(NamedTuple):
    """A foreign file and what must come of it."""

    content: Any
    """Bytes, text, or what is written as JSON."""
    cases: int
    assertions: int = 0
    """All checks of all cases together."""
    kinds: Mapping[str, int] = MappingProxyType({})
    """Checks by kind, where not all of them are `rubric`."""
    unused: str = ""
    """Keys that are kept and listed."""
    name: str = "evals/evals.json"

    def write(self, root: Path) -> Path:
        """Write the file into a skill's folder."""
        folder = root / "skills" / "tide-tables"
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(SKILL)
        for given in ("evals/files/husum.csv", "evals/files/list.csv", "assets/list.csv", "notes.txt"):
            (folder / given).parent.mkdir(parents=True, exist_ok=True)
            (folder / given).write_text(f"{given}\n")
        content = self.content
        if not isinstance(content, bytes | str):
            content = json.dumps(content, ensure_ascii=False, indent=2)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def evals(*cases: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"skill_name": "tide-tables", "evals": list(cases), **more}


def one(**more: Any) -> dict[str, Any]:
    return {"id": 1, "prompt": ASK, **more}


def asserting(*items: Any) -> dict[str, Any]:
    return evals(one(assertions=list(items)))


BOM = b"\xef\xbb\xbf"

EVALS: dict[str, File] = {
    # ------------------------------------------------------------------------------------------------- the whole file
    "agentskills.io": File(evals(one(expected_output="A time.", files=["evals/files/husum.csv"], assertions=[SAYS, "It is short."])), 1, 2),
    "skill-creator": File(evals(one(expected_output="A time.", expectations=[SAYS, "It is short.", "No lists."])), 1, 3),
    "assertions and expectations": File(evals(one(assertions=[SAYS, "A."], expectations=[SAYS, "B."])), 1, 3),
    "several cases": File(evals(one(assertions=[SAYS]), {"id": 2, "prompt": "And on Saturday?", "assertions": [SAYS]}, {"id": 3, "prompt": "Why?"}), 3, 2),
    "ids as text": File(evals({"id": "husum", "prompt": ASK, "assertions": [SAYS]}), 1, 1),
    "ids as numbers and text": File(evals(one(), {"id": "two", "prompt": "And on Saturday?"}), 2),
    "no ids": File(evals({"prompt": ASK}, {"prompt": "And on Saturday?"}), 2),
    "the same prompt twice without ids": File(evals({"prompt": ASK}, {"prompt": ASK}), 2),
    "no skill_name": File({"evals": [one(assertions=[SAYS])]}, 1, 1),
    "another skill_name": File({"skill_name": "tides", "evals": [one()]}, 1),
    "a bare list": File([one(expected_output="A time.", files=[], assertions=[SAYS])], 1, 1),
    "a bare list with names": File([{"name": "husum friday", "prompt": ASK, "assertions": [SAYS]}, {"name": "why", "prompt": "Why?", "assertions": []}], 2, 1),
    "a bare list with expect and fail": File([{"id": "a", "prompt": ASK, "expect": "A time", "fail": "A guess"}], 1, 2),
    "a bare list with lists in expect and fail": File([{"id": "a", "prompt": ASK, "expect": ["A time", "A place"], "fail": ["A guess"]}], 1, 3),
    "a bare list with scenario_type": File([{"id": 1, "prompt": ASK, "expected_output": "A time.", "scenario_type": "happy"}], 1, 1, unused="scenario_type (1)"),
    "eval_id and eval_name": File([{"eval_id": 7, "eval_name": "husum", "kind": "core", "prompt": ASK, "assertions": [SAYS], "derived_from": "issue"}], 1, 1, unused="derived_from (1), kind (1)", name="evals/eval.json"),
    "one case a file": File({"name": "Husum", "skills": ["tide-tables"], "query": ASK, "expected_behavior": [SAYS, "Reads the table."], "success_criteria": ["Right to the minute."]}, 1, 3, name="evaluations/husum.json"),
    "one case a file with files": File({"skills": ["tide-tables"], "query": ASK, "files": ["evals/files/husum.csv"], "expected_behavior": [SAYS]}, 1, 1, name="evaluations/friday.json"),
    "one case of several skills": File({"skills": ["tide-tables", "pdf"], "query": ASK, "expected_behavior": [SAYS]}, 1, 1, name="evaluations/two.json"),
    "a byte order mark": File(BOM + json.dumps(asserting(SAYS)).encode(), 1, 1),
    "crlf": File(json.dumps(asserting(SAYS), indent=2).replace("\n", "\r\n"), 1, 1),
    "another script": File(evals({"id": 1, "prompt": "胡苏姆星期五几点涨潮", "assertions": ["答案有时间。"]}, {"id": 2, "prompt": "متى المد؟", "assertions": ["وقت"]}), 2, 2),
    "escaped emoji": File('{"skill_name": "tide-tables", "evals": [{"id": 1, "prompt": "\\ud83c\\udf0a?", "assertions": ["\\ud83c\\udf0a"]}]}', 1, 1),
    "yaml": File(f"skill_name: tide-tables\nevals:\n  - id: 1\n    prompt: {ASK}\n    assertions:\n      - {SAYS}\n", 1, 1, name="evals/evals.yaml"),
    "schema and version": File(evals(one(), **{"$schema": "x.json", "version": "1.0", "description": "d"}), 1, unused="description (1), version (1)"),
    "repo_criteria": File(evals(one(), repo_criteria={"language": "any"}, metadata={"a": 1}), 1, unused="metadata (1), repo_criteria (1)"),
    "repo-criteria and notes": File(evals(one(), **{"repo-criteria": [], "notes": "n", "baseline_note": "b", "quantitative_metrics": {}, "execution_notes": "e", "description_version": 2}), 1, unused="baseline_note (1), description_version (1), execution_notes (1), notes (1), quantitative_metrics (1), repo-criteria (1)"),
    # -------------------------------------------------------------------------------------------------- keys of a case
    "expected_output alone": File(evals(one(expected_output="A time.")), 1, 1),
    "nothing expected": File(evals(one()), 1, 0),
    "empty assertions": File(evals(one(expected_output="A time.", assertions=[])), 1, 1),
    "name and category": File(evals(one(name="husum", category="lookup", assertions=[SAYS])), 1, 1),
    "a description": File(evals(one(description="Asks for a time.", assertions=[SAYS])), 1, 1),
    "command and role without prompt": File(evals({"id": 1, "role": "skipper", "command": "/tides husum", "assertions": [SAYS]}), 1, 1, unused="role (1)"),
    "command and role beside a prompt": File(evals(one(role="skipper", command="/tides husum")), 1, unused="command (1), role (1)"),
    "prompt_baseline": File(evals(one(prompt_baseline="Same, without the skill.", assertions=[SAYS])), 1, 1, unused="prompt_baseline (1)"),
    "area and repository state": File(evals(one(area="north", expected_repo_state={"a": 1}, expected_chat_output="x", agent_config={})), 1, unused="agent_config (1), area (1), expected_chat_output (1), expected_repo_state (1)"),
    "must_have": File(evals(one(must_have=["a time", "a place"], must_not_have=["a guess"], manual_review_expected=True)), 1, 3, unused="manual_review_expected (1)"),
    "eval_name beside id": File(evals(one(eval_name="husum", kind="core", notes="n", live_only=False)), 1, unused="kind (1), live_only (1), notes (1)"),
    "a skill of its own": File(evals(one(skill="pdf", assertions=[SAYS])), 1, 1),
    "files of the skill": File(evals(one(files=["evals/files/husum.csv", "notes.txt"])), 1),
    "files relative to the evals": File(evals(one(files=["files/husum.csv"])), 1),
    "two files of one name": File(evals(one(files=["evals/files/list.csv", "assets/list.csv"])), 1),
    "a folder as file": File(evals(one(files=["evals/files"])), 1),
    "files with content": File(evals(one(files=[{"path": "in/a.txt", "content": "x"}, {"name": "b.txt", "content": "y"}])), 1),
    "files as a mapping": File(evals(one(files={"a.txt": "x", "b.txt": "y"})), 1),
    "files as a path": File(evals(one(files="notes.txt")), 1),
    # ------------------------------------------------------------------------------------------------------ assertions
    "assertion texts": File(asserting("A.", "B.", "C."), 1, 3),
    "one text instead of a list": File(evals(one(assertions=SAYS)), 1, 1),
    "names and descriptions": File(asserting({"name": "time", "description": SAYS}, {"name": "time", "description": "B."}), 1, 2),
    "names and checks": File(asserting({"name": "time", "check": "Output names a time"}), 1, 1),
    "ids and texts": File(asserting({"id": "a", "text": SAYS}, {"id": 2, "text": "B."}), 1, 2),
    "texts alone": File(asserting({"text": SAYS}), 1, 1),
    "graded texts": File(asserting({"id": 1, "text": SAYS, "passed": True, "evidence": "line 3"}), 1, 1, unused="assertions[].evidence (1), assertions[].passed (1)"),
    "a mapping of names to texts": File(evals(one(assertions={"time": SAYS, "place": "B."})), 1, 2),
    "code_contains": File(asserting({"name": "n", "description": "d", "type": "code_contains", "check": "def tide("}), 1, 1, {"output": 1}),
    "code_count": File(asserting({"name": "n", "description": "d", "type": "code_count", "check": "assert", "min_count": 3}), 1, 1, {"output": 1}),
    "content_contains and tool_use": File(asserting({"type": "content_contains", "value": "12:40", "description": "d"}, {"type": "tool_use", "value": "Read", "description": "d"}), 1, 2, {"output": 1, "tool-call": 1}),
    "contains with a target": File(asserting(
        {"name": "a", "type": "contains", "target": "out.md", "value": "12:40", "description": "d"},
        {"name": "b", "type": "does_not_contain", "target": "out.md", "value": "perhaps", "description": "d"},
        {"name": "c", "type": "contains", "target": "response", "value": "Husum", "description": "d"},
    ), 1, 3, {"file": 2, "text": 1}),
    "regular expressions": File(asserting({"type": "regex", "value": r"\d\d:\d\d"}, {"type": "not_matches", "pattern": "(?i)perhaps"}), 1, 2, {"output": 2}),
    "a bad regular expression": File(asserting({"type": "regex", "value": "(", "description": "d"}), 1, 1),
    "files that must (not) exist": File(asserting({"type": "file_exists", "path": "out.md"}, {"type": "file_not_exists", "value": "tmp.txt"}), 1, 2, {"file": 2}),
    "a list of words": File(asserting({"type": "contains_all", "value": ["12:40", "Husum"]}), 1, 1, {"output": 1}),
    "types that need a judge": File(asserting({"type": "llm_judge", "value": SAYS}, {"type": "semantic_match", "value": "B."}, {"type": "vibes", "description": "C."}), 1, 3),
    "a known type without its value": File(asserting({"type": "contains", "description": "Names a time."}), 1, 1),
    "texts and objects": File(asserting(SAYS, {"type": "contains", "value": "12:40"}, {"name": "n", "description": "d"}), 1, 3, {"rubric": 2, "output": 1}),
}  # fmt: skip

YES, NO = {"query": ASK, "should_trigger": True}, {"query": "Book me a ferry.", "should_trigger": False}


class Triggers(NamedTuple):
    """A list of trigger queries and what must come of it."""

    content: Any
    positive: int
    """Cases of the skill itself."""
    negative: int
    """Cases of no skill."""
    others: Mapping[str, int] = MappingProxyType({})
    """Cases of other skills."""
    unused: str = ""
    name: str = "evals/trigger-evals.json"

    def write(self, root: Path) -> Path:
        """Write the file into a skill's folder."""
        return File(self.content, 0, name=self.name).write(root)


TRIGGERS: dict[str, Triggers] = {
    "canonical": Triggers([YES, NO], 1, 1),
    "trigger-eval.json": Triggers([YES, NO], 1, 1, name="evals/trigger-eval.json"),
    "triggers.json": Triggers([YES, NO], 1, 1, name="evals/triggers.json"),
    "trigger_eval.json": Triggers([YES, NO], 1, 1, name="evals/trigger_eval.json"),
    "eval_queries.json": Triggers([YES, NO], 1, 1, name="evals/eval_queries.json"),
    "trigger_evals.json": Triggers([YES, NO], 1, 1, name="evals/trigger_evals.json"),
    "triggering.json": Triggers([YES], 1, 0, name="evals/triggering.json"),
    "train_queries.json": Triggers([YES, NO], 1, 1, name="evals/train_queries.json"),
    "validation_queries.json": Triggers([YES, NO], 1, 1, name="evals/validation_queries.json"),
    "with a split": Triggers([{**YES, "split": "train"}, {**NO, "split": "validation"}], 1, 1, unused="split (2)"),
    "with why": Triggers([{**YES, "why": "asks for a time"}], 1, 0),
    "with reason": Triggers([{**NO, "reason": "another task"}], 0, 1),
    "with note": Triggers([{**YES, "note": "n"}], 1, 0),
    "prompt instead of query": Triggers([{"prompt": ASK, "should_trigger": True, "notes": "n"}], 1, 0),
    "a skill's name": Triggers([{"query": ASK, "should_trigger": "tide-tables"}, {"query": "Review this article.", "should_trigger": "article-review"}], 1, 0, {"article-review": 1}),
    "null": Triggers([{"query": "Hello!", "should_trigger": None}, YES], 1, 1),
    "names, null and booleans": Triggers([YES, NO, {"query": "a", "should_trigger": None}, {"query": "b", "should_trigger": "pdf"}], 1, 2, {"pdf": 1}),
    "booleans as text": Triggers([{"query": "a", "should_trigger": "true"}, {"query": "b", "should_trigger": "False"}], 1, 1),
    "queries": Triggers({"skill_name": "tide-tables", "queries": [YES, NO]}, 1, 1),
    "cases with locale": Triggers({"skill_name": "tide-tables", "cases": [
        {"id": "a", "category": "direct", "prompt": ASK, "should_trigger": True, "prompt_locale": "en"},
        {"id": "b", "category": "near", "query": "Fähre?", "should_trigger": False, "prompt_locale": "de"},
    ]}, 1, 1, unused="prompt_locale (2)"),
    "description_under_test": Triggers({"description_under_test": "Reads tide tables.", "cases": [YES, NO]}, 1, 1, unused="description_under_test (1)"),
    "two lists of texts": Triggers({"skill_name": "tide-tables", "purpose": "p", "should_trigger": [ASK, "High water?"], "should_not_trigger": ["Book a ferry."]}, 2, 1, unused="purpose (1)"),
    "evals with should_trigger": Triggers({"evals": [{"prompt": ASK, "should_trigger": True}, {"prompt": "b", "should_trigger": False}]}, 1, 1),
    "yaml": Triggers("skill: tide-tables\nshould_trigger_prompts:\n  - prompt: High water?\n    why: asks\n  - prompt: Low water?\nshould_not_trigger_prompts:\n  - prompt: Book a ferry.\n", 2, 1, name="evals/triggers.yaml"),
    "yaml with yes and no": Triggers("- query: High water?\n  should_trigger: yes\n- query: Ferry?\n  should_trigger: no\n", 1, 1, name="evals/triggers.yml"),
    "a byte order mark and crlf": Triggers(BOM + json.dumps([YES, NO], indent=1).replace("\n", "\r\n").encode(), 1, 1),
    "another script": Triggers([{"query": "几点涨潮", "should_trigger": True}, {"query": "订船票", "should_trigger": False}], 1, 1),
    "one query twice": Triggers([YES, YES, NO], 2, 1),
}  # fmt: skip

REFUSED: dict[str, tuple[str, Any, str]] = {
    "a list of benchmarks": ("docs/evals/evals.json", [{"title": "GSM8K", "path": "evals/gsm8k", "tasks": ["gsm8k"]}], "a list of 1 mappings without prompt or query (title, path, tasks)"),
    "a grading.json": ("evals/grading.json", {"expectations": [], "summary": {}, "execution_metrics": {}}, "looks like a grading.json"),
    "another grading.json": ("evals/grading2.json", {"assertion_results": []}, "looks like a grading.json"),
    "a benchmark.json": ("evals/benchmark.json", {"metadata": {}, "runs": [], "run_summary": {}}, "looks like a benchmark.json"),
    "a timing.json": ("evals/timing.json", {"total_tokens": 1, "total_duration_seconds": 2}, "looks like a timing.json"),
    "a feedback.json": ("evals/feedback.json", {"husum": "good"}, "no prompt among its keys (husum)"),
    "a package.json": ("package.json", {"name": "a", "version": "1"}, "no prompt among its keys (name, version)"),
    "a list of texts": ("evals/list.json", ["a", "b"], "a list of 2 items, none of them a mapping"),
    "a number": ("evals/n.json", 3, "holds no cases: it is 3"),
    "an empty yaml file": ("evals/e.yaml", "", "it is empty"),
    "a csv file": ("evals/eval.csv", "a,b\n", ".csv is neither YAML nor JSON"),
    "a markdown file": ("evals/a.eval.md", "# a\n", ".md is neither YAML nor JSON"),
    "an empty list": ("evals/empty.json", [], "a list of 0 items"),
}  # fmt: skip
