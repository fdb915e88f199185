"""The formulas of the BM25 family: one short function per method.

A score is a sum over the query's terms, including repetitions. For each term, a method defines:

- the inverse document frequency, from the number of documents ``n`` and the term's document
  frequency ``df``
- the weight in a document that contains the term, from its count ``tf`` and the document's relative
  length
- the weight in a document that does not contain it

For the methods of ``rank_bm25``, the operations and their order are the same as in that package, so
that scores agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from qabench.errors import InputError, unknown_name
from qabench.retrieval.bm25.search import Floats, Ints

DELTAS = {"bm25+": 1.0, "bm25l": 0.5, "bm25l-paper": 0.5}


def idf_robertson(n: int, df: int) -> float:
    """Return Robertson and Sparck Jones' weight, below 0 if most documents have the term."""
    # As in rank_bm25: the logarithm of the quotient would differ in the last bits.
    return math.log(n - df + 0.5) - math.log(df + 0.5)


def idf_floored(n: int, df: int) -> float:
    """Return ``idf_robertson``, or 0 if it is negative, as bm25s does for "robertson"."""
    return math.log(max(1.0, (n - df + 0.5) / (df + 0.5)))


def idf_lucene(n: int, df: int) -> float:
    """Return Lucene's weight, always above 0."""
    return math.log(1 + (n - df + 0.5) / (df + 0.5))


def idf_atire(n: int, df: int) -> float:
    """Return ATIRE's weight. 0 for a term in all documents."""
    return math.log(n / df)


def idf_bm25l(n: int, df: int) -> float:
    """Return Lv and Zhai's weight for BM25L."""
    return math.log(n + 1) - math.log(df + 0.5)


def idf_bm25plus(n: int, df: int) -> float:
    """Return Lv and Zhai's weight for BM25+."""
    return math.log((n + 1) / df)


def weigh_atire(idf: Floats, tf: Ints, relative: Floats, p: Parameters) -> Floats:
    """Weigh by Okapi BM25 with the factor k1 + 1 (Trotman, Puurula and Burgess, ADCS 2014)."""
    return idf * (tf * (p.k1 + 1) / (tf + p.k1 * relative))


def weigh_lucene(idf: Floats, tf: Ints, relative: Floats, p: Parameters) -> Floats:
    """Weigh as atire, but without the constant factor k1 + 1 (Kamphuis et al., ECIR 2020)."""
    return idf * (tf / (p.k1 * relative + tf))


def weigh_bm25l(idf: Floats, tf: Ints, relative: Floats, p: Parameters) -> Floats:
    """Weigh as ``rank_bm25.BM25L`` does: BM25L (Lv and Zhai, SIGIR 2011) multiplied by tf."""
    ctd = tf / relative
    return idf * tf * (p.k1 + 1) * (ctd + p.delta) / (p.k1 + ctd + p.delta)


def weigh_bm25l_paper(idf: Floats, tf: Ints, relative: Floats, p: Parameters) -> Floats:
    """Weigh by BM25L as published (Lv and Zhai, SIGIR 2011)."""
    ctd = tf / relative
    return idf * ((p.k1 + 1) * (ctd + p.delta) / (p.k1 + ctd + p.delta))


def weigh_bm25plus(idf: Floats, tf: Ints, relative: Floats, p: Parameters) -> Floats:
    """Weigh by BM25+ (Lv and Zhai, CIKM 2011). See also ``Parameters.base``."""
    return idf * (p.delta + (tf * (p.k1 + 1)) / (p.k1 * relative + tf))


FORMULAS: dict[
    str, tuple[Callable[[int, int], float], Callable[[Floats, Ints, Floats, Parameters], Floats]]
]
FORMULAS = {
    "bm25+": (idf_bm25plus, weigh_bm25plus),
    "okapi": (idf_robertson, weigh_atire),
    "lucene": (idf_lucene, weigh_lucene),
    "bm25l": (idf_bm25l, weigh_bm25l),
    "bm25l-paper": (idf_bm25l, weigh_bm25l_paper),
    "atire": (idf_atire, weigh_atire),
    "robertson": (idf_floored, weigh_lucene),
}
METHODS = tuple(FORMULAS)


@dataclass(frozen=True, slots=True)
class Parameters:
    """A method, one of ``METHODS``, and its parameters (see ``BM25Index``)."""

    method: str
    k1: float
    b: float
    delta: float
    epsilon: float

    @classmethod
    def of(
        cls, method: str, k1: float, b: float, delta: float | None, epsilon: float = 0.25
    ) -> Parameters:
        """Check and return the parameters. ``delta=None`` means the method's default."""
        if not isinstance(method, str) or method not in FORMULAS:
            raise unknown_name("unknown BM25 method", str(method), METHODS)
        numbers = {"k1": k1, "b": b, "delta": 0.0 if delta is None else delta, "epsilon": epsilon}
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise InputError(f"{name} is {value!r:.60}; expected a number")
        delta = DELTAS.get(method, 0.0) if delta is None else delta
        # NaN fails such comparisons, too.
        if not 0 <= b <= 1:
            raise InputError(f"b is {b}; it must be from 0 to 1")
        for name, value in (("k1", k1), ("delta", delta)):
            if not 0 <= value < math.inf:
                raise InputError(f"{name} is {value}; it must be finite, and at least 0")
        if not math.isfinite(epsilon):
            raise InputError(f"epsilon is {epsilon}; it must be finite")
        return cls(method, float(k1), float(b), float(delta), float(epsilon))

    def used(self) -> dict[str, str | float]:
        """Return the method and the parameters that it uses."""
        unused = {"delta": self.method not in DELTAS, "epsilon": self.method != "okapi"}
        return {name: value for name, value in asdict(self).items() if not unused.get(name)}

    @property
    def sums_idf(self) -> bool:
        """Return whether weights depend on the order in which terms first occur (see ``idf``)."""
        return self.method == "okapi"

    def idf(self, documents: int, frequencies: Ints) -> Floats:
        """Return the idf of each term.

        Args:
            documents: the number of documents.
            frequencies: the number of documents with each term. The terms must be in the order of
                their first occurrence.
        """
        formula = FORMULAS[self.method][0]
        # The last bit of np.log depends on the processor, so math.log is called for each distinct
        # frequency. There are few of them.
        distinct, inverse = np.unique(frequencies, return_inverse=True)
        idf = np.array([formula(documents, int(df)) for df in distinct], dtype=np.float64)[inverse]
        if self.sums_idf and len(idf):
            # A sequential sum as in rank_bm25: the pairwise summation of np.sum gives different
            # bits.
            mean = np.add.accumulate(idf)[-1] / len(idf)
            idf[idf < 0] = self.epsilon * mean
        return idf

    def weights(self, idf: Floats, tf: Ints, relative: Floats) -> Floats:
        """Return the weights of terms in documents that contain them, elementwise.

        Args:
            idf: the idf of the term.
            tf: how often the term occurs in the document.
            relative: the length normalization of the document: 1 - b + b * length / mean length.
        """
        return FORMULAS[self.method][1](idf, tf, relative, self)

    def base(self, idf: Floats) -> Floats:
        """Return the weight of each term in documents that do not contain it: 0 except for bm25+."""
        return idf * self.delta if self.method == "bm25+" else np.zeros_like(idf)
