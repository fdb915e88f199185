"""All of FanOutQA's scores as one ``evaluate`` metric, in the shape of the official result."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.benchmarks.fanoutqa.judge import judge_from
from qabench.benchmarks.fanoutqa.judge_scores import all_scores
from qabench.metric_module import MetricModule, decoded
from qabench.signature import digest
from qabench.text import Normalizer
from qabench.text.cache import NormalizedTextCache

_DESCRIPTION = """
All of FanOutQA's scores in one call, in the shape of the official result: loose and strict accuracy, ROUGE, BLEURT and
the factuality judge. A score that cannot be had is absent, and the result says why.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: a list with the answer's text for each question; None for an unanswered one.
    references: the dataset's `answer` column (JSON text), or the answers as Python objects.
    questions: the questions' texts, one each, which the judge needs; without them there is no judge score.
    ids: the questions' ids, for `raw` and the unscored; without them it is their positions.
    lemmatizer: of the accuracy: "auto", "spacy" or "simplemma"; see the metric fanout_acc.
    bleurt: a function (references, candidates) -> scores, two lists of texts to a list of floats, one a pair.
    judge: a dict with the judge's options (model, base_url, api_key, prompt, ...; see the metric fanout_judge), or
        False to leave the judge out. No call is made unless there are questions and a key.
    per_question: also give each question's scores, as `raw`.
    references_format: "json" or "python" says which form the references have; "auto" takes them for JSON when all are.
Returns:
    acc: {"loose", "strict"}. rouge: {"rouge1": {"precision", "recall", "fscore"}, "rouge2", "rougeL"}.
    bleurt: the mean of the BLEURT scores. gpt: the judge's mean over the questions that it scored.
    absent: {"bleurt" or "gpt": why it is not there}; empty where nothing is missing.
    judge: the judge's counts, verdicts, unscored questions, `official` score (0 for the unscored) and usage.
    signature: everything the scores depend on, in one line.
    deviations: what distinguishes the scores from the official ones, in sentences; empty if they are official.
    raw: with per_question=True, a list of {"question_id", "acc", "rouge", "bleurt", "gpt"}; gpt is None where unscored.
Raises:
    InputError (a ValueError): nothing to score, lists of unlike length, a reference that is or holds an empty list or
    dict, an option that cannot be used. MissingExtra: a backend that was asked for is not installed.
Examples:
    >>> import qabench
    >>> metric = qabench.load_metric("fanoutqa")
    >>> result = metric.compute(predictions=["Paris"], references=["Paris"], lemmatizer="simplemma", judge=False)
    >>> result["acc"], result["rouge"]["rouge1"]["fscore"]
    ({'loose': 1.0, 'strict': 1.0}, 1.0)
    >>> result["absent"]["gpt"]
    'left out (judge=False)'
"""


class Fanoutqa(MetricModule, evaluate.Metric):
    """See ``DESCRIPTION`` and ``INPUTS``."""

    BENCHMARK = "fanoutqa"
    DESCRIPTION = _DESCRIPTION
    INPUTS = _KWARGS_DESCRIPTION
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa")

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        questions: list[str] | None = None,
        ids: list[str] | None = None,
        lemmatizer: Any = "auto",
        bleurt: Any = None,
        judge: Any = None,
        per_question: bool = False,
        references_format: str = "auto",
    ) -> dict[str, Any]:
        given, answers = decoded(predictions, references, references_format)
        normalizer = Normalizer(lemmatizer, NormalizedTextCache.default())
        scores = all_scores(
            answers,
            given,
            None if questions is None else list(questions),
            normalize=normalizer.batch,
            bleurt=bleurt,
            judge=None if judge is False else judge_from(judge),
        )
        result: dict[str, Any] = scores.as_dict(ids, raw=per_question)
        asked = {"questions": digest(questions), **scores.judge.signature()} if questions and scores.judge else {}
        parts = {"rouge": scores.rouge.backend, "bleurt": scores.bleurt_name, **normalizer.signature(), **asked}
        return result | self.provenance(answers, **parts)
