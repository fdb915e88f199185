"""Take the pictures of the site: ``python docs/screenshots.py [FOLDER]``.

Needs the extra ``report``, playwright and Chromium. The report has the quickstart's three synthetic
systems, shown as a reader sees it. FOLDER is docs/images by default.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from browser import chromium, watched_page

import qabench
from qabench.loading_scripts import FOLDER
from qabench.report import build_report

IMAGES = Path(__file__).parent / "images"
SIZE = {"width": 1280, "height": 1180}
ANSWERS = FOLDER / "fanoutqa" / "sample" / "generations"


def report(folder: Path) -> Path:
    """Write the report on the answers of three systems to the sample's questions."""
    runs = []
    for path in sorted(ANSWERS.glob("*.jsonl")):
        runs.append(
            qabench.evaluate_predictions(
                "fanoutqa", "sample", path, scores=["acc"], lemmatizer="simplemma"
            )
        )
    return build_report(runs, folder)


def shoot(browser: Any, page_file: Path, images: Path) -> None:
    """Take a picture of the beginning of the report, and one of an open question."""
    with watched_page(browser, viewport=SIZE, color_scheme="light") as page:
        page.goto(page_file.as_uri())
        page.locator("html.ready").wait_for(state="attached")
        page.screenshot(path=images / "report.png")
        page.locator(".questions a").first.click()
        page.locator("#question .record").first.wait_for()
        page.screenshot(path=images / "report-question.png")


def main() -> None:
    """Write the pictures."""
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        shoot(browser, report(Path(folder)), images)


if __name__ == "__main__":
    main()
