"""The open-book setting: a conversation in which the model looks things up, by tool calls or in plain text."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    execute_tools,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from qabench.benchmarks.fanoutqa import prompts
from qabench.benchmarks.fanoutqa.normalizing import run_normalizer
from qabench.benchmarks.fanoutqa.wikipedia_tool import LookingUp
from qabench.errors import InputError
from qabench.tasks.common import note_problem, timeouts_fail
from qabench.tasks.context_window import context_window, prompt_tokens
from qabench.tasks.token_counting import TokenCounter, counters

PROTOCOLS = ("auto", "tools", "text")
TOOL_TOKENS = 256  # what the descriptions of the tools take of the window, about
CALL_TOKENS = 128  # a reply that looks something up, about
_SEARCH = re.compile(r"<search>(.*?)(?:</search>|\n|$)", re.DOTALL)

Act = Callable[[ChatMessageAssistant], Awaitable[list[ChatMessage]]]


@solver
def open_book(
    answer_tokens: int,
    protocol: str = "auto",
    turns: int = 20,
    context_length: int | None = None,
    tokenizer: str | None = None,
    lemmatizer: str = "auto",
) -> Solver:
    """Lets the model look things up until it answers, or has had its turns; then it is asked for the answer.

    A result has at most half the window; the oldest results give way where the conversation has no more room. The
    sample's metadata["looked_up"] has what was looked up, in order, and how many fragments of how many were shown.

    Args:
        answer_tokens: see ``prompt_tokens``. protocol: "tools", "text" (``<search>query</search>``), or "auto": tools,
            and text for a model whose provider refuses them. turns: the most replies before the last one.
        context_length: the window; by default what Inspect knows of the model. tokenizer: see ``token_counter``.
        lemmatizer: of the retriever.

    Raises:
        InputError: an unknown protocol, or no turns.
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol is {protocol!r}; allowed: {', '.join(PROTOCOLS)}")
    if turns < 1:
        raise InputError(f"turns is {turns}; allowed: 1 or more")
    normalizer = run_normalizer(lemmatizer)
    counter_of = counters(tokenizer)
    refusing: set[str] = set()  # models that refuse tools

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        counter = await counter_of(model)
        looked_up = state.metadata["looked_up"] = []
        room = prompt_tokens(model, context_length, answer_tokens) - TOOL_TOKENS
        talk = _Talk(state, generate, room, counter)
        half = context_window(model, context_length) // 2
        library = LookingUp(
            question=state.metadata["question"],
            budget=min(half, room - await counter(state.input_text) - CALL_TOKENS),
            counter=counter,
            normalizer=normalizer,
            seen=lambda title, n, of: looked_up.append({"title": title, "fragments": n, "of": of}),
        )
        if protocol == "tools" or (protocol == "auto" and str(model) not in refusing):
            try:
                return await _with_tools(talk, library, turns)
            except Exception as error:
                if protocol == "tools" or not talk.unheard() or "tool" not in str(error).lower():
                    raise
                refusing.add(str(model))
        return await _in_text(talk, library, turns)

    return solve


async def _with_tools(talk: _Talk, library: LookingUp, turns: int) -> TaskState:
    talk.state.tools = library.tools()

    async def act(reply: ChatMessageAssistant) -> list[ChatMessage]:
        return (await execute_tools([reply], talk.state.tools)).messages if reply.tool_calls else []

    return await talk.through(act, turns)


async def _in_text(talk: _Talk, library: LookingUp, turns: int) -> TaskState:
    talk.state.tools = []
    talk.state.user_prompt.text = prompts.open_book_as_text(library.question)

    async def act(reply: ChatMessageAssistant) -> list[ChatMessage]:
        asked = _SEARCH.search(reply.text)
        if asked is None:
            return []
        # Models go on and make the result up.
        reply.text = f"{reply.text[: asked.start()]}<search>{asked[1].strip()}</search>"
        return [ChatMessageUser(content=await library.search(asked[1]))]

    return await talk.through(act, turns)


class _Talk:
    """A sample's conversation, of which the model sees what fits into its window."""

    def __init__(self, state: TaskState, generate: Generate, room: int, counter: TokenCounter) -> None:
        self.state = state
        self.room = room
        self._generate = generate
        self._counter = counter

    def unheard(self) -> bool:
        """Whether the model has not said anything yet."""
        return not any(isinstance(message, ChatMessageAssistant) for message in self.state.messages)

    async def through(self, act: Act, turns: int) -> TaskState:
        """Replies and what ``act`` makes of them, until it makes nothing of one: that is the answer."""
        for _ in range(turns):
            results = await act(await self._reply())
            if not results:
                return self.state
            self.state.messages.extend(results)
        last = self.state.messages[-1]
        if isinstance(last, ChatMessageUser):  # some chat templates refuse two in a row
            last.text = f"{last.text}\n\n{prompts.ANSWER_NOW}"
        else:
            self.state.messages.append(ChatMessageUser(content=prompts.ANSWER_NOW))
        self.state.tool_choice = "none"
        note_problem(self.state, f"the model had its {turns} turns and was then asked for the answer")
        await self._reply()
        return self.state

    async def _reply(self) -> Any:
        everything = list(self.state.messages)
        try:
            self.state.messages = await self._fitting(everything)
            with timeouts_fail():
                await self._generate(self.state, tool_calls="none")
            everything.append(self.state.messages[-1])
        finally:
            self.state.messages = everything
        return everything[-1]

    async def _fitting(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        """The messages, the oldest results replaced by a note where all of them are too long; the last one stays."""
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
