"""Which skill was chosen: evidence, never a mention."""

from __future__ import annotations

import pytest

from pytest_skilleval.scoring.selection import choice_in, select

from .trials import MakeFacts, loaded, ran


def test_a_skill_that_was_loaded_is_chosen(make_facts: MakeFacts) -> None:
    selection = select(make_facts("prompt", used=[loaded("eval-guide")]))
    assert (selection.skill, selection.right) == ("eval-guide", True)
    assert "Skill(eval-guide)" in selection.reason


def test_another_skill_is_a_wrong_choice(make_facts: MakeFacts) -> None:
    selection = select(make_facts("prompt", used=[loaded("other")]))
    assert (selection.skill, selection.right) == ("other", False)
    assert selection.reason.startswith("chose other, wanted eval-guide")


def test_the_wanted_skill_counts_wherever_it_was_loaded(make_facts: MakeFacts) -> None:
    assert select(make_facts("prompt", used=[loaded("other"), loaded("eval-guide")])).skill == "eval-guide"


def test_what_the_harness_forced_is_no_choice(make_facts: MakeFacts) -> None:
    assert select(make_facts("prompt", used=[loaded("eval-guide", "forced")])).right is False


def test_where_no_skill_is_wanted_choosing_none_is_right(make_facts: MakeFacts) -> None:
    assert select(make_facts("prompt", skill="none", answer="By a red-black tree.")).right is True
    assert select(make_facts("prompt", skill="none", used=[loaded("eval-guide")])).right is False


@pytest.mark.parametrize("condition", ["none", "preloaded"])
def test_selection_cannot_apply_where_nothing_can_be_discovered(make_facts: MakeFacts, condition: str) -> None:
    assert select(make_facts("prompt", condition, answer="Skill: eval-guide")).right is None


def test_it_applies_where_a_stale_version_is_installed(make_facts: MakeFacts) -> None:
    assert select(make_facts("prompt", "stale", used=[loaded("eval-guide")])).right is True


@pytest.mark.parametrize(
    "answer",
    [
        "Skill: eval-guide",
        "I would plan it so.\n\n**Skill:** `eval-guide`\n\nThen run it.",
        "- skill: eval-guide.",
        '```json\n{"skill": "eval-guide", "why": "noise"}\n```',
        '{"skill": "eval-guide"}',
    ],
)
def test_a_plain_answer_chooses_by_an_explicit_line_or_json(make_facts: MakeFacts, answer: str) -> None:
    assert select(make_facts("prompt", answer=answer)).right is True


@pytest.mark.parametrize(
    "answer",
    [
        "Do not use eval-guide here.",
        "Do not use the skill: eval-guide",
        "You could use the eval-guide skill.",
        "Skill: not eval-guide",
        "> Skill: eval-guide",
        "```text\nSkill: eval-guide\n```",
        "Skill: eval-guide\nSkill: other",
        "Skill: <name>",
        "Skill: none",
        "Available skills: eval-guide, other",
    ],
)
def test_a_mention_a_quotation_or_a_denial_is_no_choice(make_facts: MakeFacts, answer: str) -> None:
    selection = select(make_facts("prompt", answer=answer))
    assert selection.skill is None
    assert selection.right is False


def test_an_echo_of_the_prompt_is_no_choice(make_facts: MakeFacts) -> None:
    prompt = "Answer with a line such as\nSkill: eval-guide\nif one fits."
    assert select(make_facts("prompt", prompt=prompt, answer=prompt)).skill is None


def test_what_an_agent_with_tools_says_of_its_choice_is_no_evidence(make_facts: MakeFacts) -> None:
    assert select(make_facts("prompt", calls=[ran("ls")], answer="Skill: eval-guide")).skill is None


def test_an_explicit_none_is_told_apart_from_silence(make_facts: MakeFacts) -> None:
    case = make_facts("prompt").case
    assert choice_in("Skill: none", case) == "none"
    assert choice_in("I would just answer.", case) is None
