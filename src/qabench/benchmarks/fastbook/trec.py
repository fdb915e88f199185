"""Runs, relevance judgments and corpora in TREC formats, which ir_measures, ranx and trec_eval also read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from qabench.benchmarks.fastbook.answer_components import covered
from qabench.data.predictions import BadLine, Prediction, Predictions, some
from qabench.errors import InputError
from qabench.io.limits import json_of, numbered_lines, why_not_json
from qabench.retrieval.bm25.index import Hits
from qabench.retrieval.documents import run_lines

COLUMNS = "query id, Q0, document id, rank, score, tag"
DOCUMENT_KEYS = ("docno", "id")


def doc_id(chapter: int, position: int) -> str:
    """Return the id of a chunk: "13-c4" is the chunk at position 4 (from 0) of chapter 13."""
    return f"{chapter}-c{position}"


def run_text(questions: Sequence[Mapping[str, Any]], hits: Sequence[Hits], tag: str) -> str:
    """Return a TREC run; see ``run_lines``."""
    tag = "".join(tag.split()) or "run"
    return "".join(
        run_lines(row["id"], [(doc_id(row["chapter"], position), score) for position, score in ranking], tag)
        for row, ranking in zip(questions, hits, strict=True)
    )


def qrels_text(questions: Sequence[Mapping[str, Any]], corpus: Mapping[int, Sequence[str]]) -> str:
    """Return judgments: lines of query id, "0", document id, and the number of answer components in the chunk.

    Every chunk of a question's chapter is judged, including those with 0, so that a question whose components are in no
    chunk is part of the means of other programs, as in qabench.
    """
    lines = []
    for row in questions:
        for position, components in enumerate(covered(row, corpus[row["chapter"]])):
            lines.append(f"{row['id']} 0 {doc_id(row['chapter'], position)} {components.bit_count()}\n")
    return "".join(lines)


def corpus_text(corpus: Mapping[int, Sequence[str]]) -> str:
    """Return a corpus: JSONL, one {"docno", "text"} per chunk."""
    return "".join(
        json.dumps({"docno": doc_id(chapter, position), "text": chunk}, ensure_ascii=False) + "\n"
        for chapter, chunks in corpus.items()
        for position, chunk in enumerate(chunks)
    )


def parse_corpus(data: bytes, name: str) -> dict[str, str]:
    """Return the texts of a corpus by document id: JSONL with "docno" or "id", and "text".

    Raises:
        InputError: a line is not such an object, or an id is repeated; the message names the line.
    """
    texts: dict[str, str] = {}
    for number, line in numbered_lines(data):
        where = f"{name}, line {number}"
        try:
            row = json_of(line)
        except ValueError as error:
            raise InputError(f"{where}: {why_not_json(error)}") from None
        docno = next((row[key] for key in DOCUMENT_KEYS if key in row), None) if isinstance(row, dict) else None
        if not isinstance(docno, str) or not isinstance(row.get("text"), str):
            raise InputError(f'{where}: {row!r:.80}; a line of a corpus must be {{"docno": "...", "text": "..."}}')
        if docno in texts:
            raise InputError(f"{where}: the document {docno!r} is repeated")
        texts[docno] = row["text"]
    return texts


def parse_run(data: bytes, name: str, texts: Mapping[str, str]) -> Predictions:
    """Return the rankings of a run as predictions: {"id", "passages"}.

    As in trec_eval, documents are ordered by score, the highest first; ties are broken by rank, then by line.

    Args:
        data: lines of query id, "Q0", document id, rank, score, tag, separated by whitespace.
        name: the file in messages.
        texts: the text of each document.

    Raises:
        InputError: no line is valid, or documents of the run are not in the corpus.
    """
    rankings: dict[str, dict[str, tuple[float, int, int]]] = {}
    bad: list[BadLine] = []
    for number, line in numbered_lines(data):
        columns = line.decode("utf-8", "replace").split()
        if reason := _bad_columns(columns):
            bad.append(BadLine(number, reason))
            continue
        query, _, docno, rank, score, _ = columns
        documents = rankings.setdefault(query, {})
        if docno in documents:
            bad.append(BadLine(number, f"the document {docno} is repeated for the query {query}"))
            continue
        documents[docno] = (-float(score), int(rank), number)
    if not rankings:
        first = f"; line {bad[0].line}: {bad[0].reason}" if bad else " (it is empty)"
        raise InputError(f"{name} is not a TREC run{first}. The columns of a line must be: {COLUMNS}")
    if missing := sorted({docno for documents in rankings.values() for docno in documents if docno not in texts}):
        raise InputError(
            f"{len(missing)} documents of {name} are not in the corpus: {some(missing)}; give the corpus that was "
            "searched"
        )
    rows = []
    for query, documents in rankings.items():
        ranked = sorted(documents, key=lambda docno: documents[docno])
        fields = {"id": query, "passages": [texts[docno] for docno in ranked], "documents": ranked}
        rows.append(Prediction(min(line for _, _, line in documents.values()), query, fields))
    return Predictions(name, tuple(rows), tuple(bad))


def _bad_columns(columns: list[str]) -> str | None:
    """Return why the columns are not a line of a run, or None."""
    if len(columns) != 6:
        return f"{len(columns)} columns instead of 6 ({COLUMNS})"
    try:
        int(columns[3])
    except ValueError:
        return f"the rank {columns[3]!r} is not an integer"
    try:
        return None if isfinite(float(columns[4])) else f"the score {columns[4]!r} is not finite"
    except ValueError:
        return f"the score {columns[4]!r} is not a number"
