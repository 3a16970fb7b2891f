"""A headless Chromium that notes every request and every line of its console."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parents[2] / ".cache/browser/node_modules/axe-core/axe.min.js"
"""Where `npm install --prefix .cache/browser axe-core` puts it."""


class Browser:
    """One window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(
        self,
        page: Path,
        *,
        width: int = 1280,
        height: int = 900,
        scheme: str = "light",
        media: str = "",
        anchor: str = "",
    ) -> None:
        """Open a page in a window of this size."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.cdp(
            "Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        self.requests()
        self.console()
        self.driver.get(page.resolve().as_uri() + anchor)

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a function's body; returns what it returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str) -> None:
        """Wait until a script returns something true, 10 s at most."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, 10, 0.02).until(lambda driver: driver.execute_script(script))

    def keys(self, *keys: str) -> None:
        """Type keys where the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the last call, without data: addresses."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [message["params"] for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent if not one["request"]["url"].startswith("data:")]

    def console(self) -> list[str]:
        """Return the console's lines since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextmanager
def chromium(temp: Path) -> Iterator[Browser]:
    """Start a browser whose files all lie in one folder; skips where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (the browser group)")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver_binary = shutil.which("chromedriver")
    if binary is None or driver_binary is None:
        pytest.skip("no chromium with its chromedriver on PATH (Debian: chromium and chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={temp}/profile",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver_binary, env={**os.environ, "TMPDIR": str(temp)})
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
