"""Compares FanOutQA's accuracy on the dev questions with lemmatizers that need no model and with a
spaCy pipeline.

Needs nltk, the extra ``spacy`` and a model, and ``QABENCH_MIRROR``.

The numbers in the docstring of ``qabench.text.lemmatizers.SimplemmaLemmatizer`` come from here.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import answer_styles
from nltk.stem.porter import PorterStemmer
from nltk.stem.snowball import SnowballStemmer

from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.benchmarks.fanoutqa.normalizer import Normalizer
from qabench.io.tables import Table
from qabench.text.lemmatizers import SimplemmaLemmatizer, SpacyLemmatizer

STYLES = (answer_styles.prose, answer_styles.inflected, answer_styles.numbers)


class ByWord:
    """A lemmatizer based on a function of one word."""

    official = False

    def __init__(self, name: str, function: Callable[[str], str]) -> None:
        self.name = self.key = name
        self.function = functools.cache(function)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        return [
            " ".join(map(self.function, SimplemmaLemmatizer.TOKEN.findall(text))) for text in texts
        ]


def table(_largest: int, _rounds: int) -> Table:
    path = (
        Path(os.environ["QABENCH_MIRROR"])
        / "zhudotexe/fanoutqa/fanoutqa/data/fanout-final-dev.json"
    )
    dev = json.loads(path.read_text(encoding="utf-8"))
    references = [question["answer"] for question in dev]
    pipeline = Normalizer(SpacyLemmatizer(os.environ.get("QABENCH_SPACY_MODEL", "en_core_web_sm")))
    candidates = [
        SimplemmaLemmatizer(),
        ByWord("none", lambda word: word),
        ByWord("porter", PorterStemmer().stem),
        ByWord("snowball", SnowballStemmer("english").stem),
    ]
    rows = []
    for style in STYLES:
        texts = answer_styles.answers(dev, style)
        base = accuracy(references, texts, pipeline.batch)
        for candidate in candidates:
            score = accuracy(references, texts, Normalizer(candidate).batch)
            pairs = list(zip(score, base, strict=True))
            moved = sum(abs(a.loose - b.loose) for a, b in pairs) / len(pairs)
            flipped = sum(a.strict != b.strict for a, b in pairs)
            change = 100 * sum(a.loose - b.loose for a, b in pairs) / len(pairs)
            rows.append(
                [
                    f"{style.__name__}, {candidate.name}",
                    f"{change:+.2f}",
                    f"{100 * moved:.2f}",
                    flipped,
                ]
            )
    columns = [
        "style of answers, lemmatizer",
        "change of the mean",
        "mean change by item",
        "strict verdicts changed",
    ]
    return Table(f"Loose accuracy in points, relative to {pipeline.lemmatizer.name}", columns, rows)
