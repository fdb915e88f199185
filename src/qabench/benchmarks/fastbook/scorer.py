"""fastbook's scorer for Inspect AI: retrieval scores of the passages, and ROUGE of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import anyio
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from qabench.benchmarks.fastbook.answer_components import answer_component_scores, mean_of
from qabench.benchmarks.fastbook.study.scores import detail, retrieval_columns, rouge_columns
from qabench.benchmarks.fastbook.study.study import Study, load_study
from qabench.benchmarks.fastbook.trec import doc_id
from qabench.evaluation.signature import signature
from qabench.tasks.common import answer_of
from qabench.tasks.metrics import column_means, mean_in_order

study_of = cache(load_study)
"""``load_study``, cached by its arguments."""


@metric
def fastbook_means() -> Metric:
    """The means over questions; those of retrieval scores equal ``qabench fastbook retrieve`` to the last digit."""

    def value(scores: list[SampleScore]) -> Value:
        return column_means(scores, lambda column: mean_of if "@" in column else mean_in_order)

    return value


@scorer(name="fastbook", metrics=[fastbook_means()])
def fastbook_scorer(
    config: str = "questions",
    chunk_size: int = 500,
    overlap: int | None = None,
    chunker: str = "sentences",
    k: int = 10,
    signed: Mapping[str, Any] | None = None,
) -> Scorer:
    """Answer Component MRR@k and Recall@k of the passages in the prompt, and ROUGE F-measures of the model's answer.

    ROUGE is that of ``qabench.text.rouge`` against ``gold_standard_answer``. A sample without an answer (an error, a
    refusal, an empty reply) scores 0; its retrieval scores do not depend on the answer.

    Args:
        config: "questions" or "sample".
        chunk_size: see ``load_study``.
        overlap: see ``load_study``.
        chunker: see ``load_study``.
        k: the cutoff.
        signed: fields of the signatures, from the task.
    """
    study = study_of(config=config, chunk_size=chunk_size, overlap=overlap, chunker=chunker)

    async def score(state: TaskState, target: Target) -> Score:
        row = next(row for row in study.questions if row["id"] == str(state.sample_id))
        hits, answer = state.metadata["hits"], answer_of(state)
        return await anyio.to_thread.run_sync(_score, study, row, hits, answer, k, str(state.model), signed or {})

    return score


def _score(
    study: Study,
    row: Mapping[str, Any],
    hits: list[list[Any]],
    answer: str | None,
    k: int,
    model: str,
    signed: Mapping[str, Any],
) -> Score:
    chunks = study.corpus[row["chapter"]]
    passages = [
        {"id": doc_id(row["chapter"], position), "text": chunks[position], "score": score} for position, score in hits
    ]
    texts = [passage["text"] for passage in passages]
    found = answer_component_scores([row["answer_context"]], [texts], k)
    (of_answer,), backend = rouge_columns([row["gold_standard_answer"]], [answer])
    about = {**signed.get("answers", {}), "model": model, "rouge": backend, "stemmer": "porter"}
    return Score(
        value=retrieval_columns(found)[0] | of_answer,
        answer=answer,
        metadata={
            "detail": detail(row, found.ranks[0] or (), passages, k),
            "signatures": {"retrieval": signed.get("retrieval", ""), "rouge": signature("fastbook_rouge", **about)},
        },
    )
