"""FanOutQA's retriever, which ranks the passages of a few pages for a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.benchmarks.fanoutqa.normalizer import Normalizer
from qabench.errors import InputError
from qabench.retrieval.bm25.index import BM25Index
from qabench.retrieval.wiki.chunk import chunk_text
from qabench.retrieval.wiki.client import wiki_content
from qabench.retrieval.wiki.page import WikiPage


class FanOutQAWords:
    """The terms of FanOutQA's retriever: the officially normalized text, split at each space.

    As upstream, a space at the beginning or end of the normalized text gives an empty term, and so
    does an empty text.

    Args:
        lemmatizer: a lemmatizer (see ``qabench.text.resolve_lemmatizer``; spaCy's en_core_web_sm is
            the official one), or a ``Normalizer``, which can have a cache.
    """

    def __init__(self, lemmatizer: Any = "auto") -> None:
        self._normalizer = lemmatizer if hasattr(lemmatizer, "batch") else Normalizer(lemmatizer)

    @property
    def name(self) -> str:
        """Return the tokenizer's name in saved indexes."""
        return f"fanoutqa-words-1/{self._normalizer.key}"

    def __call__(self, text: str) -> list[str]:
        """Return the text's terms."""
        return self._normalizer(text).split(" ")

    def batch(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the terms of each text. The texts are lemmatized together, which is faster."""
        forms = self._normalizer.batch(texts)
        return [forms[text].split(" ") for text in texts]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A chunk of a page.

    Attributes:
        title: the page's title.
        content: the text.
        score: the chunk's BM25+ score, comparable within one query only.
    """

    title: str
    content: str
    score: float


class Corpus:
    """Pages split into chunks, which are ranked by BM25+ over lemmas (k1 1.5, b 0.75, delta 1).

    Chunks and scores are the official ones. Chunks with equal scores are in the order of the text.
    The official retriever orders them by NumPy's unstable ``argsort``, reversed, so their order
    depends on the processor. Therefore, only the scores, and the sets of chunks with equal scores,
    can be compared with the official ranking.

    Args:
        documents: the pages: ``WikiPage`` objects, or rows or objects with title, pageid and revid.
        doc_len: the largest number of characters of a chunk.
        normalizer: turns chunks and queries into terms. By default ``Normalizer()``. Official
            scores need spaCy's ``en_core_web_sm``.
        content: returns the text of a document. By default ``wiki_content``.

    Raises:
        InputError: the list is empty.
        PageMissing: a page did not exist at the dataset's date. (The official class treats it as an
            empty page.)
        MissingExtra: the lemmatizer is not installed.

    Source: ``fanoutqa.retrieval.Corpus``, https://github.com/zhudotexe/fanoutqa. BM25+: Lv and
        Zhai, CIKM 2011.
    """

    def __init__(
        self,
        documents: Iterable[Any],
        doc_len: int = 2048,
        *,
        normalizer: Normalizer | None = None,
        content: Callable[[Any], str] = wiki_content,
    ) -> None:
        self.normalizer = normalizer or Normalizer()
        self._chunks: list[tuple[str, str]] = []
        for document in documents:
            title = WikiPage.of(document).title
            # As upstream, a page without text has one empty chunk, so every document has a chunk.
            for chunk in chunk_text(content(document), doc_len):
                self._chunks.append((title, chunk))
        if not self._chunks:
            raise InputError("a corpus needs at least one page")
        terms = FanOutQAWords(self.normalizer)
        texts = [chunk for _, chunk in self._chunks]
        self._index = BM25Index(texts, method="bm25+", tokenizer=terms)

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._chunks)

    def best(self, q: str, *, official_ties: bool = False) -> Iterator[Fragment]:
        """Yield all chunks, best first, or in the order of the pages if no query term occurs.

        ``official_ties`` orders equal scores as the official retriever does on this machine, by
        NumPy's unstable sort.
        """
        if official_ties:
            all_scores = self._index.scores(q)
            order = np.argsort(all_scores)[::-1]
            positions, scores = order.tolist(), all_scores[order].tolist()
        else:
            hits = self._index.search(q, k=len(self))
            positions, scores = hits.positions, hits.scores
        for position, score in zip(positions, scores, strict=True):
            title, chunk = self._chunks[position]
            yield Fragment(title, chunk, score)
