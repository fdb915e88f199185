"""Documents and hits of search engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.retrieval.bm25.hits import Ranking

# Fields with the text of a document. The first one that exists is used.
TEXTS = ("contents", "text")


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a search engine.

    Attributes:
        id: the document's id in the engine.
        text: the document's text.
        source: the document's address or title, or "" if unknown.
    """

    id: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class DocumentHits(Ranking):
    """The result of one query to a search engine, the best document first.

    Iterating gives (id, score) pairs.

    Attributes:
        documents: the documents.
        scores: their scores.
    """

    documents: list[Document]
    scores: list[float]
    # Tables of these hits show the documents in a column of this name. See ``Ranking``.
    documents_are = "id"

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return zip(self.ids, self.scores, strict=True)

    @property
    def ids(self) -> list[str]:
        """Return the ids of the documents."""
        return [document.id for document in self.documents]


def run_lines(query: str, ranking: Iterable[tuple[str, float]], tag: str) -> str:
    """Return the lines of a TREC run for one query.

    The columns are query id, "Q0", document id, rank (from 1), score and tag. Programs that read
    runs sort by score, some after rounding it to 32 bits, and break ties in different ways. So
    scores are written as 32-bit numbers, and a score that is not below the previous one is replaced
    by the next smaller number.
    """
    lines, last = [], np.float32(np.inf)
    for rank, (document, score) in enumerate(ranking, 1):
        last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
        lines.append(f"{query} Q0 {document} {rank} {last!s} {tag}\n")
    return "".join(lines)


def document_of(
    fields: Mapping[str, Any], id: str, texts: Iterable[str] = TEXTS
) -> Document | None:
    """Return the document with these fields, or None if none of ``texts`` is a string."""
    strings = {name: value for name, value in fields.items() if isinstance(value, str)}
    for name in texts:
        if name in strings:
            source = strings.get("url") or strings.get("title") or ""
            return Document(id, strings[name], source)
    return None
