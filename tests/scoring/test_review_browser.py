"""What a bundle's review page does in a real browser: everything shown or linked, nothing run, nothing fetched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from reports.browser import Browser, chromium
from reports.payloads import ANSI, CONTROLS, PAYLOADS

from pytest_skilleval.lanes import collect_bundle
from pytest_skilleval.scoring.bundle import Manifest, load

from .samples import cast_v2, mp4, picture

pytestmark = pytest.mark.browser

SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit=20"><script>window.hit=21</script></svg>'
PAGE = (
    "<!DOCTYPE html><html><body onload='window.hit=22'><script>window.hit=23;fetch('https://example.invalid/')</script>"
)
ACTIVE: dict[str, str | bytes] = {
    "page.html": PAGE,
    "PAGE.HTM": PAGE,
    "page.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml">{SVG}</html>',
    "picture.svg": SVG,
    "notes.md": PAGE,
    "page": PAGE,
    "data.json": PAGE,
    "fake.png": PAGE,
    "fake.webm": SVG,
    "code.js": "window.hit=24",
    "report.md": "# Summary\n\n![x](https://example.invalid/x.png) <script>window.hit=25</script>\n",
    "shot.png": picture(),
    "film.mp4": mp4(),
    "run.cast": cast_v2((0.1, "o", PAGE), (0.2, "o", ANSI)),
}
"""Scripts in files of every kind, and three that are what they seem."""


def hostile(folder: Path) -> dict[str, bytes]:
    """Fill a bundle: each payload as a name with three endings, and as what the file holds; a `/` makes folders."""
    files = {name: text if isinstance(text, bytes) else text.encode() for name, text in ACTIVE.items()}
    controls = CONTROLS.encode("utf-8", "replace").decode().replace("\0", "")
    for text in (*PAYLOADS, ANSI, controls):
        content = text.encode()
        files |= {f"{text}{ending}": content for ending in (".html", ".svg", ".md")}
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return files


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        # What a browser cannot show it would store in the user's downloads.
        found.cdp("Browser.setDownloadBehavior", behavior="deny")
        yield found


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    top = tmp_path_factory.mktemp("review")
    files = hostile(top / "proof")
    target = collect_bundle(top / "proof", top / "t1", title=" ".join(PAYLOADS))
    manifest = load(target)
    assert len(files) > 60
    assert sorted(file.digest for file in manifest.files) == sorted(
        hashlib.sha256(data).hexdigest() for data in files.values()
    )
    assert manifest.refused == ()
    return target, manifest


def test_a_hostile_bundles_page_runs_nothing_and_asks_for_nothing_but_itself(
    browser: Browser, bundle: tuple[Path, Manifest]
) -> None:
    page = bundle[0] / "index.html"
    browser.open(page)
    browser.run(
        """
        for (const one of document.querySelectorAll('*'))
          for (const name of ['mouseover', 'mouseenter', 'focus', 'load', 'error', 'click'])
            if (!(name === 'click' && one.closest('a'))) one.dispatchEvent(new Event(name));
        """
    )
    assert browser.requests() == [page.as_uri()]
    assert browser.console() == []
    assert browser.run("return window.hit") is None
    assert browser.run("return location.href") == page.as_uri()
    active = "script, iframe, object, embed, form, link, base, svg, math, video, [style], meta[http-equiv=refresh]"
    assert browser.run("return document.querySelectorAll(arguments[0]).length", active) == 0


def test_every_artifact_of_a_hostile_bundle_is_linked_and_what_is_text_or_a_picture_is_shown(
    browser: Browser, bundle: tuple[Path, Manifest]
) -> None:
    target, manifest = bundle
    browser.open(target / "index.html")
    links = browser.run("return [...document.querySelectorAll('tbody a')].map(one => one.href)")
    assert sorted(links) == sorted((target / file.path).as_uri() for file in manifest.files)
    shown = browser.run(
        "return [...document.querySelectorAll('section')].map(one => [one.querySelector('h2').textContent,"
        " one.querySelector('pre')?.textContent ?? null, one.querySelector('img')?.naturalWidth ?? null])"
    )
    texts = {name: text for name, text, _ in shown}
    for text in (one for one in PAYLOADS if one.isprintable()):
        name = f"{text}.md".replace("//", "/")
        assert texts[name] == text
    assert [width for name, _, width in shown if name == "shot.png"] == [320]
    everything = browser.run("return document.documentElement.textContent")
    assert [one for one in everything if one in ANSI + CONTROLS and one not in "\n\t" and not one.isprintable()] == []
    unseen = {"screenshot", "video", "other"}
    assert len(shown) == sum(file.kind not in unseen for file in manifest.files) + 1


def test_no_file_of_a_hostile_bundle_runs_or_fetches_anything_when_its_link_is_followed(
    browser: Browser, bundle: tuple[Path, Manifest]
) -> None:
    target, manifest = bundle
    for file in manifest.files:
        path = target / file.path
        browser.open(target / "index.html")
        browser.requests()
        browser.driver.get(path.as_uri())
        assert [one for one in browser.requests() if not one.startswith("file:")] == [], file.name
        assert browser.run("return window.hit") is None, file.name
        assert browser.run("return document.scripts.length") == 0, file.name
