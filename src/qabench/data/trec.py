"""Rankings in the format of TREC runs, as predictions."""

from __future__ import annotations

from math import isfinite

from qabench.data.predictions import Prediction, Predictions
from qabench.errors import InputError
from qabench.io.limits import numbered_lines


def parse_run(data: bytes, name: str, field: str) -> Predictions:
    """Return a run's rankings: rows with "id", and in ``field`` the document ids, best first.

    As in trec_eval, documents are ordered by descending score. Fields after the tag are ignored,
    and so are comments: lines that start with "#" and are not lines of a run. Ties are broken by
    rank, then by line. (trec_eval ignores ranks, compares scores in single precision, and puts
    documents with equal scores in reverse order of their ids.)

    Args:
        data: lines of query id, "Q0", document id, rank, score, tag, separated by whitespace.
        name: the name of the file in messages.
        field: the name of the field for the document ids.

    Raises:
        InputError: a line is invalid, or a document is repeated.
    """
    rankings: dict[str, dict[str, tuple[float, int, int]]] = {}
    for number, line in numbered_lines(data):
        columns = line.decode("utf-8", "replace").split()
        try:
            query, _, docno, rank, score, _, *_ = columns
            place = -float(score), int(rank), number
            if not isfinite(place[0]):
                raise ValueError
        except ValueError:
            if line.startswith(b"#"):
                continue
            raise InputError(
                f"{name}, line {number}: {' '.join(columns)!r:.80} is not a line of a TREC run; its columns must be: "
                "query id, Q0, document id, rank (an integer), score (a number), tag"
            ) from None
        # If the document is repeated, the inner call returns the place of its first line.
        if rankings.setdefault(query, {}).setdefault(docno, place) is not place:
            raise InputError(
                f"{name}, line {number}: the document {docno} is repeated for the query {query}"
            )
    rows = []
    for query, documents in rankings.items():
        first_line = next(iter(documents.values()))[2]
        fields = {"id": query, field: sorted(documents, key=documents.__getitem__)}
        rows.append(Prediction(first_line, query, fields))
    if not rows:
        raise InputError(f"{name} is empty; a TREC run has one line per query and document")
    return Predictions(name, rows)
