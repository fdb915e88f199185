"""``compute`` of evaluate's framework: a metric of qabench and a minimal one, both without any
scoring.

What is measured is the way of predictions and references through ``evaluate``: checks, encoding,
Arrow files, decoding.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import datasets
import evaluate
from cases import Case

from qabench.adapters.metric import MetricModule, decoded

SIZES = (1_000, 10_000, 100_000)


class Minimal(evaluate.Metric):
    """Counts equal strings."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        features = datasets.Features({"predictions": text, "references": text})
        return evaluate.MetricInfo(description="", citation="", features=features)

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, Any]:
        return {"equal": sum(map(str.__eq__, predictions, references))}


class Ours(MetricModule, evaluate.Metric):
    """The same, with the encoding of qabench's metrics."""

    BENCHMARK = "fanoutqa"
    DESCRIPTION = INPUTS = ""
    URLS = ()

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, Any]:
        return {"equal": sum(map(str.__eq__, *decoded(predictions, references)))}


def cases(size: int | None) -> Iterator[Case]:
    predictions = [
        f"Lima, the capital of Peru, has {number:,} inhabitants." for number in range(size or 0)
    ]
    references = [text if number % 3 else "Peru" for number, text in enumerate(predictions)]
    with tempfile.TemporaryDirectory() as folder:
        stock, ours = Minimal(cache_dir=f"{folder}/stock"), Ours(cache_dir=f"{folder}/ours")
        yield Case(
            "rows of strings",
            lambda: ours.compute(predictions=predictions, references=references),
            {
                "a minimal metric of evaluate": lambda: stock.compute(
                    predictions=predictions, references=references
                )
            },
        )
