"""The evidence-provided setting: the prompt shows as many of the best page fragments as fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec

from qabench.benchmarks.conversation import CarryOut, Conversation
from qabench.benchmarks.fanoutqa.normalizer import Normalizer, shared_normalizer
from qabench.benchmarks.fanoutqa.prompts import ANSWER_TOKENS
from qabench.benchmarks.fanoutqa.retriever import Corpus, Fragment
from qabench.benchmarks.fanoutqa.window import context_window, counters, how_many_fit, prompt_tokens
from qabench.data.rows import Row
from qabench.io.daemon_thread import in_daemon_thread
from qabench.prompts.prompt import Prompt
from qabench.retrieval.wiki.client import wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage

# The authors cut pages into fragments of at most this length.
FRAGMENT_CHARACTERS = 1024
# Each retrieval holds the pages of a question in memory. More retrievals at once would only wait
# for the lemmatizer.
RETRIEVALS_AT_ONCE = 4


def evidence_provided(
    prompt: Prompt,
    document: Prompt | None,
    official: bool,
    context_length: int | None,
    tokenizer: str | None,
    lemmatizer: str,
    wiki: str | None,
) -> CarryOut:
    """Fill the prompt with as many of the best fragments of the row's evidence pages as fit.

    In the log, metadata["evidence"] of a question has the number of fragments shown and of all
    fragments, the prompt's tokens, the budget, how tokens were counted, how many fragments of each
    page were left out, and the missing pages. A page that did not exist at the dataset's date is
    noted as a problem. If Wikipedia cannot be reached, the question fails.

    The fields of ``prompt`` are documents and question. The fields of ``document``, the prompt of
    one fragment, are title and content (None means qabench's format). With ``official``, the prompt
    is filled as the authors' runner does: with the unchanged list of evidence, including repeated
    and empty pages, up to the window minus ``ANSWER_TOKENS``. The task describes the other
    arguments.
    """
    normalizer = shared_normalizer(lemmatizer)
    counter_of = counters(tokenizer)
    # Open the Wikipedia now, so that a wrong file is reported before the first question.
    wikipedia(wiki)

    async def fill_prompt(conversation: Conversation) -> None:
        model, question = conversation.model, conversation.question
        counter = await counter_of(model)
        async with conversation.at_most(RETRIEVALS_AT_ONCE, "qabench retrieval"):
            pages = conversation.row["necessary_evidence"]
            ranked, missing = await in_daemon_thread(
                rank_evidence, question, pages, normalizer, official, wiki
            )

        def filled(n: int) -> str:
            return fill(prompt, document, question, ranked[:n])

        if official:
            # The authors' chat library, kani, reserves tokens for the template of the single
            # message, and for nothing else.
            budget = context_window(model, context_length) - ANSWER_TOKENS - counter.message_tokens
        else:
            budget = prompt_tokens(model, context_length)
        texts = [fragment.content for fragment in ranked]
        n, tokens = await how_many_fit(texts, budget, counter, filled)
        conversation.set_prompt(filled(n))
        for reason in missing:
            conversation.note_problem(reason)
        if tokens > budget:
            conversation.note_problem(
                f"the prompt has {tokens} tokens without any evidence, but the budget is {budget}"
            )
        conversation.metadata["evidence"] = {
            "fragments": n,
            "of": len(texts),
            "tokens": tokens,
            "budget": budget,
            "counted_by": counter.name,
            "left_out": dict(Counter(fragment.title for fragment in ranked[n:])),
            "missing": missing,
        }
        signed = retrieval_signature(counter.name, normalizer, wiki)
        conversation.note_prediction({}, signed, add_answer=True)

    return fill_prompt


def fill(
    prompt: Prompt, document: Prompt | None, question: str, fragments: Sequence[Fragment]
) -> str:
    """Return the user message with these fragments."""
    if document is None:
        texts = []
        for fragment in fragments:
            texts.append(f"[{fragment.title}]\n{fragment.content.strip()}")
        documents = "\n\n".join(texts)
    else:
        documents = ""
        for fragment in fragments:
            documents += document.filled(title=fragment.title, content=fragment.content)
    return prompt.filled(documents=documents, question=question)


def retrieval_signature(
    counter: str, normalizer: Normalizer, wiki: str | None = None
) -> dict[str, str]:
    """Return the signature fields that describe the retrieval."""
    return {"tokenizer": counter} | retrieval_conditions(normalizer, wiki)


def retrieval_conditions(normalizer: Normalizer, wiki: str | None = None) -> dict[str, str]:
    """Return the signature fields that describe the retrieval and do not depend on the model."""
    # Different versions of markdownify turn HTML into different Markdown, and so give different
    # fragments. Without this package, pages can still be read as Markdown from the authors' cache.
    markdownify = "none"
    if find_spec("markdownify"):
        markdownify = version("markdownify")
    return {
        "retriever": normalizer.lemmatizer.name,
        "wikipedia": wikipedia(wiki).name,
        "markdownify": markdownify,
    }


def rank_evidence(
    question: str,
    evidence: Sequence[Row],
    normalizer: Normalizer,
    official: bool = False,
    wiki: str | None = None,
) -> tuple[list[Fragment], list[str]]:
    """Return the fragments of a question's pages, ranked by BM25+, and why pages are missing.

    This blocks while pages are downloaded. With ``official``, repeated pages stay repeated, and a
    missing page counts as an empty one, as in the authors' runner.

    Raises:
        WikiError: a page is not in the cache and cannot be requested.
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
    ranked_pages = [by_key[key] for key in contents]
    if official:
        ranked_pages = pages

    def content(page: WikiPage) -> str:
        return contents[page.key]

    return rank(question, ranked_pages, content, normalizer, official), missing


def rank(
    question: str,
    pages: Sequence[WikiPage],
    content: Callable[[WikiPage], str],
    normalizer: Normalizer,
    official: bool = False,
) -> list[Fragment]:
    """Return the fragments of pages, the best for the question first. Empty if there are no pages.

    Fragments with equal scores are in the order of the text, or with ``official`` in the order of
    the authors' retriever.
    """
    if not pages:
        return []
    corpus = Corpus(pages, FRAGMENT_CHARACTERS, normalizer=normalizer, content=content)
    return list(corpus.best(question, official_ties=official))
