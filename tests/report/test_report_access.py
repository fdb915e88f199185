"""Accessibility of reports, checked with axe-core: contrast, names, keyboard access."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import chromium, watched_page
from report_runs import everything, many_systems

from qabench.report import build_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("jinja2", reason="needs the extra report")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
pytestmark = pytest.mark.xdist_group("report")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module", params=["all", "nine"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = everything() if request.param == "all" else many_systems(9)
    return build_report(runs, tmp_path_factory.mktemp("report"))


def violations(page: Page) -> list[str]:
    """Return the rules that the page breaks, each with the first elements."""
    options = {"rules": {"label-content-name-mismatch": {"enabled": True}}}  # not on by default
    rules = axe.Axe().run(page, options=options).response["violations"]
    return [f"{rule['id']}: {[node['target'] for node in rule['nodes'][:3]]}" for rule in rules]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, report: Path, scheme: str) -> None:
    with watched_page(browser, bypass_csp=True, color_scheme=scheme, reduced_motion="reduce") as page:
        page.goto(report.as_uri())
        page.locator("html.ready").wait_for(state="attached")
        page.wait_for_timeout(200)
        assert violations(page) == []
        page.locator(".questions a").first.click()
        page.locator("#question .record").first.wait_for()
        assert violations(page) == []


def test_every_control_is_reached_by_tab(browser: Browser, report: Path) -> None:
    with watched_page(browser) as page:
        page.goto(report.as_uri())
        page.locator("html.ready").wait_for(state="attached")
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.name || document.activeElement.className"))
        assert {"sort", "metric"} <= reached
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
