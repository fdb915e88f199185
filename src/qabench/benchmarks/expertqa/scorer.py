"""ExpertQA's scorer in Inspect AI: the columns of ``columns.py`` for an answer, its claims and their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from qabench.benchmarks.expertqa import columns, signatures
from qabench.benchmarks.expertqa.answers import STORE
from qabench.benchmarks.expertqa.autoais import autoais
from qabench.benchmarks.expertqa.claims import sentence_splitter
from qabench.benchmarks.expertqa.labels import attributor as attributor_of
from qabench.benchmarks.expertqa.lfqa import lfqa_rouge
from qabench.benchmarks.expertqa.metrics import AUTOAIS, METRICS, ROUGE
from qabench.evaluation import ANSWERED, Record
from qabench.evaluation.scores import scores_of
from qabench.models.entailment import MODEL
from qabench.tasks.common import note_problem
from qabench.tasks.replies import asked_with, count_replies


@metric(scores="unreduced")
def expertqa_metrics() -> Metric:
    """The benchmark's metrics over all answers and epochs, equal to those of reports and of ``qabench score``."""

    def value(scores: list[SampleScore]) -> Value:
        records = [
            Record(str(one.sample_id), number, "", "", (), None, ANSWERED, scores=_numbers(one.score.as_dict()))
            for number, one in enumerate(scores)
        ]
        return {name: score.interval.mean for name, score in scores_of(METRICS, records).items()}

    return value


@scorer(name="expertqa", metrics=[expertqa_metrics()])
def expertqa_scorer(
    attributor: str = "none", nli_model: str = MODEL, signed: Mapping[str, Any] | None = None
) -> Scorer:
    """Scores an answer: claims with evidence, AutoAIS if its claims are labeled, ROUGE if there is a reference answer.

    A sample without an answer (an error, a refusal) has no claims; its ROUGE is 0, as for any unanswered question.

    Args:
        attributor: the labeler of claims; see ``qabench.benchmarks.expertqa.labels``.
        nli_model: the model of the attributor "nli".
        signed: the fields of signatures for the data and for how answers are made. The task fills it.
    """
    labels_of = attributor_of(attributor, nli_model)

    async def score(state: TaskState, target: Target) -> Score:
        found = state.store.get(STORE) or {"answer": None, "claims": [], "passages": []}
        claims, answer = found["claims"], found["answer"]
        # The options of the call that answered, so before claims are labeled.
        fields = {**(signed or {}), "sentences": sentence_splitter()[0], "model": str(state.model)} | asked_with()
        labels, labeled_by = await labels_of([(claim["claim_string"], claim["evidence"]) for claim in claims])
        count_replies(state)
        unread = sum(label is None for label in labels) if attributor != "none" else 0
        if unread:
            note_problem(state, f"{unread} of {len(labels)} claims have no label: {labeled_by} said neither yes nor no")
        values = {} if answer is None else _of_claims(answer, claims, labels, attributor != "none")
        rouge, backend = await anyio.to_thread.run_sync(_rouge, state.metadata.get("expected"), answer)
        about: dict[str, Any] = {
            "detail": _detail(state, found, labels),
            "unasked": bool(state.metadata.get("unasked")),
            "signatures": {
                AUTOAIS: signatures.autoais(fields | {"unlabeled": "exclude"}, "all with evidence", labeled_by)
            },
        }
        if backend:
            about["signatures"][ROUGE] = signatures.rouge(fields, backend)
        return Score(value=values | rouge, answer=answer, metadata=about)

    return score


def _of_claims(
    answer: str, claims: Sequence[Mapping[str, Any]], labels: Sequence[str | None], labeled: bool
) -> dict[str, Any]:
    found: dict[str, Any] = columns.of_answer(answer, claims)
    if not labeled or not any(labels):
        return found
    ((scored,),) = autoais([columns.as_row(answer, claims)], [labels], on_unlabeled="exclude").per_question
    return found | columns.of_autoais(scored)


def _rouge(reference: str | None, answer: str | None) -> tuple[dict[str, float], str | None]:
    if reference is None:
        return {}, None
    found = lfqa_rouge([reference], [answer])
    return dict(found.per_question[0]), found.backend


def _shown(claims: Sequence[Mapping[str, Any]], labels: Sequence[str | None]) -> list[dict[str, Any]]:
    return [
        {"text": claim["claim_string"], "evidence": list(claim["evidence"]), "label": label}
        for claim, label in zip(claims, labels, strict=True)
    ]


def _detail(state: TaskState, found: Mapping[str, Any], labels: Sequence[str | None]) -> dict[str, Any]:
    """What a report and an export show of an answer; of one from the web also every page, with its outcome."""
    detail: dict[str, Any] = {"claims": _shown(found["claims"], labels), "passages": found["passages"]}
    if found.get("attribution"):
        detail["attribution"] = found["attribution"]
    if web := state.metadata.get("web"):
        detail["pages"] = [page for search in web["searches"] for page in search["pages"]]
    return detail


def _numbers(value: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(number) for name, number in value.items() if number is not None}
