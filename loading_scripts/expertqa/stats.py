"""Statistics of ExpertQA, computed from the dataset's rows.

Sources of the published numbers: the README of the authors' repository, the paper (Malaviya et al., NAACL 2024), and
the sizes of the published splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from qabench.io.tables import Table
from qabench.loading_scripts.expertqa.parse import LABELS, SYSTEMS

PUBLISHED_ROWS = {
    ("main", "train"): 2177,
    ("questions", "train"): 2507,
    ("random", "validation"): 217,
    ("random", "test"): 219,
    ("domain", "validation"): 206,
    ("domain", "test"): 243,
    ("lfqa_random", "train"): 1734,
    ("lfqa_random", "validation"): 216,
    ("lfqa_random", "test"): 219,
    ("lfqa_domain", "train"): 1721,
    ("lfqa_domain", "validation"): 205,
    ("lfqa_domain", "test"): 243,
}
PUBLISHED_FIELDS = 32
CLAIM_LABELS = [key for key in LABELS if key != "usefulness"]
EXPERTS_FIELDS = (
    *("support", "reason_missing_support", "informativeness", "worthiness", "correctness", "reliability"),
    *("revised_claim", "revised_evidence"),
)
REVISED = {True: "is text", False: "is a list", None: "is null"}
Counts = Counter[tuple[str, str, str]]  # (table, row, column) -> count


def tables(config: str, splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Table]:
    """Return the statistics of a config.

    Args:
        config: the name of the config.
        splits: the rows of each split, read once, in order.

    Returns:
        Tables of counts: rows by split; questions by field and by type (not for the ``lfqa`` configs); for configs with
        answers, also answers and claims by system, labels of claims, and oddities.
    """
    counts: Counts = Counter()
    for split, rows in splits.items():
        for row in rows:
            counts["row", "", split] += 1
            if "metadata" in row:
                _count_metadata(counts, row["metadata"], split)
            for answer in row.get("answers", ()):
                _count_answer(counts, answer, split)
    names = list(splits)
    tables = [_rows_table(config, counts, names)]
    if not config.startswith("lfqa_"):
        tables += [_fields_table(config, counts, names), _types_table(counts, names)]
        if config != "questions":
            tables += [_systems_table(counts), _labels_table(counts, names), _oddities_table(counts, names)]
    return tables


def _count_metadata(counts: Counts, metadata: Mapping[str, Any], split: str) -> None:
    counts["field", metadata["field"], split] += 1
    for kind in metadata["question_type"]:
        counts["type", kind, split] += 1


def _count_answer(counts: Counts, answer: Mapping[str, Any], split: str) -> None:
    system, claims = answer["system"], answer["claims"] or []
    counts["system", system, "answers"] += 1
    counts["system", system, "claims"] += len(claims)
    counts["system", system, "without evidence"] += sum(not claim["evidence"] for claim in claims)
    counts["system", system, answer["usefulness"] or "null"] += 1
    if answer["annotation_time"] is None:
        counts["oddity", "answers without annotation_time", split] += 1
    if answer["revised_answer_string"] == "":
        counts["oddity", "answers with an empty revision", split] += 1
    for claim in claims:
        _count_claim(counts, claim, split)


def _count_claim(counts: Counts, claim: Mapping[str, Any], split: str) -> None:
    for key in CLAIM_LABELS:
        counts[key, claim[key] or "null", split] += 1
    oddity = {
        "claims": True,
        f"claims whose revised_evidence {REVISED[claim['revised_evidence_is_text']]}": True,
        "claims without one of the experts' labels": any(claim[key] is None for key in EXPERTS_FIELDS if key in LABELS),
        "claims without any annotation": all(claim[key] is None for key in EXPERTS_FIELDS),
        "claims with source_reliability and revised_claim_string": "source_reliability" in claim["optional_fields"],
        "claims with a fact score": claim["fact_score"] is not None,
    }
    for name, holds in oddity.items():
        counts["oddity", name, split] += holds


def _rows_table(config: str, counts: Counts, splits: list[str]) -> Table:
    rows = [[split, counts["row", "", split], PUBLISHED_ROWS.get((config, split))] for split in splits]
    notes = []
    if config == "lfqa_random":
        notes = ["validation has one row fewer than in random: the question with an empty revised answer is missing."]
    return Table("Rows", ["split", "here", "published"], rows, notes)


def _fields_table(config: str, counts: Counts, splits: list[str]) -> Table:
    table = _by_split("Questions by field", "field", counts, _names(counts, "field"), splits)
    table.rows.append(["different fields", *[sum(map(bool, column)) for column in _columns(table)]])
    if config == "questions":
        table.notes.append(
            f"The paper has {PUBLISHED_FIELDS} fields; this file also has Medicine, next to Healthcare / Medicine, and "
            "Other. The annotated files list such questions under another field."
        )
    elif config != "sample":
        table.notes.append(f"The paper has {PUBLISHED_FIELDS} fields, over all annotated questions.")
    return table


def _types_table(counts: Counts, splits: list[str]) -> Table:
    table = _by_split("Questions by type", "type", counts, _names(counts, "type"), splits)
    table.notes.append("A question may have several types.")
    return table


def _systems_table(counts: Counts) -> Table:
    columns = ["answers", "claims", "without evidence", *LABELS["usefulness"], "null"]
    systems = [*SYSTEMS, *(name for name in _names(counts, "system") if name not in SYSTEMS)]
    rows: list[list[Any]] = [[name, *[counts["system", name, column] for column in columns]] for name in systems]
    rows.append(["all", *[sum(row[i] for row in rows) for i in range(1, len(columns) + 1)]])
    return Table(
        "Answers and claims by system, all splits",
        ["system", "answers", "claims", "claims without evidence", *LABELS["usefulness"], "no usefulness"],
        rows,
    )


def _labels_table(counts: Counts, splits: list[str]) -> Table:
    labels = [(key, value) for key in CLAIM_LABELS for value in (*LABELS[key], "null")]
    rows = [[f"{key}: {value}", *_cells(counts, key, value, splits)] for key, value in labels]
    notes = ["autoais_label is the verdict of a model, not of the experts; null includes missing fields."]
    return Table("Labels of claims", ["label", *_headings(splits)], rows, notes)


def _oddities_table(counts: Counts, splits: list[str]) -> Table:
    names = ["claims", *sorted(name for name in _names(counts, "oddity") if name != "claims")]
    table = _by_split("Oddities", "count", counts, names, splits, key="oddity")
    table.notes.append("A claim without one of the experts' labels may still have the others.")
    return table


def _by_split(
    title: str, heading: str, counts: Counts, names: list[str], splits: list[str], *, key: str | None = None
) -> Table:
    rows = [[name, *_cells(counts, key or heading, name, splits)] for name in names]
    return Table(title, [heading, *_headings(splits)], rows)


def _headings(splits: list[str]) -> list[str]:
    return [*splits, "all"] if len(splits) > 1 else splits


def _cells(counts: Counts, key: str, name: str, splits: list[str]) -> list[int]:
    cells = [counts[key, name, split] for split in splits]
    return [*cells, sum(cells)] if len(splits) > 1 else cells


def _names(counts: Counts, key: str) -> list[str]:
    return sorted({name for table, name, _ in counts if table == key})


def _columns(table: Table) -> list[list[int]]:
    return [[row[i] for row in table.rows] for i in range(1, len(table.columns))]
