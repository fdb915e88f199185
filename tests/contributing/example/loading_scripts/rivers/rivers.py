"""Rivers as a Hugging Face dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets

from qabench.loading_scripts.builder import BenchmarkBuilder
from qabench.loading_scripts.rivers.parse import FIELDS, read_rows


class Rivers(BenchmarkBuilder):
    """Config sample, split test."""

    BENCHMARK = "rivers"
    DESCRIPTION = "Which river flows through a city?"
    LICENSE = "mit"

    def _columns(self) -> dict[str, Any]:
        return {field: datasets.Value("string") for field in FIELDS}

    def _rows(self, path: Path, split: str) -> Iterator[dict[str, Any]]:
        return read_rows(path)
