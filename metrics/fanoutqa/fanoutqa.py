"""All of FanOutQA's scores as one ``evaluate`` metric, in the shape of the official result."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.answers import UNANSWERED, check_pairs, dumps
from qabench.benchmarks.fanoutqa.judge import judge_from
from qabench.benchmarks.fanoutqa.normalizer import NormalizedTextCache, Normalizer
from qabench.benchmarks.fanoutqa.scorer import FanOutQAScorer, official_shape
from qabench.errors import InputError
from qabench.evaluation.scoring import Item, outcomes_of
from qabench.evaluation.signature import digest


class Fanoutqa(MetricModule, evaluate.Metric):
    """All of FanOutQA's scores in one call, in the shape of the official result: loose and strict
    accuracy, ROUGE, BLEURT and the factuality judge. A score that is not available is absent, and
    the result says why.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question.
        references: the dataset's `answer` column (JSON text), or the answers as Python objects.
        questions: the text of each question, for the judge. Without them there is no judge score.
        ids: the questions' ids, for `raw`. By default positions.
        lemmatizer: the lemmatizer of the accuracy, "auto", "spacy" or "simplemma". See the metric
            fanout_acc.
        bleurt: a function (references, candidates) -> scores, two lists of strings to one float for
            each pair.
        judge: a dict with the judge's options (model, base_url, api_key, prompt, ...; see the
            metric fanout_judge), or False to leave the judge out. No call is made unless there are
            questions and a key.
        per_question: also return each question's scores, as `raw`.
    Returns:
        acc: {"loose", "strict"}. rouge: {"rouge1": {"precision", "recall", "fscore"}, "rouge2",
            "rougeL"}.
        bleurt: the mean of the BLEURT scores. gpt: the official score of the judge. See the metric
            fanout_judge.
        absent: {"bleurt" or "gpt": the reason}. Empty if no score is absent.
        judge: the judge's counts, verdicts, unreadable replies, `gpt_readable` and usage.
        raw: with per_question=True, a list of {"question_id", "acc", "rouge", "bleurt", "gpt"},
            or None for absent scores.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, a reference that is
            or contains an empty list or dict, an option that cannot be used. MissingExtra: a
            backend that was asked for is not installed.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("fanoutqa")
        >>> result = metric.compute(predictions=["Paris"], references=["Paris"], lemmatizer="simplemma", judge=False)
        >>> result["acc"], result["rouge"]["rouge1"]["fscore"]
        ({'loose': 1.0, 'strict': 1.0}, 1.0)
        >>> result["absent"]["gpt"]
        'left out: judge=False, or no questions=[...]'
    """

    BENCHMARK = "fanoutqa"
    ANSWERS = True
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa")

    def score(
        self,
        predictions: list[Any],
        references: list[Any],
        questions: list[str] | None = None,
        ids: list[str] | None = None,
        lemmatizer: Any = "auto",
        bleurt: Any = None,
        judge: Any = None,
        per_question: bool = False,
    ) -> dict[str, Any]:
        judging = None if judge is False or questions is None else judge_from(judge)
        normalizer = Normalizer(lemmatizer, NormalizedTextCache.default())
        scorer = FanOutQAScorer(normalizer, True, bleurt, judging)
        check_pairs(references, predictions)
        asked = [""] * len(references) if judging is None else list(questions or ())
        for name, column in (("questions", asked), ("ids", ids)):
            if column is not None and len(column) != len(references):
                raise InputError(
                    f"{len(column)} {name} for {len(references)} references; expected one for each"
                )
        items = [
            Item(
                {"answer": dumps(reference), "question": question},
                None if prediction is UNANSWERED else {"answer": prediction},
            )
            for reference, prediction, question in zip(references, predictions, asked, strict=True)
        ]
        outcomes = outcomes_of(scorer, items, self.BENCHMARK, ids)
        rows = [outcome.scores for outcome in outcomes]
        result = official_shape(rows) | {"absent": {}}
        if bleurt is None:
            result["absent"]["bleurt"] = (
                "no function was given: bleurt=..., (references, candidates) -> scores"
            )
        if scorer.judged:
            judged = scorer.judged.as_dict()
            result["absent"] |= judged.pop("absent", {})
            judged.pop("gpt", None)
            result["judge"] = judged
        else:
            result["absent"]["gpt"] = "left out: judge=False, or no questions=[...]"
        if per_question:
            result["raw"] = []
            for id, row in zip(ids or range(len(rows)), rows, strict=True):
                scores = {"acc": row["acc.loose"], "bleurt": row.get("bleurt"), "gpt": row.get("gpt")}
                result["raw"].append({"question_id": id} | official_shape([row]) | scores)
        fields: dict[str, object] = {} if judging is None else {"questions": digest(asked)}
        for own in scorer.fields.values():
            fields |= own
        result |= self.provenance(references, **fields)
        result["deviations"] += scorer.judged.deviations() if scorer.judged else []
        return result
