"""ExpertQA as an Inspect AI task: answers with citations, their claims and attribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig

from qabench.benchmarks.expertqa.answers import K, Options, answer_with_citations, answering
from qabench.benchmarks.expertqa.official_prompts import AUTO, OFFICIAL
from qabench.benchmarks.expertqa.passages import OVERLAP
from qabench.benchmarks.expertqa.questions import Question, load_questions
from qabench.benchmarks.expertqa.scorer import expertqa_scorer
from qabench.models.entailment import MODEL
from qabench.tasks.common import chosen, sample, task_metadata

ANSWER_TOKENS = 1000
OFFICIAL_ANSWER_TOKENS = 2048


@task
def expertqa(
    config: str = "questions",
    method: str = "closed",
    split: str | None = None,
    prompt: str = AUTO,
    protocol: str = AUTO,
    retriever: str | None = None,
    corpus: str | None = None,
    index: str | None = None,
    search: str | None = None,
    ranker: str = AUTO,
    encoder: str | None = None,
    k: int = K,
    chunk_size: int | None = None,
    overlap: int = OVERLAP,
    attributor: str = "none",
    nli_model: str = MODEL,
    fields: Sequence[str] | str | None = None,
    ids: Sequence[str] | str | None = None,
) -> Task:
    """ExpertQA: answer an expert's question with citations; claims, their evidence and attribution are scored.

    Only the lfqa configs have ids (``example_id``). In the others, the id of a question is the first 12 hex digits of
    the SHA-256 of its text, so it is the same in all configs.

    Args:
        config: a config of the dataset. "questions" has all questions and no answers. ROUGE is scored for configs with
            revised answers: main, random, domain, lfqa_random, lfqa_domain, sample and others.
        method: "closed", "retrieve-read", "retrieve-read-web", "post-hoc" or "post-hoc-web"; see ``answering``.
        split: a split of a config that has several: train, validation or test (the default).
        prompt: "official", "qabench" or "auto" (official if the authors' file is available).
        protocol: "official" (among others, at most 2,048 tokens and the API's default temperature), "qabench"
            (at most 1,000 tokens, temperature 0) or "auto" (as the prompt).
        retriever: a search engine with the passages, instead of a corpus: "lucene:DIR", "opensearch:URL/INDEX"
            or "elasticsearch:URL/INDEX"; its documents are not split.
        corpus: a file (.jsonl, .json, .csv, .parquet) or a folder of ``Dataset.save_to_disk`` with passages in the
            column "text", and optionally "id", and "url" or "title".
        index: a saved ``BM25Index`` of the corpus.
        search: the search engine: "searxng" (the server at QABENCH_SEARXNG_URL), "google" (Programmable Search, with
            CUSTOM_SEARCH_API_KEY and CUSTOM_SEARCH_CX), or a TOML file that describes a JSON API.
        ranker: "bm25", "dense" (an encoder on this machine), "api" (an OpenAI-compatible embeddings API), or "auto"
            (bm25 for a corpus, dense for the web).
        encoder: the encoder's name, NAME@REVISION or folder; by default BAAI/bge-small-en-v1.5 for "dense", and
            text-embedding-ada-002, the authors', for "api".
        k: the number of passages that the model is given.
        chunk_size: the maximum number of characters of a passage; by default 1,000 for web pages, and for a corpus
            unless the protocol is official.
        overlap: the number of characters that adjacent passages share.
        attributor: who labels the claims: "none", "model" or "nli"; see ``qabench.benchmarks.expertqa.labels``.
        nli_model: the model of the attributor "nli".
        fields: only questions of these fields.
        ids: only these questions.

    Raises:
        InputError: an unknown option, field or id, or a corpus that cannot be used.
        SourceError: the data is not available.
    """
    questions = load_questions(config, split)
    with_fields = all(question.field for question in questions.rows)
    options = Options(retriever, corpus, index, search, ranker, encoder, k, chunk_size, overlap)
    how = answering(method, prompt, protocol, options, fields=with_fields)
    samples = chosen(map(_sample, questions.rows), ids, fields)
    available = len({question.id for question in questions.rows})
    about = {"config": questions.config, "split": questions.split, "data": questions.digest}
    limits: dict[str, Any] = {"temperature": 0, "max_tokens": ANSWER_TOKENS}
    if how.protocol == OFFICIAL:
        limits = {"max_tokens": OFFICIAL_ANSWER_TOKENS}
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/expertqa/{questions.config}"),
        solver=answer_with_citations(how),
        scorer=expertqa_scorer(attributor, nli_model, about | how.signature()),
        config=GenerateConfig(**limits),
        metadata=task_metadata("expertqa", questions.config, method, questions.digest, available),
        fail_on_error=False,
        score_on_error=True,
    )


def _sample(question: Question) -> Sample:
    reference = question.reference
    about = {"expected": reference, "field": question.field}
    return sample(question.id, question.text, question.text, reference or "", question.groups, **about)
