"""Notes for readers of an evaluation's scores, which commands, ``repr`` and notebooks show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qabench.data.joining import (
    NO_PREDICTION,
    UNUSABLE,
    UNUSABLE_PREDICTIONS,
    WITHOUT_PREDICTION,
)
from qabench.data.rows import grouped
from qabench.errors import some
from qabench.evaluation.deviations import deviation_sentences
from qabench.evaluation.records import ANSWERED
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scored import ScoredRecords

MAX_LISTED_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about an evaluation.

    Attributes:
        kind: "unscored", "problem", "note", "deviation" or "signature".
        text: the sentence.
    """

    kind: str
    text: str


def notes_of(evaluation: ScoredRecords) -> list[Note]:
    """Return the notes about an evaluation, in the order of display."""
    reason = evaluation.why_unscored()
    notes = []
    if reason:
        notes.append(Note("unscored", f"no scores: {reason}"))
    for sentence in problem_sentences(evaluation, MAX_LISTED_PROBLEMS):
        notes.append(Note("problem", sentence))
    replies = evaluation.replies()
    if replies.get("cached"):
        cached = f"{replies['cached']:,} of {replies['all']:,} replies from the cache"
        notes.append(Note("note", cached))
    for kind, sentences in (
        ("note", evaluation.notes),
        ("problem", undefined_sentences(evaluation)),
        ("deviation", deviation_sentences(evaluation)),
    ):
        for sentence in sentences:
            notes.append(Note(kind, sentence))
    if not reason:
        for group, line in evaluation.signatures.items():
            notes.append(Note("signature", f"{group}: {line}"))
    return notes


def problem_sentences(evaluation: ScoredRecords, most: int | None = None) -> list[str]:
    """Return the problems of an evaluation, one sentence per kind, with the first ids.

    Args:
        evaluation: the evaluation.
        most: the maximum number of sentences. One more sentence counts the others.
    """
    missing_named = any(problem.startswith(WITHOUT_PREDICTION) for problem in evaluation.problems)
    unusable_named = any(
        problem.startswith(UNUSABLE_PREDICTIONS) for problem in evaluation.problems
    )
    ids_by_kind: dict[str, list[str]] = {}
    for record in evaluation.records:
        # A sentence about the whole file may already count the questions with this problem.
        if not record.problem or (missing_named and record.problem == NO_PREDICTION):
            continue
        if unusable_named and record.problem.startswith(f"{UNUSABLE}: "):
            continue
        kind = record.problem
        if record.status != ANSWERED:
            kind = f"{record.status}: {record.problem}"
        ids_by_kind.setdefault(kind, []).append(record.id)
    sentences = list(evaluation.problems)
    # The most frequent problems are first, because ``most`` cuts the end.
    for kind, ids in sorted(ids_by_kind.items(), key=lambda item: -len(item[1])):
        sentences.append(f"{len(ids)} x {kind} ({some(ids)})")
    if most is not None and len(sentences) > most:
        more = len(sentences) - most
        sentences[most:] = [f"more problems: {more}, which `qabench score --json` lists"]
    return sentences


def undefined_sentences(evaluation: ScoredRecords) -> list[str]:
    """Return why scores are undefined, one sentence per reason."""
    names_by_reason = grouped((reason, name) for name, reason in evaluation.undefined().items())
    sentences = []
    for reason, names in names_by_reason.items():
        sentences.append(f"undefined ({', '.join(names)}): {reason}")
    return sentences + left_out_sentences(evaluation, evaluation.score_specs)


def left_out_sentences(evaluation: ScoredRecords, specs: Sequence[ScoreSpec]) -> list[str]:
    """Return sentences that count the records without a score, for a log of another task."""
    if evaluation.benchmark:
        # The deviations of a benchmark's scores say so.
        return []
    shown = [spec.name for spec in specs if not spec.reducer]
    names_by_count: dict[int, list[str]] = {}
    for name, score in evaluation.scores().items():
        if score.left_out and name in shown:
            names_by_count.setdefault(score.left_out, []).append(name)
    n_records = len(evaluation.records)
    sentences = []
    for count, names in names_by_count.items():
        sentences.append(
            f"left out of {', '.join(names)}: {count:,} of {n_records:,} records have no value"
        )
    return sentences
