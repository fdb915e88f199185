"""Functions for FELM's metric: scorer rows, fields of predictions, checks, counts and totals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from qabench.benchmarks.felm.formulas import COUNTS, FUNCTIONS, READABLE, RESPONSES
from qabench.benchmarks.felm.scores import ResponseScore, as_verdicts
from qabench.data.rows import Json, Row
from qabench.errors import InputError
from qabench.evaluation.scoring import Item, Outcome, Scorer

# Verdicts in a CSV file are texts such as "true", "[true, false]" and "[True False]".
VERDICTS = re.compile(r"\[?\s*(?:true|false)(?:[\s,]+(?:true|false))*\s*\]?", re.IGNORECASE)
# Maps prefixes of columns and scores to prefixes of their keys in the metric's result.
PARENTS = {"": "", RESPONSES: "responses.", READABLE: "readable."}
KEYS: dict[str, str] = {}
for _prefix, _parent in PARENTS.items():
    for _name in FUNCTIONS:
        KEYS[_parent + _name] = _prefix + _name


def row(labels: Any) -> Row:
    """Return the labels of a response as the row that the scorer reads.

    Raises:
        InputError: ``labels`` is not a list of labels.
    """
    verdicts = as_verdicts(labels)
    if not verdicts:
        raise InputError(
            f"{labels!r:.80}; allowed: a list of True (factual) and False, or of 1 and 0, "
            "one per segment"
        )
    return {"labels": verdicts}


def fields(prediction: Any) -> Row:
    """Return verdicts, a reply or a list of replies as the fields of a prediction."""
    verdicts = as_verdicts(prediction)
    if verdicts is None:
        return {"reply": prediction}
    return {"labels": verdicts}


def check_replies(predictions: Sequence[Any]) -> None:
    """Raise InputError if all replies are verdicts that a CSV file has turned into text."""
    texts = []
    for prediction in predictions:
        replies = prediction if isinstance(prediction, list) else [prediction]
        for reply in replies:
            if isinstance(reply, str):
                texts.append(reply.strip())
    if texts and all(VERDICTS.fullmatch(text) for text in texts):
        raise InputError(
            f"predictions are verdicts written as text, such as {texts[0]!r:.60}; pass lists of True and False, one "
            "per segment: json.loads(text) for JSON text, ast.literal_eval(text) for Python's"
        )


def counts(outcomes: Sequence[Outcome]) -> Json:
    """Return the counts of segments, of whole responses, and of segments with readable replies."""
    sums: Counter[str] = Counter()
    left_out = 0
    for outcome in outcomes:
        sums.update(outcome.result.counts())
        left_out += outcome.result.readable is None
    result: Json = {}
    for prefix, parent in PARENTS.items():
        for name in COUNTS:
            result[parent + name] = sums[prefix + name]
    result["readable.left_out"] = left_out
    return result


def totals(scorer: Scorer, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Json:
    """Return the numbers of replies without a verdict and of missing replies."""
    return {
        "unparsed": sum(outcome.result.unparsed for outcome in outcomes),
        "unanswered": sum(outcome.result.unanswered for outcome in outcomes),
    }


def verdicts_of_question(item: Item, outcome: Outcome) -> Json:
    """Return the verdicts on a response, and the official counts of its segments."""
    score: ResponseScore = outcome.result
    return score.as_dict()
