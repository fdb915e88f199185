"""Claims of one's own that a judge has labeled: no expert has seen them, and their ids are in no annotated config."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from qabench.benchmarks.expertqa.fields import listed
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.data.predictions import Predictions
from qabench.data.rows import Json, grouped
from qabench.errors import SourceUnavailable
from qabench.evaluation.scoring import Question, Questions
from qabench.evaluation.signature import digest
from qabench.loading_scripts import dataset_table

OWN = "own"  # the name of the config of such claims
# These have all ids that are digests of a question. The other ids are small numbers, in the configs lfqa_*: they
# say nothing about where claims come from.
CONFIGS = ("questions", "sample", "main")
ID = re.compile(r"[0-9a-f]{12}")
JUDGMENTS = ("label", "fact_score", "fact_score_readable")


def own_questions(predictions: Predictions) -> Questions:
    """Return the lines of a file as questions without a reference, whose claims are scored by themselves."""
    questions = []
    for id, lines in grouped((line.id, line.fields) for line in predictions.rows).items():
        fields = lines[0]
        text, field, system = (_text(fields.get(name)) for name in ("question", "field", "system"))
        groups = {name: [value] for name, value in (("field", field), ("system", system)) if value}
        if len(lines) > 1:
            groups.pop("system", None)
        row: Json = {"id": id, "question": text, "field": field or None, "reference": None, OWN: True}
        questions.append(Question(id, text, "", groups, row))
    data = digest(question.id for question in questions)
    return Questions(OWN, data, questions, are_lines=True)


def are_own(predictions: Predictions) -> bool:
    """Tell whether a file has claims with labels or fact scores, and no digest of a question of ExpertQA as id.

    An id that could be one counts as one if the questions are not on this machine.
    """
    claims = [
        claim for line in predictions.rows for claim in _objects(listed(line.fields.get("claims")))
    ]
    if not any(claim.get(name) is not None for claim in claims for name in JUDGMENTS):
        return False
    ids = {line.id for line in predictions.rows}
    complete = True
    for config in CONFIGS:
        try:
            if not ids.isdisjoint(_ids_of(config)):
                return False
        except SourceUnavailable:
            complete = complete and config != "questions"
    return complete or not any(map(ID.fullmatch, ids))


def _ids_of(config: str) -> Iterator[str]:
    for split in dataset_table("expertqa").config(config).splits:
        for question in load_questions(config, split).rows:
            yield question.id


def _objects(values: Any) -> list[Json]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
