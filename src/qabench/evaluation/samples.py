"""Several samples per question: pass@k and pass^k of 0/1 scores, and files of one system as one evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from qabench.data.predictions import some
from qabench.errors import InputError
from qabench.evaluation.evaluation import Evaluation, without_superseded
from qabench.evaluation.matching import matched
from qabench.evaluation.metric import Metric, Pass, present
from qabench.evaluation.records import PREDICTIONS, Record, rows_by_question
from qabench.evaluation.signature import VERSION, parse, with_fields

EVERY_K = 8  # up to so many samples, there is a score for every k


def with_passes(evaluation: Evaluation, ks: Sequence[int] = ()) -> Evaluation:
    """Return an evaluation with pass@k and pass^k after each 0/1 score, if questions have several samples.

    Args:
        evaluation: whose records are the samples.
        ks: at most the number of samples of each question, or () for every k from 2 up to
            ``EVERY_K``, then powers of two and the number of samples.

    Raises:
        InputError: a question has fewer samples than a chosen k.
    """
    if not ks and all(record.epoch == 1 for record in evaluation.records):
        return evaluation
    columns = list(dict.fromkeys(name for record in evaluation.records for name in record.scores))
    metrics: list[Metric] = []
    notes = list(evaluation.notes)
    for metric in (each for each in evaluation.metrics if not each.reducer):
        metrics.append(metric)
        for each in present([metric], columns):
            rows = rows_by_question(each, evaluation.records)
            values = {row[0] for of_question in rows.values() for row in of_question}
            # All values of a score that is not 0/1, such as ROUGE, can be 0.
            zeros = not each.graded and 1 not in values
            if each.function or not values or zeros or not values <= {0, 1}:
                continue
            sizes = {id: len(of_question) for id, of_question in rows.items()}
            fewest = min(sizes.values())
            few = [id for id, size in sizes.items() if size == fewest]
            if ks and max(ks) > fewest:
                raise InputError(
                    f"k is {max(ks)}, but {len(few)} of {len(sizes)} questions in {evaluation.path} have "
                    f"{fewest} samples with a score ({some(few)}); allowed: 1 to {fewest}"
                )
            if fewest < max(sizes.values()):
                notes.append(
                    f"k of pass@k and pass^k is at most {fewest}: {len(few)} of {len(sizes)} questions have only "
                    f"{fewest} of {max(sizes.values())} samples with a score ({some(few)})"
                )
            metrics += [
                Pass(k, all).of(each) for all in (False, True) for k in ks or _default_ks(fewest)
            ]
    return replace(evaluation, metrics=metrics, notes=list(dict.fromkeys(notes)))


def _default_ks(samples: int) -> Iterable[int]:
    every = range(2, samples + 1)
    return [k for k in every if k <= EVERY_K or k == samples or k.bit_count() == 1]


def as_samples(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Return evaluations of one system on the same questions as one, each of whose questions has all their samples.

    The signature has all values of fields that differ, such as a seed, joined by "+".

    Raises:
        InputError: a file is given twice, or is a part of another one, or the questions differ.
    """
    first = evaluations[0]
    for each in evaluations:
        if (each.benchmark, each.config, each.setting) != (
            first.benchmark,
            first.config,
            first.setting,
        ):
            raise InputError(
                f"samples of one system must be on one config and in one setting; {first.path} is on "
                f"{first.benchmark} {first.config} {first.setting}, {each.path} on {each.benchmark} {each.config} "
                f"{each.setting}"
            )
    paths = [each.path for each in evaluations]
    if len(set(paths)) < len(paths) or without_superseded(evaluations)[1]:
        raise InputError(
            f"a run or a file was given twice: {', '.join(paths)}; give each sample once"
        )
    if not first.benchmark:
        evaluations = matched(evaluations)
    records: dict[str, list[Record]] = {}
    start = 0
    for each in evaluations:
        for record in each.records:
            moved = replace(record, epoch=record.epoch + start)
            records.setdefault(record.id, []).append(moved)
        start = max((record.epoch for record in each.records), default=0) + start
    statuses = [each.status for each in evaluations if each.status != "success"]
    model = first.model
    if first.setting == PREDICTIONS:
        model = _shared_start([each.model for each in evaluations]) or first.model
    return with_passes(
        replace(
            first,
            path=",".join(paths),
            model=model,
            status=statuses[0] if statuses else "success",
            expected=sum(each.expected for each in evaluations),
            records=[record for of_question in records.values() for record in of_question],
            signatures=_signatures(evaluations),
            unscored=next((each.unscored for each in evaluations if each.unscored), None),
            problems=[
                f"{each.path}: {problem}" for each in evaluations for problem in each.problems
            ],
            notes=list(dict.fromkeys(note for each in evaluations for note in each.notes)),
            recorded={name: why for each in evaluations for name, why in each.recorded.items()},
            metrics=list({m.name: m for each in evaluations for m in each.metrics}.values()),
        )
    )


def _shared_start(names: Sequence[str]) -> str:
    """Return the characters that all names start with, such as "gpt" of "gpt-1" and "gpt-2"."""
    letters = takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False))
    return "".join(each[0] for each in letters).rstrip("-_. ")


def _signatures(evaluations: Sequence[Evaluation]) -> dict[str, str]:
    """Return the joined signatures of the groups that all evaluations have."""
    signatures = {}
    for group in evaluations[0].signatures:
        lines = [each.signatures[group] for each in evaluations if group in each.signatures]
        if len(lines) < len(evaluations):
            continue
        fields = [parse(line)[1] for line in lines]
        names = dict.fromkeys(name for each in fields for name in each if name != VERSION)
        values = {name: [each.get(name, "none") for each in fields] for name in names}
        joined = {name: "+".join(dict.fromkeys(each)) for name, each in values.items()}
        signatures[group] = with_fields(lines[0], **joined)
    return signatures
