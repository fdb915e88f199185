"""ExpertQA's settings: answers with citations, and their claims with evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from qabench.benchmarks.conversation import CarryOut, Conversation
from qabench.benchmarks.expertqa.answers import Answering, K, Options, answering
from qabench.benchmarks.expertqa.claims import ClaimedAnswer, sentence_splitter
from qabench.benchmarks.expertqa.passages import SearchResult
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.benchmarks.plan import Names, ProtocolStep, TaskPlan, select
from qabench.data.rows import Json
from qabench.evaluation.scoring import Question
from qabench.io.daemon_thread import in_daemon_thread
from qabench.prompts.prompt import AUTO, Origin
from qabench.retrieval.documents import Document

# If the search finds no page, the authors' answer is this text without sources.
NOT_KNOWN = "I don't know."
LOGGED = ("id", "question", "field", "reference")


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
) -> TaskPlan:
    """ExpertQA: answer an expert's question with citations.

    The scores are the share of claims with evidence, and ROUGE. ``qabench expertqa attribute``
    labels the claims of exported answers.

    Only the lfqa configs have ids (``example_id``). In the others, the id of a question is the
    first 12 hex digits of the SHA-256 of its text, which is the same in all of them.

    Args:
        config: a config of the dataset. "questions" has all questions and no answers. ROUGE is
            scored for configs with revised answers: main, random, domain, lfqa_random, lfqa_domain,
            sample and others.
        method: how questions are answered. "closed": from memory, with the model's own sources.
            "retrieve-read": from the k best passages of a corpus. "post-hoc": as closed, but each
            claim gets the best passage for it instead of the model's sources. "retrieve-read-web"
            and "post-hoc-web": the same with passages of web pages.
        split: a split of a config that has several: train, validation or test (the default).
        prompt: "official", "qabench" or "auto" (official if the authors' file is available).
        protocol: "official" (the authors' procedure, with at most 2,048 tokens and the API's
            default temperature), "qabench" (at most 1,000 tokens, temperature 0) or "auto" (the
            same as the prompt).
        retriever: a search engine, instead of a corpus: "lucene:DIR", "opensearch:URL/INDEX" or
            "elasticsearch:URL/INDEX". Its documents are the passages, and are not split.
        corpus: a file (.jsonl, .json, .csv, .parquet) with passages in the column "text", and
            optionally "id", and "url" or "title". Like web pages, texts of more than 1,000
            characters are split, unless the protocol is official.
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
    steps = [ProtocolStep(answer_with_citations, {"how": how})]
    # A conversation does not begin with a known prompt: passages are found when the question is
    # asked.
    return TaskPlan(questions, selected, how, method, steps, prompted=False)


def _without_answers(question: Question) -> Question:
    """Return a question for the log, without the annotated answers, which are large."""
    row = {column: question.row[column] for column in LOGGED}
    return replace(question, row=row)


def answer_with_citations(how: Answering) -> CarryOut:
    """Answer a question, and split the answer into claims with evidence."""

    async def answer(conversation: Conversation) -> None:
        row = conversation.row
        signed = how.fields() | {"sentences": sentence_splitter()[0]}
        _note(conversation, how, signed)
        read = await in_daemon_thread(how.to_read, row)
        _note_searches(conversation, read)
        _note(conversation, how, signed)
        if how.reads and how.from_web and not read.passages:
            _answer_not_known(conversation)
        else:
            if how.reads and not read.passages:
                conversation.note_problem("no passage was found for the question")
            # The conversation begins with the question. Remove it, so that the log shows what is
            # sent.
            conversation.messages = []
            await conversation.ask_separately(how.messages(row, read.passages))
        signed |= conversation.generation()
        claimed, result = None, SearchResult(())
        reply = conversation.answer()
        if reply is not None:
            claimed, result = await in_daemon_thread(how.claimed, reply, read)
            _note_searches(conversation, result)
        _note(conversation, how, signed, claimed, result)

    return answer


def _note(
    conversation: Conversation,
    how: Answering,
    signed: Mapping[str, object],
    claimed: ClaimedAnswer | None = None,
    read: SearchResult | None = None,
) -> None:
    """Record the answer so far, and what was read for it, in case the question fails later."""
    passages = []
    if read is not None:
        passages = [_shown(passage) for passage in read.passages]
    fields: dict[str, Any] = {"answer": None}
    detail: dict[str, Any] = {"passages": passages}
    if claimed is not None:
        fields = {"answer": claimed.answer, "claims": claimed.claims}
        if claimed.attribution:
            detail["attribution"] = list(claimed.attribution)
    if "web" in conversation.metadata:
        detail["pages"] = _pages(conversation.metadata["web"]["searches"])
    conversation.note_prediction(fields, signed, detail)


def _shown(passage: Document) -> dict[str, str]:
    shown = {"id": passage.id, "text": passage.text}
    if passage.source:
        shown["source"] = passage.source
    return shown


def _answer_not_known(conversation: Conversation) -> None:
    """Answer without asking the model, as the authors' script does if no page could be read."""
    conversation.answer_unasked((("user", conversation.row["question"]),), NOT_KNOWN)
    conversation.note_problem(
        f"no page could be read: the answer is {NOT_KNOWN!r}, and the model was not asked"
    )


def _note_searches(conversation: Conversation, result: SearchResult) -> None:
    """Record all searches with their pages and outcomes now, in case the question fails later."""
    if result.searches:
        counts = Counter(page["outcome"] for page in _pages(result.searches))
        conversation.metadata["web"] = {
            "outcomes": dict(counts.most_common()),
            "searches": list(result.searches),
        }


def _pages(searches: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return the pages of all searches, in order."""
    pages: list[Json] = []
    for search in searches:
        pages += search["pages"]
    return pages
