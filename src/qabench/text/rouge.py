"""ROUGE-1, ROUGE-2 and ROUGE-L of answers against references, as FanOutQA reports them.

Source: Lin, ROUGE, 2004, and Google's ``rouge_score`` with the Porter stemmer, called as
``fanoutqa.eval.scorer`` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from qabench.data.answers import UNANSWERED, check_pairs, text_of
from qabench.errors import some
from qabench.io.environment import package_version

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
MEASURES = {"precision": "precision", "recall": "recall", "fscore": "fmeasure"}
"""The measures of each ROUGE type -> their names in ``rouge_score``."""
COLUMNS = (
    "rouge1.precision",
    "rouge1.recall",
    "rouge1.fscore",
    "rouge2.precision",
    "rouge2.recall",
    "rouge2.fscore",
    "rougeL.precision",
    "rougeL.recall",
    "rougeL.fscore",
)
SURROGATE = re.compile("[\ud800-\udfff]")
# ``rouge_score`` splits words at all characters but these.
WORD_CHARACTER = re.compile("[a-z0-9]")


def by_type(scores: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return ``COLUMNS`` as {"rouge1": {"precision", "recall", "fscore"}, ...}."""
    types: dict[str, dict[str, float]] = {}
    for kind in ROUGE_TYPES:
        types[kind] = {}
        for measure in MEASURES:
            types[kind][measure] = scores[f"{kind}.{measure}"]
    return types


def rouge(references: Sequence[Any], predictions: Sequence[Any]) -> list[dict[str, float]]:
    """Return ROUGE precision, recall and F-measure of each answer: fractions in [0, 1].

    The keys are ``COLUMNS``. The official score is the mean over answers as ``mean_in_order``
    computes it. Answers and references are compared as strings (``qabench.data.answers.text_of``):
    lowercased, split at all characters other than a-z and 0-9, and stemmed.

    Args:
        references: answers as Python objects.
        predictions: one for each reference. As upstream, ``UNANSWERED`` scores 0, and None is read
            as the empty string.
    """
    check_pairs(references, predictions)
    rows: list[dict[str, float]] = []
    answered_rows = []
    targets = []
    texts = []
    for reference, prediction in zip(references, predictions, strict=True):
        # The official scorer adds the integer 0 for an unanswered question.
        row: dict[str, float] = dict.fromkeys(COLUMNS, 0)
        rows.append(row)
        if prediction is not UNANSWERED:
            answered_rows.append(row)
            targets.append(text_of(reference))
            texts.append(text_of(prediction))
    # All pairs are scored in one call, because each call creates a scorer.
    scores = score_pairs(ROUGE_TYPES, targets, texts, use_stemmer=True)
    for row, score in zip(answered_rows, scores, strict=True):
        for kind in ROUGE_TYPES:
            for measure, name in MEASURES.items():
                row[f"{kind}.{measure}"] = getattr(score[kind], name)
    return rows


def score_pairs(
    types: Sequence[str], targets: Sequence[str], texts: Sequence[str], use_stemmer: bool = False
) -> list[Any]:
    """Return the scores of each text against its target, by type, as ``rouge_score`` objects."""
    module = import_module(f"{backend()}.rouge_scorer")
    scorer = module.RougeScorer(types, use_stemmer=use_stemmer)
    # Rust strings cannot contain lone surrogates. For ROUGE they separate words, as spaces do.
    targets = [SURROGATE.sub(" ", target) for target in targets]
    texts = [SURROGATE.sub(" ", text) for text in texts]
    return list(map(scorer.score, targets, texts))


def has_no_words(text: str) -> bool:
    """Tell whether a text is not blank, but has no word for ROUGE, which reads only a-z and 0-9."""
    return bool(text.strip()) and WORD_CHARACTER.search(text.lower()) is None


def wordless_problems(
    ids: Sequence[str], answers: Iterable[Any], references: Iterable[Any]
) -> list[str]:
    """Report texts in which ROUGE finds no words, such as Japanese ones, with their ids.

    Args:
        ids: the ids of the questions.
        answers: strings, or values that ``qabench.data.answers.text_of`` reads. None is not
            counted.
        references: the reference answers, which are read as ``answers``.
    """
    sentences = []
    for kind, texts in (("answers", answers), ("reference answers", references)):
        wordless = []
        for id, text in zip(ids, texts, strict=True):
            if text is not None and has_no_words(text_of(text)):
                wordless.append(id)
        if wordless:
            sentences.append(
                f"{kind} in which ROUGE finds no words, because its tokenizer reads only a-z and 0-9; "
                f"they score 0: {len(wordless)} ({some(wordless)})"
            )
    return sentences


def backend() -> str:
    """Return the package that computes ROUGE: the fast one if it is installed, else the reference.

    Both packages return the same scores to the last bit (a test compares them), and
    ``rouge_score_rs`` (extra ``fast``) is about fifty times faster.
    """
    return "rouge_score_rs" if find_spec("rouge_score_rs") else "rouge_score"


def backend_version() -> str:
    """Return the package of ``backend`` with its version, for signatures."""
    package = backend().replace("_", "-")
    return f"{package}-{package_version(package)}"
