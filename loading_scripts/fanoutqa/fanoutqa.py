"""FanOutQA as a Hugging Face dataset. The card, README.md, describes the data and its oddities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qabench.data.rows import Json
from qabench.loading_scripts import LEADERBOARD
from qabench.loading_scripts.builder import BenchmarkBuilder
from qabench.loading_scripts.fanoutqa.leaderboard import read_results
from qabench.loading_scripts.fanoutqa.parse import read_rows


class FanOutQA(BenchmarkBuilder):
    """Builds FanOutQA's configs.

    The split of the configs dev, dev_nov23 and sample is validation. The split of test, test_nov23
    and leaderboard is test. ``answer`` and ``decomposition`` are JSON text for
    ``qabench.data.answers.loads``. Test questions have neither.
    """

    BENCHMARK = "fanoutqa"
    DESCRIPTION = (
        "Questions that need facts from several Wikipedia pages, with the pages and, for the development questions, "
        "the answers and the human decomposition into sub-questions."
    )
    HOMEPAGE = "https://fanoutqa.com"
    LICENSE = "cc-by-sa-4.0"

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        if self.config.name == LEADERBOARD:
            return read_results(path)
        return read_rows(path, self.config.name)
