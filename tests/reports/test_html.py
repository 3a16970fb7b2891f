from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from pytest_skilleval.reports import html
from pytest_skilleval.reports.html import as_html, is_large, pages
from pytest_skilleval.results import Report

from .made import compared, made, trial, write_trial
from .payloads import ANSI, CONTROLS, PAYLOADS, poisoned_report, steps

TEMPLATES = sorted(
    (path for path in files("pytest_skilleval.reports").joinpath("templates").iterdir()), key=lambda path: path.name
)
VOID = {"meta", "link", "img", "br", "input", "line", "circle", "path"}


class Page(HTMLParser):
    """A page's elements, attributes and text, as the standard library's parser sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.stack: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def shape(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def rich() -> Report:
    """A report that has every section."""
    routing = {
        name: {"rate": 0.9, "ci": (0.7, 0.97), "n": 20} for name in ("recall", "false_trigger_rate", "precision")
    }
    return made(
        ("greet", "wave"),
        {"none": ["failed", "failed", "passed"], "self-load": ["passed", "error", "missing"]},
        comparison=compared(),
        readings=[{"lane": "execution", "diagnosis": "works", "text": "The skill helps."}],
        lift=[
            {"lane": "execution", "metric": "realised", "of": "pass_rate", "value": 0.4, "ci": (0.1, 0.7), "cases": 2},
            {
                "lane": "execution",
                "metric": "oracle",
                "of": "score",
                "value": None,
                "ci": None,
                "cases": 0,
                "note": "not estimable",
            },
            {"lane": "execution", "metric": "unlock_rate", "of": "score", "value": 0.5, "ci": (0.1, 0.9), "cases": 2},
        ],
        routing={**routing, "control": "no positive case"},
        power={"reasons": ["3 trials cannot give a group a verdict of its own; 6 would"], "detectable_change": 0.2},
    )


def test_the_page_is_well_formed_and_says_its_verdict_first(tmp_path: Path) -> None:
    page = Page(as_html(rich(), tmp_path))
    assert page.unbalanced == []
    assert page.stack == []
    text = page.text
    first = text.index("Regressed", text.index("Skip to the results"))
    assert "pass rate -0.200 [-0.33, -0.07]" in text[first : first + 200]


def test_every_section_of_a_full_report_is_there() -> None:
    ids = {attributes.get("id") for attributes in Page(as_html(rich(), None)).all("h2")}
    assert ids == {"baseline", "conditions", "lift", "map", "routing", "noise", "usage", "errors", "trials", "run"}


def test_a_section_without_content_is_left_out() -> None:
    ids = {attributes.get("id") for attributes in Page(as_html(made(), None)).all("h2")}
    assert ids == {"conditions", "map", "noise", "usage", "trials", "run"}


def test_a_simulation_says_so_at_the_top_and_at_every_result() -> None:
    text = as_html(rich(), None)
    page = Page(text)
    say_so = "stub: simulated, no agent was run"
    assert text.count(say_so) >= len(page.all("h2")) + 2
    assert re.search(f"<title>[^<]*{say_so}", text)
    headings = re.findall(r"<h2 .*?</h2>", text, re.DOTALL)
    assert [heading for heading in headings if say_so not in heading] == []


def test_a_real_agents_report_names_it_and_claims_no_simulation() -> None:
    text = as_html(
        made(run={"provider": {"id": "claude", "version": "2.1.0", "model": "opus", "simulated": False}}), None
    )
    assert "simulated" not in text
    assert "claude 2.1.0 opus" in text


def test_equal_reports_give_equal_bytes(tmp_path: Path) -> None:
    write_trial(tmp_path, trial("greet", "none", 1), steps("hello"), diff="added out.txt\n+x\n")
    report = rich()
    again = Report.model_validate(report.model_dump(mode="json", by_alias=True))
    assert as_html(report, tmp_path, report, tmp_path) == as_html(again, tmp_path, again, tmp_path)


def test_the_policy_forbids_all_but_the_two_hashed_blocks() -> None:
    text = as_html(rich(), None)
    policy = Page(text).all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    rules = dict(rule.strip().split(" ", 1) for rule in (policy["content"] or "").split(";"))
    for name, tag in (("style-src", "style"), ("script-src", "script")):
        blocks = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert len(blocks) == 1
        digest = base64.b64encode(hashlib.sha256(blocks[0].encode()).digest()).decode()
        assert rules.pop(name) == f"'sha256-{digest}'"
    assert rules == {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}


def test_nothing_is_fetched_and_every_link_stays_in_the_report(tmp_path: Path) -> None:
    page = Page(as_html(poisoned_report(PAYLOADS), tmp_path))
    assert [
        tag
        for tag, attributes in page.elements
        if "src" in attributes or "style" in attributes or any(name.startswith("on") for name in attributes)
    ] == []
    assert all((attributes["href"] or "").startswith("data:image/svg+xml,") for attributes in page.all("link"))
    targets = [attributes["href"] or "" for attributes in page.all("a")]
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    assert [target for target in targets if not target.startswith("#") or target[1:] not in ids] == []


def filled(folder: Path, text: str) -> Path:
    folder.mkdir()
    for line in poisoned_report((text,)).trials:
        write_trial(folder, line.model_dump(), steps(text), diff=f"added {text}\n+{text}\n-{text}", stderr=text)
    return folder


@pytest.fixture(scope="module")
def tame(tmp_path_factory: pytest.TempPathFactory) -> Page:
    report, folder = poisoned_report(("harmless",)), filled(tmp_path_factory.mktemp("tame") / "run", "harmless")
    return Page(as_html(report, folder, report, folder))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_hostile_text_adds_no_element(tmp_path: Path, tame: Page, payload: str) -> None:
    report, folder = poisoned_report((payload,)), filled(tmp_path / "run", payload)
    hostile = Page(as_html(report, folder, report, folder))
    assert hostile.shape() == tame.shape()
    assert hostile.unbalanced == []
    assert {tuple(attributes) for _, attributes in hostile.elements} == {
        tuple(attributes) for _, attributes in tame.elements
    }


def test_control_and_bidi_characters_are_shown_as_escapes(tmp_path: Path) -> None:
    text = as_html(poisoned_report((ANSI, CONTROLS)), filled(tmp_path / "run", ANSI + CONTROLS))
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
    assert not any(char in text for char in "\x1b\x7f\x9b\u202e\u2066\ufffe")
    assert "\\x1b[2J" in text
    assert "\\u202e" in text


def test_a_trial_shows_prompt_tool_calls_diff_and_artifacts(tmp_path: Path) -> None:
    line = trial(
        "greet",
        "self-load",
        1,
        artifacts=[{"name": "out.txt", "kind": "text", "path": "trials/x/artifacts/0", "bytes": 5, "digest": "c" * 64}],
    )
    report = made((), {}, trials=[line])
    talk = [
        {"type": "prompt", "text": "Say hello."},
        {"type": "tool", "name": "Bash", "command": "echo hello > out.txt", "output": "done", "status": "ok"},
        {"type": "skill", "name": "greeter", "how": "read", "evidence": "SKILL.md was read"},
        {"type": "answer", "text": "I said hello."},
    ]
    folder = write_trial(
        tmp_path, line, talk, diff="added out.txt\n--- /dev/null\n+++ b/out.txt\n+hello\n", stderr="a warning"
    )
    text = as_html(report, tmp_path)
    page = Page(text)
    for part in (
        "Say hello.",
        "echo hello > out.txt",
        "skill greeter loaded (read): SKILL.md was read",
        "I said hello.",
        "a warning",
        "out.txt text, 5 B",
    ):
        assert part in page.text
    assert "<ins>+hello</ins>" in text
    assert f"trials/{folder.name}/" in page.text
    assert [attributes for attributes in page.all("details") if attributes.get("class") == "tool"] == [
        {"class": "tool"}
    ]


def test_a_trial_stands_beside_the_baselines_of_the_same_number(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_trial(ours, trial("greet", "none", 1), [{"type": "answer", "text": "what we said"}])
    write_trial(theirs, trial("greet", "none", 1), [{"type": "answer", "text": "what they said"}])
    page = Page(as_html(made(), ours, made(), theirs))
    assert "what we said" in page.text
    assert "what they said" in page.text
    assert [attributes["aria-label"] for attributes in page.all("section") if "aria-label" in attributes][:2] == [
        "This run, trial 1",
        "Baseline, trial 1",
    ]


def test_a_proof_bundle_is_linked_where_its_page_is(tmp_path: Path) -> None:
    line = trial("a b&c", "none", 1, lane="dogfood")
    write_trial(tmp_path, line)
    report = made((), {}, trials=[line])
    assert "Proof bundle" not in as_html(report, tmp_path)
    place = tmp_path / "bundles/dogfood/a b&c/none/t1"
    place.mkdir(parents=True)
    (place / "index.html").write_text("the bundle")
    assert '<a href="bundles/dogfood/a%20b%26c/none/t1/index.html">Proof bundle</a>' in as_html(report, tmp_path)


def test_a_bundle_outside_the_run_folder_is_not_linked(tmp_path: Path) -> None:
    line = trial("..", "none", 1, lane="..")
    write_trial(tmp_path / "run", line)
    (tmp_path / "run/bundles").mkdir()
    place = tmp_path / "none/t1"
    place.mkdir(parents=True)
    (place / "index.html").write_text("not ours")
    assert (tmp_path / "run/bundles/../../none/t1/index.html").exists()
    assert "Proof bundle" not in as_html(made((), {}, trials=[line]), tmp_path / "run")


def test_who_judged_prose_is_said_with_its_agreement() -> None:
    judge = {
        "provider": "chat",
        "model": "m1",
        "simulated": False,
        "statements": 12,
        "agreement": {"rate": 0.9, "ci": [0.8, 0.95]},
    }
    assert "chat m1 decided 12 statements" in Page(as_html(made(judge=judge), None)).text
    text = Page(as_html(made(judge=judge), None)).text
    assert "agree in 90% [80%, 95%] of pairs" in text
    unsure = Page(as_html(made(judge={**judge, "simulated": True, "agreement": {"rate": None, "ci": None}}), None)).text
    assert "(simulated, nobody was asked)" in unsure
    assert "How well it agrees with itself is unknown" in unsure


def test_a_judged_check_shows_its_answers_and_what_they_quote() -> None:
    judged = {"provider": "chat", "model": "m1", "answers": ["yes", "no", "yes"], "evidence": "<i>said so</i>"}
    check = {"id": "polite", "kind": "rubric", "passed": True, "reason": "2 of 3 say yes", "judged": judged}
    text = as_html(made((), {}, trials=[trial(checks=[check])]), None)
    assert "chat m1 said yes, no, yes: \u201c&lt;i&gt;said so&lt;/i&gt;\u201d" in text


def test_a_long_text_is_cut_and_the_file_that_holds_it_is_named(tmp_path: Path) -> None:
    line = trial("greet", "none", 1)
    folder = write_trial(tmp_path, line, [{"type": "answer", "text": "x" * (html.TEXT_LIMIT + 500)}])
    text = as_html(made((), {}, trials=[line]), tmp_path)
    assert "x" * html.TEXT_LIMIT + "<" in text
    assert f"500 characters more: see <code>trials/{folder.name}/transcript.jsonl</code>" in text


def test_a_link_or_a_broken_line_in_a_trials_folder_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"type": "answer", "text": "the secret"}\n')
    line = trial("greet", "none", 1)
    folder = write_trial(tmp_path, line, diff="added x\n")
    (folder / "transcript.jsonl").unlink()
    (folder / "transcript.jsonl").symlink_to(secret)
    (folder / "workspace.diff").unlink()
    (folder / "workspace.diff").mkdir()
    (folder / "stderr").write_bytes(b"\xff\xfe not UTF-8")
    text = as_html(made((), {}, trials=[line]), tmp_path)
    assert "the secret" not in text
    assert "not UTF-8" in text


def test_a_transcript_line_that_is_no_object_is_passed_over(tmp_path: Path) -> None:
    line = trial("greet", "none", 1)
    folder = write_trial(tmp_path, line)
    (folder / "transcript.jsonl").write_text(
        '[1]\nnot json\n{"type": "answer", "text": "still here"}\n' + "[" * 100_000 + "\n"
    )
    assert "still here" in as_html(made((), {}, trials=[line]), tmp_path)


@pytest.mark.parametrize(
    ("run", "comparison", "word"),
    [
        ({}, None, "Measured"),
        ({"status": "invalid", "reasons": ["9 of 10 trials are errors"]}, compared(), "Invalid"),
        ({"status": "interrupted", "reasons": ["2 missing"]}, None, "Interrupted"),
        ({}, compared("improved"), "Improved"),
        ({}, compared("inconclusive"), "Inconclusive"),
        ({}, {"comparable": False, "reasons": ["no shared cases"]}, "Not comparable"),
        ({}, {"overall": {}}, "Inconclusive"),
    ],
)
def test_the_first_word_says_what_a_run_is_worth(
    run: dict[str, object], comparison: dict[str, object] | None, word: str
) -> None:
    text = as_html(made(run=run, comparison=comparison), None)
    assert f'<h1 id="verdict">{word}</h1>' in text


def test_a_group_without_a_measured_trial_shows_no_rate() -> None:
    text = as_html(made(("greet",), {"none": ["error", "missing"]}), None)
    assert "> !1 ?1</a>" in text.replace("\u2013", "")
    assert "nan" not in text.lower().replace("stub: simulated", "")


def test_a_large_run_gets_a_page_a_case_and_stays_small(tmp_path: Path) -> None:
    cases = [f"a-case-with-a-long-name-{number:03d}" for number in range(100)]
    report = made(
        cases, {name: ["passed", "failed", "passed", "error"] for name in ("none", "self-load", "preloaded", "stale")}
    )
    write_trial(tmp_path, trial(cases[7], "stale", 2), steps("hello"))
    assert len(report.trials) == 1600
    assert is_large(report, tmp_path)
    text = as_html(report, tmp_path)
    assert len(text.encode()) / len(report.trials) < 1500  # 10,000 trials below 15 MB
    beside = dict(pages(report, tmp_path))
    assert len(beside) == 100
    page = Page(text)
    for target in (attributes["href"] or "" for attributes in page.all("a")):
        name, _, anchor = target.partition("#")
        if name:
            assert f'id="{anchor}"' in beside[name]
    shown = [name for name, content in beside.items() if "a-case-with-a-long-name-007" in content]
    assert len(shown) == 1
    assert "hello" in Page(beside[shown[0]]).text
    assert "../report.html#" in beside[shown[0]]


def test_thousands_of_groups_are_a_line_each_that_leads_to_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "CROWD", 3)
    monkeypatch.setattr(html, "INLINE_TRIALS", 5)
    report = made(("greet", "wave"))
    page = Page(as_html(report, tmp_path))
    assert page.all("details") == []
    beside = dict(pages(report, tmp_path))
    links = [attributes["href"] or "" for attributes in page.all("a") if attributes.get("class") == "name"]
    assert len(links) == 4
    for link in links:
        name, _, anchor = link.partition("#")
        assert f'<section id="{anchor}"' in beside[name]


def test_rare_outcomes_are_counted_and_can_be_filtered() -> None:
    lines = [
        trial("greet", "none", number, name, reason="why") for number, name in ((1, "unjudged"), (2, "not-needed"))
    ]
    report = made((), {}, trials=lines)
    report = report.model_copy(
        update={"run": report.run.model_copy(update={"counts": {**report.run.counts, "unjudged": 1, "not-needed": 1}})}
    )
    text = as_html(report, None)
    for name, words in (("unjudged", "unjudged"), ("not-needed", "not needed")):
        assert f'<li class="{name}"><b>1</b> {words}</li>' in text
        assert f'data-v="{name}"' in text
        assert f'<span class="out {name}">{words}</span>' in text


def test_large_transcripts_move_to_pages_of_their_own(tmp_path: Path) -> None:
    report = made()
    assert not is_large(report, tmp_path)
    assert list(pages(report, tmp_path)) == []
    for number in (1, 2):
        write_trial(tmp_path, trial("greet", "none", number), [{"type": "answer", "text": "y" * 1_600_000}])
    assert is_large(report, tmp_path)
    assert len(as_html(report, tmp_path)) < 100_000
    assert len(list(pages(report, tmp_path))) == 1


@pytest.mark.parametrize(
    "path", [path for path in TEMPLATES if path.name.endswith(".html.j2")], ids=lambda path: path.name
)
def test_no_template_switches_escaping_off(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe|autoescape|Markup", text)
    assert not re.search(r"=\{\{", text), "an attribute without quotes"
    assert not re.search(r"<script>(?!\{% include)|\son\w+=|style=|javascript:", text)


@pytest.mark.parametrize("name", ["report.css", "report.js"])
def test_what_is_hashed_holds_nothing_that_a_template_would_change(name: str) -> None:
    text = files("pytest_skilleval.reports").joinpath("templates", name).read_text(encoding="utf-8")
    assert not re.search(r"\{\{|\{%|\{#|</", text)
    assert "http" not in text
