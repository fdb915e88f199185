"""ExpertQA as an Inspect AI task: answers with citations, their claims and attribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig

from qabench.benchmarks.expertqa.answers import K, answer_with_citations, asked_by
from qabench.benchmarks.expertqa.passages import CHUNK_SIZE, OVERLAP, load_passages
from qabench.benchmarks.expertqa.questions import Question, load_questions
from qabench.benchmarks.expertqa.scorer import expertqa_scorer
from qabench.neural.nli import MODEL
from qabench.tasks.common import chosen, sample, task_metadata

ANSWER_TOKENS = 1000


@task
def expertqa(
    config: str = "questions",
    method: str = "closed",
    split: str | None = None,
    corpus: str | None = None,
    index: str | None = None,
    k: int = K,
    chunk_size: int = CHUNK_SIZE,
    overlap: int = OVERLAP,
    attributor: str = "none",
    nli_model: str = MODEL,
    fields: Sequence[str] | str | None = None,
    ids: Sequence[str] | str | None = None,
) -> Task:
    """ExpertQA: answer an expert's question with citations; claims, their evidence and attribution are scored.

    The dataset has no ids but in its lfqa configs: a question's id is the first 12 hex digits of the SHA-256 of its
    text, the same in every config; in the lfqa configs it is ``example_id``.

    Args:
        config: of the dataset; "questions" has all of them and no answers. ROUGE is scored where the experts' revised
            answers are there: main, random, domain, lfqa_random, lfqa_domain, sample and others.
        method: "closed", "retrieve-read" or "post-hoc"; corpus, index, k, chunk_size, overlap: see
            ``answer_with_citations``.
        split: of a config that has several: train, validation or test (the default).
        attributor: who labels the claims: "none", "model" or "nli"; see ``qabench.benchmarks.expertqa.labels``.
        fields, ids: only questions of these fields, only these questions.

    Raises:
        InputError: an option, a field or an id that there is not, or a corpus that cannot be used.
        SourceError: the data cannot be had.
    """
    questions = load_questions(config, split)
    samples = chosen(map(_sample, questions.rows), ids, fields)
    about = {"config": questions.config, "split": questions.split, "data": questions.digest}
    signed: dict[str, Any] = {**about, "method": method, "prompt": asked_by(method)}
    answering: dict[str, Any] = {"corpus": corpus, "index": index, "k": k, "chunk_size": chunk_size, "overlap": overlap}
    solver = answer_with_citations(method, **answering)
    if corpus is not None and method != "closed":
        passages = load_passages(corpus, index, chunk_size, overlap)
        signed |= {"corpus": passages.name, "passages": len(passages.index)}
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/expertqa/{questions.config}"),
        solver=solver,
        scorer=expertqa_scorer(attributor, nli_model, signed),
        config=GenerateConfig(temperature=0, max_tokens=ANSWER_TOKENS),
        metadata=task_metadata("expertqa", questions.config, method, questions.digest),
        fail_on_error=False,
        score_on_error=True,
    )


def _sample(question: Question) -> Sample:
    reference = question.reference
    about = {"expected": reference, "field": question.field}
    return sample(question.id, question.text, question.text, reference or "", question.groups, **about)
