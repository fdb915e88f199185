"""A user's own claims, labeled by some judge.

Own claims are not from the dataset: no expert has judged them, and no annotated config has their
ids.
"""

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

# The name of the config for own claims.
OWN = "own"
# These configs have the ids of all questions. The configs lfqa_* are not used, because their ids
# are small numbers, which other files can have, too.
CONFIGS = ("questions", "sample", "main")
# The ids of ExpertQA's questions are 12 hex digits of a digest.
ID = re.compile(r"[0-9a-f]{12}")
JUDGMENTS = ("label", "fact_score", "fact_score_readable")


def own_questions(predictions: Predictions) -> Questions:
    """Return the lines of a file as questions. They have no references: only claims are scored."""
    questions = []
    for id, lines in grouped((line.id, line.fields) for line in predictions.rows).items():
        fields = lines[0]
        text = _text(fields.get("question"))
        field = _text(fields.get("field"))
        system = _text(fields.get("system"))
        groups = {}
        if field:
            groups["field"] = [field]
        # If a question has several lines, they are by several systems, so it has no single system.
        if system and len(lines) == 1:
            groups["system"] = [system]
        row: Json = {
            "id": id,
            "question": text,
            "field": field or None,
            "reference": None,
            OWN: True,
        }
        questions.append(Question(id, text, "", groups, row))
    data = digest(question.id for question in questions)
    return Questions(OWN, data, questions, are_lines=True)


def are_own(predictions: Predictions) -> bool:
    """Tell whether a file has judged claims, and no id is the id of a question of ExpertQA.

    If the questions are not on this machine, any 12 hex digits count as the id of a question.
    """
    ids = set()
    some_are_judged = False
    for line in predictions.rows:
        ids.add(line.id)
        some_are_judged = some_are_judged or _has_judgment(line.fields.get("claims"))
    if not some_are_judged:
        return False
    all_ids_are_known = True
    for config in CONFIGS:
        try:
            if not ids.isdisjoint(_ids_of(config)):
                return False
        except SourceUnavailable:
            # The config questions has all ids, so it does not matter if another one is missing.
            if config == "questions":
                all_ids_are_known = False
    return all_ids_are_known or not any(ID.fullmatch(id) for id in ids)


def _has_judgment(claims: Any) -> bool:
    """Tell whether one of the claims of a line has a label or a fact score."""
    values = listed(claims)
    if not isinstance(values, list):
        return False
    for claim in values:
        for name in JUDGMENTS:
            if isinstance(claim, dict) and claim.get(name) is not None:
                return True
    return False


def _ids_of(config: str) -> Iterator[str]:
    for split in dataset_table("expertqa").config(config).splits:
        for question in load_questions(config, split).rows:
            yield question.id


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
