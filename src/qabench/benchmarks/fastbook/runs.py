"""TREC runs as predictions: the ranked documents get the texts of the corpus that was searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qabench.data.predictions import Predictions, parse_run, some
from qabench.data.rows import json_rows
from qabench.errors import InputError


def parse_corpus(data: bytes, name: str) -> dict[str, str]:
    """Return the texts of a corpus by document id: JSONL with "docno", "doc_id" or "id", and "text".

    Raises:
        InputError: a line is not such an object, or an id is repeated. The message names the line.
    """
    texts: dict[str, str] = {}
    for row in json_rows(data, name):
        name_of_id = next((key for key in ("docno", "doc_id") if key in row.fields), "id")
        docno = row.get(name_of_id, str)
        if docno in texts:
            raise InputError(f"{row.where}: the document {docno!r} is repeated")
        texts[docno] = row.get("text", str)
    return texts


def parse_run_with_texts(data: bytes, name: str, texts: Mapping[str, str]) -> Predictions:
    """Return the rankings of a run as predictions with the texts of the documents (see ``parse_run``).

    Raises InputError also for documents that are not in the corpus.
    """
    run = parse_run(data, name, "documents")
    rows = []
    for row in run.rows:
        documents = row.fields["documents"]
        if missing := [docno for docno in documents if docno not in texts]:
            raise InputError(
                f"{name}: documents of the query {row.id} are not in the corpus: {some(missing)}; give the corpus that "
                "was searched"
            )
        passages = [texts[docno] for docno in documents]
        rows.append(replace(row, fields={**row.fields, "passages": passages}))
    return replace(run, rows=rows)
