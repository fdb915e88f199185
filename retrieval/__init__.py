"""Retrieval over columns of datasets."""

from qabench.retrieval.bm25 import BM25Index, Hits

__all__ = ["BM25Index", "Hits"]
