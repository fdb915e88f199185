"""Parse rows of ExpertQA's files into rows of the dataset, without importing ``datasets``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from qabench.data.rows import Json, SourceRow
from qabench.errors import DataError

# The allowed values of the experts' labels and of a model's attribution label. A claim without
# evidence has the support Missing. The reliability Missing also occurs with evidence.
LABELS: dict[str, tuple[str, ...]] = {
    "usefulness": ("Useful", "Partially useful", "Not useful at all"),
    "support": ("Complete", "Partial", "Incomplete", "Missing", "N/A"),
    "informativeness": ("Very relevant", "A bit relevant", "Not too important", "Uninformative"),
    "worthiness": ("Yes", "No"),
    "correctness": (
        "Definitely correct",
        "Probably correct",
        "Unsure",
        "Likely incorrect",
        "Definitely incorrect",
    ),
    "reliability": ("Reliable", "Somewhat reliable", "Not reliable at all", "Missing", "N/A"),
    "autoais_label": ("Y", "N"),
}

ANSWER_KEYS = (
    "answer_string",
    "attribution",
    "claims",
    "revised_answer_string",
    "usefulness",
    "annotation_time",
    "annotator_id",
)
CLAIM_KEYS = (
    "claim_string",
    "evidence",
    "support",
    "reason_missing_support",
    "informativeness",
    "worthiness",
    "correctness",
    "reliability",
    "revised_claim",
    "revised_evidence",
)
# Only some files, or some claims of a file, have these fields. The last two are null wherever they
# occur.
OPTIONAL_KEYS = (
    "atomic_claims",
    "atomic_evidences",
    "fact_score",
    "autoais_label",
    "source_reliability",
    "revised_claim_string",
)
TEXTS = ("attribution", "evidence", "revised_evidence", "atomic_claims", "atomic_evidences")
# A float64 represents all integers up to 2**53 exactly.
MAX_NUMBERS = {"annotation_time": 2**53, "fact_score": 1}


def parser_of(config: str) -> Callable[[SourceRow], Json]:
    """Return the function that parses a row of a config."""
    if config.startswith("lfqa_"):
        return parse_lfqa
    if config == "questions":
        return parse_question
    return parse_answers


def parse_answers(row: SourceRow) -> Json:
    """Parse a question with answers.

    Such rows are in all files except ``r1_data_anon.jsonl`` and the ``lfqa`` files. ``answers``, in
    the source a dict of answers by system, becomes a list. Fields that the source lacks, such as
    the labels of an answer that is not annotated yet, are null. Raises a DataError that names file,
    line and field.
    """
    return _question(row) | {"answers": _answers(row)}


def parse_lfqa(row: SourceRow) -> Json:
    """Parse a question of the long-form QA task with its reference answer: a row of an lfqa file.

    ``example_id`` starts at 0 in every file, so it is unique within a file only. ``question_id`` is
    the question's ``id`` in the other configs.
    """
    row.only("example_id", "context", "question", "answer")
    number = row.get("example_id", int)
    # In the authors' files, the context is always empty.
    texts = {key: row.get(key, str) for key in ("context", "question", "answer")}
    ids = {"id": str(number), "example_id": number, "question_id": question_id(texts["question"])}
    return ids | texts


def question_id(question: str) -> str:
    """Return a question's id, 12 hex digits of its text's SHA-256, because the source has no ids."""
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def parse_question(row: SourceRow) -> Json:
    """Parse a question without answers: a row of ``r1_data_anon.jsonl``."""
    if row.get("answers", dict):
        raise DataError(f"{row.where}, field 'answers': expected an empty object")
    return _question(row)


def _question(row: SourceRow) -> Json:
    row.only("question", "annotator_id", "answers", "metadata")
    metadata = row.object("metadata", "question_type", "field", "specific_field")
    types: str = metadata.get("question_type", str)
    question = row.get("question", str)
    question_types = [part.strip() for part in types.split("|")]
    return {
        "id": question_id(question),
        "question": question,
        # The same expert has another id in the file of questions than in the annotated files.
        "annotator_id": row.get("annotator_id", str),
        "metadata": {
            "question_type": question_types,
            # The source's text is kept, because rows differ in the spaces around the bars.
            "question_type_text": types,
            "field": metadata.get("field", str),
            "specific_field": metadata.get("specific_field", str, None),
        },
    }


def _answers(row: SourceRow) -> list[Json]:
    answers = []
    for system, value in row.get("answers", dict).items():
        row.check_text("answers", system)
        answer = SourceRow.of(value, f"{row.where}, field 'answers'[{system!r:.60}]")
        answer = _filled(answer, "answer_string", *ANSWER_KEYS)
        claims = answer.get("claims", list, None)
        if claims:
            claims = [_claim(claim) for claim in answer.rows("claims")]
        parsed = {"system": system, "claims": claims}
        for key in ANSWER_KEYS:
            if key != "claims":
                parsed[key] = parse_field(answer, key)
        answers.append(parsed)
    return answers


def _claim(row: SourceRow) -> Json:
    present = [key for key in OPTIONAL_KEYS if key in row.fields]
    row = _filled(row, "claim_string", *CLAIM_KEYS, *OPTIONAL_KEYS)
    revised = row.get("revised_evidence", str, list, None)
    revised_is_text = None
    # ``revised_evidence`` is a string in 95 % of the claims and a list in the others. A column has
    # one type.
    if revised is not None:
        revised_is_text = isinstance(revised, str)
    if revised_is_text:
        row = SourceRow({**row.fields, "revised_evidence": [revised]}, row.where)
    claim = {key: parse_field(row, key) for key in CLAIM_KEYS + OPTIONAL_KEYS}
    # From these two fields, the source's form of the claim can be restored.
    claim["revised_evidence_is_text"] = revised_is_text
    claim["optional_fields"] = present
    return claim


def parse_field(row: SourceRow, key: str) -> Any:
    """Return a field of an answer or a claim. Only answer_string and claim_string cannot be null."""
    if key in ("answer_string", "claim_string"):
        return row.get(key, str)
    if key in MAX_NUMBERS:
        return _number(row, key, MAX_NUMBERS[key])
    if key in TEXTS:
        return row.get(key, list, None) and row.list_of(key)
    value = row.get(key, str, None)
    if key in LABELS and value is not None:
        return row.one_of(key, LABELS[key])
    return value


def _filled(row: SourceRow, required: str, *keys: str) -> SourceRow:
    """Return the row with null for each missing key, except for the required one."""
    row.only(*keys)
    row.get(required, str)
    return SourceRow(dict.fromkeys(keys) | dict(row.fields), row.where)


def _number(row: SourceRow, key: str, most: int) -> float | None:
    value = row.get(key, int, float, None)
    if value is None:
        return None
    # NaN is not in the range either.
    if not 0 <= value <= most:
        raise DataError(
            f"{row.where}, field {key!r}: expected a number from 0 to {most}, got {value!s:.60}"
        )
    return float(value)
