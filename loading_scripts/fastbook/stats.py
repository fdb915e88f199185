"""Statistics of fastbook-benchmark, computed from the dataset's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from qabench.data.rows import Row, Splits
from qabench.io.tables import Table

Count = Callable[[Mapping[str, Any]], int]

CHAPTERS = (1, 2, 4, 8, 9, 10, 13)
ALL = "all"
# By config and title: what a row counts, and the published numbers by chapter (the tables of the
# source's README).
FIGURES: dict[str, dict[str, tuple[Count, tuple[int, ...]]]] = {
    "questions": {
        "Questions by chapter": (lambda row: 1, (30, 26, 31, 23, 27, 20, 34)),
        "Answer components by chapter": (
            lambda row: len(row["answer_context"]),
            (78, 58, 73, 31, 48, 27, 42),
        ),
        "Answer components without context by chapter": (
            lambda row: sum(not part["context"] for part in row["answer_context"]),
            (8, 5, 8, 1, 1, 1, 1),
        ),
        "Answer components with explicit_context false by chapter": (
            lambda row: sum(not part["explicit_context"] for part in row["answer_context"]),
            (8, 5, 10, 3, 4, 4, 7),
        ),
        "Answer components with extraneous_answer true by chapter": (
            lambda row: sum(part["extraneous_answer"] for part in row["answer_context"]),
            (7, 2, 8, 1, 0, 0, 1),
        ),
    },
    "corpus": {"Characters of the text by chapter": (lambda row: len(row["text"]), ())},
    "keywords": {"Keyword queries by chapter": (lambda row: 1, (30, 26, 31, 23, 27, 20, 34))},
    "chunks": {"Chunks by chapter": (lambda row: 1, ())},
    "qrels": {
        "Judged chunks by chapter": (lambda row: 1, ()),
        "Chunks with an answer component, by chapter": (lambda row: row["relevance"] > 0, ()),
    },
    "contexts": {
        "Passages by chapter": (lambda row: 1, ()),
        "Answer components with a passage, by chapter": (
            lambda row: row["context_index"] == 0,
            (70, 53, 65, 30, 47, 26, 41),
        ),
    },
}
PUBLISHED_MEANS = {1: 2.6, 2: 2.2, 4: 2.4, 8: 1.3, 9: 1.8, 10: 1.4, 13: 1.2, ALL: 1.9}
PUBLISHED_CHARACTERS = 503_769  # of all seven chapters. The source does not have them by chapter


def tables(config: str, splits: Splits) -> list[Table]:
    """Return the source's tables for a config.

    The tables of the sample have no published numbers.
    """
    rows = [row for split in splits.values() for row in split]
    kind = "questions" if config == "sample" else config.removeprefix("sample_")
    tables = []
    for title, (count, by_chapter) in FIGURES[kind].items():
        published: dict[Any, Any] = dict(zip(CHAPTERS, by_chapter, strict=False))
        if by_chapter:
            published[ALL] = sum(by_chapter)
        elif kind == "corpus":
            published = {ALL: PUBLISHED_CHARACTERS}
        counts: Counter[int] = Counter()
        for row in rows:
            counts[_chapter(row)] += count(row)
        figures = dict(sorted(counts.items())) | {ALL: counts.total()}
        tables.append(_by_chapter(title, figures, {} if config.startswith("sample") else published))
    if kind == "questions":
        questions, components = tables[:2]
        pairs = zip(questions.rows, components.rows, strict=True)
        means = {
            row[0]: round(row_of_parts[2] / row[2], 1) for row, row_of_parts in pairs if row[2]
        }
        published = {} if config == "sample" else PUBLISHED_MEANS
        tables.insert(
            2, _by_chapter("Answer components per question, mean by chapter", means, published)
        )
    return tables


def _by_chapter(title: str, figures: Mapping[Any, Any], published: Mapping[Any, Any]) -> Table:
    lines = [[chapter, published.get(chapter), figure] for chapter, figure in figures.items()]
    return Table(title, ["chapter", "published", "here"], lines)


def _chapter(row: Row) -> int:
    """Return the chapter of a row.

    qrels have it only in their ids, such as "13-4".
    """
    return int(row["chapter"] if "chapter" in row else row["query_id"].partition("-")[0])
