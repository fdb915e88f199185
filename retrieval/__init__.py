"""Retrieval over columns of datasets."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from qabench.retrieval.bm25.hits import Hits
from qabench.retrieval.bm25.index import BM25Index
from qabench.retrieval.bm25.tokenizers import Words

if TYPE_CHECKING:
    from qabench.retrieval.bm25.attach import add_bm25_index
    from qabench.retrieval.documents import DocumentHits
    from qabench.retrieval.engines import open_engine
    from qabench.retrieval.lucene import LuceneIndex
    from qabench.retrieval.opensearch import OpenSearchIndex
    from qabench.retrieval.wiki.chunk import chunk_text
    from qabench.retrieval.wiki.client import wiki_content, wiki_search

__all__ = [
    "BM25Index",
    "DocumentHits",
    "Hits",
    "LuceneIndex",
    "OpenSearchIndex",
    "Words",
    "add_bm25_index",
    "chunk_text",
    "open_engine",
    "wiki_content",
    "wiki_search",
]

# These names are imported on first use, because many modules import datasets or an HTTP client.
_LAZY = {
    "DocumentHits": "documents",
    "LuceneIndex": "lucene",
    "OpenSearchIndex": "opensearch",
    "add_bm25_index": "bm25.attach",
    "chunk_text": "wiki.chunk",
    "open_engine": "engines",
    "wiki_content": "wiki.client",
    "wiki_search": "wiki.client",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"qabench.retrieval.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'qabench.retrieval' has no attribute {name!r}")
