"""Evaluations of the same questions: matched by id, or joined as samples of one system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from qabench.errors import InputError, some, unknown_name
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.passes import with_passes
from qabench.evaluation.records import Record
from qabench.evaluation.resumed import without_superseded
from qabench.evaluation.score_spec import Names, ScoreSpec, select_scores
from qabench.evaluation.signature import VERSION, parse, with_fields

# The key in ``Record.detail`` of lm-evaluation-harness's digest of all fields of a document.
DOC_HASH = "doc_hash"


def matched(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Check that evaluations are of the same questions, and return them with the first config.

    One task may have several names in logs of other harnesses. With one config, its evaluations
    share tables and are compared.

    Raises:
        InputError: a log has no question in common with the first one, or an id has a different
            question, target or document in it.
    """
    first = evaluations[0]
    # Ids alone are not enough: the same id may be another question in another version of the data.
    first_records = {record.id: record for record in first.records}
    for other in evaluations[1:]:
        logs = f"{first.path} ({first.config}) and {other.path} ({other.config})"
        common = [record for record in other.records if record.id in first_records]
        if not common:
            ids = [record.id for record in other.records]
            raise InputError(
                f"{logs} have no question in common: their ids are {some(first_records)} and {some(ids)}; "
                "compare logs of one task"
            )
        for record in common:
            first_record = first_records[record.id]
            texts = (first_record.question, first_record.reference)
            other_texts = (record.question, record.reference)
            # A log without the digest of its documents says nothing about them.
            documents = {first_record.detail.get(DOC_HASH), record.detail.get(DOC_HASH)} - {None}
            if texts != other_texts or len(documents) > 1:
                raise InputError(
                    f"{logs} have different questions, targets or documents for the id {record.id}: {texts!r:.160} and "
                    f"{other_texts!r:.160}; compare logs of one task and of one version of its data"
                )
    return [replace(evaluation, config=first.config) for evaluation in evaluations]


def common_scores(evaluations: Sequence[Evaluation], names: Names) -> list[ScoreSpec]:
    """Return the scores that all evaluations have, or only those with the given names.

    Raises:
        InputError: the evaluations have no score in common, or a named score is not in all of them.
    """
    # Tables and errors list the scores in the order of the first log.
    common = list(evaluations[0].score_specs)
    lists = []
    for evaluation in evaluations:
        own_names = [spec.name for spec in evaluation.score_specs]
        common = [spec for spec in common if spec.name in own_names]
        lists.append(f"{evaluation.path or evaluation.name} has {', '.join(own_names) or 'none'}")
    if not common:
        raise InputError(f"the logs have no common score: {'; '.join(lists)}")
    return select_scores(common, names, "one of the logs")


def with_lower_better(evaluations: Sequence[Evaluation], names: Sequence[str]) -> list[Evaluation]:
    """Return evaluations of other tasks with the named scores marked as lower is better.

    Raises:
        InputError: no evaluation has the score, or the score belongs to a benchmark, which declares
            whether higher is better.
    """
    if not names:
        return list(evaluations)
    declared: set[str] = set()
    changed = []
    for evaluation in evaluations:
        specs = []
        for spec in evaluation.score_specs:
            declared.add(spec.name)
            if spec.name in names:
                spec = replace(spec, higher_is_better=False)
            specs.append(spec)
        changed.append(replace(evaluation, score_specs=specs))
    for name in names:
        if name not in declared:
            raise unknown_name("no system has the score", name, sorted(declared))
    # A benchmark declares whether higher is better, and the option must not contradict it.
    for evaluation, with_lower in zip(evaluations, changed, strict=True):
        if evaluation.benchmark and with_lower.score_specs != list(evaluation.score_specs):
            raise InputError(
                f"{evaluation.benchmark} declares whether higher values of its scores are better; "
                "leave out --lower-is-better"
            )
    return changed


def as_samples(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Join evaluations of one system on the same questions into one with all samples.

    The signature has all values of fields that differ, such as a seed, joined by "+".

    Raises:
        InputError: a file is given twice, a run is given besides a run that resumed it, or the
            questions or settings differ.
    """
    first = evaluations[0]
    count = len(evaluations)
    paths = []
    configs = set()
    for evaluation in evaluations:
        paths.append(evaluation.path)
        configs.add((evaluation.questions, evaluation.setting))
    if len(configs) > 1:
        listed = ", ".join(sorted(map(" ".join, configs)))
        raise InputError(
            f"samples of one system must be on one config and in one setting; these are on {listed}"
        )
    # The same run twice would look like two samples that always agree.
    _, superseded = without_superseded(evaluations)
    if len(set(paths)) < count or superseded:
        raise InputError(
            f"a run or a file was given twice: {', '.join(paths)}; give each sample once"
        )
    if not first.benchmark:
        evaluations = matched(evaluations)
    expected = 0
    problems: list[str] = []
    notes: dict[str, None] = {}
    specs: dict[str, ScoreSpec] = {}
    recorded: dict[str, str] = {}
    status, unscored, model = first.status, first.unscored, first.model
    for evaluation in evaluations:
        expected += evaluation.expected
        for text in evaluation.problems:
            problems.append(f"{evaluation.path}: {text}")
        notes |= dict.fromkeys(evaluation.notes)
        for spec in evaluation.score_specs:
            specs[spec.name] = spec
        recorded |= evaluation.recorded
        # The first run that was not a success determines the status.
        if status == "success":
            status = evaluation.status
        unscored = unscored or evaluation.unscored
    if count > 1:
        model = f"{first.model} and {count - 1} more"
    joined = replace(
        first,
        path=",".join(paths),
        model=model,
        status=status,
        expected=expected,
        records=_with_further_epochs(evaluations),
        signatures=_signatures([evaluation.signatures for evaluation in evaluations]),
        unscored=unscored,
        problems=problems,
        notes=list(notes),
        recorded=recorded,
        score_specs=list(specs.values()),
    )
    return with_passes(joined)


def _with_further_epochs(evaluations: Sequence[Evaluation]) -> list[Record]:
    """Return the records of all evaluations, with the samples of each question together."""
    samples: dict[str, list[Record]] = {}
    n_epochs = 0
    for evaluation in evaluations:
        # The epochs of the next file follow those of this one.
        last_epoch = 0
        for record in evaluation.records:
            moved = replace(record, epoch=record.epoch + n_epochs)
            samples.setdefault(record.id, []).append(moved)
            last_epoch = max(last_epoch, record.epoch)
        n_epochs += last_epoch
    return list(chain.from_iterable(samples.values()))


def _signatures(by_evaluation: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the joined signatures of the groups that all evaluations have."""
    signatures = {}
    for group, line in by_evaluation[0].items():
        if not all(group in lines for lines in by_evaluation):
            continue
        all_fields = []
        for lines in by_evaluation:
            _, fields = parse(lines[group])
            all_fields.append(fields)
        names = dict.fromkeys(chain.from_iterable(all_fields))
        # The joined signature keeps the version of the first one.
        names.pop(VERSION, None)
        joined = {}
        for name in names:
            # Equal values occur once, in the order of the evaluations.
            values = dict.fromkeys(fields.get(name, "none") for fields in all_fields)
            joined[name] = "+".join(values)
        signatures[group] = with_fields(line, **joined)
    return signatures
