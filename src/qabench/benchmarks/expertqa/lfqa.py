"""Scores of long-form answers: ROUGE as ExpertQA reports it, and this project's own faithfulness to references.

ROUGE has the values of ``evaluate.load("rouge")`` with its defaults. Source: Malaviya et al., ExpertQA, NAACL 2024
(https://arxiv.org/abs/2309.07852), and ``eval/nlg_eval.py`` of its repository; Lin, ROUGE, 2004.

Faithfulness is the share of an answer's claims that the reference answer entails. The authors used QAFactEval: its
package needs torch 1.6, which cannot be installed any more. See ``qabench.models.entailment`` for the labels of claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from qabench.answers import text_pairs
from qabench.benchmarks.expertqa.factscore import CORRECT
from qabench.errors import InputError
from qabench.io.environment import package_version
from qabench.stats import Interval, bootstrap
from qabench.text.rouge import BACKENDS, SURROGATE, resolve_backend

LFQA_ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
BOOTSTRAP_SAMPLES = 1000  # the default of rouge_score's aggregator
MINIMUM = 3  # claims; a correlation of fewer is not computed
WORD = re.compile(r"\w+")
Labels = Sequence[Sequence[str]]
"""The labels of each answer's claims, "Y" or "N"."""


@dataclass(frozen=True, slots=True)
class LfqaRouge:
    """ROUGE F-measures by type, fractions in [0, 1].

    Attributes:
        rouge: the official score: the median over 1,000 bootstrap samples of the mean over questions.
        low, high: the bounds of the 95% interval, from the same samples.
        mean: the mean over questions, which does not depend on a seed.
        per_question: the F-measures of each question, in the order of the input.
        unanswered: the number of questions without an answer; they score 0, as the empty string.
        backend: the package that computed the scores, with its version.
    """

    rouge: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    mean: dict[str, float]
    per_question: tuple[dict[str, float], ...]
    unanswered: int
    backend: str

    def as_dict(self) -> dict[str, Any]:
        """Return the official scores by type, mean, interval ([low, high] by type) and unanswered."""
        interval = {kind: [self.low[kind], self.high[kind]] for kind in LFQA_ROUGE_TYPES}
        return self.rouge | {"mean": self.mean, "interval": interval, "unanswered": self.unanswered}


def lfqa_rouge(
    references: Sequence[str], predictions: Sequence[Any], *, backend: str = "auto", seed: int = 0
) -> LfqaRouge:
    """Compute ROUGE-1, 2, L and Lsum F-measures of answers against reference answers, without stemmer.

    The metric of ``evaluate`` returns not the mean over questions but the median of bootstrapped means, drawn with
    NumPy's global random generator: without a seed, its scores change from run to run. The scores here equal those of
    ``evaluate.load("rouge", seed=seed)`` to the last digit; the means are returned too.

    Args:
        references: the reference answers.
        predictions: the answers; None or ``UNANSWERED`` for an unanswered question.
        backend: "rouge_score", the reference; "rouge_score_rs", equal and faster (extra ``fast``); "auto": the fast
            one if it is installed.
        seed: the seed of the bootstrap, from 0 to 2**32 - 1.

    Raises:
        InputError: no questions, lists of different lengths, an item that is not a string, an unknown backend or seed.
        MissingExtra: the backend is not installed.
    """
    targets, answers = text_pairs(references, predictions)
    name = resolve_backend(backend)
    scorer = import_module(f"{name}.rouge_scorer").RougeScorer(LFQA_ROUGE_TYPES)
    # Rust strings cannot contain lone surrogates; for ROUGE they separate words, as spaces do.
    columns = (targets, [answer or "" for answer in answers])
    cleaned = ([SURROGATE.sub(" ", text) for text in column] for column in columns)
    scores = [scorer.score(target, text) for target, text in zip(*cleaned, strict=True)]
    aggregator = import_module(f"{name}.scoring").BootstrapAggregator()
    for score in scores:
        # The order matters: all types are resampled from one stream of random numbers.
        aggregator.add_scores({kind: score[kind] for kind in LFQA_ROUGE_TYPES})
    with _seeded(seed):
        bounds = aggregator.aggregate()
    low, mid, high = (
        {kind: float(getattr(bounds[kind], bound).fmeasure) for kind in LFQA_ROUGE_TYPES}
        for bound in ("low", "mid", "high")
    )
    rows = tuple({kind: score[kind].fmeasure for kind in LFQA_ROUGE_TYPES} for score in scores)
    mean = {kind: sum(row[kind] for row in rows) / len(rows) for kind in LFQA_ROUGE_TYPES}
    return LfqaRouge(
        mid, low, high, mean, rows, answers.count(None), f"{BACKENDS[name]}-{package_version(BACKENDS[name])}"
    )


def median_of_means(kind: str, values: Sequence[float]) -> float:
    """Return the official score from the questions' F-measures of one type, as in ``LfqaRouge.rouge``.

    The types are resampled in the order of ``LFQA_ROUGE_TYPES`` from one stream of random numbers.
    """
    from rouge_score.scoring import BootstrapAggregator, Score

    aggregator = BootstrapAggregator()
    before = LFQA_ROUGE_TYPES[: LFQA_ROUGE_TYPES.index(kind) + 1]
    for value in values:
        aggregator.add_scores(dict.fromkeys(before, Score(value, value, value)))
    with _seeded(0):
        return float(aggregator.aggregate()[kind].mid.fmeasure)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global random generator and restore it afterward: the aggregators do not accept a generator."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise InputError(f"seed is {seed!r}; allowed: an integer from 0 to {2**32 - 1}")
    state = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(state)


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """The scores of answers' claims, with 95% intervals from whole answers drawn with replacement.

    Attributes:
        macro: the mean over answers of the share of their claims that are entailed; 0 for an answer without claims.
        micro: the share of all claims that are entailed; None without claims.
        answers, claims: their numbers.
    """

    macro: Interval
    micro: Interval | None
    answers: int
    claims: int


def faithfulness(labels: Labels) -> Faithfulness:
    """Score answers whose claims are labeled Y if the reference answer entails them, else N.

    The list of an answer without claims, such as an unanswered question, is empty. Raises InputError without answers.
    """
    if not labels:
        raise InputError("nothing to score: no answers")
    counts = [(list(own).count("Y"), len(own)) for own in labels]
    shares = [[entailed / n if n else 0.0, 1.0] for entailed, n in counts]
    claims = sum(n for _, n in counts)
    micro = bootstrap(np.array(counts, dtype=float), _ratio) if claims else None
    return Faithfulness(bootstrap(np.array(shares), _ratio), micro, len(counts), claims)


def correlation(labels: Labels, correctness: Sequence[Sequence[str | None]]) -> Interval | None:
    """Correlate (Pearson, phi) the label Y with the experts' judgment that a claim is correct, over claims.

    Correct is Definitely or Probably correct, as in the agreement of fact scores; claims without a judgment are left
    out. The interval is from whole answers drawn with replacement. None if there are fewer than 3 judged claims, or all
    of them have the same label or the same judgment.
    """
    rows, clusters = [], []
    for answer, pairs in enumerate(zip(labels, correctness, strict=True)):
        for label, judged in zip(*pairs, strict=True):
            if judged is not None:
                x, y = float(label == "Y"), float(judged in CORRECT)
                rows.append([1.0, x, y, x * x, y * y, x * y])
                clusters.append(answer)
    if len(rows) < MINIMUM or not np.ptp(np.array(rows)[:, 1:3], axis=0).all():
        return None
    return bootstrap(np.array(rows), _pearson, clusters=clusters)


def contains(reference: str, claim: str) -> bool:
    """Tell whether a reference contains all words of a claim next to each other; case and punctuation are ignored."""
    return f" {_words(claim)} " in f" {_words(reference)} "


def _words(text: str) -> str:
    return " ".join(WORD.findall(text.lower()))


def _ratio(part: Any, whole: Any) -> Any:
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


def _pearson(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """Return the correlation; 0 where one of the variables is constant, as in some resamples."""
    square = (n * xx - x * x) * (n * yy - y * y)
    return np.where(square > 0, (n * xy - x * y) / np.sqrt(np.maximum(square, 1e-12)), 0.0)
