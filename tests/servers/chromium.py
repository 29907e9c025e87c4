"""A real browser for tests: the distribution's Chromium, without a window."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def browser_program() -> str:
    """The browser; under root it is installed when it is missing."""
    found = _find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
        found = _find()
    if found is None:
        raise RuntimeError("these tests need a browser: install Chromium (Debian: apt-get install chromium)")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_program(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def _find() -> str | None:
    return next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
