"""Keep labels and fact scores of an earlier output if everything that they depend on is unchanged.

A label is identified by claim, evidence, and the model with its dtype. A fact score is identified
by claim, evidence, field, and the label that says how it was computed (``FactScorer.label``). A
line is identified by id, system and sample.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa.citations import EVIDENCE_LABELS, are_evidence_labels
from qabench.benchmarks.expertqa.claim_lines import ClaimsLine
from qabench.data.predictions import read_predictions
from qabench.data.rows import Json
from qabench.errors import InputError

# The recorded author of labels in the input, if the input does not say which model made them.
GIVEN = "given"
MAX_BACKUPS = 10_000

Key = tuple[str, str, str]
"""The id, system and sample of a line."""
Content = str
"""A digest of everything that a label or a fact score depends on, except the model."""


def keys_of(lines: Sequence[Mapping[str, Any]]) -> list[Key]:
    """Return the id, system and sample of each line. Unnumbered samples are numbered from 1."""
    seen: Counter[tuple[str, str]] = Counter()
    keys: list[Key] = []
    for line in lines:
        id, system = str(line["id"]), str(line.get("system") or "")
        seen[id, system] += 1
        sample = line.get("sample")
        if sample is None:
            sample = seen[id, system]
        keys.append((id, system, str(sample)))
    return keys


def label_content(claim: Mapping[str, Any]) -> Content:
    """Return a digest of everything that the label of a claim depends on, except the model."""
    return _digest([claim["claim"], list(claim.get("evidence") or [])])


def labels_content(claims: Iterable[Mapping[str, Any]]) -> Content:
    """Return a digest of the claims of a line. It tells whether the claims were edited later."""
    return _digest([label_content(claim) for claim in claims])


def fact_content(claim: Mapping[str, Any], field: str) -> Content:
    """Return a digest of what the fact score of a claim depends on, except the models."""
    return _digest([claim["claim"], list(claim.get("evidence") or []), field])


def authors(labels_by: object) -> set[str]:
    """Return the authors of the labels of a line."""
    return set(str(labels_by).split(",")) if labels_by else set()


def rows_before(output: Path) -> list[ClaimsLine]:
    """Return the readable lines of an earlier output. Its last line may be cut off."""
    # ``read_predictions`` refuses a file without lines.
    if not output.is_file() or output.stat().st_size == 0:
        return []
    return [dict(row.fields) for row in read_predictions(output, ("claims",)).rows]


def check_author(
    output: Path, rows: Sequence[ClaimsLine], name: str, author: str, what: str
) -> None:
    """Raise InputError if an earlier output has results by another author."""
    for row in rows:
        other_authors = authors(row.get(name)) - {author, GIVEN}
        if other_authors:
            raise InputError(
                f"{output} has {what} by {', '.join(sorted(other_authors))}, not by {author}: use another --output"
            )


def labels_of(rows: Iterable[ClaimsLine], labels_by: str) -> dict[Content, str]:
    """Map the content of claims to a model's labels of them. Leaves out lines that were edited."""
    labels: dict[Content, str] = {}
    for claim in _unedited_claims(rows, labels_by):
        # A label with ``label_by`` was in the input, and is not by the model.
        if claim.get("label") in ("Y", "N") and claim.get("label_by") is None:
            labels[label_content(claim)] = claim["label"]
    return labels


def evidence_labels_of(rows: Iterable[ClaimsLine], labels_by: str) -> dict[Content, list[Json]]:
    """Map the content of claims to a model's labels of their pieces of evidence."""
    labels: dict[Content, list[Json]] = {}
    for claim in _unedited_claims(rows, labels_by):
        pieces = claim.get(EVIDENCE_LABELS)
        if pieces and are_evidence_labels(pieces, len(claim.get("evidence") or ())):
            labels[label_content(claim)] = pieces
    return labels


def _unedited_claims(rows: Iterable[ClaimsLine], labels_by: str) -> Iterator[Json]:
    for row in rows:
        if labels_by not in authors(row.get("labels_by")):
            continue
        content = labels_content(row["claims"])
        # Older versions wrote no ``labels_of``. Their claims are assumed to be unedited.
        if row.get("labels_of", content) == content:
            yield from row["claims"]


def scored_before(rows: Iterable[ClaimsLine], scores_by: str) -> dict[Content, Json]:
    """Return the claims that have a fact score by this author, by their content."""
    scored: dict[Content, Json] = {}
    for row in rows:
        if row.get("fact_scores_by") != scores_by or not row.get("field"):
            continue
        for claim in row["claims"]:
            if claim.get("fact_score") is not None:
                scored[fact_content(claim, row["field"])] = claim
    return scored


def back_up_lost(
    output: Path, before: Sequence[ClaimsLine], lines: Sequence[ClaimsLine], result: str
) -> Path | None:
    """Copy an earlier output to a new name if it has results of claims that the input lacks.

    ``result`` is the field of a claim with the result. Returns the new name, or None if no result
    would be lost.
    """
    contents: set[Content] = set()
    for line in lines:
        contents.update(label_content(claim) for claim in line["claims"])
    is_lossless = True
    for row in before:
        for claim in row["claims"]:
            if claim.get(result) is not None and label_content(claim) not in contents:
                is_lossless = False
    if is_lossless:
        return None
    for number in range(1, MAX_BACKUPS):
        path = output.with_name(f"{output.stem}.before-{number}{output.suffix}")
        if not path.exists():
            path.write_bytes(output.read_bytes())
            return path
    raise InputError(
        f"{output} has results of other claims, which would be lost: use another --output"
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode()).hexdigest()[:16]
