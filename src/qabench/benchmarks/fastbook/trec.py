"""Runs, relevance judgments and corpora in TREC formats, which ir_measures, ranx and trec_eval also read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from qabench.benchmarks.fastbook.answer_components import covered
from qabench.data.predictions import Predictions, some
from qabench.data.rows import json_rows
from qabench.data.trec import parse_run as read_run
from qabench.errors import InputError
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

    Args:
        data: see ``qabench.data.trec.parse_run``.
        name: the file in messages.
        texts: the text of each document.

    Raises:
        InputError: a line is invalid, a document is repeated, or documents of the run are not in the corpus.
    """
    run = read_run(data, name, "documents")
    if missing := sorted({docno for row in run.rows for docno in row.fields["documents"] if docno not in texts}):
        raise InputError(
            f"{len(missing)} documents of {name} are not in the corpus: {some(missing)}; give the corpus that was "
            "searched"
        )
    rows = [
        replace(row, fields={**row.fields, "passages": [texts[docno] for docno in row.fields["documents"]]})
        for row in run.rows
    ]
    return replace(run, rows=tuple(rows))
