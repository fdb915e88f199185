"""Evaluations of the same questions: matched by id, compared by common scores, or joined as samples of one system.

Several samples per question have pass@k and pass^k of 0/1 scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os.path import commonprefix
from pathlib import Path
from typing import Any

from qabench.data.predictions import some
from qabench.data.rows import grouped
from qabench.errors import InputError
from qabench.evaluation.evaluation import Evaluation, without_superseded
from qabench.evaluation.records import PREDICTIONS, Record, column_names, rows_by_question
from qabench.evaluation.score_spec import Names, Pass, ScoreSpec, present, select_scores
from qabench.evaluation.signature import VERSION, parse, with_fields

DOC_HASH = "doc_hash"  # in ``Record.detail``: a digest of the whole question
EVERY_K = 8  # up to so many samples, there is a score for every k


def matched(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations whose questions have the same ids, by the digests of the questions if the ids are positions.

    Raises:
        InputError: an id has another question or target in another log, or two logs have no
            question in common.
    """
    evaluations = _by_hash(evaluations)
    first = evaluations[0]
    own = {record.id: record for record in first.records}
    for other in evaluations[1:]:
        records = {record.id: record for record in other.records}
        common = [id for id in records if id in own]
        if not common:
            raise InputError(
                f"{first.path} ({first.config}) and {other.path} ({other.config}) have no question in common: "
                f"their ids are {some(own)} and {some(records)}; compare logs of one task"
            )
        for name, what in (("question", "question"), ("reference", "target")):
            pairs = {id: (getattr(own[id], name), getattr(records[id], name)) for id in common}
            if differing := [id for id, (text, of_other) in pairs.items() if text != of_other]:
                texts = [f"{text!r:.80}" for text in pairs[differing[0]]]
                raise InputError(
                    f"{first.path} and {other.path} have another {what} for {len(differing)} of {len(common)} ids "
                    f"({some(differing)}), such as {' and '.join(texts)}; compare logs of one task and "
                    "of one version of its data"
                )
    return [replace(each, config=first.config) for each in evaluations]


def _by_hash(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return the evaluations with the questions' digests as ids if ids differ in them, and digests are distinct."""
    hashes = [{each.id: each.detail.get(DOC_HASH) for each in log.records} for log in evaluations]
    digests = [set(each.values()) for each in hashes]
    usable = all(
        None not in own and len(own) == len(ids) and own & digests[0]
        for own, ids in zip(digests, hashes, strict=True)
    )
    equal = all(hashes[0].get(id, own) == own for ids in hashes for id, own in ids.items())
    if equal or not usable:
        return list(evaluations)

    def renamed(record: Record) -> Record:
        return replace(record, id=str(record.detail[DOC_HASH]))

    return [replace(each, records=list(map(renamed, each.records))) for each in evaluations]


def unmatched(labels: Sequence[str], evaluations: Sequence[Evaluation]) -> list[str]:
    """Return one sentence for each log that lacks questions of the others, with their ids."""
    ids = dict.fromkeys(record.id for each in evaluations for record in each.records)
    notes = []
    for label, evaluation in zip(labels, evaluations, strict=True):
        own = {record.id for record in evaluation.records}
        if lacking := [id for id in ids if id not in own]:
            notes.append(f"{label} lacks {len(lacking)} of {len(ids)} questions: {some(lacking)}")
    return notes


def common_scores(evaluations: Sequence[Evaluation], names: Names) -> list[ScoreSpec]:
    """Return the scores that all evaluations have.

    Of these only the named ones, if there are names.

    Raises InputError if there is none.
    """
    owned = [[spec.name for spec in each.score_specs] for each in evaluations]
    common = [spec for spec in evaluations[0].score_specs if all(spec.name in own for own in owned)]
    if not common:
        lists = [
            f"{Path(each.path).name}: {', '.join(own)}"
            for each, own in zip(evaluations, owned, strict=True)
        ]
        raise InputError(f"the logs have no common score ({'; '.join(lists)})")
    return select_scores(common, names, "one of the logs")


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
    columns = column_names(evaluation.records)
    specs: list[ScoreSpec] = []
    notes = list(evaluation.notes)
    for spec in (each for each in evaluation.score_specs if not each.reducer):
        specs.append(spec)
        for each in present([spec], columns):
            rows = rows_by_question(each, evaluation.records)
            values = {row[0] for of_question in rows.values() for row in of_question}
            # All values of a score that is not 0/1, such as ROUGE, can be 0.
            is_binary = values <= {0, 1} and (1 in values or each.graded)
            if each.function or not values or not is_binary:
                continue
            sizes = {id: len(of_question) for id, of_question in rows.items()}
            fewest, most = min(sizes.values()), max(sizes.values())
            few = [id for id, size in sizes.items() if size == fewest]
            if ks and max(ks) > fewest:
                raise InputError(
                    f"k is {max(ks)}, but {len(few)} of {len(sizes)} questions in {evaluation.path} have "
                    f"{fewest} samples with a score ({some(few)}); allowed: 1 to {fewest}"
                )
            if fewest < most:
                notes.append(
                    f"k of pass@k and pass^k is at most {fewest}: {len(few)} of {len(sizes)} questions have only "
                    f"{fewest} of {most} samples with a score ({some(few)})"
                )
            specs += [
                Pass(k, all).of(each) for all in (False, True) for k in ks or _default_ks(fewest)
            ]
    return replace(evaluation, score_specs=specs, notes=list(dict.fromkeys(notes)))


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
        if (each.questions, each.setting) != (first.questions, first.setting):
            raise InputError(
                f"samples of one system must be on one config and in one setting; {first.path} is on "
                f"{first.questions} {first.setting}, {each.path} on {each.questions} {each.setting}"
            )
    paths = [each.path for each in evaluations]
    if len(set(paths)) < len(paths) or without_superseded(evaluations)[1]:
        raise InputError(
            f"a run or a file was given twice: {', '.join(paths)}; give each sample once"
        )
    if not first.benchmark:
        evaluations = matched(evaluations)
    moved: list[tuple[str, Record]] = []
    start = 0
    for each in evaluations:
        moved += [(old.id, replace(old, epoch=old.epoch + start)) for old in each.records]
        start += max((record.epoch for record in each.records), default=0)
    model = first.model
    if (
        first.setting == PREDICTIONS and len(evaluations) > 1
    ):  # such as "gpt" of "gpt-1" and "gpt-2"
        prefix = commonprefix([each.model for each in evaluations])  # noqa: RUF071  (of characters)
        model = prefix.rstrip("-_. ") or f"{model} and {len(evaluations) - 1} more"
    statuses = [each.status for each in evaluations]
    joined: dict[str, Any] = {
        "status": next((status for status in statuses if status != "success"), "success"),
        "expected": sum(each.expected for each in evaluations),
        "records": [record for samples in grouped(moved).values() for record in samples],
        "unscored": next((each.unscored for each in evaluations if each.unscored), None),
        "problems": [f"{each.path}: {text}" for each in evaluations for text in each.problems],
        "notes": list(dict.fromkeys(note for each in evaluations for note in each.notes)),
        "recorded": {name: why for each in evaluations for name, why in each.recorded.items()},
        "score_specs": list(
            {spec.name: spec for each in evaluations for spec in each.score_specs}.values()
        ),
    }
    signatures = _signatures([each.signatures for each in evaluations])
    return with_passes(
        replace(first, path=",".join(paths), model=model, signatures=signatures, **joined)
    )


def _signatures(by_evaluation: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the joined signatures of the groups that all evaluations have."""
    signatures = {}
    for group in by_evaluation[0]:
        if not all(group in each for each in by_evaluation):
            continue
        fields = [parse(each[group])[1] for each in by_evaluation]
        names = dict.fromkeys(name for each in fields for name in each if name != VERSION)
        joined = {
            name: "+".join(dict.fromkeys(each.get(name, "none") for each in fields))
            for name in names
        }
        signatures[group] = with_fields(by_evaluation[0][group], **joined)
    return signatures
