"""Proof bundles: what is taken, what is refused, and the page to look at them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.scoring.bundle import Limits, Manifest, collect, load, look_over
from pytest_skilleval.scoring.proof import completeness, evidence

from .samples import cast_v2, mp4, picture, webm
from .test_files import answer
from .trials import MakeFacts

REPORT = "# Summary\n\nThe rate is 0.6 [0.23, 0.88], n = 5. See [the run](run.json).\n" + "More words.\n" * 10
CAST = cast_v2((0.1, "o", "$ pytest --trials 5\r\n"), (1.5, "o", "5 passed\r\n"))


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


FULL: dict[str, str | bytes] = {
    "report.md": REPORT,
    "run.json": '{"rate": 0.6}',
    "shots/screen.png": picture(),
    "run.cast": CAST,
    "notes.txt": "It took three minutes.",
}


class Page(HTMLParser):
    """What a browser would run, fetch or link on a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append(name)
            if name == "href":
                self.links.append(value or "")
            if name in {"src", "srcset", "data", "poster", "action"}:
                self.sources.append(value or "")


def test_a_bundle_is_copied_with_a_manifest_of_kinds_sizes_and_digests(tmp_path: Path) -> None:
    source = put(tmp_path / "proof", FULL)
    target = tmp_path / "run" / "bundles" / "dogfood" / "case" / "none" / "t1"
    manifest = collect(source, target)
    assert {file.name: file.kind for file in manifest.files} == {
        "report.md": "report",
        "run.json": "json",
        "shots/screen.png": "screenshot",
        "run.cast": "recording",
        "notes.txt": "notes",
    }
    assert manifest.refused == ()
    for file in manifest.files:
        stored = (target / file.path).read_bytes()
        assert stored == (source / file.name).read_bytes()
        assert (file.bytes, file.digest) == (len(stored), hashlib.sha256(stored).hexdigest())
        assert file.problem is None
    assert load(target) == manifest
    assert json.loads((target / "manifest.json").read_text())["schema"] == "skilleval-bundle/1"
    assert sorted(path.name for path in target.parent.iterdir()) == ["t1"]


@pytest.mark.parametrize(
    ("name", "content", "kind", "problem"),
    [
        ("photo", picture(), "screenshot", None),
        ("photo.txt", picture("JPEG"), "screenshot", None),
        ("fake.png", "no picture", "screenshot", "neither PNG nor JPEG"),
        ("white.png", picture(blank=True), "screenshot", "it is blank"),
        ("film.dat", webm(), "video", None),
        ("film.mp4", mp4(), "video", None),
        ("film.webm", "no film", "video", "neither WebM nor MP4"),
        ("session.json", CAST, "recording", None),
        ("session.cast", "{}", "recording", "line 1 is no header of asciicast version 2 or 3"),
        ("data", '{"a": 1}', "json", None),
        ("data.json", "{", "json", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("events.jsonl", '{"a": 1}\n{"a": 2}\n', "json", None),
        ("REPORT.MD", "# Summary\n", "report", None),
        ("readme.md", '{"a": 1}', "notes", None),
        ("empty.txt", "", "notes", "it is empty"),
        ("program", b"\x7fELF\0\0", "other", None),
    ],
)
def test_a_files_kind_is_told_by_content_first_and_name_second(
    tmp_path: Path, name: str, content: str | bytes, kind: str, problem: str | None
) -> None:
    (file,) = look_over(put(tmp_path, {name: content})).files
    assert (file.kind, file.problem) == (kind, problem)


def test_links_that_leave_pipes_devices_and_large_files_are_refused(tmp_path: Path) -> None:
    source = put(tmp_path / "proof", {"report.md": REPORT, "large.txt": "x" * 2000})
    (tmp_path / "secret.txt").write_text("the secret")
    (source / "out.txt").symlink_to(tmp_path / "secret.txt")
    (source / "up").symlink_to("..")
    (source / "loop.txt").symlink_to("loop.txt")
    (source / "inside.txt").symlink_to("report.md")
    os.mkfifo(source / "pipe")
    target = tmp_path / "t1"
    manifest = collect(source, target, Limits(file_bytes=1000))
    assert [file.name for file in manifest.files] == ["inside.txt", "report.md"]
    assert {refusal.name: refusal.why for refusal in manifest.refused} == {
        "up": "a link to a folder",
        "large.txt": "large.txt has 2000 bytes; at most 1000 are read",
        "loop.txt": "loop.txt cannot be resolved",
        "out.txt": "out.txt is a link that leaves its folder",
        "pipe": "pipe is a pipe, not a file",
    }
    for path in target.rglob("*"):
        assert not path.is_symlink()
        assert path.is_dir() or b"the secret" not in path.read_bytes()


def test_too_many_files_or_bytes_end_the_copy_and_are_said(tmp_path: Path) -> None:
    source = put(tmp_path / "proof", {f"{number}.txt": f"text {number}" for number in range(9)})
    many = look_over(source, Limits(files=3))
    assert len(many.files) == 3
    assert many.refused[0].why == "more than 3 files"
    big = look_over(source, Limits(total_bytes=20))
    assert sum(file.bytes for file in big.files) <= 20
    assert big.refused[0].why == "more than 20 bytes altogether"


def test_names_that_no_file_system_or_reader_should_meet_are_stored_under_safe_ones(tmp_path: Path) -> None:
    source = tmp_path / "proof"
    source.mkdir()
    names = ["new\nline.txt", "\u202etxt.exe", "-rf.txt", "a b.txt", "x" * 200 + ".txt", "<img src=x>.md"]
    for number, name in enumerate(names):
        (source / name).write_text(f"file {number}")
    (source / os.fsdecode(b"bad\xff.txt")).write_text("file 6")
    manifest = collect(source, tmp_path / "t1")
    assert len(manifest.files) == 7
    assert manifest.find("a b.txt") is not None
    for file in manifest.files:
        assert (tmp_path / "t1" / file.path).is_file()
        assert re.fullmatch(r"files/[\w+=@ .-]+", file.path)
        assert not file.path.startswith("files/-")


def test_what_a_browser_would_run_is_stored_as_text(tmp_path: Path) -> None:
    active: dict[str, str | bytes] = {
        "page.html": "<script>alert(1)</script>",
        "page.html.txt": "another file",
        "picture.svg": '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
        "code.js": "alert(1)",
        "PAGE.HTML": "<script>alert(2)</script>",
        "paper.pdf": b"%PDF-1.7\0",
    }
    manifest = collect(put(tmp_path / "proof", active), tmp_path / "t1")
    assert {Path(file.path).suffix for file in manifest.files} == {".txt", ".bin"}
    assert len({file.path.lower() for file in manifest.files}) == 6


HOSTILE: dict[str, str | bytes] = {
    "report.md": "<script>alert('report')</script> {{ 7*7 }} ![x](http://evil.example/x.png) \x1b[31m \u202e",
    '"><img src=x onerror=alert(1)>.md': "</pre><iframe src='http://evil.example'></iframe>",
    "javascript:alert(1).txt": "x",
    "run.cast": cast_v2((0.1, "o", "<script>alert('cast')</script>")),
    "shot.png": picture(),
    "bad.json": "{<b>",
}


def test_the_review_page_shows_or_links_everything_and_runs_and_fetches_nothing(tmp_path: Path) -> None:
    target = tmp_path / "t1"
    manifest = collect(put(tmp_path / "proof", HOSTILE), target, title="dogfood <b>case</b>")
    text = (target / "index.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not {"script", "iframe", "object", "embed", "form", "link", "video", "base", "b"} & set(page.tags)
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert len(page.sources) == 1
    assert {unquote(link) for link in page.links} == {file.path for file in manifest.files}
    assert all((target / unquote(link)).is_file() for link in page.links)
    assert "{{ 7*7 }}" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(&#39;cast&#39;)&lt;/script&gt;" in text
    assert "<title>dogfood &lt;b&gt;case&lt;/b&gt;</title>" in text


def test_the_review_pages_policy_allows_its_own_style_by_digest_and_no_script(tmp_path: Path) -> None:
    collect(put(tmp_path / "proof", FULL), tmp_path / "t1")
    text = (tmp_path / "t1" / "index.html").read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert policy
    assert style
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "'self' data:"
    assert rules["style-src"] == f"'sha256-{digest}'"
    assert "script-src" not in rules


def test_text_on_the_review_page_is_bounded(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{number:03}.txt": f"{number} " + "word " * 20_000 for number in range(80)}
    collect(put(tmp_path / "proof", files), tmp_path / "t1")
    text = (tmp_path / "t1" / "index.html").read_text()
    assert len(text) < 1_200_000
    assert "Only the beginning is shown" in text


def test_an_earlier_attempt_is_replaced_and_anything_else_is_left_alone(tmp_path: Path) -> None:
    source, target = put(tmp_path / "proof", FULL), tmp_path / "t1"
    collect(source, target)
    (source / "run.cast").unlink()
    collect(source, target)
    assert not (target / "files" / "run.cast").exists()
    other = put(tmp_path / "t2", {"precious.txt": "mine"})
    with pytest.raises(TrialFault, match="is taken by something that is no bundle") as fault:
        collect(source, other)
    assert fault.value.error_class is ErrorClass.RECORD
    assert [path.name for path in other.iterdir()] == ["precious.txt"]


def test_secrets_are_redacted_before_anything_is_stored(tmp_path: Path) -> None:
    source = put(tmp_path / "proof", {"report.md": "key sk-12345 was used"})
    manifest = collect(source, tmp_path / "t1", redact=lambda data: data.replace(b"sk-12345", b"[redacted]"))
    for path in (tmp_path / "t1").rglob("*.*"):
        assert b"sk-12345" not in path.read_bytes()
    assert manifest.files[0].bytes == len("key [redacted] was used")


def test_equal_bundles_give_equal_folders(tmp_path: Path) -> None:
    source = put(tmp_path / "proof", FULL)

    def digests(target: Path) -> dict[str, str]:
        collect(source, target)
        return {
            path.relative_to(target).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in target.rglob("*")
            if path.is_file()
        }

    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def manifest_of(tmp_path: Path, *names: str, **more: str | bytes) -> Manifest:
    return look_over(put(tmp_path / "proof", {name: FULL[name] for name in names} | more))


@pytest.mark.parametrize(
    ("names", "profile", "share", "missing"),
    [
        ((), "minimal", 0.0, ("a report or notes",)),
        (("notes.txt",), "minimal", 1.0, ()),
        (("report.md",), "reporting", 0.5, ("a piece of evidence besides it",)),
        (("report.md", "run.json"), "reporting", 1.0, ()),
        (("report.md", "run.json"), "interactive", 0.5, ("a screenshot", "a recording or a video")),
        (("report.md", "shots/screen.png"), "interactive", 0.75, ("a recording or a video",)),
        (("report.md", "shots/screen.png", "run.cast"), "interactive", 1.0, ()),
    ],
)
def test_a_profile_says_what_must_be_there(
    tmp_path: Path, names: tuple[str, ...], profile: Any, share: float, missing: tuple[str, ...]
) -> None:
    (tmp_path / "proof").mkdir()
    result = completeness(manifest_of(tmp_path, *names), profile)
    assert (result.share, result.missing) == (share, missing)


def test_a_damaged_file_satisfies_no_profile(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, "report.md", "run.cast", **{"screen.png": "no picture"})
    assert completeness(manifest, "interactive").missing == ("a screenshot",)


def test_a_report_may_have_any_name_that_the_case_gives_it(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, "run.json", **{"findings.md": REPORT})
    assert completeness(manifest, "reporting").share == 0.5
    assert completeness(manifest, "reporting", report="findings.md").share == 1.0


def test_evidence_is_the_mean_of_five_shares(tmp_path: Path) -> None:
    # By hand, profile interactive: complete 3 of 4 (no screenshot: it is blank); kinds 3 of 4 (report, recording, json);
    # different 4 of 5 (two equal files); sizes 5 of 5; content 4 of 5.
    manifest = manifest_of(
        tmp_path,
        "report.md",
        "run.cast",
        "run.json",
        **{"again.json": FULL["run.json"], "shot.png": picture(blank=True)},
    )
    result = evidence(manifest, "interactive")
    assert result.value == pytest.approx((0.75 + 0.75 + 0.8 + 1.0 + 0.8) / 5)
    assert "shot.png: it is blank" in result.reason


def test_refused_things_and_tiny_files_are_poor_evidence(tmp_path: Path) -> None:
    source = put(tmp_path / "proof", {"report.md": "# Hi", "run.json": "{}"})
    (source / "gone").symlink_to("/etc/hostname")
    # complete 1, kinds 2 of 2, different 1, sizes 1 of 2 (a report of four bytes), content 2 of 3.
    result = evidence(look_over(source), "reporting")
    assert result.value == pytest.approx((1 + 1 + 1 + 0.5 + 2 / 3) / 5)
    assert "gone was refused" in result.reason
    assert evidence(Manifest(), "reporting").value == 0.0


def test_a_bundle_check_looks_at_the_folder_in_the_workspace(make_facts: MakeFacts) -> None:
    check = {"kind": "bundle", "path": "proof", "profile": "interactive"}
    assert answer(make_facts, check).reason == "proof is no folder of the workspace"
    some = {f"proof/{name}": FULL[name] for name in ("report.md", "run.cast")}
    result = answer(make_facts, check, files=some)
    assert result.reason == "proof lacks a screenshot (profile interactive)"
    result = answer(make_facts, check, files={f"proof/{name}": content for name, content in FULL.items()})
    assert (result.passed, result.reason) == (True, "proof holds 5 files and satisfies profile interactive")


def test_a_bundle_folder_that_is_a_link_is_not_looked_at(make_facts: MakeFacts, tmp_path: Path) -> None:
    put(tmp_path / "elsewhere", FULL)
    facts = make_facts()
    (facts.workspace / "proof").symlink_to(tmp_path / "elsewhere")
    assert answer(make_facts, {"kind": "bundle"}).passed is False
