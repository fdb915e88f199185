"""The open-book setting: a conversation in which the model searches Wikipedia, by tool calls or in plain text."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

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

from qabench.benchmarks.fanoutqa import official_prompts, prompts
from qabench.benchmarks.fanoutqa.evidence import retrieval_signature
from qabench.benchmarks.fanoutqa.normalizing import run_normalizer
from qabench.benchmarks.fanoutqa.official import PROMPTS
from qabench.benchmarks.fanoutqa.official_prompts import SearchPrompts
from qabench.benchmarks.fanoutqa.official_search import OfficialSearch, converse
from qabench.benchmarks.fanoutqa.wikipedia_tool import WikipediaTool
from qabench.benchmarks.fanoutqa.window import TokenCounter, context_window, counters, prompt_tokens
from qabench.errors import InputError
from qabench.prompts.template import Prompt
from qabench.retrieval.wiki.client import wikipedia
from qabench.tasks.common import note_problem
from qabench.tasks.replies import continue_conversation

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
    """Lets the model search until it answers.

    The sample's metadata["searches"] lists the searches in order, with the number of fragments shown and of all.

    Args:
        by_search: the user messages for "tools" and for "text"; their field is question.
        official: the authors' strings, for their protocol; None for this project's protocol: two tools, results of at
            most half the window, of which the oldest are dropped if the conversation is too long, and a limit of turns,
            after which the model is asked for the answer.
        answer_tokens: see ``prompt_tokens``.
        search: "tools", "text" (``<search>query</search>``), or "auto": tools, and text for a model whose provider
            rejects them.
        turns: the maximum number of replies before the last one; not used with the authors' protocol.
        context_length: the context window; by default the one that Inspect knows for the model.
        tokenizer: see ``token_counter``.
        lemmatizer: the retriever's lemmatizer.
        wiki: see ``wikipedia``.

    Raises:
        InputError: an unknown search, ``turns`` below 1, or a wrong ``wiki``.
    """
    if search not in SEARCHES:
        raise InputError(f"search is {search!r}; allowed: {', '.join(SEARCHES)}")
    if turns < 1:
        raise InputError(f"turns is {turns}; allowed: 1 or more")
    source = wikipedia(wiki)
    normalizer = run_normalizer(lemmatizer)
    counter_of = counters(tokenizer)
    refusing: set[str] = set()  # models that reject tools

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        counter = await counter_of(model)
        state.metadata["searches"] = []
        retrieval = retrieval_signature(counter.name, normalizer, wiki)
        window = context_window(model, context_length)

        async def attempt(how: str) -> TaskState:
            prompt = by_search[how]
            if how == "tools" and prompt.label == PROMPTS["open-book"] and is_gpt_35(model):
                prompt = official_prompts.open_book().tools_gpt_35
            state.user_prompt.text = prompt.filled(question=state.metadata["question"])
            state.metadata["signed"] = retrieval | {"search": how, "prompt": prompt.label}
            if official:
                return await converse(state, official_search(state, counter, window), window, how == "text")
            conversation, tool = await _prepared(state, model, counter, normalizer)
            return await (_in_text if how == "text" else _with_tools)(conversation, tool, turns)

        if search == "tools" or (search == "auto" and str(model) not in refusing):
            try:
                return await attempt("tools")
            except Exception as error:
                said_nothing = not any(isinstance(message, ChatMessageAssistant) for message in state.messages)
                if search == "tools" or not said_nothing or "tool" not in str(error).lower():
                    raise
                refusing.add(str(model))
        return await attempt("text")

    def official_search(state: TaskState, counter: TokenCounter, window: int) -> OfficialSearch:
        assert official
        query = state.metadata["query"]
        return OfficialSearch(official, query, window // 2, counter, normalizer, _seen(state), source)

    async def _prepared(
        state: TaskState, model: Model, counter: TokenCounter, normalizer: Any
    ) -> tuple[_Conversation, WikipediaTool]:
        room = prompt_tokens(model, context_length, answer_tokens) - TOOL_TOKENS
        half = context_window(model, context_length) // 2
        budget = min(half, room - await counter(state.input_text) - CALL_TOKENS)
        tool = WikipediaTool(state.metadata["question"], budget, counter, normalizer, _seen(state), source)
        return _Conversation(state, room, counter), tool

    return solve


def is_gpt_35(model: Model) -> bool:
    """Return whether the authors' runner has a prompt of its own for a model."""
    return model.name.rpartition("/")[2].startswith("gpt-3.5-turbo")


def _seen(state: TaskState) -> Callable[[str, int, int], None]:
    return lambda title, n, of: state.metadata["searches"].append({"title": title, "fragments": n, "of": of})


async def _with_tools(conversation: _Conversation, tool: WikipediaTool, turns: int) -> TaskState:
    conversation.state.tools = tool.tools()

    async def act(reply: ChatMessageAssistant) -> list[ChatMessage]:
        return (await execute_tools([reply], conversation.state.tools)).messages if reply.tool_calls else []

    return await conversation.run(act, turns)


async def _in_text(conversation: _Conversation, tool: WikipediaTool, turns: int) -> TaskState:
    conversation.state.tools = []

    async def act(reply: ChatMessageAssistant) -> list[ChatMessage]:
        asked = _SEARCH.search(reply.text)
        if asked is None:
            return []
        # Models continue and invent the result.
        reply.text = f"{reply.text[: asked.start()]}<search>{asked[1].strip()}</search>"
        return [ChatMessageUser(content=await tool.search(asked[1]))]

    return await conversation.run(act, turns)


class _Conversation:
    """A sample's conversation; the model gets the messages that fit into its window."""

    def __init__(self, state: TaskState, room: int, counter: TokenCounter) -> None:
        self.state = state
        self.room = room
        self._counter = counter

    async def run(self, act: Act, turns: int) -> TaskState:
        """Alternates replies and the messages that ``act`` returns for them; a reply without such messages ends it."""
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

    async def _reply(self) -> Any:
        everything = list(self.state.messages)
        try:
            self.state.messages = await self._fitting(everything)
            await continue_conversation(self.state)
            everything.append(self.state.messages[-1])
        finally:
            self.state.messages = everything
        return everything[-1]

    async def _fitting(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        """The messages; if they are too long, the oldest results except the last are replaced by a note."""
        of_others = (ChatMessageTool, ChatMessageUser)
        results = [i for i, message in enumerate(messages[:-1]) if i > 0 and isinstance(message, of_others)]
        fitting = list(messages)
        while await self._tokens(fitting) > self.room and results:
            i = results.pop(0)
            fitting[i] = fitting[i].model_copy(update={"content": prompts.LEFT_OUT})
        return fitting

    async def _tokens(self, messages: list[ChatMessage]) -> int:
        calls = [call for message in messages for call in getattr(message, "tool_calls", None) or ()]
        return await self._counter("\n".join([*(message.text for message in messages), *map(str, calls)]))
