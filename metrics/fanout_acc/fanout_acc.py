"""FanOutQA's loose and strict accuracy as an ``evaluate`` metric."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import datasets
import evaluate

from qabench.metric_columns import JsonColumns, decode_predictions, decode_references
from qabench.scoring.accuracy import accuracy
from qabench.signature import digest, signature
from qabench.text import Normalizer
from qabench.text.cache import NormalizedTextCache

_DESCRIPTION = """
Loose accuracy: the mean share of a reference's strings (keys and values, items, or the one value) that stand in the
answer, after both were normalised. Strict accuracy: the share of questions with all strings found. Both are fractions;
equal to the official FanOutQA scorer's to the last digit with the lemmatizer that it uses.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: a list with the answer's text for each question; None for an unanswered one, which scores 0.
    references: the dataset's `answer` column (JSON text), or the answers as Python objects: dict, list, str, int,
        float, bool.
    lemmatizer: "auto" (spaCy's en_core_web_sm where installed, else simplemma with a warning), "spacy", "simplemma",
        or an object; only spaCy's en_core_web_sm gives official scores.
    per_question: also give each question's score and the strings it missed.
    references_format: "json" or "python" says which form the references have; "auto" takes them for JSON when all are.
Returns:
    loose: float, at most 1. strict: float in [0, 1].
    signature: everything the score depends on, in one line.
    unofficial: only where the lemmatizer is not the official one: its name.
    per_question: with per_question=True, a list of {"loose", "strict", "missing"} in the order of the input.
Raises:
    InputError (a ValueError): nothing to score, lists of unlike length, a reference that is or holds an empty list or
    dict. MissingExtra: lemmatizer="spacy" without spaCy or its model.
Examples:
    >>> import qabench
    >>> metric = qabench.load_metric("fanout_acc")
    >>> result = metric.compute(
    ...     predictions=["France: Paris. Peru: I forget."],
    ...     references=[{"France": "Paris", "Peru": "Lima"}],
    ...     lemmatizer="simplemma",
    ... )
    >>> result["loose"], result["strict"]
    (0.75, 0.0)
"""
_CITATION = """
@inproceedings{zhu-etal-2024-fanoutqa,
  title = {{FanOutQA}: A Multi-Hop, Multi-Document Question Answering Benchmark for Large Language Models},
  author = {Zhu, Andrew and Hwang, Alyssa and Dugan, Liam and Callison-Burch, Chris},
  booktitle = {Proceedings of ACL 2024},
  year = {2024},
  url = {https://arxiv.org/abs/2402.14116},
}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class FanoutAcc(JsonColumns, evaluate.Metric):
    """See the module's description."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": text, "references": text}),
            reference_urls=["https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa"],
        )

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        lemmatizer: Any = "auto",
        per_question: bool = False,
        references_format: str = "auto",
    ) -> dict[str, Any]:
        answers = decode_references(references, references_format)
        normalizer = Normalizer(lemmatizer, NormalizedTextCache.default())
        score = accuracy(answers, decode_predictions(predictions), normalizer.batch)
        result: dict[str, Any] = {"loose": score.loose, "strict": score.strict}
        result["signature"] = signature("fanout_acc", references=digest(answers), **normalizer.signature())
        if not normalizer.lemmatizer.official:
            result["unofficial"] = normalizer.lemmatizer.name
        if per_question:
            result["per_question"] = [asdict(question) for question in score.per_question]
        return result
