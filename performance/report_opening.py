"""How long a report of many full runs takes to open: FanOutQA's dev questions, 30 systems, in headless Chromium.

Needs the extra ``report``, playwright, Chromium and FanOutQA's data. "questions" is the time from navigation until the
scores and the first questions are there, "complete" until every chart is. CPU time is that of the page's main thread:
on a machine with other work, it is the number to compare. Run:

    python performance/report_opening.py [--runs 30] [--config dev]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from browser import chromium
from report_runs import many_systems

from qabench.cli.output import print_table
from qabench.report import build_report
from qabench.tables import Table

TRIES = 5
TIMES = """() => ({
    questions: performance.getEntriesByName('qabench-list')[0].startTime,
    complete: performance.getEntriesByName('qabench-ready')[0].startTime,
})"""


def main() -> None:
    """Builds the report, opens it, and prints the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--config", default="dev")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = build_report(many_systems(given.runs, given.config), Path(folder))
        times = [opened(browser, page) for _ in range(TRIES)]
        megabytes = page.stat().st_size / 1e6
    rows = [
        [name, *(f"{pick(time[name] for time in times):.0f}" for pick in (min, statistics.median, max))]
        for name in times[0]
    ]
    title = f"Opening a report of {given.runs} runs on {given.config} ({megabytes:.1f} MB), milliseconds"
    print_table(Table(title, ["until", "best", "median", "worst"], rows))


def opened(browser: Any, file: Path) -> dict[str, float]:
    """The times of one opening, in milliseconds."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(file.as_uri(), wait_until="commit")
        page.locator("html.ready").wait_for(state="attached")
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        names = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
        return page.evaluate(TIMES) | {f"CPU: {name.removesuffix('Duration')}": 1000 * metrics[name] for name in names}


if __name__ == "__main__":
    main()
