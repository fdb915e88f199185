"""The formulas of the BM25 family: one short function per method.

A score is a sum over the query's terms, with repetitions. For each term, a method defines:

- the inverse document frequency, from the number of documents ``n`` and the term's document frequency ``df``
- the weight in a document that contains the term, from its count ``tf`` and the document's relative length
- the weight in a document that does not contain it

If ``rank_bm25`` has the method, the operations and their order are the same as there, so that sums agree to the last
bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from qabench.errors import InputError, MissingExtra
from qabench.retrieval.bm25.search import Floats, Ints, Mask, Results, top

DELTAS = {"bm25+": 1.0, "bm25l": 0.5}
RANK_BM25 = {"okapi": "BM25Okapi", "bm25+": "BM25Plus", "bm25l": "BM25L"}  # method -> class of rank_bm25


def idf_robertson(n: int, df: int) -> float:
    """Return Robertson and Sparck Jones' weight; negative for a term in more than half of the documents."""
    return math.log(n - df + 0.5) - math.log(df + 0.5)


def idf_floored(n: int, df: int) -> float:
    """Return the same weight, but not below 0, as for "robertson" in bm25s."""
    return math.log(max(1.0, (n - df + 0.5) / (df + 0.5)))


def idf_lucene(n: int, df: int) -> float:
    """Return Lucene's weight, always above 0."""
    return math.log(1 + (n - df + 0.5) / (df + 0.5))


def idf_atire(n: int, df: int) -> float:
    """Return ATIRE's weight; 0 for a term in all documents."""
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
    """Weigh without the factor k1 + 1, which does not affect the ranking (Kamphuis et al., ECIR 2020)."""
    return idf * (tf / (p.k1 * relative + tf))


def weigh_bm25l(idf: Floats, tf: Ints, relative: Floats, p: Parameters) -> Floats:
    """Weigh as ``rank_bm25.BM25L``: the weight of Lv and Zhai (SIGIR 2011) times tf, a factor only in rank_bm25."""
    ctd = tf / relative
    return idf * tf * (p.k1 + 1) * (ctd + p.delta) / (p.k1 + ctd + p.delta)


def weigh_bm25plus(idf: Floats, tf: Ints, relative: Floats, p: Parameters) -> Floats:
    """Weigh by BM25+ (Lv and Zhai, CIKM 2011), with delta added for every document, as in ``rank_bm25.BM25Plus``."""
    return idf * (p.delta + (tf * (p.k1 + 1)) / (p.k1 * relative + tf))


FORMULAS: dict[str, tuple[Callable[[int, int], float], Callable[[Floats, Ints, Floats, Parameters], Floats]]]
FORMULAS = {
    "bm25+": (idf_bm25plus, weigh_bm25plus),
    "okapi": (idf_robertson, weigh_atire),
    "lucene": (idf_lucene, weigh_lucene),
    "bm25l": (idf_bm25l, weigh_bm25l),
    "atire": (idf_atire, weigh_atire),
    "robertson": (idf_floored, weigh_lucene),
}
METHODS = tuple(FORMULAS)


@dataclass(frozen=True, slots=True)
class Parameters:
    """A method, one of ``METHODS``, and its parameters; see ``BM25Index``."""

    method: str
    k1: float
    b: float
    delta: float
    epsilon: float

    @classmethod
    def of(cls, method: str, k1: float, b: float, delta: float | None, epsilon: float) -> Parameters:
        """Check and return the parameters; ``delta=None`` is the method's default (1 for bm25+, 0.5 for bm25l)."""
        if method not in FORMULAS:
            raise InputError(f"unknown BM25 method {method!r}; allowed: {', '.join(METHODS)}")
        delta = DELTAS.get(method, 0.0) if delta is None else delta
        for name, value, most in (("k1", k1, math.inf), ("b", b, 1), ("delta", delta, math.inf)):
            if not 0 <= value <= most or math.isinf(value):
                allowed = "at least 0" if most == math.inf else f"from 0 to {most}"
                raise InputError(f"{name} is {value}; it must be {allowed}")
        if not math.isfinite(epsilon):
            raise InputError(f"epsilon is {epsilon}; it must be a finite number (default 0.25)")
        return cls(method, float(k1), float(b), float(delta), float(epsilon))

    def as_dict(self) -> dict[str, str | float]:
        """Return the fields, for a file's header."""
        return asdict(self)

    def used(self) -> dict[str, str | float]:
        """Return the method and the parameters that it uses."""
        unused = {"delta": self.method not in DELTAS, "epsilon": self.method != "okapi"}
        return {name: value for name, value in self.as_dict().items() if not unused.get(name)}

    def idf(self, documents: int, frequencies: Ints) -> Floats:
        """Return the idf of each term; the terms must be in the order of their first occurrence."""
        formula = FORMULAS[self.method][0]
        # math.log and not np.log, whose last bit depends on the processor; few frequencies are distinct.
        distinct, inverse = np.unique(frequencies, return_inverse=True)
        idf = np.array([formula(documents, int(df)) for df in distinct], dtype=np.float64)[inverse]
        if self.method == "okapi" and len(idf):
            # A sequential sum as in rank_bm25: the pairwise summation of np.sum gives different bits.
            mean = np.add.accumulate(idf)[-1] / len(idf)
            idf[idf < 0] = self.epsilon * mean
        return idf

    def relative_lengths(self, lengths: Ints, mean: float) -> Floats:
        """Return 1 - b + b * length / mean length, of each document."""
        return 1 - self.b + self.b * lengths.astype(np.float64) / mean

    def weights(self, idf: Floats, tf: Ints, relative: Floats) -> Floats:
        """Return the weights of terms in documents that contain them, elementwise."""
        return FORMULAS[self.method][1](idf, tf, relative, self)

    def base(self, idf: Floats) -> Floats:
        """Return the weight of each term in documents that do not contain it: 0 except for bm25+."""
        return idf * self.delta if self.method == "bm25+" else np.zeros_like(idf)


class RankBm25Scorer:
    """Scores from the package rank_bm25, which FanOutQA's official retriever uses."""

    def __init__(self, documents: Sequence[Sequence[str]], parameters: Parameters) -> None:
        method = parameters.method
        if method not in RANK_BM25:
            allowed = ", ".join(RANK_BM25)
            raise InputError(f"the backend rank_bm25 does not support the method {method!r}; allowed: {allowed}")
        try:
            import rank_bm25
        except ImportError:
            raise MissingExtra("the backend rank_bm25 is not installed: pip install 'qabench[retrieval]'") from None
        own = {"epsilon": parameters.epsilon} if method == "okapi" else {"delta": parameters.delta}
        self._bm25 = getattr(rank_bm25, RANK_BM25[method])(documents, k1=parameters.k1, b=parameters.b, **own)

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""
        return np.asarray(self._bm25.get_scores(terms), dtype=np.float64)

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""
        return top(self.scores(terms), k, mask)
