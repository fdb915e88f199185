"""ROUGE-1, ROUGE-2 and ROUGE-L of answers against references, as FanOutQA reports them.

Source: Lin, ROUGE, 2004. Google's ``rouge_score`` with the Porter stemmer, called as
``fanoutqa.eval.scorer`` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from qabench.answers import UNANSWERED, check_pairs, text_of
from qabench.errors import InputError, MissingExtra
from qabench.io.environment import package_version

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
PARTS = {"precision": "precision", "recall": "recall", "fscore": "fmeasure"}
"""Part of a score -> its name in ``rouge_score``."""
COLUMNS = tuple(f"{kind}.{part}" for kind in ROUGE_TYPES for part in PARTS)
BACKENDS = {"rouge_score": "rouge-score", "rouge_score_rs": "rouge-score-rs"}
SURROGATE = re.compile("[\ud800-\udfff]")


def by_type(scores: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return ``COLUMNS`` as {"rouge1": {"precision", "recall", "fscore"}, "rouge2": ..., "rougeL": ...}."""
    return {kind: {part: scores[f"{kind}.{part}"] for part in PARTS} for kind in ROUGE_TYPES}


def rouge(
    references: Sequence[Any], predictions: Sequence[Any], backend: str = "auto"
) -> list[dict[str, float]]:
    """Return ROUGE precision, recall and F-measure of each answer, by ``COLUMNS``, as fractions in [0, 1].

    The official score is their mean by the built-in sum in order (``mean_in_order``).

    Both sides are compared as strings (``qabench.answers.text_of``): lowercased, split at all
    characters other than a-z and 0-9, and stemmed.

    Args:
        references: answers as Python objects.
        predictions: one for each reference. ``UNANSWERED`` scores 0 and None is the empty string,
            as upstream.
        backend: "rouge_score", the reference implementation. "rouge_score_rs", equal to the last
            bit and about fifty times faster (extra ``fast``; a test compares them). "auto": the
            fast one if it is installed.
    """
    check_pairs(references, predictions)
    score_pairs = _scorer(resolve_backend(backend))
    answered = [i for i, prediction in enumerate(predictions) if prediction is not UNANSWERED]
    rows: list[dict[str, float]] = [dict.fromkeys(COLUMNS, 0) for _ in references]
    scores = score_pairs(
        [text_of(references[i]) for i in answered], [text_of(predictions[i]) for i in answered]
    )
    for i, score in zip(answered, scores, strict=True):
        rows[i] = {
            f"{kind}.{part}": getattr(score[kind], measure)
            for kind in ROUGE_TYPES
            for part, measure in PARTS.items()
        }
    return rows


def resolve_backend(backend: str) -> str:
    """Return the package of a backend.

    Raises InputError for an unknown one, MissingExtra if it is not installed.
    """
    if backend == "auto":
        return "rouge_score_rs" if find_spec("rouge_score_rs") else "rouge_score"
    if backend not in BACKENDS:
        raise InputError(f"unknown ROUGE backend {backend!r}; allowed: auto, {', '.join(BACKENDS)}")
    if find_spec(backend) is None:
        raise MissingExtra(
            f"the ROUGE backend {backend} is not installed: pip install 'qabench[fast]'"
        )
    return backend


def backend_version(backend: str = "auto") -> str:
    """Return the package of a backend with its version, for signatures."""
    package = BACKENDS[resolve_backend(backend)]
    return f"{package}-{package_version(package)}"


def _scorer(name: str) -> Callable[[list[str], list[str]], list[Any]]:
    if name == "rouge_score":
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer(ROUGE_TYPES, use_stemmer=True)
        return lambda targets, predictions: list(map(scorer.score, targets, predictions))
    from rouge_score_rs.rouge_scorer import RougeScorer as FastScorer

    fast = FastScorer(ROUGE_TYPES, use_stemmer=True)

    def score(targets: list[str], predictions: list[str]) -> list[Any]:
        # Rust strings cannot contain lone surrogates. For ROUGE they separate words, as spaces do.
        texts = ([SURROGATE.sub(" ", text) for text in side] for side in (targets, predictions))
        return list(fast.score_batch(*texts))

    return score
