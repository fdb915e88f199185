"""fastbook's scores in Inspect AI: what was retrieved, as ``qabench retrieve`` scores it, and ROUGE of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import nan
from typing import Any

import anyio
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer, stderr
from inspect_ai.solver import TaskState

from qabench.benchmarks.fastbook.study.study import Study, load_study
from qabench.benchmarks.fastbook.study.trec import doc_id
from qabench.scoring.answer_components import answer_component_scores, mean_of
from qabench.scoring.rouge import ROUGE_TYPES, rouge
from qabench.signature import signature
from qabench.tasks.common import answer_of
from qabench.tasks.metrics import mean

UNOFFICIAL = "ROUGE of answers is not the benchmark's: it scores retrieval alone"

study_of = cache(load_study)
"""``load_study``, once for each choice of arguments."""


@metric
def retrieval_mean() -> Metric:
    """The mean over questions, equal to that of ``qabench retrieve`` to the last digit."""

    def value(scores: list[SampleScore]) -> float:
        return mean_of([one.score.as_float() for one in scores]) if scores else nan

    return value


@scorer(name="fastbook", metrics={"*@*": [retrieval_mean(), stderr()], "rouge*": [mean(), stderr()]})
def fastbook_scorer(
    config: str = "questions",
    chunk_size: int = 500,
    overlap: int | None = None,
    chunker: str = "sentences",
    k: int = 10,
    signed: Mapping[str, Any] | None = None,
) -> Scorer:
    """Answer Component MRR@k and Recall@k of the passages that the model read, and ROUGE F-scores of its answer.

    ROUGE is that of ``qabench.scoring.rouge`` against ``gold_standard_answer``. A sample without an answer (an error, a
    refusal) has retrieval scores alone; an empty reply is an empty answer, and scores 0.

    Args:
        config, chunk_size, overlap, chunker: which passages these are; see ``load_study``.
        k: the cutoff. signed: for the signatures. The task fills all of them.
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
    found = answer_component_scores([row["answer_context"]], [[passage["text"] for passage in passages]], k)
    value: dict[str, Any] = {f"mrr@{k}": found.mrr_per_question(k)[0], f"recall@{k}": found.recall_per_question(k)[0]}
    components = [
        {"text": "; ".join(part["answer_component"]), "contexts": list(part["context"]), "rank": rank}
        for part, rank in zip(row["answer_context"], found.ranks[0] or (), strict=True)
    ]
    of_answer, backend = _rouge(row["gold_standard_answer"], answer)
    about = {
        "benchmark": "fastbook",
        **signed.get("answers", {}),
        "model": model,
        "answers": "UNOFFICIAL have no score of the benchmark's own",
        "rouge": backend,
        "stemmer": "porter",
    }
    return Score(
        value=value | of_answer,
        answer=answer,
        metadata={
            "detail": {"passages": passages, "components": components, "k": k},
            "signatures": {"retrieval": signed.get("retrieval", ""), "rouge": signature("fastbook_rouge", **about)},
            "unofficial": UNOFFICIAL,
        },
    )


def _rouge(reference: str, answer: str | None) -> tuple[dict[str, float], str | None]:
    if answer is None:
        return {f"{kind}.fscore": nan for kind in ROUGE_TYPES}, None
    found = rouge([reference], [answer])
    return {f"{kind}.fscore": float(prf.fscore) for kind, prf in found.per_question[0].items()}, found.backend
