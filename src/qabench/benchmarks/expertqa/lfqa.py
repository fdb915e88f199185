"""ROUGE of long-form answers, as ExpertQA reports it.

The scores equal those of ``evaluate.load("rouge")`` with its defaults. Source: Malaviya et al.,
ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and ``eval/nlg_eval.py`` of its repository.
Lin, ROUGE, 2004.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rouge_score.scoring import BootstrapAggregator, Score

from qabench.data.answers import text_pairs
from qabench.errors import InputError
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.text.rouge import backend_version, score_pairs

# The default types of evaluate's "rouge". The bootstrap samples depend on the order of the types.
LFQA_ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
# The default of rouge_score's aggregator, which the authors use.
BOOTSTRAP_SAMPLES = 1000


class Bounds(NamedTuple):
    """The median of bootstrapped means, and their 95% interval."""

    low: float
    median: float
    high: float


def question_scores(
    references: Sequence[str], predictions: Sequence[Any]
) -> list[dict[str, float]]:
    """Return the ROUGE-1, 2, L and Lsum F-measures of each answer, computed without a stemmer.

    The prediction for an unanswered question is None or ``UNANSWERED``. It scores 0, like an empty
    string.

    Raises:
        InputError: no questions, lists of different lengths, or an item that is not a string.
    """
    targets, answers = text_pairs(references, predictions)
    texts = [answer or "" for answer in answers]
    measures = []
    for score in score_pairs(LFQA_ROUGE_TYPES, targets, texts):
        measures.append({kind: score[kind].fmeasure for kind in LFQA_ROUGE_TYPES})
    return measures


def bootstrapped(columns: Mapping[str, Sequence[float]], seed: int = 0) -> dict[str, Bounds]:
    """Return the median of bootstrapped means, and their interval, for each ROUGE type.

    The "rouge" metric of ``evaluate`` returns this median instead of the mean over questions. It
    draws samples with NumPy's global random generator, so its scores change from run to run without
    a seed. The scores here equal ``evaluate.load("rouge", seed=seed)`` to the last digit.

    Args:
        columns: the F-measures of the questions by type. The order of the types matters: all are
            resampled from one stream of random numbers.
        seed: an integer from 0 to 2**32 - 1.

    Raises:
        InputError: the seed is not such an integer.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 32:
        raise InputError(f"seed must be between 0 and 2**32 - 1, as an integer; it is {seed!r:.60}")
    aggregator = BootstrapAggregator()
    for values in zip(*columns.values(), strict=True):
        scores_of_question = {}
        for kind, value in zip(columns, values, strict=True):
            # The aggregator also resamples precision and recall, which are not used.
            scores_of_question[kind] = Score(value, value, value)
        aggregator.add_scores(scores_of_question)
    with _seeded(seed):
        aggregated = aggregator.aggregate()
    bounds = {}
    for kind in columns:
        scores_of_kind = aggregated[kind]
        bounds[kind] = Bounds(
            float(scores_of_kind.low.fmeasure),
            float(scores_of_kind.mid.fmeasure),
            float(scores_of_kind.high.fmeasure),
        )
    return bounds


def median_of_means(kind: str, values: Sequence[float]) -> float:
    """Return the official score of one ROUGE type from the F-measures of the questions."""
    # All types share one stream of random numbers, so the types before this one are resampled, too.
    # Their values do not matter.
    before = LFQA_ROUGE_TYPES[: LFQA_ROUGE_TYPES.index(kind) + 1]
    return bootstrapped(dict.fromkeys(before, values))[kind].median


@dataclass
class LfqaScorer(Scorer):
    """Scores answers against reference answers by ROUGE. ``seed`` is the bootstrap's seed."""

    seed: int = 0

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return the F-measures of each answer. ``progress`` is not used."""
        references = [item.row["reference"] for item in items]
        answers = [(item.fields or {}).get("answer") for item in items]
        return [Outcome(row) for row in question_scores(references, answers)]

    def metric_fields(self, group: str, items: Sequence[Item]) -> Mapping[str, object]:
        """Return the version of ROUGE and the parameters of the bootstrap."""
        return {
            "rouge": backend_version(),
            "stemmer": "none",
            "bootstrap": BOOTSTRAP_SAMPLES,
            "bootstrap_seed": self.seed,
        }


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global random generator, which rouge_score uses, and restore it afterward."""
    state = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(state)
