"""How long a report of 30 full runs takes to open: FanOutQA's dev questions in headless Chromium.

Needs the extra ``report``, playwright, Chromium and FanOutQA's data. CPU time is that of the page's main thread.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from browser import chromium
from cases import Case, Measured
from report_runs import many_systems

from qabench.report import build_report

RUNS = 30
TIMES = """() => ({
    questions: performance.getEntriesByName('qabench-list')[0].startTime,
    complete: performance.getEntriesByName('qabench-ready')[0].startTime,
})"""
NAMES = {
    "questions": "until the scores and the first questions",
    "complete": "until all charts",
    "TaskDuration": "CPU time",
}


def cases(size: int | None = None) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = build_report(many_systems(RUNS, "dev"), Path(folder))
        for name, title in NAMES.items():
            yield Case(f"a report of {RUNS} runs, {title}", functools.partial(opened, browser, page, name))


def opened(browser: Any, file: Path, name: str) -> Measured:
    """One time of one opening."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(file.as_uri(), wait_until="commit")
        page.locator("html.ready").wait_for(state="attached")
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        times = page.evaluate(TIMES)
    return Measured(metrics[name] if name in metrics else times[name] / 1000)
