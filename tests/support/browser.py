"""A headless Chromium for tests of pages, which also fail on errors that users do not see.

with chromium() as browser, watched_page(browser, color_scheme="dark") as page:
    page.goto(path.as_uri())
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that can reach only this machine. Skips the test without Chromium or playwright.

    Playwright runs an event loop in this thread while the browser is open: use it for one module at
    most.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"needs a browser: none of {', '.join(PROGRAMS)} is on the PATH")
    with (
        tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as home,
        sync_api.sync_playwright() as playwright,
    ):
        environment = os.environ | {"HOME": home}
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, env=environment)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(browser: Browser, **options: Any) -> Iterator[Page]:
    """A new page with an empty profile.

    At the end, unless the test has already failed, it fails on console errors, exceptions in
    scripts and requests to other machines.

    Args:
        browser: of ``chromium``.
        **options: of ``Browser.new_context``, such as ``color_scheme="dark"`` or ``viewport``.
    """
    with browser.new_context(**options) as context:
        page = context.new_page()
        wrong: list[str] = []
        page.on("console", lambda said: wrong.append(f"console: {said.text}") if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(f"exception: {error}"))
        context.on("request", lambda request: wrong.append(f"request: {request.url}") if _leaves(request.url) else None)
        yield page
        assert not wrong, "\n".join(wrong)


def _leaves(url: str) -> bool:
    return urlsplit(url).hostname not in (None, *LOOPBACK)
