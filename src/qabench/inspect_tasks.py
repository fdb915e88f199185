"""What Inspect AI finds by the entry point: every task of this package."""

from __future__ import annotations

from qabench.benchmarks.expertqa.answers import answer_with_citations
from qabench.benchmarks.expertqa.scorer import expertqa_scorer
from qabench.benchmarks.expertqa.tasks import expertqa
from qabench.benchmarks.fanoutqa.evidence import evidence_provided
from qabench.benchmarks.fanoutqa.open_book import open_book
from qabench.benchmarks.fanoutqa.scorer import fanoutqa_scorer
from qabench.benchmarks.fanoutqa.tasks import fanoutqa_closed_book, fanoutqa_evidence_provided, fanoutqa_open_book
from qabench.benchmarks.fastbook.scorer import fastbook_scorer
from qabench.benchmarks.fastbook.tasks import fastbook_rag
from qabench.benchmarks.felm.scorer import felm_scorer
from qabench.benchmarks.felm.tasks import felm, find_errors

__all__ = [
    "answer_with_citations",
    "evidence_provided",
    "expertqa",
    "expertqa_scorer",
    "fanoutqa_closed_book",
    "fanoutqa_evidence_provided",
    "fanoutqa_open_book",
    "fanoutqa_scorer",
    "fastbook_rag",
    "fastbook_scorer",
    "felm",
    "felm_scorer",
    "find_errors",
    "open_book",
]
