"""Signatures of ExpertQA's scores: built in one place for metrics, runs and files of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qabench.benchmarks.expertqa.factscore import THRESHOLD
from qabench.benchmarks.expertqa.lfqa import BOOTSTRAP_SAMPLES
from qabench.evaluation.signature import signature

Fields = Mapping[str, Any]


def rouge(fields: Fields, backend: str, seed: int = 0) -> str:
    """The signature of ROUGE against reference answers; ``backend`` is the package and its version."""
    of_score = {"rouge": backend, "stemmer": "none", "bootstrap": BOOTSTRAP_SAMPLES, "seed": seed}
    return signature("expertqa_lfqa", **fields, **of_score)


def autoais(fields: Fields, counted: str, labels: str | None) -> str:
    """The signature of AutoAIS.

    Args:
        fields: data and options, with ``unlabeled``.
        counted: the claims that count; "annotated": those that the experts found supported and worth a citation.
        labels: the model that labeled the claims; None in the metric, which does not know it.
    """
    return signature("expertqa_autoais", **fields, counted=counted, labels=labels)


def autoais_agreement(fields: Fields, labels: str | None) -> str:
    """The signature of the agreement of AutoAIS labels with the experts."""
    return signature("expertqa_autoais_agreement", **fields, labels=labels)


def fact_score(fields: Fields, scorer: str | None) -> str:
    """The signature of the mean fact score; ``scorer`` is the model that gave the scores."""
    return signature("expertqa_fact_score", **fields, fact_scores=scorer)


def fact_score_agreement(fields: Fields, scorer: str | None) -> str:
    """The signature of the agreement of fact scores with the experts."""
    return signature("expertqa_factscore_agreement", **fields, threshold=THRESHOLD, fact_scores=scorer)
