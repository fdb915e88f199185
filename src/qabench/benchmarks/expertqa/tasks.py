"""ExpertQA as an Inspect AI task: answers with citations, their claims, and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from inspect_ai import Task, task
from inspect_ai.model import ChatMessageAssistant, ModelOutput, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from qabench.adapters.inspect import Names, benchmark_task, inspect_scorer, note_prediction, select
from qabench.benchmarks import benchmark
from qabench.benchmarks.expertqa.answers import Answering, K, Options, answering
from qabench.benchmarks.expertqa.claims import ClaimedAnswer, sentence_splitter
from qabench.benchmarks.expertqa.passages import SearchResult
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.evaluation.scoring import Question
from qabench.retrieval.documents import Document
from qabench.tasks.common import (
    answer_of,
    ask_model,
    asked_with,
    chat,
    count_replies,
    in_daemon_thread,
    note_problem,
)
from qabench.tasks.prompts import AUTO, Origin

NOT_KNOWN = "I don't know."  # the authors' answer without any page
LOGGED = ("id", "question", "field", "reference")

EXPERTQA = benchmark("expertqa")
expertqa_scorer = inspect_scorer(EXPERTQA)


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
    fields: Names = None,
    ids: Names = None,
) -> Task:
    """ExpertQA: answer an expert's question with citations.

    Claims with evidence and ROUGE are scored.

    ``qabench expertqa attribute`` labels the claims of exported answers.

    Only the lfqa configs have ids (``example_id``). In the others, the id of a question is the
    first 12 hex digits of the SHA-256 of its text, so it is the same in all configs.

    Args:
        config: a config of the dataset. "questions" has all questions and no answers. ROUGE is
            scored for configs with revised answers: main, random, domain, lfqa_random, lfqa_domain,
            sample and others.
        method: "closed": from memory, with the model's own sources. "retrieve-read": from the k
            best passages of a corpus. "post-hoc": as closed, but each claim gets the best passage
            for it instead of the model's sources. "retrieve-read-web" and "post-hoc-web": the same
            with passages of web pages.
        split: a split of a config that has several: train, validation or test (the default).
        prompt: "official", "qabench" or "auto" (official if the authors' file is available).
        protocol: "official" (among others, at most 2,048 tokens and the API's default temperature),
            "qabench" (at most 1,000 tokens, temperature 0) or "auto" (as the prompt).
        retriever: a search engine with the passages, instead of a corpus: "lucene:DIR",
            "opensearch:URL/INDEX" or "elasticsearch:URL/INDEX". Its documents are not split.
        corpus: a file (.jsonl, .json, .csv, .parquet) with passages in the column "text", and
            optionally "id", and "url" or "title". Texts of more than 1,000 characters are split,
            unless the protocol is official, as web pages are.
        search: the search engine: "searxng" (the server at QABENCH_SEARXNG_URL), "google"
            (Programmable Search, with CUSTOM_SEARCH_API_KEY and CUSTOM_SEARCH_CX), or a TOML file
            that describes a JSON API.
        ranker: "bm25", "dense" (an encoder on this machine), "api" (an OpenAI-compatible embeddings
            API), or "auto" (bm25 for a corpus, dense for the web).
        encoder: the encoder's name, NAME@REVISION or folder. By default BAAI/bge-small-en-v1.5 for
            "dense", and text-embedding-ada-002, the authors', for "api".
        k: the number of passages that the model is given.
        fields: only questions of these fields.
        ids: only these questions.
    """
    questions = load_questions(config, split)
    with_fields = all(question.row["field"] for question in questions.rows)
    options = Options(retriever, corpus, search, ranker, encoder, k)
    how = answering(method, prompt, protocol, options, with_fields=with_fields)
    selected = [_without_answers(question) for question in select(questions, ids, fields)]
    return benchmark_task(EXPERTQA, questions, selected, how, method, answer_with_citations(how))


def _without_answers(question: Question) -> Question:
    """Return a question for the log, without the annotated answers, which are large."""
    return replace(question, row={column: question.row[column] for column in LOGGED})


@solver
def answer_with_citations(how: Answering) -> Solver:
    """Answer a question, and split the answer into claims with the evidence that is cited or found for them."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        row = state.metadata["row"]
        signed = how.fields() | {"sentences": sentence_splitter()[0]}
        _note(state, how, signed)
        read = await in_daemon_thread(how.to_read, row)
        _note_searches(state, read)
        _note(state, how, signed)
        if how.reads and how.from_web and not read.passages:
            _answer_not_known(state, row["question"])
        else:
            state.messages = chat(how.messages(row, read.passages))
            state.output = await ask_model(get_model(), state.messages, state)
            state.messages += [choice.message for choice in state.output.choices[:1]]
        signed |= asked_with()
        claimed, result = None, SearchResult(())
        reply = answer_of(state)
        if reply is not None:
            claimed, result = await in_daemon_thread(how.claimed, reply, read)
            _note_searches(state, result)
        _note(state, how, signed, claimed, result)
        return state

    return solve


def _note(
    state: TaskState,
    how: Answering,
    signed: Mapping[str, object],
    claimed: ClaimedAnswer | None = None,
    read: SearchResult | None = None,
) -> None:
    """Record the answer and what was read so far, also for a question that fails later."""
    passages = [] if read is None else [_shown(passage) for passage in read.passages]
    fields: dict[str, Any] = {"answer": None}
    detail: dict[str, Any] = {"passages": passages}
    if claimed is not None:
        fields = {"answer": claimed.answer, "claims": claimed.claims}
        if claimed.attribution:
            detail["attribution"] = list(claimed.attribution)
    if "web" in state.metadata:
        searches = state.metadata["web"]["searches"]
        detail["pages"] = [page for search in searches for page in search["pages"]]
    note_prediction(state, fields, signed, detail)


def _shown(passage: Document) -> dict[str, str]:
    source = {"source": passage.source} if passage.source else {}
    return {"id": passage.id, "text": passage.text} | source


def _answer_not_known(state: TaskState, question: str) -> None:
    """Answer without asking the model, as the authors' script does without any page."""
    state.messages = [*chat([("user", question)]), ChatMessageAssistant(content=NOT_KNOWN)]
    state.output = ModelOutput.from_content(str(state.model), NOT_KNOWN)
    state.metadata["unasked"] = True
    count_replies(state)
    note_problem(
        state, f"no page could be read: the answer is {NOT_KNOWN!r}, and the model was not asked"
    )


def _note_searches(state: TaskState, result: SearchResult) -> None:
    """Record every search and page in the sample's metadata, which are logged even if it fails, and count outcomes."""
    if result.searches:
        counts = Counter(page["outcome"] for search in result.searches for page in search["pages"])
        state.metadata["web"] = {
            "outcomes": dict(counts.most_common()),
            "searches": list(result.searches),
        }
