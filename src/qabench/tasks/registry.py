"""What Inspect AI finds by the entry point: every task of this package."""

from __future__ import annotations

from qabench.tasks.evidence import evidence_provided
from qabench.tasks.expertqa import expertqa
from qabench.tasks.expertqa_answers import answer_with_citations
from qabench.tasks.expertqa_scorer import expertqa_scorer
from qabench.tasks.fanoutqa import fanoutqa_closed_book, fanoutqa_evidence_provided, fanoutqa_open_book
from qabench.tasks.fanoutqa_judge import fanoutqa_judge
from qabench.tasks.fanoutqa_scorer import fanoutqa_scorer
from qabench.tasks.fastbook import fastbook_rag
from qabench.tasks.fastbook_scorer import fastbook_scorer
from qabench.tasks.felm import felm, find_errors
from qabench.tasks.felm_scorer import felm_official, felm_scorer
from qabench.tasks.open_book import open_book

__all__ = [
    "answer_with_citations",
    "evidence_provided",
    "expertqa",
    "expertqa_scorer",
    "fanoutqa_closed_book",
    "fanoutqa_evidence_provided",
    "fanoutqa_judge",
    "fanoutqa_open_book",
    "fanoutqa_scorer",
    "fastbook_rag",
    "fastbook_scorer",
    "felm",
    "felm_official",
    "felm_scorer",
    "find_errors",
    "open_book",
]
