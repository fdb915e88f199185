"""Statistics of FanOutQA, computed from the dataset's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from qabench.answers import loads, subquestions, type_name
from qabench.io.tables import Table
from qabench.loading_scripts import LEADERBOARD
from qabench.loading_scripts.fanoutqa.leaderboard import scores_of_rows
from qabench.loading_scripts.published import published_table

# Zhu et al. 2024 count 310 development and 724 test questions.
PUBLISHED_QUESTIONS = {"dev": 310, "test": 724}
TYPES = ("dict", "list", "str", "int", "float", "bool")
TOP_CATEGORIES = 10


def tables(config: str, splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Table]:
    """Count questions, evidence and categories of a config; answers and decompositions where they are public."""
    rows = [row for split in splits.values() for row in split]
    if config == LEADERBOARD:
        scores = scores_of_rows(rows)
        return [published_table(score for score in scores if not score.metric.endswith((".precision", ".recall")))]
    tables = [_questions(config, rows), _categories(rows)]
    if rows and "answer" in rows[0]:
        tables[1:1] = _answers([loads(row["answer"]) for row in rows], [loads(row["decomposition"]) for row in rows])
    return tables


def _questions(config: str, rows: list[Mapping[str, Any]]) -> Table:
    pages = [page for row in rows for page in row["necessary_evidence"]]
    counts = [len(row["necessary_evidence"]) for row in rows]
    published = PUBLISHED_QUESTIONS.get(config)
    notes = []
    if config == "test_nov23":
        notes.append("The corrections of 2026 removed question 36146d2306ce9ca3, so test has one question fewer.")
    return Table(
        f"FanOutQA {config}: questions and evidence",
        ["count", "published", "here"],
        [
            ["questions", published, len(rows)],
            ["pages of evidence", None, len(pages)],
            ["pages per question, mean", None, round(len(pages) / len(rows), 2) if rows else None],
            ["pages per question, minimum", None, min(counts, default=None)],
            ["pages per question, maximum", None, max(counts, default=None)],
            ["different pages (titles)", None, len({page["title"] for page in pages})],
            ["pages without a revid", None, sum(page["revid"] is None for page in pages)],
            ["pages without a pageid", None, sum(page["pageid"] is None for page in pages)],
        ],
        notes,
    )


def _answers(answers: list[Any], decompositions: list[list[dict[str, Any]]]) -> list[Table]:
    nodes = [item for decomposition in decompositions for item in subquestions(decomposition)]
    kinds = Counter(map(type_name, answers))
    values = _dict_values(answers)
    sub_values = _dict_values(node["answer"] for _, node in nodes)
    items = Counter(type_name(v) for a in answers if isinstance(a, list) for v in a)
    subs = Counter(type_name(node["answer"]) for _, node in nodes)
    depths = Counter(depth for depth, _ in nodes)
    by_type = [[kind, kinds[kind], values[kind], items[kind], subs[kind], sub_values[kind]] for kind in TYPES]
    by_depth: list[list[Any]] = [[f"depth {depth}", depths[depth]] for depth in sorted(depths)]
    without = sum(node["evidence"] is None for _, node in nodes)
    return [
        Table(
            "Answers by type",
            ["type", "answers", "dict values", "list items", "sub-question answers", "their dict values"],
            by_type,
        ),
        Table(
            "Sub-questions",
            ["where", "count"],
            [*by_depth, ["all depths", len(nodes)], ["without evidence (they have sub-questions)", without]],
        ),
    ]


def _dict_values(answers: Iterable[Any]) -> Counter[str]:
    return Counter(type_name(value) for answer in answers if isinstance(answer, dict) for value in answer.values())


def _categories(rows: list[Mapping[str, Any]]) -> Table:
    counts = Counter(category for row in rows for category in row["categories"])
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP_CATEGORIES]
    note = (
        f"A question has one to {max((len(row['categories']) for row in rows), default=0)} of {len(counts)} categories."
    )
    return Table(
        f"The {len(top)} most frequent categories", ["category", "questions"], [list(item) for item in top], [note]
    )
