"""Statistics of ExpertQA, computed from the dataset's rows.

Sources of the published numbers: the README of the authors' repository, the paper (Malaviya et al.,
NAACL 2024), and the sizes of the published splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from qabench.data.rows import Row, Splits
from qabench.io.tables import Table, count_table
from qabench.loading_scripts.expertqa.parse import LABELS

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
CLAIM_LABELS = [key for key in LABELS if key != "usefulness"]
FIELDS, TYPES, LABELS_OF_CLAIMS = "Questions by field", "Questions by type", "Labels of claims"
ANSWERS = "Answers and claims by system, all splits"
ROWS = {
    ANSWERS: [
        "answers",
        "claims",
        "claims without evidence",
        *LABELS["usefulness"],
        "no usefulness",
    ],
    LABELS_OF_CLAIMS: [
        f"{key}: {label}" for key in CLAIM_LABELS for label in (*LABELS[key], "null")
    ],
}
NOTES = {
    FIELDS: [
        "The paper has 32 fields. The file of all questions also has Medicine, next to Healthcare / Medicine, and "
        "Other; the annotated files list such questions under another field."
    ],
    TYPES: ["A question may have several types."],
    LABELS_OF_CLAIMS: [
        "autoais_label is the verdict of a model, not of the experts; null includes missing fields."
    ],
}


def tables(config: str, splits: Splits) -> list[Table]:
    """Count rows by split, and whatever the rows have of fields, types, answers by system, and labels of claims."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    sizes = dict.fromkeys(splits, 0)
    for split, rows in splits.items():
        for row in rows:
            sizes[split] += 1
            for title, name, column in _tallies(row, split):
                counts.setdefault(title, Counter())[name, column] += 1
    lines = [[split, size, PUBLISHED_ROWS.get((config, split))] for split, size in sizes.items()]
    tables = [Table("Rows", ["split", "here", "published"], lines)]
    for title in (FIELDS, TYPES, ANSWERS, LABELS_OF_CLAIMS):
        if title in counts:
            columns = (
                sorted({system for _, system in counts[ANSWERS]})
                if title == ANSWERS
                else list(splits)
            )
            table = count_table(
                title, "count", counts[title], columns, ROWS.get(title), total="all"
            )
            tables.append(replace(table, notes=NOTES.get(title, [])))
    return tables


def _tallies(row: Row, split: str) -> Iterator[tuple[str, str, str]]:
    """Yield the table, row and column of each count in a row of the dataset."""
    if "metadata" in row:
        yield FIELDS, row["metadata"]["field"], split
        yield from ((TYPES, kind, split) for kind in row["metadata"]["question_type"])
    for answer in row.get("answers", ()):
        system = answer["system"]
        yield ANSWERS, "answers", system
        yield ANSWERS, answer["usefulness"] or "no usefulness", system
        for claim in answer["claims"] or ():
            yield ANSWERS, "claims", system
            if not claim["evidence"]:
                yield ANSWERS, "claims without evidence", system
            yield from (
                (LABELS_OF_CLAIMS, f"{key}: {claim[key] or 'null'}", split) for key in CLAIM_LABELS
            )
