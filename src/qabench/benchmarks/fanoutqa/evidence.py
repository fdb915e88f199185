"""The evidence-provided setting: the best fragments of a question's pages, until the model's window is full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import concurrency

from qabench.benchmarks.fanoutqa import prompts
from qabench.benchmarks.fanoutqa.normalizing import run_normalizer
from qabench.retrieval.corpus import Corpus
from qabench.retrieval.wiki.client import wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.tasks.common import note_problem
from qabench.tasks.context_window import how_many_fit, prompt_tokens
from qabench.tasks.token_counting import counters
from qabench.text import Normalizer

FRAGMENT_CHARACTERS = 1024
RETRIEVALS_AT_ONCE = 4  # each holds the pages of a question; more would wait for the lemmatizer anyway


@dataclass(frozen=True)
class Ranked:
    """A question's fragments, each a title and a text, the best first, and the reasons why pages are missing."""

    fragments: Sequence[tuple[str, str]]
    missing: Sequence[str]


@solver
def evidence_provided(
    answer_tokens: int, context_length: int | None = None, tokenizer: str | None = None, lemmatizer: str = "auto"
) -> Solver:
    """Writes the prompt: as many of the best fragments of ``metadata["necessary_evidence"]`` as fit, and the question.

    The sample's metadata["evidence"] says what the model got: fragments and of how many, the prompt's tokens, the
    budget and how they were counted, the fragments of each page that were left out, and the pages that are missing.
    A page that Wikipedia did not have at the epoch is a problem that is noted; a wiki that cannot be asked makes the
    sample fail.

    Args:
        answer_tokens: see ``prompt_tokens``. context_length: the window; by default what Inspect knows of the model.
        tokenizer: see ``token_counter``. lemmatizer: of the retriever.
    """
    normalizer = run_normalizer(lemmatizer)
    counter_of = counters(tokenizer)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        counter = await counter_of(model)
        question = state.metadata["question"]
        async with concurrency("qabench retrieval", RETRIEVALS_AT_ONCE):
            ranked = await anyio.to_thread.run_sync(
                rank_evidence, question, state.metadata["necessary_evidence"], normalizer, abandon_on_cancel=True
            )

        def prompt(n: int) -> str:
            return prompts.evidence_provided(question, prompts.fragments(ranked.fragments[:n]))

        budget = prompt_tokens(model, context_length, answer_tokens)
        texts = [text for _, text in ranked.fragments]
        n, tokens = await how_many_fit(texts, budget, counter, prompt)
        state.user_prompt.text = prompt(n)
        for reason in ranked.missing:
            note_problem(state, reason)
        if tokens > budget:
            note_problem(
                state, f"the prompt has {tokens} tokens without any evidence, and the window room for {budget}"
            )
        state.metadata["evidence"] = {
            "fragments": n,
            "of": len(texts),
            "tokens": tokens,
            "budget": budget,
            "counted_by": counter.name,
            "left_out": dict(Counter(title for title, _ in ranked.fragments[n:])),
            "missing": list(ranked.missing),
        }
        return state

    return solve


def rank_evidence(question: str, evidence: Sequence[Mapping[str, Any]], normalizer: Normalizer) -> Ranked:
    """The fragments of a question's pages by BM25+; a page that is named twice counts once. Blocks.

    Raises:
        WikiError: a page is in no cache and could not be asked for.
    """
    wiki = wikipedia()
    pages = list({page.key: page for page in map(WikiPage.of, evidence)}.values())
    contents: dict[int | str, str] = {}
    missing = []
    for page in pages:
        try:
            contents[page.key] = wiki.content(page)
        except PageMissing as error:
            missing.append(str(error))
    there = [page for page in pages if page.key in contents]
    return Ranked(rank(question, there, contents, normalizer), missing)


def rank(
    question: str, pages: Sequence[WikiPage], contents: Mapping[int | str, str], normalizer: Normalizer
) -> list[tuple[str, str]]:
    """The fragments of pages, each a title and a text, the best for the question first; nothing for no pages."""
    if not pages:
        return []
    corpus = Corpus(
        pages, FRAGMENT_CHARACTERS, normalizer=normalizer, content=lambda page: contents[WikiPage.of(page).key]
    )
    return [(fragment.title, fragment.content) for fragment in corpus.best(question)]
