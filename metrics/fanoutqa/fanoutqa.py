"""All of FanOutQA's scores as one ``evaluate`` metric, in the shape of the official result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.fanoutqa import metrics  # From: git+https://github.com/qabench/qabench
from qabench.text.rouge import COLUMNS  # From: git+https://github.com/qabench/qabench


class Fanoutqa(MetricModule, evaluate.Metric):
    """All of FanOutQA's scores in one call, in the shape of the official result.

    These are loose and strict accuracy, ROUGE, BLEURT and the factuality judge. A score that is
    not available is absent, and the result says why.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question.
        references: the dataset's `answer` column (`rows["answer"]`), or the answers as Python
            objects.
        questions: the text of each question, for the judge. Without them there is no judge score.
        ids: the ids of the questions in `raw`. By default, their positions.
        lemmatizer: the lemmatizer of the accuracy, "auto", "spacy" or "simplemma". See the metric
            fanout_acc.
        bleurt: a function (references, candidates) -> scores, which takes two lists of strings and
            returns one float per pair.
        judge: a dict with the judge's options (model, base_url, api_key, prompt, ...; see the
            metric fanout_judge), or False to leave the judge out. No call is made unless there are
            questions and a key.
        per_question: also return each question's scores, as `raw`.
    Returns:
        acc: {"loose", "strict"}.
        rouge: {"rouge1": {"precision", "recall", "fscore"}, "rouge2", "rougeL"}.
        bleurt: the mean of the BLEURT scores.
        gpt: the official score of the judge. See the metric fanout_judge.
        absent: {"bleurt" or "gpt": the reason}. Empty if no score is absent.
        judge: the judge's counts, verdicts, unreadable replies, `gpt_readable` and usage.
        raw: with per_question=True, a list of {"question_id", "acc", "rouge", "bleurt", "gpt"}. An
            absent score is None.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, a reference that is
            or contains an empty list or dict, an option that cannot be used.
        MissingExtra: a backend that was asked for is not installed.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("fanoutqa")
        >>> result = metric.compute(
        ...     predictions=["Paris"], references=["Paris"], lemmatizer="simplemma", judge=False
        ... )
        >>> result["acc"], result["rouge"]["rouge1"]["fscore"]
        ({'loose': 1.0, 'strict': 1.0}, 1.0)
        >>> result["absent"]["gpt"]
        'left out: judge=False, or no questions=[...]'
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "fanoutqa"
    GROUP = "acc"
    KEYS: ClassVar = {
        "acc.loose": "acc.loose",
        "acc.strict": "acc.strict",
        **{f"rouge.{column}": column for column in COLUMNS},
        "bleurt": "bleurt",
        "gpt": "gpt",
        "judge.gpt_readable": "gpt_readable",
    }
    # BLEURT needs a function, and the judge needs questions and a key. Without them, ``absent`` in
    # the result says what is missing.
    OPTIONAL_KEYS = ("bleurt", "gpt", "judge.gpt_readable")
    COLUMNS: ClassVar = {"questions": "question", "ids": "id"}
    OPTIONS: ClassVar = {"lemmatizer": "lemmatizer", "bleurt": "bleurt", "judge": "judge"}
    SCORER_OPTIONS: ClassVar = {"send_environment_key": False, "leave_out_undefined": False}
    ANSWERS = True
    # The official result has the scores of each question under this key.
    PER_QUESTION = "raw"
    ROW = metrics.row
    TOTALS = metrics.all_totals
    QUESTION = metrics.scores_of_question
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa")

    @classmethod
    def groups(cls, options: Mapping[str, Any]) -> list[str]:
        """Return the groups of scores that these options of the metric allow.

        These are acc and rouge, bleurt if a function is passed, and judge if questions are passed
        and ``judge`` is not False.
        """
        groups = ["acc", "rouge"]
        if options.get("bleurt"):
            groups.append("bleurt")
        if options.get("judge") is not False and options.get("questions") is not None:
            groups.append("judge")
        return groups
