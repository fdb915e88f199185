"""What distinguishes the scores of an evaluation from official ones, in sentences."""

from __future__ import annotations

from collections.abc import Container

from qabench.data.rows import grouped
from qabench.errors import InputError
from qabench.evaluation.records import FAILED, MISSING, Score
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scored import ScoredRecords
from qabench.evaluation.signature import asked_part, deviations, signature_name


def deviations_of(evaluation: ScoredRecords, score: Score) -> list[str]:
    """Return what distinguishes a score from the official one, in sentences."""
    if not evaluation.benchmark:
        # The scores of other tasks are neither official nor unofficial.
        return []
    sentences = []
    # Pass@k is estimated from a score of the authors, so it does not deviate by itself. That each
    # question was asked several times is reported below.
    if not (score.spec.official or score.spec.reducer):
        sentences.append("not a score of the benchmark's authors")
    sentences += _signature_deviations(evaluation, score.spec)
    if score.spec.group in evaluation.recorded:
        sentence = "as recorded in the log"
        if reason := evaluation.recorded[score.spec.group]:
            sentence += f" ({reason})"
        sentences.append(sentence)
    group = score.spec.group
    # These deviations are the same for all scores of a group, and counting the records takes long.
    sentences += evaluation.once(f"asked {group}", lambda: _asked_deviations(evaluation, group))
    if score.left_out and not score.spec.partial:
        sentences.append(f"{score.left_out} of {len(evaluation.records)} answers are left out")
    if evaluation.status != "success":
        status = evaluation.status
        if status == "started":
            # Inspect writes the status when a run starts, and again when it ends.
            status = "killed, or still running"
        sentences.append(f"the run did not finish ({status})")
    return sentences


def deviation_sentences(
    evaluation: ScoredRecords, names: Container[str] | None = None
) -> list[str]:
    """Return each deviation once, with the groups and the scores that it applies to.

    Args:
        evaluation: the evaluation.
        names: the names of the scores. None for all of them.
    """
    scores = evaluation.scores()
    if names is not None:
        scores = {name: score for name, score in scores.items() if name in names}
    names_by_group = grouped((score.spec.group, name) for name, score in scores.items())
    names_by_sentence: dict[str, list[str]] = {}
    for name, score in scores.items():
        for sentence in deviations_of(evaluation, score):
            names_by_sentence.setdefault(sentence, []).append(name)
    sentences = []
    for sentence, deviating in names_by_sentence.items():
        if len(deviating) == len(scores):
            sentences.append(f"not official (all scores): {sentence}")
            continue
        shown: list[str] = []
        for group, members in names_by_group.items():
            deviating_members = [name for name in members if name in deviating]
            if deviating_members == members:
                # The name of the group is shorter than the names of all its scores.
                shown.append(group)
            else:
                shown += deviating_members
        sentences.append(f"not official ({', '.join(shown)}): {sentence}")
    return sentences


def _asked_deviations(evaluation: ScoredRecords, group: str) -> list[str]:
    ids = {record.id for record in evaluation.records}
    sentences = asked_part(len(ids), evaluation.available)
    if missing := evaluation.expected - len(evaluation.records):
        sentences.append(f"{missing} of {evaluation.expected} answers are missing")
    if (epochs := max((record.epoch for record in evaluation.records), default=1)) > 1:
        sentences.append(f"each question was asked {epochs} times")
    if evaluation.failures_official:
        # The authors' results contain questions without an answer, too.
        return sentences
    for status in (FAILED, MISSING):
        if count := sum(record.status_of(group) == status for record in evaluation.records):
            sentences.append(
                f"{count} of {len(evaluation.records)} questions have no answer ({status})"
            )
    return sentences


def _signature_deviations(evaluation: ScoredRecords, spec: ScoreSpec) -> list[str]:
    line = evaluation.signatures.get(spec.group, "")
    if not line:
        return ["the signature is missing"]
    try:
        name = signature_name(line)
    except InputError as error:
        # The log is from another version of qabench, or was edited.
        return [str(error)]
    if name not in evaluation.declarations:
        return [
            f"the official values of {name!r} are not known; known signatures: {', '.join(evaluation.declarations)}"
        ]
    _, _, cutoff = spec.needs[0].partition("@")
    return deviations(line, evaluation.declarations[name], cutoff)
