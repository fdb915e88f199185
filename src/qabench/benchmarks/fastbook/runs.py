"""Read TREC runs as predictions. The texts of ranked documents come from the searched corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qabench.data.predictions import Predictions
from qabench.data.rows import json_rows
from qabench.data.trec import parse_run
from qabench.errors import InputError, some
from qabench.io.limits import json_of


def parse_corpus(data: bytes, name: str) -> dict[str, str]:
    """Return the texts of a corpus by document id.

    A corpus is JSONL with "docno", "doc_id" or "id", and "text".

    Raises:
        InputError: a line is not such an object, or an id is repeated. The message names the line.
    """
    texts: dict[str, str] = {}
    for row in json_rows(data, name):
        # The id is called docno in TREC, and doc_id in ir_datasets.
        name_of_id = "id"
        for other_name in ("doc_id", "docno"):
            if other_name in row.fields:
                name_of_id = other_name
        docno = row.get(name_of_id, str)
        if docno in texts:
            raise InputError(f"{row.where}: the document {docno!r} is repeated")
        texts[docno] = row.get("text", str)
    return texts


def with_lists(predictions: Predictions) -> Predictions:
    """Parse the lists of passages in the cells of a CSV file, which are text."""
    rows = []
    for row in predictions.rows:
        cell = row.fields.get("passages")
        if isinstance(cell, str):
            passages = _list_in(cell)
            row = replace(row, fields={**row.fields, "passages": passages})
        rows.append(row)
    return replace(predictions, rows=rows)


def _list_in(cell: str) -> object:
    """Return the JSON list in a cell, None for an empty cell, or the cell itself."""
    if not cell.strip():
        return None
    try:
        value = json_of(cell)
    except ValueError:
        return cell
    return value if isinstance(value, list) else cell


def parse_run_with_texts(data: bytes, name: str, texts: Mapping[str, str]) -> Predictions:
    """Return the rankings of a run as predictions with the texts of the documents.

    Raises:
        InputError: see ``parse_run``, or a document is not in the corpus.
    """
    run = parse_run(data, name, "documents")
    rows = []
    for row in run.rows:
        documents = row.fields["documents"]
        missing = [docno for docno in documents if docno not in texts]
        if missing:
            raise InputError(
                f"{name}: documents of the query {row.id} are not in the corpus: {some(missing)}; give the corpus that "
                "was searched"
            )
        passages = [texts[docno] for docno in documents]
        rows.append(replace(row, fields={**row.fields, "passages": passages}))
    return replace(run, rows=rows)
