"""Random inputs through qabench and through the packages that it must equal, to the last bit."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from fault_harness import Campaign
from fuzz import BYTES

from qabench.answers import equal
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.retrieval import BM25Index
from qabench.text import Normalizer
from qabench.text.repaired import repair
from qabench.text.rouge import ROUGE_TYPES, rouge

WORDS = ["the", "cats", "running", "flies", "1,234", "12,34.5", "caresses", "é", "İ", "ﬁ", "don't", "U.S.", "a_b", "½"]
WORDS += [
    "sÃ©e",
    "â€œx",
    "&amp;",
    "&lt;b",
    "<b>",
    "Ã",
    "\x85",
    "\u2028",
    "naïve",
    "東京",
    "🦜",
    "…",
    "–",
    "x\ufeff",
    "²",
]


def text_of(chance: random.Random, longest: int = 12) -> str:
    parts = []
    for _ in range(chance.randrange(longest)):
        if chance.random() < 0.8:
            parts.append(chance.choice(WORDS))
        elif chance.random() < 0.5:
            parts.append(chance.choice(BYTES)[:20].decode("utf-8", "replace"))
        else:
            parts.append(chr(chance.choice((chance.randrange(32, 0x250), chance.randrange(0xD7FF)))))
    return chance.choice((" ", "", "\n", " ")).join(parts)


def same_bm25(chance: random.Random, folder: Path) -> str:
    import rank_bm25

    method, oracle = chance.choice(
        [("okapi", rank_bm25.BM25Okapi), ("bm25+", rank_bm25.BM25Plus), ("bm25l", rank_bm25.BM25L)]
    )
    parameters = {"k1": chance.uniform(0.1, 3), "b": chance.random()} if chance.random() < 0.7 else {}
    vocabulary = [f"w{i}" for i in range(chance.choice((2, 10, 200)))]
    documents = [
        " ".join(chance.choices(vocabulary, k=chance.randrange(1, 30))) for _ in range(chance.choice((1, 2, 7, 60)))
    ]
    theirs = oracle([text.split() for text in documents], **parameters)
    ours = BM25Index(documents, method, tokenizer=str.split, **parameters)
    for _ in range(5):
        query = " ".join(chance.choices([*vocabulary, "unknown"], k=chance.randrange(0, 8)))
        scores = np.asarray(theirs.get_scores(query.split()), dtype=float)
        if ours.scores(query).tolist() != scores.tolist():
            raise AssertionError(f"{method} {parameters}: other scores")
        order = np.lexsort((np.arange(len(scores)), -scores))[:7]
        if ours.search(query, 7).positions != order.tolist():
            raise AssertionError(f"{method} {parameters}: another ranking")
    return "5 queries with equal scores"


def same_rouge(chance: random.Random, folder: Path) -> str:
    reference, prediction = text_of(chance, 30), text_of(chance, 30)
    theirs = rouge_scorer().score(reference, prediction)
    backends = ["rouge_score"] + ["rouge_score_rs"] * bool(find_spec("rouge_score_rs"))
    for backend in backends:
        ours = rouge([reference], [prediction], backend).per_question[0]
        for kind in ROUGE_TYPES:
            expected = theirs[kind]
            if tuple(vars_of(ours[kind])) != (expected.precision, expected.recall, expected.fmeasure):
                raise AssertionError(f"{backend} {kind}: {reference!r} {prediction!r}")
    return "equal"


def vars_of(found: Any) -> Sequence[float]:
    return found.precision, found.recall, found.fscore


@functools.cache
def rouge_scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(ROUGE_TYPES, use_stemmer=True)


def same_ftfy(chance: random.Random, folder: Path) -> str:
    import ftfy

    text = text_of(chance, 40)
    if repair(text) != ftfy.fix_text(text):
        raise AssertionError(f"{text!r}")
    return "equal"


class Halved:
    """A lemmatizer for both: words lose their last third, so that different words become equal."""

    name = key = "halved"
    WORD = re.compile(r"\w+|[^\w\s]")

    def __call__(self, texts: Sequence[str]) -> list[str]:
        return [" ".join(token.lemma_ for token in self.tokens(text)) for text in texts]

    def tokens(self, text: str) -> list[Any]:
        return [
            SimpleNamespace(lemma_=word[: max(1, len(word) * 2 // 3)], is_stop=False)
            for word in self.WORD.findall(text)
        ]


def answer_of(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(9)
    if kind < 4 or depth > 2:
        return text_of(chance, 4) or "x"
    if kind == 4:
        return chance.choice((0, 7, -3, 1234, 1_000_000, 10**20))
    if kind == 5:
        return chance.choice((0.5, 1234.0, -2.25, 1e16, 3.0))
    if kind == 6:
        return chance.choice((True, False))
    if kind == 7:
        return [answer_of(chance, depth + 1) for _ in range(chance.randint(1, 3))]
    return {text_of(chance, 3) or "k": answer_of(chance, depth + 1) for _ in range(chance.randint(1, 3))}


def same_accuracy(chance: random.Random, folder: Path) -> str:
    """Our accuracy and the official ``answer_in_text``."""
    package = official_package()
    lemmatizer = Halved()
    package.norm.nlp.pipe = lemmatizer.tokens
    reference = answer_of(chance)
    prediction = text_of(chance, 20) + str(reference) * (chance.random() < 0.3)
    theirs = package.eval.string.answer_in_text(reference, prediction)
    ours = accuracy([reference], [prediction], Normalizer(lemmatizer).batch).per_question[0]
    if (ours.loose, bool(ours.strict)) != (theirs.score, theirs.found) or not equal(list(ours.missing), theirs.missing):
        raise AssertionError(f"{reference!r} in {prediction!r}: {ours} {theirs}")
    return "found" if theirs.found else "partly found" if theirs.score else "not found"


def official_package() -> Any:
    from official import _official

    return _official()


def needs(module: str) -> Any:
    return lambda: None if find_spec(module) else f"needs {module}: install the extra parity"


CAMPAIGNS = [
    Campaign(
        "same-bm25", "random corpora, parameters and queries", "rank_bm25's scores", same_bm25, 100, needs("rank_bm25")
    ),
    Campaign("same-rouge", "random texts", "rouge_score's values", same_rouge, 300),
    Campaign("same-ftfy", "random damaged texts", "ftfy's text", same_ftfy, 500),
    Campaign("same-accuracy", "random answers", "the official scorer's result", same_accuracy, 300, needs("fanoutqa")),
]
