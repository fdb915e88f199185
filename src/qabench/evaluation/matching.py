"""Evaluations of the same questions: matched by id, compared by common scores, or joined as samples of one system.

Several samples per question have pass@k and pass^k of 0/1 scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qabench.data.predictions import some
from qabench.errors import InputError
from qabench.evaluation.evaluation import Evaluation, without_superseded
from qabench.evaluation.records import Record, column_names, rows_by_question
from qabench.evaluation.score_spec import Names, Pass, ScoreSpec, present, select_scores
from qabench.evaluation.signature import VERSION, parse, with_fields

DOC_HASH = "doc_hash"  # in ``Record.detail``: lm-evaluation-harness's digest of all fields
EVERY_K = 8  # up to so many samples, there is a score for every k


def matched(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations of the same questions, with the config of the first one.

    Raises:
        InputError: an id has another question, target or document in another log, or two logs have no
            question in common.
    """
    first = evaluations[0]
    own = {record.id: record for record in first.records}
    for other in evaluations[1:]:
        logs = f"{first.path} ({first.config}) and {other.path} ({other.config})"
        common = [record for record in other.records if record.id in own]
        if not common:
            ids = [record.id for record in other.records]
            raise InputError(
                f"{logs} have no question in common: their ids are {some(own)} and {some(ids)}; "
                "compare logs of one task"
            )
        for record in common:
            pair = own[record.id], record
            texts = [(each.question, each.reference) for each in pair]
            documents = {each.detail.get(DOC_HASH) for each in pair} - {None}
            if texts[0] != texts[1] or len(documents) > 1:
                raise InputError(
                    f"{logs} have another question, target or document for the id {record.id}: {texts[0]!r:.160} and "
                    f"{texts[1]!r:.160}; compare logs of one task and of one version of its data"
                )
    return [replace(each, config=first.config) for each in evaluations]


def common_scores(evaluations: Sequence[Evaluation], names: Names) -> list[ScoreSpec]:
    """Return the scores that all evaluations have.

    Of these only the named ones, if there are names.

    Raises InputError if there is none.
    """
    own = [[spec.name for spec in each.score_specs] for each in evaluations]
    common = set(own[0]).intersection(*own)
    if not common:
        lists = "; ".join(map(", ".join, own))
        raise InputError(f"the logs have no common score ({lists})")
    specs = [spec for spec in evaluations[0].score_specs if spec.name in common]
    return select_scores(specs, names, "one of the logs")


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
    notes = dict.fromkeys(evaluation.notes)
    for spec in evaluation.score_specs:
        if isinstance(spec.reducer, Pass):
            continue
        specs.append(spec)
        if spec.reducer:  # one of the harness, such as max
            continue
        for each in present([spec], columns):
            rows = rows_by_question(each, evaluation.records)
            values = {row[0] for samples in rows.values() for row in samples}
            # All values of a score that is not 0/1, such as ROUGE, can be 0.
            is_binary = values <= {0, 1} and (1 in values or each.graded)
            if each.function or not values or not is_binary:
                continue
            sizes = [len(samples) for samples in rows.values()]
            fewest = min(sizes)
            few = f"{sizes.count(fewest)} of {len(sizes)} questions have only {fewest} samples"
            if max(ks, default=0) > fewest:
                raise InputError(
                    f"k is {max(ks)}, but {few} with a score in {evaluation.path}; allowed: 1 to {fewest}"
                )
            if fewest < max(sizes):
                notes[f"k of pass@k and pass^k is at most {fewest}: {few} with a score"] = None
            chosen = ks or [
                k for k in range(2, fewest + 1) if k <= EVERY_K or k.bit_count() == 1 or k == fewest
            ]
            specs += [Pass(k).of(each) for k in chosen]
            specs += [Pass(k, all=True).of(each) for k in chosen]
    # The harness may have computed one of them, too.
    specs = list({spec.name: spec for spec in specs}.values())
    return replace(evaluation, score_specs=specs, notes=list(notes))


def as_samples(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Return evaluations of one system on the same questions as one, each of whose questions has all their samples.

    The signature has all values of fields that differ, such as a seed, joined by "+".

    Raises:
        InputError: a file is given twice, or is a part of another one, or the questions differ.
    """
    first, count = evaluations[0], len(evaluations)
    of_all = {(each.questions, each.setting) for each in evaluations}
    if len(of_all) > 1:
        listed = ", ".join(sorted(map(" ".join, of_all)))
        raise InputError(
            f"samples of one system must be on one config and in one setting; these are on {listed}"
        )
    paths = [each.path for each in evaluations]
    if len(set(paths)) < count or without_superseded(evaluations)[1]:
        raise InputError(f"a run or a file was given twice: {', '.join(paths)}; give each sample once")
    if not first.benchmark:
        evaluations = matched(evaluations)
    samples: dict[str, list[Record]] = {}
    start = 0
    for each in evaluations:
        for record in each.records:
            moved = replace(record, epoch=record.epoch + start)
            samples.setdefault(record.id, []).append(moved)
        start += max((record.epoch for record in each.records), default=0)
    problems: list[str] = []
    notes: dict[str, None] = {}
    specs: dict[str, ScoreSpec] = {}
    recorded: dict[str, str] = {}
    status, unscored = first.status, first.unscored
    for each in evaluations:
        problems += [f"{each.path}: {text}" for text in each.problems]
        notes |= dict.fromkeys(each.notes)
        specs |= {spec.name: spec for spec in each.score_specs}
        recorded |= each.recorded
        status = each.status if status == "success" else status
        unscored = unscored or each.unscored
    return with_passes(
        replace(
            first,
            path=",".join(paths),
            model=f"{first.model} and {count - 1} more" if count > 1 else first.model,
            status=status,
            expected=sum(each.expected for each in evaluations),
            records=[record for records in samples.values() for record in records],
            signatures=_signatures([each.signatures for each in evaluations]),
            unscored=unscored,
            problems=problems,
            notes=list(notes),
            recorded=recorded,
            score_specs=list(specs.values()),
        )
    )


def _signatures(by_evaluation: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the joined signatures of the groups that all evaluations have."""
    signatures = {}
    for group, line in by_evaluation[0].items():
        lines = [each[group] for each in by_evaluation if group in each]
        if len(lines) < len(by_evaluation):
            continue
        fields = [parse(each)[1] for each in lines]
        joined = {}
        for name in dict.fromkeys(name for each in fields for name in each if name != VERSION):
            values = dict.fromkeys(each.get(name, "none") for each in fields)
            joined[name] = "+".join(values)
        signatures[group] = with_fields(line, **joined)
    return signatures
