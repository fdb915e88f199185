"""pass@k and pass^k: the probability that one of k samples of a question is right, or that all are.

0/1 scores have them if questions have several samples. ``score_spec.Pass`` has the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qabench.errors import InputError
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.records import column_names, rows_by_question
from qabench.evaluation.score_spec import Pass, ScoreSpec, present

# Up to this number of samples, every k has a score.
EVERY_K = 8


def with_passes(evaluation: Evaluation, ks: Sequence[int] = ()) -> Evaluation:
    """Return an evaluation with pass@k and pass^k of 0/1 scores with several samples per question.

    These follow the score that they are computed from.

    Args:
        evaluation: the evaluation, whose records are the samples.
        ks: the values of k, each at most the number of samples of every question. () means all k
            from 2 to ``EVERY_K``, larger powers of two, and the number of samples.

    Raises:
        InputError: a question has fewer samples than a chosen k.
    """
    if not ks and all(record.epoch == 1 for record in evaluation.records):
        return evaluation
    columns = column_names(evaluation.records)
    # The harness may have computed a score with the same name, which is then replaced.
    specs: dict[str, ScoreSpec] = {}
    # A dict as an ordered set.
    notes = dict.fromkeys(evaluation.notes)
    has_passes = False
    for spec in evaluation.score_specs:
        if isinstance(spec.reducer, Pass):
            # Estimates that were added earlier may be for another number of samples.
            continue
        specs[spec.name] = spec
        if spec.reducer:
            # The harness has already reduced the samples of this score, for example to their
            # maximum.
            continue
        for sampled in present([spec], columns):
            sizes = _sample_counts(evaluation, sampled)
            if not sizes:
                continue
            has_passes = True
            _check_ks(ks, sizes, evaluation.path)
            fewest = min(sizes)
            if fewest < max(sizes):
                few = _questions_with_fewest(sizes)
                notes[f"k of pass@k and pass^k is at most {fewest}: {few} with a score"] = None
            for estimate in _passes_of(sampled, ks or _default_ks(fewest)):
                specs[estimate.name] = estimate
    if ks and not has_passes:
        notes["pass@k is not computed, because no score here is 0 or 1 for each sample"] = None
    return replace(evaluation, score_specs=list(specs.values()), notes=list(notes))


def _sample_counts(evaluation: Evaluation, spec: ScoreSpec) -> list[int]:
    """Return each question's number of samples, or [] if the score is not a 0/1 score."""
    if spec.function:
        return []
    sizes = []
    values: set[float] = set()
    for samples in rows_by_question(spec, evaluation.columns()).values():
        sizes.append(len(samples))
        values.update(row[0] for row in samples)
    # All values can be 0 although the score is not a 0/1 score, such as ROUGE.
    is_binary = values <= {0, 1} and (1 in values or spec.graded)
    return sizes if is_binary else []


def _default_ks(n_samples: int) -> list[int]:
    """Return the values of k that are shown by default for this number of samples per question."""
    ks = []
    for k in range(2, n_samples + 1):
        is_power_of_two = k.bit_count() == 1
        if k <= EVERY_K or is_power_of_two or k == n_samples:
            ks.append(k)
    return ks


def _passes_of(spec: ScoreSpec, ks: Sequence[int]) -> list[ScoreSpec]:
    """Return pass@k of a score for each k, and after these pass^k."""
    estimates = []
    for every_sample in (False, True):
        for k in ks:
            estimates.append(Pass(k, all=every_sample).of(spec))
    return estimates


def _check_ks(ks: Sequence[int], sizes: Sequence[int], path: str) -> None:
    """Check that every question has enough samples for the chosen values of k.

    Raises:
        InputError: a question has fewer samples.
    """
    fewest = min(sizes)
    if max(ks, default=0) > fewest:
        raise InputError(
            f"k is {max(ks)}, but {_questions_with_fewest(sizes)} with a score in {path}; allowed: 1 to {fewest}"
        )


def _questions_with_fewest(sizes: Sequence[int]) -> str:
    """Return how many questions have the smallest number of samples, for messages."""
    fewest = min(sizes)
    unit = "sample" if fewest == 1 else "samples"
    return f"{sizes.count(fewest)} of {len(sizes)} questions have only {fewest} {unit}"
