"""What the page does in a real browser: nothing that an agent asks for, everything that a reader does."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_skilleval.reports.html import as_html, pages
from pytest_skilleval.results import Report

from .browser import AXE, Browser, chromium
from .made import made, trial, write_trial
from .payloads import ANSI, CONTROLS, PAYLOADS, poisoned_report, steps
from .test_html import rich

pytestmark = pytest.mark.browser

VISIBLE = "return [...document.querySelectorAll('.g')].filter(g => g.checkVisibility()).map(g => g.querySelector('.name').textContent.trim() + ' ' + g.dataset.c)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


def fill(report: Report, folder: Path, text: str) -> None:
    for line in report.trials:
        write_trial(folder, line.model_dump(), steps(text), diff=f"added {text}\n+{text}\n-{text}\n", stderr=text)


def hostile(folder: Path, texts: tuple[str, ...]) -> Path:
    report = poisoned_report(texts)
    for line, text in zip(report.trials[-len(texts) :], texts, strict=True):
        write_trial(folder, line.model_dump(), steps(text), diff=f"added {text}\n+{text}\n", stderr=text)
    path = folder / "report.html"
    path.write_text(as_html(report, folder, report, folder), encoding="utf-8")
    return path


@pytest.fixture
def page(tmp_path: Path) -> Path:
    report = rich()
    fill(report, tmp_path, "a transcript's text")
    (tmp_path / "report.html").write_text(as_html(report, tmp_path, report, tmp_path), encoding="utf-8")
    return tmp_path / "report.html"


def stir(browser: Browser) -> None:
    """Do to the page what would set off a payload: open everything, point at everything, focus everything."""
    browser.run(
        """
        for (const one of document.querySelectorAll('details')) one.open = true;
        for (const one of document.querySelectorAll('*'))
          for (const name of ['mouseover', 'mouseenter', 'focus', 'load', 'error', 'click'])
            if (!(name === 'click' && one.closest('button, a, summary'))) one.dispatchEvent(new Event(name));
        """
    )


def test_no_payload_runs_nothing_is_fetched_and_the_console_stays_silent(browser: Browser, tmp_path: Path) -> None:
    texts = (*PAYLOADS, ANSI, CONTROLS)
    counts = []
    for name, corpus in (("hostile", texts), ("tame", tuple(f"text {number}" for number in range(len(texts))))):
        path = hostile(tmp_path / name, corpus)
        browser.open(path)
        stir(browser)
        assert browser.requests() == [path.as_uri()]
        assert browser.console() == []
        assert browser.run("return window.hit") is None
        assert browser.run("return location.href") == path.as_uri()
        counts.append(browser.run("return document.getElementsByTagName('*').length"))
    assert counts[0] == counts[1]
    assert counts[0] > 1000


def test_a_page_beside_a_large_report_is_as_safe(browser: Browser, tmp_path: Path) -> None:
    cases = [f"case-{number}" for number in range(400)]
    line = trial(PAYLOADS[0], "none", 1)
    report = made(cases, {"none": ["passed"] * 3 + ["error"]}, trials=[line])
    write_trial(tmp_path, line, steps(PAYLOADS[0]), diff="added x\n" + PAYLOADS[1], stderr=PAYLOADS[2])
    for name, text in (*pages(report, tmp_path), ("report.html", as_html(report, tmp_path))):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    browser.open(tmp_path / "report.html")
    browser.run("document.querySelectorAll('.g')[400].open = true")
    target = browser.run("return document.querySelectorAll('.g')[400].querySelector('.links a').href")
    browser.requests()
    browser.driver.get(target)
    stir(browser)
    assert browser.requests() == [target.partition("#")[0]]
    assert browser.console() == []
    assert browser.run("return window.hit") is None
    assert (
        browser.run("return document.activeElement.parentElement.open && document.activeElement.tagName") == "SUMMARY"
    )


def test_a_word_in_the_filter_leaves_the_groups_that_hold_it(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.run(VISIBLE) == ["greet none", "greet self-load", "wave none", "wave self-load"]
    browser.keys("/")
    assert browser.run("return document.activeElement.id") == "q"
    browser.keys("wave 429")
    browser.wait("return document.getElementById('shown').textContent === '1 of 4 groups'")
    assert browser.run(VISIBLE) == ["wave self-load"]
    browser.keys("zzz")
    browser.wait("return document.getElementById('nothing').checkVisibility()")
    browser.keys("\ue00c")
    browser.wait("return document.getElementById('shown').textContent === '4 groups'")
    assert browser.run("return document.getElementById('q').value") == ""


def test_chips_filter_by_outcome_condition_and_verdict(browser: Browser, page: Path) -> None:
    browser.open(page)

    def press(value: str) -> list[str]:
        browser.run(f"document.querySelector('.chip[data-v={value}]').click()")
        found: list[str] = browser.run(VISIBLE)
        return found

    assert press("error") == ["greet self-load", "wave self-load"]
    assert press("failed") == ["greet none", "greet self-load", "wave none", "wave self-load"]
    assert press("none") == ["greet none", "wave none"]
    assert press("moved") == ["greet none"]
    shown = "return [...document.querySelectorAll('.g')[0].querySelectorAll('.t')].map(t => t.hidden)"
    assert browser.run(shown) == [False, False, True]
    browser.run("document.getElementById('none').click()")
    assert len(browser.run(VISIBLE)) == 4
    assert browser.run(shown) == [False, False, False]


def test_the_keyboard_alone_reaches_and_opens_a_trial(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("document.querySelector('.g > summary').focus()")
    browser.keys("\ue015")
    assert browser.run("return document.activeElement === document.querySelectorAll('.g')[1].firstElementChild")
    browser.keys("\ue007", "\ue015", "\ue007")
    assert browser.run(
        "return document.querySelectorAll('.g')[1].open && document.querySelectorAll('.g')[1].querySelector('.t').open"
    )
    browser.keys("\ue013")
    assert browser.run("return document.activeElement === document.querySelectorAll('.g')[1].firstElementChild")
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_cell_of_the_map_leads_to_its_trials(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.run("document.querySelectorAll('.heat td a')[3].click()")
    browser.wait("return document.querySelectorAll('.g')[3].open")
    assert browser.run("return document.activeElement === document.querySelectorAll('.g')[3].firstElementChild")


def test_a_trial_stands_beside_the_baselines_on_a_wide_screen_and_above_it_on_a_phone(
    browser: Browser, page: Path
) -> None:
    places = "return [...document.querySelectorAll('.pair')[0].children].map(s => [Math.round(s.getBoundingClientRect().left), Math.round(s.getBoundingClientRect().top)])"
    for width, beside in ((1280, True), (390, False)):
        browser.open(page, width=width)
        browser.run("document.querySelector('.g').open = true; document.querySelector('.g .t').open = true")
        ours, theirs = browser.run(places)
        assert (ours[1] == theirs[1]) is beside
        assert (ours[0] < theirs[0]) is beside


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_page_never_scrolls_sideways(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.open(hostile(tmp_path / "run", ("x" * 400, "long words " * 60, "漢字" * 100)), width=width)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    stir(browser)
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_the_theme_follows_the_system_and_the_button(browser: Browser, page: Path) -> None:
    light_of = "const c = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number); return c[0] + c[1] + c[2] > 380"
    browser.open(page, scheme="dark")
    assert not browser.run(light_of)
    browser.run("document.getElementById('theme').click()")
    assert browser.run(light_of)
    browser.open(page, scheme="light")
    assert browser.run(light_of)


def test_paper_shows_the_verdict_and_no_controls(browser: Browser, page: Path) -> None:
    browser.open(page, media="print", scheme="dark")
    shown = "return ['#verdict', '#conditions', '.heat', '.side', '#bar', '#theme'].map(s => document.querySelector(s).checkVisibility())"
    assert browser.run(shown) == [True, True, True, False, False, False]
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    pdf = base64.b64decode(browser.cdp("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF")


def test_without_scripts_everything_can_still_be_read(browser: Browser, page: Path) -> None:
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        browser.driver.find_element("css selector", ".g > summary").click()
        browser.driver.find_element("css selector", ".g .t > summary").click()
        text = browser.driver.find_element("css selector", ".g .t").text
        assert "a transcript's text" in text
        assert not browser.driver.find_element("id", "bar").is_displayed()
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.skipif(not AXE.exists(), reason=f"no {AXE} (npm install --prefix .cache/browser axe-core)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_no_serious_barrier(browser: Browser, page: Path, scheme: str, width: int) -> None:
    browser.open(page, scheme=scheme, width=width)
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true;")
    browser.run(AXE.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations))"
    )
    serious = [
        (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
