"""Files of claims, which the ``qabench expertqa`` commands read and write.

A line is {"id", "answer", "claims": [{"claim", "evidence", "label", "fact_score", ...}]}.
``qabench score expertqa`` reads such files, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa.claim_format import read_claims
from qabench.benchmarks.expertqa.questions import annotated_claims, is_judged
from qabench.data.predictions import read_predictions
from qabench.data.rows import Json, Row
from qabench.errors import InputError
from qabench.evaluation.scoring import Questions
from qabench.io.files import write_text

ClaimsLine = dict[str, Any]
"""A line of a file of claims: an answer of a system, split into claims."""


def read_lines(file: str) -> list[ClaimsLine]:
    """Return the lines of a file of claims.

    Raises:
        InputError: the file cannot be read, or a line has another format. The message names the
            line.
    """
    predictions = read_predictions(file, ("claims",))
    for bad in predictions.bad_lines:
        raise InputError(f"{predictions.path}, line {bad.line}: {bad.reason}")
    lines = []
    for row in predictions.rows:
        try:
            claims = read_claims(row.fields["claims"])
        except InputError as error:
            raise InputError(
                f"{predictions.path}, line {row.line} (id {row.id:.80}): {error}"
            ) from None
        lines.append({**row.fields, "id": row.id, "claims": claims})
    return lines


def annotated_lines(questions: Questions) -> list[ClaimsLine]:
    """Return the annotated claims of a config as lines of a file of claims.

    Raises:
        InputError: the config has no annotated claims.
    """
    rows = [question.row for question in questions.rows]
    if not any(is_judged(annotated_claims(row)) for row in rows):
        raise InputError(
            f"the config {questions.config} has no annotated claims: use a FILE with claims, or --config random"
        )
    lines = []
    for row in rows:
        # A row of the annotated configs has the answer of exactly one system.
        for answer in row["answers"][:1]:
            lines.append(
                {
                    "id": row["id"],
                    "answer": answer["answer_string"],
                    "system": answer["system"],
                    "field": row["field"],
                    "claims": _annotated(answer),
                }
            )
    return lines


def _annotated(answer: Row) -> list[Json]:
    claims: list[Json] = []
    for annotated in answer["claims"] or ():
        claim: Json = {
            "claim": annotated["claim_string"],
            "evidence": annotated["evidence"] or [],
        }
        for name in ("atomic_claims", "atomic_evidences"):
            if annotated.get(name) is not None:
                claim[name] = annotated[name]
        claims.append(claim)
    return claims


def write_lines(path: Path, lines: Sequence[ClaimsLine]) -> None:
    """Write lines as JSONL."""
    texts = [json.dumps(line, ensure_ascii=False) + "\n" for line in lines]
    write_text(path, "".join(texts))
