"""The evidence-provided setting: the best fragments of a question's pages, until the model's window is full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec

from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import concurrency

from qabench.adapters.inspect import note_prediction
from qabench.benchmarks.fanoutqa.normalizer import Normalizer, shared_normalizer
from qabench.benchmarks.fanoutqa.prompts import ANSWER_TOKENS
from qabench.benchmarks.fanoutqa.retriever import Corpus, Fragment
from qabench.benchmarks.fanoutqa.window import context_window, counters, how_many_fit, prompt_tokens
from qabench.data.rows import Row
from qabench.retrieval.wiki.client import wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.tasks.common import in_daemon_thread, note_problem
from qabench.tasks.prompts import Prompt

FRAGMENT_CHARACTERS = 1024
# each holds the pages of a question in memory. More would only wait for the lemmatizer
RETRIEVALS_AT_ONCE = 4


@solver
def evidence_provided(
    prompt: Prompt,
    document: Prompt | None,
    official: bool,
    context_length: int | None,
    tokenizer: str | None,
    lemmatizer: str,
    wiki: str | None,
) -> Solver:
    """Fill the prompt with as many of the best fragments of the row's evidence pages as fit.

    The sample's metadata["evidence"] has the number of fragments shown and of all, the prompt's
    tokens, the budget and how tokens were counted, the number of fragments of each page that were
    left out, and the missing pages. A page that did not exist at the epoch is noted as a problem.
    If Wikipedia cannot be reached, the sample fails.

    The fields of ``prompt`` are documents and question, the fields of ``document`` are title and
    content (None for this project's format). With ``official``, the prompt is filled as the
    authors' runner
    does: the unchanged list of evidence, with repeated and empty pages, up to the window minus
    ``ANSWER_TOKENS``. For the others see the task.
    """
    normalizer = shared_normalizer(lemmatizer)
    counter_of = counters(tokenizer)
    wikipedia(wiki)  # a wrong file is reported before the first question

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        counter = await counter_of(model)
        question = state.metadata["question"]
        async with concurrency("qabench retrieval", RETRIEVALS_AT_ONCE):
            pages = state.metadata["row"]["necessary_evidence"]
            ranked, missing = await in_daemon_thread(
                rank_evidence, question, pages, normalizer, official, wiki
            )

        def filled(n: int) -> str:
            return fill(prompt, document, question, ranked[:n])

        if official:
            budget = context_window(model, context_length) - ANSWER_TOKENS - counter.message_tokens
        else:
            budget = prompt_tokens(model, context_length)
        texts = [fragment.content for fragment in ranked]
        n, tokens = await how_many_fit(texts, budget, counter, filled)
        state.user_prompt.text = filled(n)
        for reason in missing:
            note_problem(state, reason)
        if tokens > budget:
            note_problem(
                state, f"the prompt has {tokens} tokens without any evidence, but the budget is {budget}"
            )
        state.metadata["evidence"] = {
            "fragments": n,
            "of": len(texts),
            "tokens": tokens,
            "budget": budget,
            "counted_by": counter.name,
            "left_out": dict(Counter(fragment.title for fragment in ranked[n:])),
            "missing": missing,
        }
        note_prediction(state, {}, retrieval_signature(counter.name, normalizer, wiki), add_answer=True)
        return state

    return solve


def fill(prompt: Prompt, document: Prompt | None, question: str, fragments: Sequence[Fragment]) -> str:
    """Return the user message with these fragments."""
    if document is None:
        documents = "\n\n".join(f"[{each.title}]\n{each.content.strip()}" for each in fragments)
    else:
        documents = "".join(
            document.filled(title=each.title, content=each.content) for each in fragments
        )
    return prompt.filled(documents=documents, question=question)


def retrieval_signature(counter: str, normalizer: Normalizer, wiki: str | None = None) -> dict[str, str]:
    """Return the fields of a signature for the retrieval."""
    return {"tokenizer": counter} | retrieval_conditions(normalizer, wiki)


def retrieval_conditions(normalizer: Normalizer, wiki: str | None = None) -> dict[str, str]:
    """Return the fields of a signature for the retrieval that do not depend on the model."""
    return {
        "retriever": normalizer.lemmatizer.name,
        "wikipedia": wikipedia(wiki).name,
        "markdownify": version("markdownify") if find_spec("markdownify") else "none",
    }


def rank_evidence(
    question: str,
    evidence: Sequence[Row],
    normalizer: Normalizer,
    official: bool = False,
    wiki: str | None = None,
) -> tuple[list[Fragment], list[str]]:
    """Rank the fragments of a question's pages by BM25+, and return why pages are missing. Blocks.

    With ``official``, repeated pages are repeated, and a missing page is an empty one, as upstream.
    Raises WikiError if a page is not in the cache and cannot be requested.
    """
    source = wikipedia(wiki)
    pages = [WikiPage.of(row) for row in evidence]
    by_key = {page.key: page for page in pages}
    contents: dict[int | str, str] = {}
    missing: list[str] = []
    for key, page in by_key.items():
        try:
            contents[key] = source.content(page)
        except PageMissing as error:
            missing.append(str(error))
            if official:
                contents[key] = ""
    chosen = pages if official else [by_key[key] for key in contents]
    return rank(question, chosen, lambda page: contents[page.key], normalizer, official), missing


def rank(
    question: str,
    pages: Sequence[WikiPage],
    content: Callable[[WikiPage], str],
    normalizer: Normalizer,
    official: bool = False,
) -> list[Fragment]:
    """Rank the fragments of pages, the best for the question first, or [] for no pages.

    Equal scores are in the order of the fragments, or with ``official`` in the order of the
    authors' retriever.
    """
    if not pages:
        return []
    corpus = Corpus(pages, FRAGMENT_CHARACTERS, normalizer=normalizer, content=content)
    return list(corpus.best(question, official_ties=official))
