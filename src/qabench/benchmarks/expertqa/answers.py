"""How ExpertQA's questions are answered: from memory, from passages, or from memory with evidence found afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from qabench.benchmarks.expertqa.claims import claims_of, without_marks
from qabench.benchmarks.expertqa.passages import CHUNK_SIZE, OVERLAP, Passage, Passages, load_passages
from qabench.benchmarks.expertqa.prompts import CLOSED, READ, split_answer
from qabench.errors import InputError
from qabench.tasks.common import answer_of
from qabench.tasks.replies import ask_model, chat

STORE = "expertqa"
METHODS = ("closed", "retrieve-read", "post-hoc")
K = 5


@solver
def answer_with_citations(
    method: str = "closed",
    corpus: str | None = None,
    index: str | None = None,
    k: int = K,
    chunk_size: int = CHUNK_SIZE,
    overlap: int = OVERLAP,
) -> Solver:
    """Answers a question and cuts the answer into claims, each with the evidence that it cites or was found for it.

    Args:
        method: "closed": from memory, with sources of the model's own. "retrieve-read": by the k best passages.
            "post-hoc": as closed, but the marks and sources go, and each claim gets the best passage for it.
        corpus, index, chunk_size, overlap: see ``load_passages``; needed for the last two. k: see the method.

    Raises:
        InputError: an unknown method, no corpus where one is needed, or one that cannot be used.
    """
    passages = _passages(method, corpus, index, k, chunk_size, overlap)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        question = state.metadata["question"]
        read: list[Passage] = []
        prompt = CLOSED.messages(question=question)
        if method == "retrieve-read" and passages is not None:
            read = await anyio.to_thread.run_sync(passages.search, question, k)
            prompt = READ.messages(question=question, passages="\n\n".join(_numbered(read)) or "(none)")
        state.messages = chat(prompt)
        state.output = await ask_model(get_model(), state.messages)
        state.messages += [choice.message for choice in state.output.choices[:1]]
        reply = answer_of(state)
        if reply is not None:
            state.store.set(STORE, await _found(reply, method, passages, read))
        return state

    return solve


def asked_by(method: str) -> str:
    """The label of the prompt that a method asks with, for signatures."""
    return (READ if method == "retrieve-read" else CLOSED).label


def _passages(
    method: str, corpus: str | None, index: str | None, k: int, chunk_size: int, overlap: int
) -> Passages | None:
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; allowed: {', '.join(METHODS)}")
    if k < 1:
        raise InputError(f"k is {k}; allowed: 1 or more passages")
    if method == "closed":
        return None
    if corpus is None:
        more = " (an index holds no texts)" if index else ""
        raise InputError(f"the method {method} needs passages{more}: give corpus=FILE.jsonl with a column 'text'")
    return load_passages(corpus, index, chunk_size, overlap)


async def _found(reply: str, method: str, passages: Passages | None, read: Sequence[Passage]) -> dict[str, Any]:
    """The answer, its claims with their evidence, and the passages that were read or found."""
    answer, sources = split_answer(reply)
    if method == "post-hoc" and passages is not None:
        answer = without_marks(answer)
        return await anyio.to_thread.run_sync(_post_hoc, answer, passages)
    shown = [{"id": passage.id, "text": passage.text} for passage in read]
    return {
        "answer": answer,
        "claims": claims_of(answer, _numbered(read) if method == "retrieve-read" else sources),
        "passages": shown,
    }


def _post_hoc(answer: str, passages: Passages) -> dict[str, Any]:
    claims = claims_of(answer)
    numbers: dict[Passage, int] = {}
    for claim in claims:
        for passage in passages.search(claim["claim_string"], 1):
            number = numbers.setdefault(passage, len(numbers) + 1)
            claim["evidence"] = [passage.cited_as(number)]
    shown = [{"id": passage.id, "text": passage.text} for passage in numbers]
    return {"answer": answer, "claims": claims, "passages": shown}


def _numbered(passages: Sequence[Passage]) -> list[str]:
    return [passage.cited_as(number) for number, passage in enumerate(passages, start=1)]
