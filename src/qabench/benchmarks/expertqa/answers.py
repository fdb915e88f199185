"""How ExpertQA's questions are answered: from memory, from passages, or from memory with evidence found afterward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
from inspect_ai.model import get_model
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
from qabench.benchmarks.expertqa.passages import CHUNK_SIZE, OVERLAP, Passage, Passages, load_passages
from qabench.errors import InputError
from qabench.prompts.template import Prompt
from qabench.tasks.common import answer_of
from qabench.tasks.replies import ask_model, chat

STORE = "expertqa"
METHODS = ("closed", "retrieve-read", "post-hoc")
K = 5


@dataclass(frozen=True)
class Answering:
    """How questions are answered; see ``answering``."""

    method: str
    prompt: Prompt
    protocol: str
    passages: Passages | None
    k: int

    @property
    def is_official_prompt(self) -> bool:
        """Whether the prompt is the authors'."""
        return self.prompt.name == OFFICIAL

    def messages(self, question: str, field: str | None, read: Sequence[Passage]) -> tuple[tuple[str, str], ...]:
        """The (role, text) pairs for a question.

        Args:
            question: its text.
            field: the expert's field; the authors' closed prompt names it.
            read: the passages of the method retrieve-read, best first.
        """
        values = {"question": question, "field": field or ""}
        if self.method == "retrieve-read" and self.is_official_prompt:
            values["context"] = official.context([passage.text for passage in read], web=False)
        elif self.method == "retrieve-read":
            numbered = (passage.cited_as(number) for number, passage in enumerate(read, start=1))
            values["passages"] = "\n\n".join(numbered) or "(none)"
        return self.prompt.messages(**values)

    def claimed(self, reply: str, read: Sequence[Passage]) -> tuple[ClaimedAnswer, Sequence[Passage]]:
        """The answer of a reply, its claims with evidence, and the passages that were read or found."""
        if self.method == "retrieve-read":
            sources = passage_sources([(passage.source or passage.id, passage.text) for passage in read])
            return split_claims(reply, sources), read
        answer, sources = (cut_sources if self.protocol == OFFICIAL else prompts.split_answer)(reply)
        found = split_claims(answer, sources)
        if self.method == "closed" or self.passages is None:
            return found, ()
        return self._cited_afterward([claim["claim_string"] for claim in found.claims], self.passages)

    def _cited_afterward(self, claims: Sequence[str], passages: Passages) -> tuple[ClaimedAnswer, Sequence[Passage]]:
        shown: dict[Passage, None] = {}

        def find(claim: str) -> tuple[str, str] | None:
            best = passages.search(claim, 1)
            shown.update(dict.fromkeys(best))
            return (best[0].source or best[0].id, best[0].text) if best else None

        return cite_afterward(claims, find), list(shown)

    def signature(self) -> dict[str, object]:
        """The fields of signatures that say how the answers were made."""
        fields: dict[str, object] = {"method": self.method, "prompt": self.prompt.label, "protocol": self.protocol}
        if self.passages is not None:
            fields |= {"corpus": self.passages.name, "passages": len(self.passages.index), "ranker": "bm25"}
            fields |= {"k": self.k} if self.method == "retrieve-read" else {}
        return fields


def answering(
    method: str = "closed",
    prompt: str = official.AUTO,
    protocol: str = official.AUTO,
    corpus: str | None = None,
    index: str | None = None,
    k: int = K,
    chunk_size: int | None = None,
    overlap: int = OVERLAP,
    *,
    fields: bool = True,
) -> Answering:
    """The way to answer that a task's arguments describe.

    Args:
        method: "closed": from memory, with the model's own sources. "retrieve-read": from the k best passages of a
            corpus. "post-hoc": as closed, but each claim gets the best passage for it instead of the model's sources.
        prompt: "official", "qabench", or "auto" (official if the authors' file is available).
        protocol: "official": the reply is cut, and its claims are cited, as the authors' scripts do; the passages are
            the rows of the corpus. "qabench": sources are also found below a heading, and long texts of the corpus are
            split. "auto": as the prompt.
        corpus, index, overlap: see ``load_passages``; a corpus is needed for retrieve-read and post-hoc.
        k: the number of passages for retrieve-read.
        chunk_size: the maximum length of passages, in characters; None: by the protocol.
        fields: whether the questions have fields, which the authors' closed prompt names.

    Raises:
        InputError: an unknown option, no corpus where one is needed, or a corpus that cannot be used.
        SourceError: prompt="official" and the authors' file is not available.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; allowed: {', '.join(METHODS)}")
    if k < 1:
        raise InputError(f"k is {k}; allowed: 1 or more passages")
    read = method == "retrieve-read"
    which = official.chosen_prompt(prompt, official.READ_CORPUS if read else official.CLOSED)
    if which == OFFICIAL and not read and not fields:
        if prompt == OFFICIAL:
            raise InputError("the authors' prompt names the expert's field, and the questions of this config have none")
        which = official.QABENCH
    if which == OFFICIAL:
        asked = official.read_corpus() if read else official.closed()
    else:
        asked = prompts.READ if read else prompts.CLOSED
    how = official.chosen_protocol(protocol, which)
    found = Answering(method, asked, how, None, k)
    if method == "closed":
        return found
    if corpus is None:
        more = " (an index does not contain the texts)" if index else ""
        raise InputError(f"the method {method} needs passages{more}: give corpus=FILE.jsonl with a column 'text'")
    size = chunk_size or (None if how == OFFICIAL else CHUNK_SIZE)
    return replace(found, passages=load_passages(corpus, index, size, overlap))


@solver
def answer_with_citations(how: Answering) -> Solver:
    """Answers a question, and splits the answer into claims with the evidence that they cite or that was found."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        question = state.metadata["question"]
        read: list[Passage] = []
        if how.method == "retrieve-read" and how.passages is not None:
            read = await anyio.to_thread.run_sync(how.passages.search, question, how.k)
        state.messages = chat(how.messages(question, state.metadata.get("field"), read))
        state.output = await ask_model(get_model(), state.messages)
        state.messages += [choice.message for choice in state.output.choices[:1]]
        reply = answer_of(state)
        if reply is not None:
            found, shown = await anyio.to_thread.run_sync(how.claimed, reply, read)
            state.store.set(STORE, _stored(found, shown))
        return state

    return solve


def _stored(found: ClaimedAnswer, passages: Sequence[Passage]) -> dict[str, Any]:
    shown = [{"id": passage.id, "text": passage.text} for passage in passages]
    return {"answer": found.answer, "claims": found.claims, "passages": shown}
