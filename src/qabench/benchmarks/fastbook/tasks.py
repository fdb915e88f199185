"""fastbook-benchmark as an Inspect AI task: answers from passages retrieved from the question's chapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from qabench.benchmarks.fastbook import BENCHMARK
from qabench.benchmarks.fastbook.answer_components import answer_component_scores, mean_of
from qabench.benchmarks.fastbook.evaluate import detail, retrieval_columns, rouge_columns
from qabench.benchmarks.fastbook.retrieval import COLBERT_MODEL, DENSE_MODEL, parse_method
from qabench.benchmarks.fastbook.study import Outcome, Study, load_study, run
from qabench.evaluation.metric import mean_in_order
from qabench.evaluation.signature import signature
from qabench.loading_scripts.fastbook.chunks import doc_id
from qabench.retrieval import Hits
from qabench.tasks.common import answer_of, chosen, column_means, metric_values, sample, task_metadata
from qabench.tasks.prompts import DATA_NOT_INSTRUCTIONS, Prompt
from qabench.tasks.replies import ask, asked_with

study_of = cache(load_study)
"""``load_study``, cached by its arguments."""


@metric(scores="unreduced")
def fastbook_means() -> Metric:
    """Return the means over all answers; retrieval equals ``qabench fastbook retrieve`` to the last digit."""

    def value(scores: list[SampleScore]) -> Value:
        means = column_means(scores, lambda column: mean_of if "@" in column else mean_in_order)
        return means | metric_values(scores, BENCHMARK.metrics)

    return value


@scorer(name="fastbook", metrics=[fastbook_means()])
def fastbook_scorer(
    config: str = "questions",
    chunk_size: int = 500,
    overlap: int | None = None,
    chunker: Literal["sentences", "llama-index"] = "sentences",
    k: int = 10,
    signed: Mapping[str, Any] | None = None,
) -> Scorer:
    """Answer Component MRR@k and Recall@k of the passages in the prompt, and ROUGE F-measures of the model's answer.

    ROUGE is that of ``qabench.text.rouge`` against ``gold_standard_answer``. A sample without an answer (an error, a
    refusal, an empty reply) scores 0; its retrieval scores do not depend on the answer.

    ``signed`` has the fields of the signatures, from the task; the other arguments are the task's.
    """
    study = study_of(config=config, chunk_size=chunk_size, overlap=overlap, chunker=chunker)

    async def score(state: TaskState, target: Target) -> Score:
        row = next(row for row in study.questions if row["id"] == str(state.sample_id))
        chunks, answer = study.corpus[row["chapter"]], answer_of(state)
        fields = {**(signed or {}).get("answers", {}), "model": str(state.model), **asked_with()}
        passages = [
            {"id": doc_id(row["chapter"], position), "text": chunks[position], "score": score}
            for position, score in state.metadata["hits"]
        ]

        def scored() -> Score:
            scores = answer_component_scores([row["answer_context"]], [[passage["text"] for passage in passages]], k)
            (of_answer,), backend = rouge_columns([row["gold_standard_answer"]], [answer])
            rouge = signature("fastbook_rouge", **fields, rouge=backend, stemmer="porter")
            return Score(
                value=retrieval_columns(scores)[0] | of_answer,
                answer=answer,
                metadata={
                    "detail": detail(row, scores.ranks[0] or (), passages, k),
                    "signatures": {"retrieval": (signed or {}).get("retrieval", ""), "rouge": rouge},
                },
            )

        return await anyio.to_thread.run_sync(scored)

    return score


ANSWER_TOKENS = 500
PROMPT = Prompt(
    "qabench",
    f"""Answer the question with the following passages of a textbook, in full sentences. Answer everything that was
asked, and nothing else. If the passages do not contain the answer, say so.

<passages>
{{passages}}
</passages>

{DATA_NOT_INSTRUCTIONS}

Question: {{question}}""",
)


@task
def fastbook_rag(
    config: str = "questions",
    method: Literal["bm25", "fts", "dense", "colbert"] = "bm25",
    query: Literal["question", "keywords"] | None = None,
    k: int = 10,
    chunk_size: int = 500,
    overlap: int | None = None,
    chunker: Literal["sentences", "llama-index"] = "sentences",
    chapters: Sequence[str] | str | None = None,
    ids: Sequence[str] | str | None = None,
    dense_model: str = DENSE_MODEL,
    colbert_model: str = COLBERT_MODEL,
) -> Task:
    """fastbook: answer a question from the k best passages of its chapter.

    Retrieval is scored as in ``qabench fastbook retrieve``, by Answer Component MRR@k and Recall@k. The benchmark does
    not score answers: ROUGE against its reference answers is an addition of this project.

    Args:
        config: "questions" or "sample".
        method: "bm25", "fts", "dense" or "colbert". Passages are retrieved when the task is created.
        query: "question" or "keywords"; by default keywords for fts and the question for the other methods.
        k: the number of passages in the prompt.
        chunk_size: the maximum number of tokens of a passage.
        overlap: the maximum number of tokens that passages share; None for the source's choice.
        chunker: "sentences", or "llama-index", which the source uses.
        chapters: only the questions of these chapters.
        ids: only these questions.
        dense_model: the model of "dense".
        colbert_model: the model of "colbert".

    Raises:
        InputError: an unknown option, chapter or id.
        MissingExtra: a package of the method is not installed.
        SourceError: the data is not available.
    """
    chunking: dict[str, Any] = {"config": config, "chunk_size": chunk_size, "overlap": overlap, "chunker": chunker}
    study = study_of(**chunking)
    selected_ids = {str(question_sample.id) for question_sample in chosen(map(_sample, study.questions), ids, chapters)}
    part = replace(study, questions=[row for row in study.questions if row["id"] in selected_ids])
    outcome = run(part, parse_method(method, query, dense_model, colbert_model), k)
    samples = [_asked(row, hits, study) for row, hits in zip(part.questions, outcome.hits, strict=True)]
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/fastbook-{config}"),
        solver=ask(),
        scorer=fastbook_scorer(k=k, signed=_signed(outcome), **chunking),
        config=GenerateConfig(temperature=0, max_tokens=ANSWER_TOKENS),
        metadata=task_metadata(
            "fastbook", config, f"rag {outcome.method.name}", study.about["data"], available=len(study.questions)
        ),
        fail_on_error=False,
        score_on_error=True,
    )


def _sample(row: Mapping[str, Any], **metadata: Any) -> Sample:
    groups = {"chapter": [str(row["chapter"])]}
    return sample(row["id"], "", row["question_text"], row["gold_standard_answer"], groups, **metadata)


def _asked(row: Mapping[str, Any], hits: Hits, study: Study) -> Sample:
    """Return the sample with its prompt, and the chunks that the prompt contains."""
    chunks = study.corpus[row["chapter"]]
    passages = [f"[{rank}]\n{chunks[position]}" for rank, position in enumerate(hits.positions, start=1)]
    sample = _sample(row, hits=[list(hit) for hit in zip(hits.positions, hits.scores, strict=True)])
    shown = "\n\n".join(passages) or "(none)"
    ((_, sample.input),) = PROMPT.messages(passages=shown, question=row["question_text"])
    return sample


def _signed(outcome: Outcome) -> dict[str, Any]:
    """Return the signature of the retrieval, and further fields for that of the answers."""
    method = outcome.method
    retriever = {"method": method.name, "query": method.query, "retriever_model": method.model, "passages": outcome.k}
    return {"retrieval": outcome.signature, "answers": {**outcome.study.about, **retriever, "prompt": PROMPT.label}}
