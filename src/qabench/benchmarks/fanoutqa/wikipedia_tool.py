"""This project's Wikipedia tools for models: a page's best fragments, or the best passages of all pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inspect_ai.tool import Tool, ToolDef
from inspect_ai.util import concurrency

from qabench.benchmarks.fanoutqa import prompts
from qabench.benchmarks.fanoutqa.evidence import RETRIEVALS_AT_ONCE, rank
from qabench.errors import InputError
from qabench.retrieval.wiki.client import Wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.retrieval.wiki.zim_index import IndexedZim
from qabench.tasks.context_window import how_many_fit
from qabench.tasks.daemon_thread import in_daemon_thread
from qabench.tasks.token_counting import TokenCounter
from qabench.text import Normalizer

SIMILAR_TITLES = 10
QUERY_CHARACTERS = 300  # Wikipedia's search rejects longer queries
PASSAGES = 50  # of all pages, for one search; as many as fit are shown


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
        passages: whether ``search`` finds the best passages of all pages by BM25 instead of a page by its title.
    """

    question: str
    budget: int
    counter: TokenCounter
    normalizer: Normalizer
    seen: Callable[[str, int, int], None]
    wiki: Wikipedia
    passages: bool = False

    def tools(self) -> list[Tool]:
        """``search`` and ``page`` for Inspect, which does not truncate their results because they fit."""

        async def search(query: str) -> str:
            return await self.search(query)

        async def page(title: str, about: str = "") -> str:
            return await self._result(title, about.strip() or self.question)

        about = {"query": "Words to search for." if self.passages else "The page's title, or words to search for."}
        description = prompts.PASSAGE_TOOL if self.passages else prompts.SEARCH_TOOL
        search_tool = ToolDef(search, "search", description, about, max_output=0)
        about = {"title": "The page's title.", "about": "What to look for on the page."}
        page_tool = ToolDef(page, "page", prompts.PAGE_TOOL, about, max_output=0)
        return [search_tool.as_tool(), page_tool.as_tool()]

    async def search(self, query: str) -> str:
        """The best passages of all pages, or the best fragments of the page with this title or titles like it."""
        return await self._result(query, None if self.passages else self.question)

    async def _result(self, query: str, wanted: str | None) -> str:
        query = query.strip()[:QUERY_CHARACTERS]
        if not query:
            return prompts.NO_QUERY
        async with concurrency("qabench retrieval", RETRIEVALS_AT_ONCE):
            found = await in_daemon_thread(self._find, query, wanted)
        if isinstance(found, _Similar):
            self.seen(query, 0, 0)
            return prompts.similar_titles(query, found.titles)
        texts = [text for _, text in found.fragments]

        def render(n: int) -> str:
            if wanted is None:
                return prompts.passages(query, found.fragments[:n])
            return prompts.page(found.title, texts[:n])

        n, _ = await how_many_fit(texts, self.budget, self.counter, render)
        self.seen(found.title, n, len(texts))
        return render(n)

    def _find(self, query: str, wanted: str | None) -> _Page | _Similar:
        if wanted is not None:
            return _find(self.wiki, query, wanted, self.normalizer)
        if not isinstance(self.wiki, IndexedZim):
            raise InputError(f"{self.wiki.name} has no index of passages")
        return _Page(query, self.wiki.passages(query, PASSAGES))


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
