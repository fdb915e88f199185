"""The open-book conversation of FanOutQA's authors: their tool, its results, and their handling of a full window.

Source: ``reference/paper_benchmarks/run_openbook.py`` of https://github.com/zhudotexe/fanoutqa and the chat library
(kani) that it uses. Tokens of a message are those of its text; the library adds a few for the chat template, which
differ by model.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, execute_tools
from inspect_ai.solver import Generate, TaskState
from inspect_ai.tool import Tool, ToolDef
from inspect_ai.util import concurrency

from qabench.benchmarks.fanoutqa.evidence import RETRIEVALS_AT_ONCE, rank
from qabench.benchmarks.fanoutqa.official_prompts import SearchPrompts
from qabench.errors import QabenchError
from qabench.retrieval.wiki.client import Wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.tasks.common import timeouts_fail
from qabench.tasks.context_window import how_many_fit
from qabench.tasks.daemon_thread import in_daemon_thread
from qabench.tasks.token_counting import TokenCounter
from qabench.text import Normalizer

SECONDS_PER_QUESTION = 600
TOKENS_FOR_REPLY = 450  # the chat library's default
SIMILAR_TITLES = 10
QUERY_CHARACTERS = 300  # Wikipedia's search rejects longer queries
_SEARCH = re.compile("<search>(.+?)</search>")


@dataclass
class OfficialSearch:
    """The tool ``search`` for one sample.

    Args:
        strings: the authors' strings.
        question: the query by which the fragments of a page are ranked.
        budget: the maximum number of tokens of a result.
        counter: counts tokens.
        normalizer: the retriever's normalizer.
        seen: called with the title (or the query if no page has it) and the numbers of fragments shown and of all.
        wiki: the Wikipedia that is searched.
    """

    strings: SearchPrompts
    question: str
    budget: int
    counter: TokenCounter
    normalizer: Normalizer
    seen: Callable[[str, int, int], None]
    wiki: Wikipedia

    def tool(self) -> Tool:
        """The tool for a model that calls tools; its results are never cut by Inspect."""

        async def search(query: str) -> str:
            return await self.search(query)

        # Inspect requires a description of each parameter; the authors' tool has none.
        return ToolDef(search, "search", self.strings.tool, {"query": "query"}, max_output=0).as_tool()

    async def search(self, query: str) -> str:
        """The best fragments of the page with this title, or the titles of other pages."""
        async with concurrency("qabench retrieval", RETRIEVALS_AT_ONCE):
            found = await in_daemon_thread(self._find, query)
        if isinstance(found, str):
            self.seen(query, 0, 0)
            return found

        def render(n: int) -> str:
            shown = "".join(self.strings.fragment.filled(content=text) for text in found.texts[:n])
            return self.strings.page.filled(title=found.title, fragments=shown)

        n, _ = await how_many_fit(found.texts, self.budget, self.counter, render)
        self.seen(found.title, n, len(found.texts))
        return render(n)

    def _find(self, query: str) -> _Found | str:
        wiki = self.wiki
        try:
            page = wiki.lookup(query)
        except PageMissing:
            searched = query.strip()[:QUERY_CHARACTERS]
            similar = wiki.search(searched, SIMILAR_TITLES) if searched else []
            return self.strings.similar.filled(titles=self._titles([one.title for one in similar]))
        if isinstance(page, list):
            return self.strings.ambiguous.filled(titles=self._titles(page))
        try:
            text = wiki.content(page)
        except PageMissing:  # it did not exist at the epoch; upstream treats it as an empty page
            text = ""
        ranked = rank(self.question, [page], {WikiPage.of(page).key: text}, self.normalizer, official=True)
        return _Found(page.title, [content for _, content in ranked])

    def _titles(self, titles: Sequence[str]) -> str:
        return "\n".join(self.strings.title.filled(title=title) for title in titles)


@dataclass(frozen=True)
class _Found:
    title: str
    texts: list[str]


Act = Callable[[ChatMessageAssistant], Awaitable[Sequence[ChatMessage]]]


async def converse(
    state: TaskState, generate: Generate, search: OfficialSearch, window: int, in_text: bool
) -> TaskState:
    """Alternates replies and searches until a reply does not search; the answer is the last message with text.

    The model sees the newest messages that fit into the window minus ``TOKENS_FOR_REPLY``; the oldest messages,
    including the question, are dropped.

    Raises:
        QabenchError: no answer within ten minutes.
    """
    state.tools = [] if in_text else [search.tool()]
    act = _searches_in_text(search) if in_text else _tool_calls(state)
    everything = list(state.messages)
    try:
        with anyio.fail_after(SECONDS_PER_QUESTION):
            while results := await _turn(state, generate, everything, window - TOKENS_FOR_REPLY, search.counter, act):
                everything += results
    except TimeoutError:
        raise QabenchError(f"no answer within {SECONDS_PER_QUESTION} seconds, the authors' limit") from None
    finally:
        state.messages = everything
    said = [message.text for message in everything[1:] if message.text]
    state.output.completion = said[-1] if said else ""
    return state


async def _turn(
    state: TaskState, generate: Generate, everything: list[ChatMessage], room: int, counter: TokenCounter, act: Act
) -> Sequence[ChatMessage]:
    state.messages = await newest(everything, room, counter)
    with timeouts_fail():
        await generate(state, tool_calls="none")
    reply = state.messages[-1]
    everything.append(reply)
    return await act(reply) if isinstance(reply, ChatMessageAssistant) else []


async def newest(messages: Sequence[ChatMessage], room: int, counter: TokenCounter) -> list[ChatMessage]:
    """The newest messages that fit; at least one."""
    kept: list[ChatMessage] = []
    for message in reversed(messages):
        calls = " ".join(map(str, getattr(message, "tool_calls", None) or ()))
        room -= await counter(f"{message.text}{calls}")
        if room < 0 and kept:
            break
        kept.insert(0, message)
    return kept


def _tool_calls(state: TaskState) -> Act:
    async def act(reply: ChatMessageAssistant) -> Sequence[ChatMessage]:
        return (await execute_tools([reply], state.tools)).messages if reply.tool_calls else []

    return act


def _searches_in_text(search: OfficialSearch) -> Act:
    async def act(reply: ChatMessageAssistant) -> Sequence[ChatMessage]:
        reply.text = reply.text.strip()  # the authors' engines strip replies
        asked = _SEARCH.match(reply.text)
        if asked is None:
            return []
        reply.text = reply.text[: asked.end()]
        return [ChatMessageUser(content=await search.search(asked[1]))]

    return act
