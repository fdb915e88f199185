"""Rivers as a Hugging Face dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from qabench.loading_scripts import citation
from qabench.loading_scripts.builder import BenchmarkBuilder, configs_of
from qabench.loading_scripts.rivers.parse import FIELDS, read_rows


class Rivers(BenchmarkBuilder):
    """Config sample, split test."""

    BENCHMARK = "rivers"
    BUILDER_CONFIGS = configs_of(BENCHMARK)
    DEFAULT_CONFIG_NAME = "sample"

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Which river flows through a city?",
            features=datasets.Features({field: datasets.Value("string") for field in FIELDS}),
            license="mit",
            citation=citation(self.BENCHMARK),
        )

    def _rows(self, path: Path, split: str) -> Iterator[dict[str, Any]]:
        return read_rows(path)
