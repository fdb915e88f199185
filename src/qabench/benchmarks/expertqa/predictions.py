"""Scores of files of ExpertQA predictions; the scores are those of the metrics.

A line has ``answer`` (ROUGE against the reference answer), ``claims``, or both. A claim is
``{"claim": ..., "evidence": [...], "label": "Y" or "N", "fact_score": 0.5}``; label and fact_score are optional.
Claims are either the annotated claims of the config, in their order, or those of another system's answer. The former
are scored as in the authors' scripts, with agreement between labels and experts. For the latter, there are no experts'
labels, so all claims with evidence count.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.expertqa import columns, signatures
from qabench.benchmarks.expertqa.autoais import autoais, autoais_agreement
from qabench.benchmarks.expertqa.factscore import factscore_agreement
from qabench.benchmarks.expertqa.lfqa import lfqa_rouge
from qabench.benchmarks.expertqa.metrics import (
    AUTOAIS,
    AUTOAIS_AGREEMENT,
    FACT_SCORE,
    FACT_SCORE_AGREEMENT,
    FAMILIES,
    ROUGE,
)
from qabench.benchmarks.expertqa.prediction_items import (
    Item,
    Row,
    annotated_claims,
    labeled_by,
    match_annotated,
    read_item,
    text_of_item,
)
from qabench.benchmarks.expertqa.questions import Questions, load_questions
from qabench.data.predictions import NO_PREDICTION, Joined, Predictions, join, some
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation, Record


def evaluate(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    families: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: object = None,
    split: str | None = None,
    unlabeled: str = "N",
) -> Evaluation:
    """Scores predictions for the questions of a config.

    Args:
        benchmark: the instance for the evaluation.
        config: a config of the dataset; None means its default.
        predictions: see the module; a field of another type is reported, and the prediction counts as missing.
        families: some of ``metrics.FAMILIES``; None means all that the predictions and the config allow.
        questions: a custom file of questions; see ``load_questions``.
        progress: unused; scoring takes seconds.
        split: the split of a config with several splits; None means "test".
        unlabeled: how a claim that counts but has no label is treated: "N", as in the authors' script, or "exclude".

    Returns:
        One record per question of the split. ``Record.scores`` has the columns of ``columns.py``.

    Raises:
        InputError: no prediction fits, or a family that these predictions have no scores for.
        SourceError: the data is not available.
    """
    loaded = load_questions(config, split, questions)
    joined = join([row.id for row in loaded.rows], predictions)
    items = [read_item(question, row) for question, row in zip(loaded.rows, joined.rows, strict=True)]
    match_annotated(items)
    found = _score(items, loaded, unlabeled, FAMILIES if families is None else families)
    if absent := [name for name in families or () if name not in found]:
        raise InputError(f"{', '.join(absent)} cannot be computed: {_hint(absent[0], loaded)}")
    if not found:
        raise InputError(f"nothing to score in {predictions.path}: {_hint(ROUGE, loaded)}")
    return benchmark.evaluation(
        predictions,
        loaded.config,
        [_record(item) for item in items],
        found,
        problems=_problems(joined, items, unlabeled),
        arguments={"split": loaded.split},
    )


def _score(items: Sequence[Item], questions: Questions, unlabeled: str, families: Sequence[str]) -> dict[str, str]:
    """Writes the columns into the items; returns the signatures of the families that were computed."""
    common = {"config": questions.config, "split": questions.split, "data": questions.digest}
    found: dict[str, str] = {}
    if ROUGE in families and any(item.answer is not None for item in items):
        found |= _rouge(items, common)
    if any(item.annotated for item in items):
        found |= _of_annotated(items, common, unlabeled, families)
    elif any(item.claims for item in items):
        found |= _of_own_claims(items, common, unlabeled, families)
    with_scores = [item for item in items if any(claim["fact_score"] is not None for claim in item.claims or ())]
    if FACT_SCORE in families and with_scores:
        for item in with_scores:
            item.scores |= columns.of_fact_scores(item.claims or [])
        found[FACT_SCORE] = signatures.fact_score(common, labeled_by(items, "fact_scores_by"))
    return found


def _rouge(items: Sequence[Item], common: Row) -> dict[str, str]:
    having = [(item, item.question.reference) for item in items if item.question.reference is not None]
    if not having:
        return {}
    result = lfqa_rouge([reference for _, reference in having], [item.answer for item, _ in having])
    for (item, _), scores in zip(having, result.per_question, strict=True):
        item.scores |= scores
    return {ROUGE: signatures.rouge(common, result.backend)}


def _of_annotated(
    items: Sequence[Item], common: dict[str, str], unlabeled: str, families: Sequence[str]
) -> dict[str, str]:
    """Scores of labels on the annotated claims, as in the authors' scripts."""
    kept = [item for item in items if item.question.answers]
    rows = [{"answers": item.question.answers} for item in kept]
    labels, facts = ([_verdicts(item, name) for item in kept] for name in ("label", "fact_score"))
    fields = common | {"unlabeled": unlabeled}
    by = labeled_by(items, "labels_by")
    found: dict[str, str] = {}
    if AUTOAIS in families and any(map(any, labels)):
        for item, answers in zip(kept, autoais(rows, labels, on_unlabeled=unlabeled).per_question, strict=True):
            (answer,) = answers
            item.scores |= columns.of_answer(item.question.answers[0]["answer_string"], annotated_claims(item.question))
            item.scores |= columns.of_autoais(answer)
        found[AUTOAIS] = signatures.autoais(fields, "annotated", by)
    if AUTOAIS_AGREEMENT in families and any(map(any, labels)):
        judged = autoais_agreement(rows, labels, on_unlabeled=unlabeled).per_question
        for item, claims in zip(kept, judged, strict=True):
            item.scores |= columns.of_agreement(AUTOAIS_AGREEMENT, claims)
        found[AUTOAIS_AGREEMENT] = signatures.autoais_agreement(fields, by)
    if FACT_SCORE_AGREEMENT in families and any(score is not None for row in facts for score in row):
        for item, claims in zip(kept, factscore_agreement(rows, facts).per_question, strict=True):
            item.scores |= columns.of_agreement(FACT_SCORE_AGREEMENT, claims)
        found[FACT_SCORE_AGREEMENT] = signatures.fact_score_agreement(common, labeled_by(items, "fact_scores_by"))
    return found


def _verdicts(item: Item, name: str) -> list[Any]:
    if item.claims is None:
        return [None] * len(annotated_claims(item.question))
    return [claim[name] for claim in item.claims]


def _of_own_claims(
    items: Sequence[Item], common: dict[str, str], unlabeled: str, families: Sequence[str]
) -> dict[str, str]:
    if AUTOAIS not in families:
        return {}
    given = [item for item in items if item.claims is not None]
    labels = [[claim["label"] for claim in item.claims or ()] for item in given]
    for item in given:
        item.scores |= columns.of_answer(text_of_item(item), item.claims or [])
    if any(map(any, labels)):
        rows = [columns.as_row(text_of_item(item), item.claims or []) for item in given]
        for item, answers in zip(given, autoais(rows, labels, on_unlabeled=unlabeled).per_question, strict=True):
            item.scores |= columns.of_autoais(answers[0])
    fields = common | {"unlabeled": unlabeled}
    return {AUTOAIS: signatures.autoais(fields, "all with evidence", labeled_by(items, "labels_by"))}


def _record(item: Item) -> Record:
    annotated = item.question.answers[0]["answer_string"] if item.annotated else None
    answer = item.answer if item.answer is not None else annotated
    if answer is None and item.claims is not None:
        answer = text_of_item(item)
    status = MISSING if answer is None else ANSWERED if answer.strip() else EMPTY
    problem = item.wrong or (NO_PREDICTION if item.prediction is None else None)
    if problem is None and answer is None:
        problem = "the prediction has neither an answer nor claims"
    return Record(
        id=item.question.id,
        epoch=1,
        question=item.question.text,
        reference=item.question.reference or "",
        messages=(),
        answer=answer,
        status=status,
        problem=problem,
        scores=item.scores,
        groups=item.question.groups,
        detail={"claims": [_shown(claim) for claim in item.claims or ()], "passages": []},
    )


def _shown(claim: Row) -> dict[str, Any]:
    return {"text": claim["claim_string"] or "", "evidence": claim["evidence"] or [], "label": claim["label"]}


def _problems(joined: Joined, items: Sequence[Item], unlabeled: str) -> list[str]:
    said = joined.problems()
    if wrong := [(item.prediction, item.wrong) for item in items if item.wrong]:
        named = some(f"{row.id} (line {row.line}): {reason}" for row, reason in wrong if row)
        said.append(f"predictions that cannot be scored: {len(wrong)} ({named})")
    lacking = sum(
        claim["label"] is None and bool(claim["evidence"])
        for item in items
        for claim in item.claims or ()
        if "claims_counted" in item.scores
    )
    if lacking:
        counted = "they count as N" if unlabeled == "N" else "they are left out"
        said.append(f"claims with evidence and without a label: {lacking} ({counted} where claims count)")
    return said


def _hint(family: str, questions: Questions) -> str:
    if family == ROUGE:
        return (
            'predictions need "answer" and the config needs reference answers (lfqa_random, lfqa_domain, and configs '
            f'with annotated answers; the config is {questions.config!r}), or predictions need "claims"'
        )
    if family in (AUTOAIS_AGREEMENT, FACT_SCORE_AGREEMENT):
        return "predictions need the annotated claims of the config, in their order, with label or fact_score"
    return 'predictions need "claims", each with "label" (AutoAIS) or "fact_score" (factuality)'
