"""Size of report.html for 10,000 trials, time to render it, and time that a headless Chromium takes to open it.

    python benchmarks/report.py

Two shapes: 500 cases, 4 conditions, 5 trials each; and the widest, 2,500 cases with one trial for each condition.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pytest_skilleval.reports.html import as_html, pages
from tests.reports.browser import chromium
from tests.reports.made import made, write_trial

CONDITIONS = ("none", "self-load", "preloaded", "stale")
TALK = [
    {"type": "prompt", "text": "Do what the task says. " * 20},
    {"type": "tool", "name": "sh", "command": "ls -la", "output": "a line of output\n" * 40, "status": "ok"},
    {"type": "answer", "text": "Done."},
]


def measure(folder: Path, cases: int, outcomes: list[str]) -> None:
    report = made([f"case-with-a-name-{number:04d}" for number in range(cases)], dict.fromkeys(CONDITIONS, outcomes))
    for line in report.trials:
        write_trial(folder, line.model_dump(), TALK, diff="added out.txt\n+hello\n" * 10)
    started = time.perf_counter()
    (folder / "report.html").write_text(as_html(report, folder), encoding="utf-8")
    main_s, started, beside = time.perf_counter() - started, time.perf_counter(), 0
    for name, text in pages(report, folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        beside += 1
    pages_s = time.perf_counter() - started
    size = (folder / "report.html").stat().st_size
    shape = f"{cases} cases x 4 x {len(outcomes)} = {len(report.trials)} trials"
    print(f"{shape}: {size / 1e6:.1f} MB in {main_s:.1f} s, {beside} pages in {pages_s:.1f} s")
    with chromium(folder / "chromium") as browser:
        browser.cdp("Performance.enable", timeDomain="threadTicks")
        for _ in range(3):
            started = time.perf_counter()
            browser.open(folder / "report.html")
            wall = time.perf_counter() - started
            metrics = {one["name"]: one["value"] for one in browser.cdp("Performance.getMetrics")["metrics"]}
            print(f"  opened in {wall:.2f} s; the page's main thread has used {metrics['TaskDuration']:.2f} s of CPU")


def main() -> None:
    with tempfile.TemporaryDirectory() as temp:
        for number, (cases, outcomes) in enumerate(
            ((500, ["passed", "failed", "error", "passed", "missing"]), (2500, ["passed"]))
        ):
            folder = Path(temp) / str(number)
            folder.mkdir()
            measure(folder, cases, outcomes)


if __name__ == "__main__":
    main()
