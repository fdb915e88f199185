"""Statistics of FanOutQA, computed from the dataset's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from qabench.answers import loads, type_name
from qabench.data.rows import Json, Row, Splits
from qabench.io.tables import Table, count_table

# Zhu et al. 2024 count 310 development and 724 test questions.
PUBLISHED_QUESTIONS = {"dev": 310, "test": 724}
TYPES = ("dict", "list", "str", "int", "float", "bool")
PARTS = ("answers", "dict values", "list items", "sub-question answers")


def tables(config: str, splits: Splits) -> list[Table]:
    """Count questions, evidence and categories of a config, also types of answers if they are public."""
    rows = [row for split in splits.values() for row in split]
    tables = [_questions(config, rows)]
    if rows and "answer" in rows[0]:
        nodes = [node for row in rows for node in subquestions(loads(row["decomposition"]))]
        parts = list(_parts(loads(row["answer"]) for row in rows))
        parts += [("sub-question answers", node["answer"]) for _, node in nodes]
        types = Counter((type_name(value), part) for part, value in parts)
        depths = Counter((f"depth {depth}", "sub-questions") for depth, _ in nodes)
        tables.append(count_table("Answers by type", "type", types, PARTS, TYPES))
        tables.append(count_table("Sub-questions by depth", "depth", depths, ["sub-questions"]))
    categories = Counter((category, "questions") for row in rows for category in row["categories"])
    names = [name for (name, _), _ in categories.most_common()]
    return [
        *tables,
        count_table("Questions by category", "category", categories, ["questions"], names),
    ]


def _questions(config: str, rows: list[Row]) -> Table:
    pages = [page for row in rows for page in row["necessary_evidence"]]
    counts = [len(row["necessary_evidence"]) for row in rows]
    notes = []
    if config == "test_nov23":
        notes.append(
            "The corrections of 2026 removed question 36146d2306ce9ca3, so test has one question fewer."
        )
    figures = {
        "questions": len(rows),
        "pages of evidence": len(pages),
        "pages per question, mean": round(len(pages) / len(rows), 2) if rows else None,
        "pages per question, minimum": min(counts, default=None),
        "pages per question, maximum": max(counts, default=None),
        "different pages (titles)": len({page["title"] for page in pages}),
        "pages without a revid": sum(page["revid"] is None for page in pages),
        "pages without a pageid": sum(page["pageid"] is None for page in pages),
    }
    published = {"questions": PUBLISHED_QUESTIONS.get(config)}
    lines = [[name, published.get(name), figure] for name, figure in figures.items()]
    return Table(
        f"FanOutQA {config}: questions and evidence", ["count", "published", "here"], lines, notes
    )


def _parts(answers: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield (one of PARTS, value) for each answer and for the values that it contains."""
    for answer in answers:
        yield "answers", answer
        if isinstance(answer, dict):
            yield from (("dict values", value) for value in answer.values())
        elif isinstance(answer, list):
            yield from (("list items", value) for value in answer)


def subquestions(decomposition: list[Json], depth: int = 1) -> Iterator[tuple[int, Json]]:
    """Yield the sub-questions of a decomposition as (depth, sub-question), each node before its children."""
    for node in decomposition:
        yield depth, node
        yield from subquestions(node["decomposition"], depth + 1)
