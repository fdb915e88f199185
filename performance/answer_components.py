"""Times Answer Component MRR@10 and Recall@10 on the 191 questions: official code and qabench, outputs compared.

    python performance/answer_components.py [--repeat 7]

The rankings come from full-text search for keywords over chunks of about 500 tokens, as in the source's study. The
official code repairs both strings for each pair of context and passage, separately for each of the two scores.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import ftfy

from qabench.benchmarks.fastbook.study.methods import parse_method
from qabench.benchmarks.fastbook.study.study import load_study
from qabench.scoring.answer_components import AnswerComponentScores, answer_component_scores
from qabench.text.repaired import RepairedTexts

K = 10
Scores = tuple[list[float], list[float]]


def first_rank(contexts: list[str], passages: list[str]) -> int | None:
    for rank, passage in enumerate(passages, 1):
        for context in contexts:
            if ftfy.fix_text(context) in ftfy.fix_text(passage):
                return rank
    return None


def official_mrr(components: list[dict[str, Any]], passages: list[str]) -> float:
    largest = 0
    for component in components:
        rank = first_rank(component["context"], passages)
        if rank is None:
            return 0.0
        largest = max(largest, rank)
    return 1.0 / largest if largest else 0.0


def official_recall(components: list[dict[str, Any]], passages: list[str]) -> float:
    return sum(first_rank(component["context"], passages) is not None for component in components) / len(components)


def official(references: list[Any], rankings: list[list[str]]) -> Scores:
    pairs = list(zip(references, rankings, strict=True))
    return [official_mrr(*pair) for pair in pairs], [official_recall(*pair) for pair in pairs]


def ours(references: list[Any], rankings: list[list[str]], repaired: RepairedTexts) -> AnswerComponentScores:
    score = answer_component_scores(references, rankings, K, repaired=repaired)
    score.mrr(K), score.recall(K)
    return score


def copies(rankings: list[list[str]]) -> list[list[str]]:
    """Equal strings that are other objects, as if read from a file or an Arrow column."""
    return [[("." + text)[1:] for text in passages] for passages in rankings]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=7, help="rounds; each variant runs once per round")
    options = parser.parse_args()
    study = load_study()
    hits = parse_method("fts").rank(study.corpus, study.queries, K, {})
    rankings = [
        [study.corpus[row["chapter"]][position] for position in found.positions]
        for row, found in zip(study.questions, hits, strict=True)
    ]
    references = study.references
    memory = RepairedTexts()
    ours(references, rankings, memory)
    ftfy.fix_text("caf\u00c3\u00a9")  # loads what it needs, so that this is not timed
    ways: dict[str, Callable[[list[list[str]]], Any]] = {
        "official": lambda given: official(references, given),
        "cold: no string repaired before": lambda given: ours(references, given, RepairedTexts()),
        "warm: the second system over a corpus": lambda given: ours(references, given, memory),
        "warm, the same strings as new objects": lambda given: ours(references, given, memory),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.repeat):
        for name, way in ways.items():
            given = copies(rankings) if "new objects" in name else rankings
            start = time.perf_counter()
            result = way(given)
            seconds[name].append(time.perf_counter() - start)
            if name == "official":
                expected = result
            elif (result.mrr_per_question(K), result.recall_per_question(K)) != expected:
                raise SystemExit("the scores differ")
    print(f"{len(references)} questions, {sum(map(len, rankings))} passages; every MRR@{K} and Recall@{K} equal")
    base = statistics.median(seconds.pop("official"))
    print(f"{'':40}{'official s':>12}{'here s':>10}{'ratio':>9}")
    for name, values in seconds.items():
        here = statistics.median(values)
        print(f"{name:40}{base:12.3f}{here:10.4f}{base / here:8.0f}x")


if __name__ == "__main__":
    main()
