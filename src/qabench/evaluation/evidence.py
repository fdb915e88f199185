"""Recall and precision of evidence pages, for benchmarks whose data name such pages. No authors have such scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """The evidence pages of one question.

    Attributes:
        recall: the share of the evidence pages that were read, in [0, 1]; 0 if no page was read.
        precision: the share of the pages read that are evidence, in [0, 1]; None if no page was read.
        missing: positions of the evidence pages that were not read; a repeated page is named by its first position.
        n_read: the number of pages read; a page that was read several times counts once.
    """

    recall: float
    precision: float | None
    missing: tuple[int, ...]
    n_read: int

    def columns(self) -> dict[str, float]:
        """Return the columns of ``qabench.evaluation.metric.evidence_metrics``."""
        precision = {} if self.precision is None else {"evidence.precision": self.precision}
        return {"evidence.recall": self.recall} | precision


def compare_pages(evidence: Mapping[int, frozenset[Any]], read: Collection[frozenset[Any]]) -> EvidenceScore:
    """Compare the distinct pages read with a question's evidence, by position; the same pages share an identifier."""
    missing = tuple(position for position, keys in evidence.items() if not any(keys & page for page in read))
    relevant = sum(any(keys & page for keys in evidence.values()) for page in read)
    precision = relevant / len(read) if read else None
    return EvidenceScore((len(evidence) - len(missing)) / len(evidence), precision, missing, len(read))
