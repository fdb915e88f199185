"""FanOutQA accuracy and ROUGE of three real runs of 310 questions: the official package and
qabench.

The answers come from real models on the leaderboard, and the references from dev. They belong to
different questions, which affects the scores but not the work. Needs ``QABENCH_MIRROR``, a spaCy
model (``en_core_web_sm`` or ``QABENCH_SPACY_MODEL``) and the extras ``parity`` and ``fast``.
Imports and loading the spaCy model are not timed.
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cases import Case, Measured, timed

from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.benchmarks.fanoutqa.normalizer import NormalizedTextCache, Normalizer
from qabench.evaluation.score_spec import mean_in_order
from qabench.io.workers import most_workers
from qabench.text.lemmatizers import SpacyLemmatizer
from qabench.text.rouge import COLUMNS, backend, by_type, rouge

MODEL = os.environ.get("QABENCH_SPACY_MODEL", "en_core_web_sm")
RUNS = (
    "closedbook-generations/results-closedbook-gpt-4o.jsonl",
    "openbook-generations/results-openbook-claude-3.jsonl",
    "evidenceprovided-generations/results-wiki-provided-gpt-4o.jsonl",
)
OFFICIAL = "fanoutqa"


def cases(size: int | None = None) -> Iterator[Case]:
    import official  # of tests/support

    questions, runs = dev_and_runs()
    references = [question["answer"] for question in questions]
    answers = [
        [{"id": q["id"], "answer": a} for q, a in zip(questions, run, strict=True)] for run in runs
    ]

    @functools.cache
    def official_accuracy() -> Measured:
        scorers = [official.scorer(MODEL, questions, run) for run in answers]
        return timed(lambda: [_plain(*scorer.score_accuracy()) for scorer in scorers])

    def official_rouge() -> Any:
        scorers = [official.scorer(MODEL, questions, run) for run in answers]
        return timed(lambda: [_rouge(scorer.score_rouge()[0]) for scorer in scorers])

    def score(lemmatizer: SpacyLemmatizer, path: Path) -> Any:
        # One normalizer per run, as in separate calls of the metric or of the command.
        scores = [
            accuracy(references, run, Normalizer(lemmatizer, NormalizedTextCache(path)).batch)
            for run in runs
        ]
        return [
            (
                mean_in_order([question.loose for question in each]),
                mean_in_order([question.strict for question in each]),
                [question.loose for question in each],
            )
            for each in scores
        ]

    def first_time(workers: int) -> Measured:
        lemmatizer = SpacyLemmatizer(MODEL, workers=workers)
        lemmatizer(["load"])
        with tempfile.TemporaryDirectory() as folder:
            return timed(lambda: score(lemmatizer, Path(folder) / "normalized.sqlite"))

    others: dict[str, Callable[[], Any]] = {OFFICIAL: official_accuracy}
    for workers in sorted({1, most_workers()}):
        name = f"accuracy of three runs, first time, {workers} process{'es' * (workers > 1)}"
        yield Case(name, functools.partial(first_time, workers), others, once=frozenset([OFFICIAL]))
    with tempfile.TemporaryDirectory() as folder:
        lemmatizer, path = SpacyLemmatizer(MODEL), Path(folder) / "normalized.sqlite"
        yield Case(
            "again, with cached strings",
            lambda: score(lemmatizer, path),
            others,
            once=frozenset([OFFICIAL]),
        )
    yield Case(
        f"ROUGE of three runs, {backend()}",
        lambda: [_means(rouge(references, run)) for run in runs],
        {OFFICIAL: official_rouge},
    )


def dev_and_runs() -> tuple[list[dict[str, Any]], list[list[str]]]:
    """The questions of dev, and the answers of each run."""
    root = Path(os.environ["QABENCH_MIRROR"]) / "zhudotexe/fanoutqa"
    questions = json.loads(
        (root / "fanoutqa/data/fanout-final-dev.json").read_text(encoding="utf-8")
    )
    texts = [(root / "leaderboard-submissions" / name).read_text(encoding="utf-8") for name in RUNS]
    return questions, [
        [json.loads(line)["answer"] for line in text.rstrip("\n").split("\n")][: len(questions)]
        for text in texts
    ]


def _plain(score: Any, raw: dict[str, float]) -> Any:
    return score.loose, score.strict, list(raw.values())


def _means(rows: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return by_type({column: mean_in_order([row[column] for row in rows]) for column in COLUMNS})


def _rouge(score: Any) -> dict[str, dict[str, float]]:
    return {kind: vars(getattr(score, kind)) for kind in ("rouge1", "rouge2", "rougeL")}
