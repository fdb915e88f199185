"""ExpertQA as an Inspect AI task: answers with citations, their claims, and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, GenerateConfig, ModelOutput, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from qabench.benchmarks.expertqa import BENCHMARK
from qabench.benchmarks.expertqa.answers import Answering, K, Options, answering
from qabench.benchmarks.expertqa.claims import sentence_splitter
from qabench.benchmarks.expertqa.evaluate import (
    AUTOAIS,
    EVIDENCE,
    ROUGE,
    evidence_columns,
    rouge_signature,
    unjudged_columns,
    unjudged_signature,
)
from qabench.benchmarks.expertqa.lfqa import lfqa_rouge
from qabench.benchmarks.expertqa.passages import OVERLAP, SearchResult
from qabench.benchmarks.expertqa.questions import Question, load_questions
from qabench.evaluation.signature import signature
from qabench.retrieval.web.fetch import READ
from qabench.tasks.common import (
    answer_of,
    chosen,
    in_daemon_thread,
    metric_values,
    note_problem,
    sample,
    task_metadata,
)
from qabench.tasks.prompts import AUTO, OFFICIAL, Origin
from qabench.tasks.replies import ask_model, asked_with, chat, count_replies

ANSWER_TOKENS = 1000
OFFICIAL_ANSWER_TOKENS = 2048
STORE = "expertqa"
NOT_KNOWN = "I don't know."  # the authors' answer without any page


@task
def expertqa(
    config: str = "questions",
    method: str = "closed",
    split: Literal["train", "validation", "test"] | None = None,
    prompt: Origin | str = AUTO,
    protocol: Origin = AUTO,
    retriever: str | None = None,
    corpus: str | None = None,
    search: Literal["searxng", "google"] | str | None = None,
    ranker: Literal["auto", "bm25", "dense", "api"] = "auto",
    encoder: str | None = None,
    k: int = K,
    chunk_size: int | None = None,
    overlap: int = OVERLAP,
    fields: Sequence[str] | str | None = None,
    ids: Sequence[str] | str | None = None,
) -> Task:
    """ExpertQA: answer an expert's question with citations; claims with evidence and ROUGE are scored.

    ``qabench expertqa attribute`` labels the claims of exported answers.

    Only the lfqa configs have ids (``example_id``). In the others, the id of a question is the first 12 hex digits of
    the SHA-256 of its text, so it is the same in all configs.

    Args:
        config: a config of the dataset. "questions" has all questions and no answers. ROUGE is scored for configs with
            revised answers: main, random, domain, lfqa_random, lfqa_domain, sample and others.
        method: "closed": from memory, with the model's own sources. "retrieve-read": from the k best passages of a
            corpus. "post-hoc": as closed, but each claim gets the best passage for it instead of the model's sources.
            "retrieve-read-web" and "post-hoc-web": the same with passages of web pages.
        split: a split of a config that has several: train, validation or test (the default).
        prompt: "official", "qabench" or "auto" (official if the authors' file is available).
        protocol: "official" (among others, at most 2,048 tokens and the API's default temperature), "qabench"
            (at most 1,000 tokens, temperature 0) or "auto" (as the prompt).
        retriever: a search engine with the passages, instead of a corpus: "lucene:DIR", "opensearch:URL/INDEX"
            or "elasticsearch:URL/INDEX"; its documents are not split.
        corpus: a file (.jsonl, .json, .csv, .parquet) with passages in the column "text", and optionally "id", and
            "url" or "title".
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
        fields: only questions of these fields.
        ids: only these questions.
    """
    questions = load_questions(config, split)
    with_fields = all(question.field for question in questions.rows)
    options = Options(retriever, corpus, search, ranker, encoder, k, chunk_size, overlap)
    how = answering(method, prompt, protocol, options, with_fields=with_fields)
    samples = chosen((_sample(row, questions.evidence_urls[row.id]) for row in questions.rows), ids, fields)
    available = len({question.id for question in questions.rows})
    signed = {"config": questions.config, "split": questions.split, "data": questions.digest} | how.signature()
    limits: dict[str, Any] = {"temperature": 0, "max_tokens": ANSWER_TOKENS}
    if how.protocol == OFFICIAL:
        limits = {"max_tokens": OFFICIAL_ANSWER_TOKENS}
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/expertqa-{questions.config}"),
        solver=answer_with_citations(how),
        scorer=expertqa_scorer(signed),
        config=GenerateConfig(**limits),
        metadata=task_metadata("expertqa", questions.config, method, questions.digest, available),
        fail_on_error=False,
        score_on_error=True,
    )


def _sample(question: Question, urls: Sequence[str]) -> Sample:
    metadata = {"expected": question.reference, "field": question.field, "evidence_urls": urls}
    return sample(question.id, question.text, question.text, question.reference or "", question.groups, **metadata)


@solver
def answer_with_citations(how: Answering) -> Solver:
    """Answer a question, and split the answer into claims with the evidence that is cited or found for them."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        question, field = state.metadata["question"], state.metadata.get("field")
        read = await in_daemon_thread(how.to_read, question, field)
        _note_searches(state, read)
        if how.reads and how.from_web and not read.passages:
            _answer_not_known(state, question)
        else:
            state.messages = chat(how.messages(question, field, read.passages))
            state.output = await ask_model(get_model(), state.messages, state)
            state.messages += [choice.message for choice in state.output.choices[:1]]
        reply = answer_of(state)
        if reply is not None:
            claimed, result = await in_daemon_thread(how.claimed, reply, read)
            _note_searches(state, result)
            passages = [
                {"id": passage.id, "text": passage.text} | ({"source": passage.source} if passage.source else {})
                for passage in result.passages
            ]
            state.store.set(STORE, asdict(claimed) | {"passages": passages})
        return state

    return solve


def _answer_not_known(state: TaskState, question: str) -> None:
    """Answer without asking the model, as the authors' script does without any page."""
    state.messages = [*chat([("user", question)]), ChatMessageAssistant(content=NOT_KNOWN)]
    state.output = ModelOutput.from_content(str(state.model), NOT_KNOWN)
    outcomes = state.metadata["web"]["outcomes"]
    pages = ", ".join(f"{count} {name}" for name, count in outcomes.items()) or "no search results"
    state.metadata["unasked"] = True
    note_problem(state, f"no page could be read ({pages}): the answer is {NOT_KNOWN!r}, and the model was not asked")


def _note_searches(state: TaskState, result: SearchResult) -> None:
    """Record every search and page in the sample's metadata, which are logged even if it fails, and count outcomes."""
    if result.searches:
        counts = Counter(page["outcome"] for search in result.searches for page in search["pages"])
        state.metadata["web"] = {"outcomes": dict(counts.most_common()), "searches": list(result.searches)}


@metric(scores="unreduced")
def expertqa_metrics() -> Metric:
    """Return the benchmark's metrics over all answers and epochs, equal to those of ``qabench score``."""

    def value(scores: list[SampleScore]) -> Value:
        return metric_values(scores, BENCHMARK.metrics)

    return value


@scorer(name="expertqa", metrics=[expertqa_metrics()])
def expertqa_scorer(signed: Mapping[str, Any] | None = None) -> Scorer:
    """Score an answer: claims with evidence, ROUGE if there is a reference answer, and the pages that were read.

    A sample without an answer (an error, a refusal) has no claims; its ROUGE is 0, as for any unanswered question.
    ``signed`` are the signature fields for the data and for how answers are written.
    """

    async def score(state: TaskState, target: Target) -> Score:
        stored = state.store.get(STORE) or {"answer": None, "claims": [], "passages": []}
        claims, answer = stored["claims"], stored["answer"]
        fields = {**(signed or {}), "sentences": sentence_splitter()[0], "model": str(state.model)} | asked_with()
        count_replies(state)
        columns: dict[str, Any] = {}
        if answer is not None:
            columns = dict(unjudged_columns(answer, claims, None, "exclude"))
        signatures = {AUTOAIS: unjudged_signature(fields, "exclude", "none")}
        if (reference := state.metadata.get("expected")) is not None:
            rouge = await anyio.to_thread.run_sync(lfqa_rouge, [reference], [answer])
            columns |= rouge.per_question[0]
            signatures[ROUGE] = rouge_signature(fields, rouge.backend)
        shown = [
            {"text": claim["claim_string"], "evidence": list(claim["evidence"]), "label": None} for claim in claims
        ]
        detail: dict[str, Any] = {"claims": shown, "passages": stored["passages"]}
        if stored.get("attribution"):
            detail["attribution"] = stored["attribution"]
        if web := state.metadata.get("web"):
            detail["pages"] = [page for search in web["searches"] for page in search["pages"]]
        read = _urls_read((signed or {}).get("method", ""), detail)
        if read is not None and (named := state.metadata.get("evidence_urls")):
            evidence, pages = evidence_columns(named, read)
            columns |= evidence
            detail |= pages
            signatures[EVIDENCE] = signature("expertqa_evidence", **fields)
        unasked = bool(state.metadata.get("unasked"))
        metadata = {"detail": detail, "unasked": unasked, "signatures": signatures}
        return Score(value=columns, answer=answer, metadata=metadata)

    return score


def _urls_read(method: str, detail: Mapping[str, Any]) -> list[str] | None:
    """Return the URLs of the pages or passages that were read; None for passages without URLs, and without a search."""
    if method.endswith("-web"):
        return [page["url"] for page in detail.get("pages", ()) if page["outcome"] == READ]
    sources = [passage.get("source", "") for passage in detail["passages"]]
    return [source for source in sources if source.startswith(("http://", "https://"))] or None
