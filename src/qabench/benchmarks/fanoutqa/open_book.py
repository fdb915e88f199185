"""The open-book setting: a conversation in which the model searches Wikipedia, by tool calls or in plain text."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    Model,
    execute_tools,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolDef

from qabench.benchmarks.fanoutqa import prompts
from qabench.benchmarks.fanoutqa.evidence import FoundPage, PageSearch, rank, retrieval_signature
from qabench.benchmarks.fanoutqa.official import PROMPTS
from qabench.benchmarks.fanoutqa.official_search import QUERY_CHARACTERS, SIMILAR_TITLES, OfficialSearch, converse
from qabench.benchmarks.fanoutqa.prompts import SearchPrompts
from qabench.benchmarks.fanoutqa.window import TokenCounter, context_window, counters, prompt_tokens
from qabench.errors import InputError
from qabench.retrieval.wiki.client import wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.tasks.common import note_problem
from qabench.tasks.prompts import Prompt
from qabench.tasks.replies import continue_conversation
from qabench.text.normalize import shared_normalizer

SEARCHES = ("auto", "tools", "text")
TOOL_TOKENS = 256  # the estimated size of the tools' descriptions
CALL_TOKENS = 128  # the estimated size of a reply that searches
_SEARCH = re.compile(r"<search>(.*?)(?:</search>|\n|$)", re.DOTALL)

Act = Callable[[ChatMessageAssistant], Awaitable[list[ChatMessage]]]


@solver
def open_book(
    by_search: Mapping[str, Prompt],
    official: SearchPrompts | None,
    answer_tokens: int,
    search: str = "auto",
    turns: int = 20,
    context_length: int | None = None,
    tokenizer: str | None = None,
    lemmatizer: str = "auto",
    wiki: str | None = None,
) -> Solver:
    """Let the model search until it answers.

    The sample's metadata["searches"] lists the searches in order, with the number of fragments shown and of all.

    Args:
        by_search: the user messages for "tools" and for "text"; their field is question.
        official: the authors' strings, for their protocol; None for this project's protocol: two tools, results of at
            most half the window, of which the oldest are dropped if the conversation is too long, and a limit of turns,
            after which the model is asked for the answer.
        answer_tokens: see ``prompt_tokens``.
        search, turns, context_length, tokenizer, lemmatizer, wiki: see the task.

    Raises:
        InputError: an unknown search, ``turns`` below 1, or a wrong ``wiki``.
    """
    if search not in SEARCHES:
        raise InputError(f"search is {search!r}; allowed: {', '.join(SEARCHES)}")
    if turns < 1:
        raise InputError(f"turns is {turns}; allowed: 1 or more")
    source = wikipedia(wiki)
    normalizer = shared_normalizer(lemmatizer)
    counter_of = counters(tokenizer)
    refusing: set[str] = set()  # models that reject tools

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        counter = await counter_of(model)
        state.metadata["searches"] = []
        retrieval = retrieval_signature(counter.name, normalizer, wiki)
        window = context_window(model, context_length)

        def seen(title: str, shown: int, fragments: int) -> None:
            state.metadata["searches"].append({"title": title, "fragments": shown, "of": fragments})

        async def attempt(how: str) -> TaskState:
            prompt = by_search[how]
            if how == "tools" and prompt.label == PROMPTS["open-book"] and is_gpt_35(model):
                prompt = prompts.official_open_book().tools_gpt_35
            state.user_prompt.text = prompt.filled(question=state.metadata["question"])
            state.metadata["signed"] = retrieval | {"search": how, "prompt": prompt.label}
            if official:
                query = state.metadata["query"]
                tool = OfficialSearch(query, window // 2, counter, normalizer, seen, source, official)
                return await converse(state, tool, window, how == "text")
            room = prompt_tokens(model, context_length, answer_tokens) - TOOL_TOKENS
            budget = min(window // 2, room - await counter(state.input_text) - CALL_TOKENS)
            question = state.metadata["question"]
            wikipedia_tool = WikipediaTool(question, budget, counter, normalizer, seen, source)
            state.tools = [] if how == "text" else wikipedia_tool.tools()
            act = _search_in_text(wikipedia_tool) if how == "text" else _call_tools(state.tools)
            return await _Conversation(state, room, counter).run(act, turns)

        if search == "tools" or (search == "auto" and str(model) not in refusing):
            try:
                return await attempt("tools")
            except Exception as error:
                replied = any(isinstance(message, ChatMessageAssistant) for message in state.messages)
                if search == "tools" or replied or "tool" not in str(error).lower():
                    raise
                refusing.add(str(model))
        return await attempt("text")

    return solve


def is_gpt_35(model: Model) -> bool:
    """Return whether the authors' runner has a prompt of its own for a model."""
    return model.name.rpartition("/")[2].startswith("gpt-3.5-turbo")


def _search_in_text(tool: WikipediaTool) -> Act:
    async def act(reply: ChatMessageAssistant) -> list[ChatMessage]:
        tag = _SEARCH.search(reply.text)
        if tag is None:
            return []
        # Models continue and invent the result.
        reply.text = f"{reply.text[: tag.start()]}<search>{tag[1].strip()}</search>"
        return [ChatMessageUser(content=await tool.search(tag[1]))]

    return act


def _call_tools(tools: list[Tool]) -> Act:
    async def act(reply: ChatMessageAssistant) -> list[ChatMessage]:
        return (await execute_tools([reply], tools)).messages if reply.tool_calls else []

    return act


class _Conversation:
    """A sample's conversation; the model gets the messages that fit into its window."""

    def __init__(self, state: TaskState, room: int, counter: TokenCounter) -> None:
        self.state = state
        self.room = room
        self._counter = counter

    async def run(self, act: Act, turns: int) -> TaskState:
        """Alternate replies and the messages that ``act`` returns for them; a reply without such messages ends it."""
        for _ in range(turns):
            results = await act(await self._reply())
            if not results:
                return self.state
            self.state.messages.extend(results)
        last = self.state.messages[-1]
        if isinstance(last, ChatMessageUser):  # some chat templates reject two user messages in a row
            last.text = f"{last.text}\n\n{prompts.ANSWER_NOW}"
        else:
            self.state.messages.append(ChatMessageUser(content=prompts.ANSWER_NOW))
        self.state.tool_choice = "none"
        note_problem(self.state, f"the model was asked for the answer after {turns} turns, the limit")
        await self._reply()
        return self.state

    async def _reply(self) -> ChatMessageAssistant:
        history = list(self.state.messages)
        try:
            self.state.messages = await self._fitting(history)
            await continue_conversation(self.state)
            history.append(self.state.messages[-1])
        finally:
            self.state.messages = history
        return self.state.output.message

    async def _fitting(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        """Return the messages; if they are too long, the oldest results except the last are replaced by a note."""
        roles = (ChatMessageTool, ChatMessageUser)
        results = [i for i, message in enumerate(messages[:-1]) if i > 0 and isinstance(message, roles)]
        fitting = list(messages)
        while await self._tokens(fitting) > self.room and results:
            i = results.pop(0)
            fitting[i] = fitting[i].model_copy(update={"content": prompts.LEFT_OUT})
        return fitting

    async def _tokens(self, messages: list[ChatMessage]) -> int:
        calls = [call for message in messages for call in getattr(message, "tool_calls", None) or ()]
        return await self._counter("\n".join([*(message.text for message in messages), *map(str, calls)]))


@dataclass
class WikipediaTool(PageSearch):
    """This project's tools of one sample; their query is the question."""

    def tools(self) -> list[Tool]:
        """Return ``search`` and ``page`` for Inspect, which does not truncate their results because they fit."""

        async def search(query: str) -> str:
            return await self.search(query)

        async def page(title: str, about: str = "") -> str:
            return await self.result(title, about.strip() or self.query)

        about = {"query": "The page's title, or words to search for."}
        search_tool = ToolDef(search, "search", prompts.SEARCH_TOOL, about, max_output=0)
        about = {"title": "The page's title.", "about": "What to look for on the page."}
        page_tool = ToolDef(page, "page", prompts.PAGE_TOOL, about, max_output=0)
        return [search_tool.as_tool(), page_tool.as_tool()]

    async def result(self, title: str, about: str) -> str:
        """Return the fragments of the page with this title, or the titles of similar pages."""
        title = title.strip()[:QUERY_CHARACTERS]
        return await super().result(title, about) if title else prompts.NO_QUERY

    def find(self, title: str, about: str) -> FoundPage | str:
        """Return the page with this title, also in another case, or the titles of similar pages."""
        try:
            return self._page(WikiPage(title), about)
        except PageMissing:
            similar = self.wiki.search(title, SIMILAR_TITLES)
        for page in similar:
            if page.title.casefold() == title.casefold():
                with suppress(PageMissing):  # created after the dataset's epoch
                    return self._page(page, about)
        return prompts.similar_titles(title, [page.title for page in similar])

    def _page(self, page: WikiPage, about: str) -> FoundPage:
        text = self.wiki.content(page)
        ranked = rank(about, [page], {page.key: text}, self.normalizer)
        return FoundPage(page.title, [fragment for _, fragment in ranked])

    def render(self, title: str, texts: Sequence[str]) -> str:
        """Return the page in this project's format."""
        return prompts.page(title, texts)
