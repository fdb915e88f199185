"""Screenshots of reports in every state: python tests/report/states.py FOLDER [--runs 1 3 9 30] [--config dev]

Needs the extra ``report``, playwright and Chromium, and for ``--config dev`` FanOutQA's data. Reports of 1, 3, 9 and 30
systems and one of all four benchmarks are built once, and shown at three widths in light and dark, and in print.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from browser import chromium, watched_page
from report_runs import everything, many_systems

from qabench.report import build_report

WIDTHS = {1280: 900, 1920: 1080, 390: 844}
RUNS = (1, 3, 9, 30)


def shoot(browser: Any, page_file: Path, name: str, folder: Path) -> None:
    """Screenshots per width and color scheme, of print, and of an open question."""
    for width, height in WIDTHS.items():
        for scheme in ("light", "dark"):
            with watched_page(browser, viewport={"width": width, "height": height}, color_scheme=scheme) as page:
                page.goto(page_file.as_uri())
                page.locator("html.ready").wait_for(state="attached")
                page.wait_for_timeout(300)
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
                if scheme == "light":
                    page.locator(".questions a").first.click()
                    page.locator("#question .record").first.wait_for()
                    page.screenshot(path=folder / f"{name}-{width}-question.png")
    with watched_page(browser, viewport={"width": 1280, "height": 900}) as page:
        page.goto(page_file.as_uri())
        page.locator("html.ready").wait_for(state="attached")
        page.pdf(
            path=folder / f"{name}-print.pdf",
            format="A4",
            margin=dict.fromkeys(("top", "bottom", "left", "right"), "12mm"),
        )


def main() -> None:
    """Builds the reports and takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, nargs="*", default=RUNS)
    parser.add_argument("--config", default="sample")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    systems = many_systems(max(given.runs, default=0), given.config)
    reports = {f"runs{n}": systems[:n] for n in given.runs} | {"all": everything()}
    with chromium() as browser:
        for name, runs in reports.items():
            shoot(browser, build_report(runs, given.folder / name), name, given.folder)


if __name__ == "__main__":
    main()
