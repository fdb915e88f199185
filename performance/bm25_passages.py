"""Seeded passages and queries for bm25.py.

They are ExpertQA's sentences and questions, or words of a Zipf distribution.

"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

EXPERTQA = ("rand_test.jsonl", "rand_val.jsonl")
LEAST_VOCABULARY = 200_000
WORDS_PER_STEP = 1 << 20  # few enough that their numbers need little memory


def expertqa_sentences(root: Path) -> tuple[list[str], list[str]]:
    """Sentences of answers and evidence, and the questions."""
    passages: dict[str, None] = {}
    questions = []
    for name in EXPERTQA:
        with (root / "chaitanyamalaviya/ExpertQA/data/lfqa" / name).open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                questions.append(row["question"])
                for answer in row["answers"].values():
                    passages[answer["answer_string"]] = None
                    for claim in answer.get("claims") or ():
                        evidence = claim.get("evidence") or ()
                        passages |= dict.fromkeys(
                            [evidence] if isinstance(evidence, str) else evidence
                        )
    sentences = [
        part
        for text in passages
        for part in re.split(r"(?<=[.!?\n])\s+", text)
        if 30 < len(part) < 600
    ]
    return sentences, questions


def zipf_words(generator: np.random.Generator, count: int, vocabulary: int) -> Iterator[str]:
    """Words of two to ten letters, the n-th most frequent about n times rarer than the first."""
    shares = np.cumsum(1 / np.arange(1, vocabulary + 1))
    ranks = 1 + np.searchsorted(shares, generator.random(count) * shares[-1])
    letters = "etaoinshrdlcumwfgypbvk"
    spelled: dict[int, str] = {}
    for rank in map(int, np.unique(ranks)):
        number, word = rank * 2654435761 % 2**32 + rank, ""
        for _ in range(2 + rank % 9 if rank > 100 else 2 + rank % 3):
            word += letters[number % len(letters)]
            number //= len(letters)
        spelled[rank] = word + (str(rank) if rank > 100 else "")
    for start in range(0, count, WORDS_PER_STEP):
        for rank in ranks[start : start + WORDS_PER_STEP].tolist():
            yield spelled[rank]


def corpus(source: str, passages: int, queries: int) -> tuple[list[str], list[str]]:
    """Seeded passages of 300 to 850 characters, and queries."""
    if source == "expertqa":
        sentences, questions = expertqa_sentences(Path(os.environ["QABENCH_MIRROR"]))
        draw = random.Random(0)
        return [_joined(draw, sentences) for _ in range(passages)], draw.sample(
            questions, min(queries, len(questions))
        )
    generator = np.random.default_rng(0)
    sizes = (
        generator.integers(60, 140, passages).tolist(),
        generator.integers(6, 20, queries).tolist(),
    )
    # A vocabulary grows with its texts: without that, no word would be rare in 1,000,000 passages.
    vocabulary = max(LEAST_VOCABULARY, 2 * passages)
    drawn = zipf_words(generator, sum(map(sum, sizes)), vocabulary)
    texts, asked = ([" ".join(islice(drawn, size)) for size in part] for part in sizes)
    return texts, asked


def _joined(draw: random.Random, sentences: Sequence[str]) -> str:
    length = draw.randint(300, 850)
    parts: list[str] = []
    while sum(map(len, parts)) < length:
        parts.append(sentences[draw.randrange(len(sentences))])
    return " ".join(parts)[: length + 100]
