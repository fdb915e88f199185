"""FanOutQA's retriever: the fragments of a few pages, the best for a question first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.index import BM25Index
from qabench.retrieval.chunk import chunk_text
from qabench.retrieval.wiki.client import wiki_content
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.text import Normalizer


@dataclass(frozen=True, slots=True)
class Fragment:
    """A chunk of a page. ``score`` is its BM25+ score for the query, comparable within that query only."""

    title: str
    content: str
    score: float


class Corpus:
    """Pages, cut into chunks and ranked by BM25+ over lemmas (k1 1.5, b 0.75, delta 1).

    Chunks and scores are the official ones. Among equal scores a chunk that stands first comes first; the official
    order there is numpy's unstable ``argsort`` reversed, which differs from one processor to the next, so a comparison
    with the official ranking compares scores and groups of equal ones.

    Args:
        documents: the pages as FanOutQA names them: ``WikiPage``, or rows or objects with title, pageid and revid.
        doc_len: the most characters of a chunk.
        normalizer: what makes terms of a text, chunks and queries alike; the official scores need spaCy's
            ``en_core_web_sm``. By default ``Normalizer()``.
        content: from a document to its text; by default ``wiki_content``.
        skip_missing: leave pages out that Wikipedia did not have at the epoch, and list them in ``missing``, instead of
            raising ``PageMissing``. (The official class takes them for empty pages.)

    Attributes:
        missing: the pages that were left out.

    Raises:
        InputError: no document, or all of them are missing.
        PageMissing: see ``skip_missing``.
        MissingExtra: the lemmatizer that was asked for is not installed.

    Source: ``fanoutqa.retrieval.Corpus``, https://github.com/zhudotexe/fanoutqa; BM25+: Lv and Zhai, CIKM 2011.
    """

    def __init__(
        self,
        documents: Iterable[Any],
        doc_len: int = 2048,
        *,
        normalizer: Normalizer | None = None,
        content: Callable[[Any], str] = wiki_content,
        skip_missing: bool = False,
    ) -> None:
        self.normalizer = normalizer or Normalizer()
        self.missing: list[PageMissing] = []
        self._chunks: list[tuple[str, str]] = []
        for document in documents:
            try:
                text = content(document)
            except PageMissing as error:
                if not skip_missing:
                    raise
                self.missing.append(error)
                continue
            title = WikiPage.of(document).title
            self._chunks += ((title, chunk) for chunk in chunk_text(text, doc_len))
        if not self._chunks:
            raise InputError(f"a corpus needs at least one page; none was given that is there ({self._reasons()})")
        # All at once: the lemmatizer is far faster on many texts.
        self._forms = self.normalizer.batch(chunk for _, chunk in self._chunks)
        self._index = BM25Index([chunk for _, chunk in self._chunks], method="bm25+", tokenizer=self._terms)
        self._forms = {}

    def _reasons(self) -> str:
        return "; ".join(map(str, self.missing)) or "no documents"

    def _terms(self, text: str) -> list[str]:
        form = self._forms.get(text)
        return (self.normalizer(text) if form is None else form).split(" ")

    def __len__(self) -> int:
        """The number of chunks."""
        return len(self._chunks)

    def best(self, q: str, *, official_ties: bool = False) -> Iterator[Fragment]:
        """Every chunk, the best for the query first; if no term is known, in the order of the pages.

        Args:
            q: the query.
            official_ties: order equal scores as the official retriever does on this machine, by NumPy's unstable sort.
        """
        if official_ties:
            scores = self._index.scores(q)
            ranked = [(int(position), float(scores[position])) for position in np.argsort(scores)[::-1]]
        else:
            hits = self._index.search(q, k=len(self))
            ranked = list(zip(hits.positions, hits.scores, strict=True))
        for position, score in ranked:
            title, chunk = self._chunks[position]
            yield Fragment(title, chunk, score)
