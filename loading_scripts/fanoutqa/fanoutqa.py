"""FanOutQA as a Hugging Face dataset.

See the card, README.md, for the data and its oddities.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from qabench.data.rows import Json
from qabench.loading_scripts import LEADERBOARD
from qabench.loading_scripts.builder import BenchmarkBuilder
from qabench.loading_scripts.fanoutqa.leaderboard import MEASURES, ROUGES, read_results
from qabench.loading_scripts.fanoutqa.parse import read_rows

PAGE = {
    "pageid": datasets.Value("int64"),
    "revid": datasets.Value("int64"),
    "title": datasets.Value("string"),
    "url": datasets.Value("string"),
}
STRING, NUMBER = datasets.Value("string"), datasets.Value("float64")
RESULT = {
    "system": STRING,
    "setting": STRING,
    "acc": {"loose": NUMBER, "strict": NUMBER},
    "rouge": {kind: dict.fromkeys(MEASURES, NUMBER) for kind in ROUGES},
    "bleurt": NUMBER,
    "gpt": NUMBER,
    "authors": STRING,
    "url": STRING,
    "citation": STRING,
    "type": STRING,
    "context": datasets.Value("int64"),
    "is_trained_for_function_calling": datasets.Value("bool"),
    "details": STRING,
    "file": STRING,
    "judge": STRING,
    "judge_source": STRING,
}


class FanOutQA(BenchmarkBuilder):
    """Configs dev, dev_nov23 and sample (split validation), test and test_nov23 (split test), leaderboard (split test).

    ``answer`` and ``decomposition`` are JSON text for ``qabench.answers.loads``. Test questions
    have neither.
    """

    BENCHMARK = "fanoutqa"
    DESCRIPTION = (
        "Questions that need facts from several Wikipedia pages, with the pages and, for the development questions, "
        "the answers and the human decomposition into sub-questions."
    )
    HOMEPAGE = "https://fanoutqa.com"
    LICENSE = "cc-by-sa-4.0"

    def _columns(self) -> dict[str, Any]:
        if self.config.name == LEADERBOARD:
            return RESULT
        features: dict[str, Any] = {
            "id": datasets.Value("string"),
            "question": datasets.Value("string"),
        }
        if not self.config.name.startswith("test"):
            features |= {
                "answer": datasets.Value("string"),
                "decomposition": datasets.Value("string"),
            }
        lists = {
            "necessary_evidence": datasets.List(PAGE),
            "categories": datasets.List(datasets.Value("string")),
        }
        return features | lists

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        return (
            read_results(path)
            if self.config.name == LEADERBOARD
            else read_rows(path, self.config.name)
        )
