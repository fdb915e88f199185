"""This project's Wikipedia tools for models: a page's best fragments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inspect_ai.tool import Tool, ToolDef
from inspect_ai.util import concurrency

from qabench.benchmarks.fanoutqa import prompts
from qabench.benchmarks.fanoutqa.evidence import RETRIEVALS_AT_ONCE, rank
from qabench.benchmarks.fanoutqa.window import TokenCounter, how_many_fit
from qabench.retrieval.wiki.client import Wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.tasks.daemon_thread import in_daemon_thread
from qabench.text import Normalizer

SIMILAR_TITLES = 10
QUERY_CHARACTERS = 300  # Wikipedia's search rejects longer queries


@dataclass
class WikipediaTool:
    """The tools of one sample.

    Args:
        question: the query by which a page's fragments are ranked, unless the model gives another one.
        budget: the maximum number of tokens of a result.
        counter: counts tokens.
        normalizer: the retriever's normalizer.
        seen: called with the title (or the query if no page has it) and the numbers of fragments shown and of all.
        wiki: the Wikipedia that is searched.
    """

    question: str
    budget: int
    counter: TokenCounter
    normalizer: Normalizer
    seen: Callable[[str, int, int], None]
    wiki: Wikipedia

    def tools(self) -> list[Tool]:
        """``search`` and ``page`` for Inspect, which does not truncate their results because they fit."""

        async def search(query: str) -> str:
            return await self.search(query)

        async def page(title: str, about: str = "") -> str:
            return await self._result(title, about.strip() or self.question)

        about = {"query": "The page's title, or words to search for."}
        search_tool = ToolDef(search, "search", prompts.SEARCH_TOOL, about, max_output=0)
        about = {"title": "The page's title.", "about": "What to look for on the page."}
        page_tool = ToolDef(page, "page", prompts.PAGE_TOOL, about, max_output=0)
        return [search_tool.as_tool(), page_tool.as_tool()]

    async def search(self, query: str) -> str:
        """Return the best fragments of the page with this title, or titles like it."""
        return await self._result(query, self.question)

    async def _result(self, query: str, wanted: str) -> str:
        query = query.strip()[:QUERY_CHARACTERS]
        if not query:
            return prompts.NO_QUERY
        async with concurrency("qabench retrieval", RETRIEVALS_AT_ONCE):
            found = await in_daemon_thread(_find, self.wiki, query, wanted, self.normalizer)
        if isinstance(found, _Similar):
            self.seen(query, 0, 0)
            return prompts.similar_titles(query, found.titles)
        texts = [text for _, text in found.fragments]

        def render(n: int) -> str:
            return prompts.page(found.title, texts[:n])

        n, _ = await how_many_fit(texts, self.budget, self.counter, render)
        self.seen(found.title, n, len(texts))
        return render(n)


@dataclass(frozen=True)
class _Page:
    title: str
    fragments: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class _Similar:
    titles: Sequence[str]


def _find(wiki: Wikipedia, query: str, wanted: str, normalizer: Normalizer) -> _Page | _Similar:
    """Raises WikiError if the request fails."""
    try:
        return _fragments(WikiPage(query), wiki.content(WikiPage(query)), wanted, normalizer)
    except PageMissing:
        similar = wiki.search(query, SIMILAR_TITLES)
    for page in similar:
        if page.title.casefold() == query.casefold():
            try:
                return _fragments(page, wiki.content(page), wanted, normalizer)
            except PageMissing:  # created after the dataset's epoch
                continue
    return _Similar([page.title for page in similar])


def _fragments(page: WikiPage, text: str, wanted: str, normalizer: Normalizer) -> _Page:
    return _Page(page.title, rank(wanted, [page], {page.key: text}, normalizer))
