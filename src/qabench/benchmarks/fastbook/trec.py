"""Runs, relevance judgments and corpora in TREC formats, which ir_measures, ranx and trec_eval also read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from qabench.benchmarks.fastbook.answer_components import covered
from qabench.data.predictions import Prediction, Predictions, some
from qabench.data.rows import json_rows
from qabench.errors import InputError
from qabench.io.limits import numbered_lines
from qabench.retrieval.bm25.index import Hits
from qabench.retrieval.documents import run_lines


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
    for row in json_rows(data.split(b"\n"), name):
        docno = row.get("id" if "docno" not in row.fields else "docno", str)
        if docno in texts:
            raise InputError(f"{row.where}: the document {docno!r} is repeated")
        texts[docno] = row.get("text", str)
    return texts


def parse_run(data: bytes, name: str, texts: Mapping[str, str]) -> Predictions:
    """Return the rankings of a run as predictions: {"id", "passages"}.

    As in trec_eval, documents are ordered by score, the highest first; ties are broken by rank, then by line.

    Args:
        data: lines of query id, "Q0", document id, rank, score, tag, separated by whitespace.
        name: the file in messages.
        texts: the text of each document.

    Raises:
        InputError: a line is invalid, a document is repeated, or documents of the run are not in the corpus.
    """
    rankings: dict[str, dict[str, tuple[float, int, int]]] = {}
    for number, line in numbered_lines(data):
        columns = line.decode("utf-8", "replace").split()
        try:
            query, _, docno, rank, score, _ = columns
            place = -float(score), int(rank), number
            if not isfinite(place[0]):
                raise ValueError
        except ValueError:
            raise InputError(
                f"{name}, line {number}: {' '.join(columns)!r:.80} is not a line of a TREC run; its columns must be: "
                "query id, Q0, document id, rank (an integer), score (a number), tag"
            ) from None
        if rankings.setdefault(query, {}).setdefault(docno, place) is not place:
            raise InputError(f"{name}, line {number}: the document {docno} is repeated for the query {query}")
    if not rankings:
        raise InputError(f"{name} is empty; a TREC run has one line per query and document")
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
    return Predictions(name, tuple(rows))
