# SPDX-License-Identifier: LGPL-2.1-or-later
"""A page in a real browser: Chromium without a window, driven by its driver.

Invariant: nothing of what a page does reaches a network (the browser finds no
host but this one), and no browser outlives its test.
"""
import contextlib
import time

import pytest

from conftest import need

LIMIT_S = 120


def selenium():
    """The module, or the test is skipped."""
    need("chromium", "chromedriver")
    return pytest.importorskip("selenium.webdriver")


class Page:
    """What a test asks of a page."""

    def __init__(self, driver):
        self.driver = driver
        self.ready_ms = {}  # of each file, the soonest that it was ready

    def run(self, script, *arguments):
        """A function's body in the page."""
        return self.driver.execute_script(script, *arguments)

    def open(self, path):
        """Until it says that it is ready."""
        self.driver.get(f"file://{path}")
        self.until("return document.documentElement.dataset.ready == 'yes'")
        took = self.run("return performance.getEntriesByName('seep-ready')[0]"
                        ".startTime")
        self.ready_ms[path] = min(took, self.ready_ms.get(path, took))

    def until(self, script):
        """Wait for what becomes true."""
        end = time.monotonic() + LIMIT_S
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.02)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])"
                        ".textContent", selector)

    def texts(self, selector):
        return self.run("return Array.from(document.querySelectorAll("
                        "arguments[0]), (each) => each.textContent)", selector)

    def count(self, selector):
        return self.run("return document.querySelectorAll(arguments[0])"
                        ".length", selector)

    def click(self, selector):
        """As a user does: what cannot be seen cannot be clicked."""
        element = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def type(self, selector, words):
        element = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.clear()
        element.send_keys(words)

    def resize(self, width, height=1000):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1,
             "mobile": False})

    def complaints(self):
        """What the browser wrote to its console since."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextlib.contextmanager
def browser(width=1400):
    """A browser of its own."""
    webdriver = selenium()
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu",
                     "--disable-dev-shm-usage", "--disable-extensions",
                     "--host-resolver-rules=MAP * ~NOTFOUND",
                     "--no-first-run", "--force-prefers-reduced-motion",
                     f"--window-size={width},1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    from selenium.webdriver.chrome.service import Service
    driver = webdriver.Chrome(service=Service("chromedriver"), options=options)
    try:
        page = Page(driver)
        page.resize(width)
        yield page
    finally:
        driver.quit()
