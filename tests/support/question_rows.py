"""The rows of FanOutQA's questions."""

from collections.abc import Mapping
from typing import Any

from qabench.benchmarks.fanoutqa import BENCHMARK


def question_rows(config: str) -> list[Mapping[str, Any]]:
    return [question.row for question in BENCHMARK.load(config).rows]
