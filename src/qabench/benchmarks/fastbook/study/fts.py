"""Full-text search with SQLite's FTS5, the source's first method."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

from qabench.benchmarks.fastbook.study.queries import Query, match_expression
from qabench.errors import QabenchError
from qabench.retrieval.bm25.index import Hits

SEARCH = "SELECT rowid, rank FROM chunks WHERE chunks MATCH ? AND chapter = ? ORDER BY rank, rowid LIMIT ?"


def rank_fts(corpus: Mapping[int, Sequence[str]], queries: Sequence[Query], k: int) -> list[Hits]:
    """The chunks of each query's chapter that contain one of its words, by FTS5's BM25 (k1 1.2, b 0.75).

    One table contains the chunks of all chapters, as in the source: document frequencies are those of the whole book,
    and the column with the chapter's number is searched, too. Scores are the negated ``rank``, so higher is better;
    ties are broken by ascending position. A query without a known word has no results.

    Raises:
        QabenchError: this Python's SQLite does not have FTS5.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE chunks USING fts5(chapter, text)")
        except sqlite3.OperationalError as error:
            raise QabenchError(
                f"full-text search needs SQLite with FTS5; this Python has SQLite {sqlite3.sqlite_version} ({error})"
            ) from None
        starts: dict[int, int] = {}
        total = 0
        for chapter, chunks in corpus.items():
            starts[chapter] = total
            rows = ((total + i, str(chapter), text) for i, text in enumerate(chunks))
            connection.executemany("INSERT INTO chunks(rowid, chapter, text) VALUES (?, ?, ?)", rows)
            total += len(chunks)
        return [_search(connection, query, starts[query.chapter], k) for query in queries]


def _search(connection: sqlite3.Connection, query: Query, start: int, k: int) -> Hits:
    expression = match_expression(query.text)
    if not expression:
        return Hits([], [])
    found = connection.execute(SEARCH, (expression, str(query.chapter), k)).fetchall()
    return Hits([rowid - start for rowid, _ in found], [-rank for _, rank in found])
