"""ROUGE-1, ROUGE-2 and ROUGE-L of answers against references, as FanOutQA reports them.

Source: Lin, ROUGE, 2004. Google's ``rouge_score`` with the Porter stemmer, called as
``fanoutqa.eval.scorer`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from qabench.answers import UNANSWERED, check_pairs, text_of
from qabench.data.predictions import some
from qabench.io.environment import package_version

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
PARTS = {"precision": "precision", "recall": "recall", "fscore": "fmeasure"}
"""Part of a score -> its name in ``rouge_score``."""
COLUMNS = tuple(f"{kind}.{part}" for kind in ROUGE_TYPES for part in PARTS)
SURROGATE = re.compile("[\ud800-\udfff]")
WORD_CHARACTER = re.compile("[a-z0-9]")  # every other character separates words for ``rouge_score``


def by_type(scores: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return ``COLUMNS`` as {"rouge1": {"precision", "recall", "fscore"}, "rouge2": ..., "rougeL": ...}."""
    return {kind: {part: scores[f"{kind}.{part}"] for part in PARTS} for kind in ROUGE_TYPES}


def rouge(references: Sequence[Any], predictions: Sequence[Any]) -> list[dict[str, float]]:
    """Return ROUGE precision, recall and F-measure of each answer, by ``COLUMNS``, as fractions in [0, 1].

    The official score is their mean by the built-in sum in order (``mean_in_order``).

    Both sides are compared as strings (``qabench.answers.text_of``): lowercased, split at all
    characters other than a-z and 0-9, and stemmed.

    Args:
        references: answers as Python objects.
        predictions: one for each reference. ``UNANSWERED`` scores 0 and None is the empty string,
            as upstream.
    """
    check_pairs(references, predictions)
    answered = [i for i, prediction in enumerate(predictions) if prediction is not UNANSWERED]
    rows: list[dict[str, float]] = [dict.fromkeys(COLUMNS, 0) for _ in references]
    scores = score_pairs(
        ROUGE_TYPES,
        [text_of(references[i]) for i in answered],
        [text_of(predictions[i]) for i in answered],
        use_stemmer=True,
    )
    for i, score in zip(answered, scores, strict=True):
        rows[i] = {
            f"{kind}.{part}": getattr(score[kind], measure)
            for kind in ROUGE_TYPES
            for part, measure in PARTS.items()
        }
    return rows


def score_pairs(
    types: Sequence[str], targets: Sequence[str], texts: Sequence[str], use_stemmer: bool = False
) -> list[Any]:
    """Return the scores of each text against its target, by type, as objects of ``rouge_score``."""
    module = import_module(f"{backend()}.rouge_scorer")
    scorer = module.RougeScorer(types, use_stemmer=use_stemmer)
    # Rust strings cannot contain lone surrogates. For ROUGE they separate words, as spaces do.
    columns = ([SURROGATE.sub(" ", text) for text in column] for column in (targets, texts))
    return list(map(scorer.score, *columns))


def has_no_words(text: str) -> bool:
    """Tell whether ROUGE is 0 by its tokenizer: the text is not blank, and has none of a-z and 0-9 in lowercase."""
    return bool(text.strip()) and WORD_CHARACTER.search(text.lower()) is None


def wordless_problems(
    ids: Sequence[str], answers: Iterable[Any], references: Iterable[Any]
) -> list[str]:
    """Count the texts, such as Japanese ones, that ROUGE finds no words in, with the ids of their questions.

    Both sides are strings, or what ``qabench.answers.text_of`` reads. None is no text.
    """
    sentences = []
    for kind, texts in (("answers", answers), ("reference answers", references)):
        named = zip(ids, texts, strict=True)
        wordless = [id for id, text in named if text is not None and has_no_words(text_of(text))]
        if wordless:
            sentences.append(
                f"{kind} in which ROUGE finds no words, because its tokenizer reads only a-z and 0-9; "
                f"they score 0: {len(wordless)} ({some(wordless)})"
            )
    return sentences


def backend() -> str:
    """Return the package that computes ROUGE: the fast one if it is installed, else the reference.

    They are equal to the last bit (a test compares them), and ``rouge_score_rs`` (extra ``fast``)
    is about fifty times faster.
    """
    return "rouge_score_rs" if find_spec("rouge_score_rs") else "rouge_score"


def backend_version() -> str:
    """Return the package of ``backend`` with its version, for signatures."""
    package = backend().replace("_", "-")
    return f"{package}-{package_version(package)}"
