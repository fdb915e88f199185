"""Times FanOutQA accuracy and ROUGE on three real runs of 310 questions: official code and qabench, outputs compared.

    python performance/fanout_accuracy.py [--questions 310] [--repeat 3]

The answers are those of real models on the leaderboard, and the references are those of dev. They belong to different
questions, which affects the scores but not the work. Importing and loading the spaCy model are not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import official

from qabench.scoring.accuracy import AccuracyScore, accuracy
from qabench.scoring.rouge import RougeScore, rouge
from qabench.text import Normalizer
from qabench.text.cache import NormalizedTextCache
from qabench.text.spacy_lemmatizer import SpacyLemmatizer

MODEL = os.environ.get("QABENCH_SPACY_MODEL", "en_core_web_sm")
RUNS = (
    "closedbook-generations/results-closedbook-gpt-4o.jsonl",
    "openbook-generations/results-openbook-claude-3.jsonl",
    "evidenceprovided-generations/results-wiki-provided-gpt-4o.jsonl",
)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def median(function: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    runs = [timed(function) for _ in range(repeat)]
    return statistics.median(seconds for seconds, _ in runs), runs[-1][1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=310)
    parser.add_argument("--repeat", type=int, default=3, help="runs of our code; the official code runs once")
    options = parser.parse_args()
    root = Path(os.environ["QABENCH_MIRROR"]) / "zhudotexe/fanoutqa"
    dev = json.loads((root / "fanoutqa/data/fanout-final-dev.json").read_text(encoding="utf-8"))[: options.questions]
    references = [question["answer"] for question in dev]
    runs = []
    for name in RUNS:
        with (root / "leaderboard-submissions" / name).open(encoding="utf-8") as file:
            runs.append([json.loads(line)["answer"] for line in file][: len(dev)])

    scorers = [
        official.scorer(MODEL, dev, [{"id": q["id"], "answer": a} for q, a in zip(dev, run, strict=True)])
        for run in runs
    ]
    official_seconds, theirs = timed(lambda: [scorer.score_accuracy() for scorer in scorers])
    rouge_seconds, their_rouge = median(lambda: [scorer.score_rouge() for scorer in scorers], options.repeat)

    def ours(lemmatizer: SpacyLemmatizer, path: Path | None) -> list[AccuracyScore]:
        # One normalizer per run, as in separate calls of the metric or the command.
        results = []
        for run in runs:
            normalizer = Normalizer(lemmatizer, NormalizedTextCache(path) if path else None)
            results.append(accuracy(references, run, normalizer.batch))
        return results

    def fresh(workers: int) -> SpacyLemmatizer:
        lemmatizer = SpacyLemmatizer(MODEL, workers=workers)
        lemmatizer(["load"])
        return lemmatizer

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for workers in sorted({1, len(os.sched_getaffinity(0))}):
            colds = []
            for number in range(options.repeat):
                lemmatizer, path = fresh(workers), Path(folder) / f"{workers}-{number}.sqlite"
                seconds, cold = timed(lambda lemmatizer=lemmatizer, path=path: ours(lemmatizer, path))
                check(cold, theirs)
                colds.append(seconds)
            rows.append((f"accuracy, first time, {workers} processes", statistics.median(colds), official_seconds))
        warm_seconds, warm = median(lambda: ours(lemmatizer, path), options.repeat)
        check(warm, theirs)
        rows.append(("accuracy, again, from the cache", warm_seconds, official_seconds))
    for backend in ("rouge_score", "rouge_score_rs"):
        rouge(references, runs[0], backend)
        seconds, result = median(
            lambda backend=backend: [rouge(references, run, backend) for run in runs], options.repeat
        )
        check_rouge(result, their_rouge)
        rows.append((f"ROUGE, {backend}", seconds, rouge_seconds))
    print(f"3 runs of {len(dev)} questions; every question's scores equal to the official ones")
    print(f"{'':40}{'official s':>12}{'here s':>10}{'ratio':>9}")
    for name, seconds, base in rows:
        print(f"{name:40}{base:12.2f}{seconds:10.3f}{base / seconds:8.0f}x")


def check(ours: list[AccuracyScore], theirs: list[Any]) -> None:
    for our, (score, raw) in zip(ours, theirs, strict=True):
        if (our.loose, our.strict) != (score.loose, score.strict) or [q.loose for q in our.per_question] != list(
            raw.values()
        ):
            raise SystemExit("the accuracies differ")


def check_rouge(ours: list[RougeScore], theirs: list[Any]) -> None:
    for our, (score, _) in zip(ours, theirs, strict=True):
        if our.as_dict() != {kind: vars(getattr(score, kind)) for kind in our.mean}:
            raise SystemExit("the ROUGE scores differ")


if __name__ == "__main__":
    main()
