"""How ExpertQA's questions are answered: from memory, from passages, or from memory with evidence found afterwards.

Passages are those of a corpus, or of pages of the web.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inspect_ai.model import ChatMessageAssistant, ModelOutput, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from qabench.benchmarks.expertqa import official_prompts as official
from qabench.benchmarks.expertqa import prompts
from qabench.benchmarks.expertqa.claims import (
    ClaimedAnswer,
    cite_afterward,
    cut_sources,
    passage_sources,
    split_claims,
)
from qabench.benchmarks.expertqa.official_prompts import OFFICIAL
from qabench.benchmarks.expertqa.passages import (
    CHUNK_SIZE,
    OVERLAP,
    Evidence,
    Found,
    Passage,
    engine_passages,
    load_passages,
)
from qabench.benchmarks.expertqa.rankers import AUTO, BM25, DENSE
from qabench.benchmarks.expertqa.web import NOT_KNOWN, load_web, record
from qabench.errors import InputError
from qabench.tasks.common import answer_of, in_daemon_thread, named_in_this_call, note_problem
from qabench.tasks.prompts import Prompt
from qabench.tasks.replies import ask_model, chat

STORE = "expertqa"
METHODS = ("closed", "retrieve-read", "retrieve-read-web", "post-hoc", "post-hoc-web")
K = 5


@dataclass(frozen=True)
class Options:
    """The options of the ways to answer; see ``qabench.benchmarks.expertqa.tasks.expertqa``."""

    retriever: str | None = None
    corpus: str | None = None
    index: str | None = None
    search: str | None = None
    ranker: str = AUTO
    encoder: str | None = None
    k: int = K
    chunk_size: int | None = None
    overlap: int = OVERLAP


@dataclass(frozen=True)
class Answering:
    """How questions are answered; see ``answering``."""

    method: str
    prompt: Prompt
    protocol: str
    evidence: Evidence | None
    k: int

    @property
    def reads(self) -> bool:
        """Whether the model is given passages."""
        return self.method.startswith("retrieve-read")

    @property
    def from_web(self) -> bool:
        """Whether passages come from the web."""
        return self.method.endswith("-web")

    @property
    def is_official_prompt(self) -> bool:
        """Whether the prompt is the authors'."""
        return self.prompt.name == OFFICIAL

    def to_read(self, question: str, field: str | None) -> Found:
        """The passages that the model is given, best first."""
        if self.evidence is None or not self.reads:
            return Found(())
        ranked_by = question
        if self.from_web and self.is_official_prompt:
            ranked_by = official.web_question().filled(field=field or "", question=question)
        return self.evidence.find(question, ranked_by, self.k)

    def messages(self, question: str, field: str | None, read: Sequence[Passage]) -> tuple[tuple[str, str], ...]:
        """The (role, text) pairs for a question.

        Args:
            question: its text.
            field: the expert's field; the authors' prompts without passages, and with those of the web, name it.
            read: the passages that the model is given, best first.
        """
        values = {"question": question, "field": field or ""}
        if self.reads and self.is_official_prompt:
            values["context"] = official.context([passage.text for passage in read], web=self.from_web)
        elif self.reads:
            numbered = (passage.cited_as(number) for number, passage in enumerate(read, start=1))
            values["passages"] = "\n\n".join(numbered) or "(none)"
        return self.prompt.messages(**values)

    def claimed(self, reply: str, read: Found) -> tuple[ClaimedAnswer, Found]:
        """The answer of a reply, its claims with evidence, and the passages that were read or found."""
        if self.reads:
            return split_claims(reply, passage_sources(list(map(self._source, read.passages)))), read
        answer, sources = (cut_sources if self.protocol == OFFICIAL else prompts.split_answer)(reply)
        found = split_claims(answer, sources)
        if self.evidence is None:
            return found, read
        return self._cited_afterward([claim["claim_string"] for claim in found.claims], self.evidence)

    def _source(self, passage: Passage) -> tuple[str, str]:
        """A passage that was read, as evidence of claims. The authors keep those of the web as the prompt has them."""
        text = passage.text
        if self.from_web and self.protocol == OFFICIAL:
            text = "Passage ID 1: " + text.replace("\n", "")
        return passage.source or passage.id, text

    def _cited_afterward(self, claims: Sequence[str], evidence: Evidence) -> tuple[ClaimedAnswer, Found]:
        shown: dict[Passage, None] = {}
        searches: list[Mapping[str, Any]] = []

        def find(claim: str) -> tuple[str, str] | None:
            found = evidence.find(claim, claim, 1)
            searches.extend(found.searches)
            shown.update(dict.fromkeys(found.passages))
            return next(((best.source or best.id, best.text) for best in found.passages), None)

        made = cite_afterward(claims, find)
        cited = [source for claim in made.claims for source in claim["evidence"]]
        return replace(made, attribution=cited), Found(list(shown), tuple(searches))

    def signature(self) -> dict[str, object]:
        """The fields of signatures that describe how the answers were made."""
        fields: dict[str, object] = {"method": self.method, "prompt": self.prompt.label, "protocol": self.protocol}
        if self.evidence is not None:
            fields |= self.evidence.signature() | ({"k": self.k} if self.reads else {})
        return fields


def answering(
    method: str = "closed",
    prompt: str = official.AUTO,
    protocol: str = official.AUTO,
    options: Options | None = None,
    *,
    fields: bool = True,
) -> Answering:
    """The way to answer given by a task's arguments.

    Args:
        method: "closed": from memory, with the model's own sources. "retrieve-read": from the k best passages of a
            corpus. "post-hoc": as closed, but each claim gets the best passage for it instead of the model's sources.
            "retrieve-read-web" and "post-hoc-web": the same with passages of web pages.
        prompt: "official", "qabench", or "auto" (official if the authors' file is available).
        protocol: "official": the reply is cut, and its claims are cited, as the authors' scripts do; the passages are
            the rows of the corpus. "qabench": sources are also found below a heading, and long texts of the corpus are
            split. "auto": as the prompt.
        options: the others.
        fields: whether the questions have fields, which two of the authors' prompts name.

    Raises:
        InputError: an unknown option, or one that the method needs is missing or cannot be used.
        MissingExtra: a package that the method needs is not installed.
        SourceError: prompt="official" and the authors' file is not available.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; allowed: {', '.join(METHODS)}")
    given = options or Options()
    if given.k < 1:
        raise InputError(f"k is {given.k}; it must be at least 1")
    file, asked, other = _prompts(method)
    which = official.chosen_prompt(prompt, file)
    if which == OFFICIAL and file != official.READ_CORPUS and not fields:
        if prompt == OFFICIAL:
            raise InputError("the authors' prompt needs the expert's field, which the questions of this config lack")
        which = official.QABENCH
    how = official.chosen_protocol(protocol, which)
    found = Answering(method, asked() if which == OFFICIAL else other, how, None, given.k)
    return found if method == "closed" else replace(found, evidence=_evidence(found, given))


def _prompts(method: str) -> tuple[str, Any, Prompt]:
    """The file and the function of the authors' prompt, and this project's prompt."""
    if method == "retrieve-read":
        return official.READ_CORPUS, official.read_corpus, prompts.READ
    if method == "retrieve-read-web":
        return official.READ_WEB, official.read_web, prompts.READ
    return official.CLOSED, official.closed, prompts.CLOSED


def _evidence(how: Answering, given: Options) -> Evidence:
    if how.from_web:
        if given.search is None:
            raise InputError(
                f"the setting {how.method} needs a search engine: add -T search=searxng, -T search=google, or "
                "-T search=FILE.toml"
            )
        ranker = DENSE if given.ranker == AUTO else given.ranker
        return load_web(given.search, ranker, given.encoder, given.chunk_size or CHUNK_SIZE, given.overlap)
    if given.retriever is not None:
        _check_only_retriever(given)
        return engine_passages(given.retriever, named_in_this_call("retriever", given.retriever))
    if given.corpus is None:
        more = " (an index does not contain the texts)" if given.index else ""
        raise InputError(
            f"the setting {how.method} needs passages{more}: add -T corpus=FILE.jsonl, with a column 'text', or "
            "--retriever lucene:DIR"
        )
    size = given.chunk_size or (None if how.protocol == OFFICIAL else CHUNK_SIZE)
    ranker = BM25 if given.ranker == AUTO else given.ranker
    return load_passages(given.corpus, given.index, size, given.overlap, ranker, given.encoder)


def _check_only_retriever(given: Options) -> None:
    """Raises InputError for options of a corpus next to a retriever, which has its own passages and ranking."""
    default = Options()
    names = ("corpus", "index", "ranker", "encoder", "chunk_size", "overlap")
    if unused := [name for name in names if getattr(given, name) != getattr(default, name)]:
        raise InputError(f"-T {unused[0]} has no effect with --retriever {given.retriever}; leave one of them out")


@solver
def answer_with_citations(how: Answering) -> Solver:
    """Answers a question, and splits the answer into claims with the evidence that is cited or found for them."""

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
            found, shown = await in_daemon_thread(how.claimed, reply, read)
            _note_searches(state, shown)
            state.store.set(STORE, _stored(found, shown.passages))
        return state

    return solve


def _answer_not_known(state: TaskState, question: str) -> None:
    """Without any page, the authors' script answers without asking the model."""
    state.messages = [*chat([("user", question)]), ChatMessageAssistant(content=NOT_KNOWN)]
    state.output = ModelOutput.from_content(str(state.model), NOT_KNOWN)
    outcomes = state.metadata["web"]["outcomes"]
    pages = ", ".join(f"{count} {name}" for name, count in outcomes.items()) or "no search results"
    state.metadata["unasked"] = True
    note_problem(state, f"no page could be read ({pages}): the answer is {NOT_KNOWN!r}, and the model was not asked")


def _note_searches(state: TaskState, found: Found) -> None:
    """Records the result of every search and page in the sample's metadata, which are logged even if it fails."""
    if found.searches:
        state.metadata["web"] = record(found.searches)


def _stored(found: ClaimedAnswer, passages: Sequence[Passage]) -> dict[str, Any]:
    shown = [
        {"id": passage.id, "text": passage.text} | ({"source": passage.source} if passage.source else {})
        for passage in passages
    ]
    return {"answer": found.answer, "claims": found.claims, "attribution": found.attribution, "passages": shown}
