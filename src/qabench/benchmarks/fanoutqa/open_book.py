"""The open-book setting: a conversation in which the model searches Wikipedia, by tool calls or in plain text.

The protocol is the authors' own: their tool, its results, and their handling of a full window.
Source: ``reference/paper_benchmarks/run_openbook.py`` of https://github.com/zhudotexe/fanoutqa and
the chat library that it uses, kani 0.7.2.

Differences, all of them in what this project cannot or should not send:

- kani sends a result whose call was dropped with the role "function". Here a call and its result are dropped together,
  because OpenAI rejects a result without its call.
- A search that fails, after retries, fails the question instead of telling the model about the error.
- Arguments that are not JSON are the query (Inspect reads them so). Kani tells the model that they are not JSON.
- The request has `tool_choice: auto`, the default of OpenAI's API.
- A query is cut after 300 characters for the search of similar titles, which Wikipedia rejects if it is longer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
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
from inspect_ai.tool import ToolCall, ToolDef, ToolParam, ToolParams
from inspect_ai.util import concurrency
from pydantic import ValidationError, validate_call

from qabench.adapters.inspect import note_prediction
from qabench.benchmarks.fanoutqa.evidence import RETRIEVALS_AT_ONCE, rank, retrieval_signature
from qabench.benchmarks.fanoutqa.normalizer import Normalizer, shared_normalizer
from qabench.benchmarks.fanoutqa.prompts import SearchPrompts
from qabench.benchmarks.fanoutqa.window import (
    TokenCounter,
    context_window,
    counters,
    how_many_fit,
    prompt_tokens,
)
from qabench.data.rows import Json, Row
from qabench.errors import InputError, QabenchError
from qabench.retrieval.wiki.client import Wikipedia, wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.tasks.common import ask_model, in_daemon_thread
from qabench.tasks.prompts import Prompt

SEARCHES = ("auto", "tools", "text")
SECONDS_PER_QUESTION = 600
TOKENS_FOR_REPLY = 450  # kani's default
TOOL_MARKUP_TOKENS = 16  # kani adds them to the tokens of the tool's description
ERRORS_IN_A_ROW = 2  # after so many turns with a failed call, kani sends no tools
SIMILAR_TITLES = 10
QUERY_CHARACTERS = 300  # Wikipedia's search rejects longer queries
_SEARCH = re.compile("<search>(.+?)</search>")


@solver
def open_book(
    strings: SearchPrompts,
    official: bool,
    search: str,
    context_length: int | None,
    tokenizer: str | None,
    lemmatizer: str,
    wiki: str | None,
) -> Solver:
    """Let the model search until it answers.

    The sample's metadata["searches"] lists the searches in order: the title and the id of the page
    (or the query if there is no such page), and the number of fragments shown and of all.

    With ``official``, the fragments of a page are ranked by the row's ``query``, and the reply
    has the authors' reserve of tokens. Otherwise they are ranked by the question, with a reserve of
    ``ANSWER_TOKENS``. For the others see the task. Raises InputError for an unknown search, or a
    wrong ``wiki``.
    """
    if search not in SEARCHES:
        raise InputError(f"search is {search!r}; allowed: {', '.join(SEARCHES)}")
    source = wikipedia(wiki)
    normalizer = shared_normalizer(lemmatizer)
    counter_of = counters(tokenizer)
    refusing: set[str] = set()  # models that reject tools

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        counter = await counter_of(model)
        searches: list[Json] = []
        state.metadata["searches"] = searches
        note_prediction(state, {"pages": []}, {}, add_answer=True)
        window = context_window(model, context_length)
        room = window - TOKENS_FOR_REPLY if official else prompt_tokens(model, context_length)
        query = state.metadata["row"]["query" if official else "question"]

        async def attempt(how: str) -> TaskState:
            prompt = prompt_for(strings, how, model)
            state.user_prompt.text = prompt.filled(question=state.metadata["question"])
            retrieval = retrieval_signature(counter.name, normalizer, wiki)
            signed = retrieval | {"search": how, "prompt": prompt.label}

            def seen(*entries: dict[str, Any]) -> None:
                searches.extend(entries)
                note_prediction(state, {"pages": _pages(searches)}, signed, add_answer=True)

            seen()
            tool = OpenBookSearch(query, window // 2, counter, normalizer, seen, source, strings)
            return await converse(state, tool, room, how == "text")

        if search == "tools" or (search == "auto" and str(model) not in refusing):
            try:
                return await attempt("tools")
            except (
                Exception
            ) as error:  # providers refuse tools with errors of their own; others are raised again
                replied = any(isinstance(message, ChatMessageAssistant) for message in state.messages)
                if search == "tools" or replied or "tool" not in str(error).lower():
                    raise
                refusing.add(str(model))
        return await attempt("text")

    return solve


def _pages(searches: Sequence[Row]) -> list[Json]:
    """Return the pages with a fragment that the model was shown."""
    read = [entry for entry in searches if entry["fragments"]]
    return [{name: entry[name] for name in ("title", "pageid") if entry.get(name)} for entry in read]


def prompt_for(strings: SearchPrompts, search: str, model: Model | None) -> Prompt:
    """Return the prompt for a way of searching. The authors' runner has another one for gpt-3.5-turbo*."""
    if search == "text":
        return strings.text
    name = model.name.rpartition("/")[2] if model is not None else ""
    return strings.tools_gpt_35 if name.startswith("gpt-3.5-turbo") else strings.tools


@dataclass
class OpenBookSearch:
    """The tool ``search`` of one sample.

    The fragments of a page are ranked by ``query``, a result has at most ``budget`` tokens, and
    ``seen`` is called with the entry of each search. See ``open_book``.
    """

    query: str
    budget: int
    counter: TokenCounter
    normalizer: Normalizer
    seen: Callable[[Json], None]
    wiki: Wikipedia
    strings: SearchPrompts

    def tool(self) -> ToolDef:
        """Return the tool for a model that calls tools, as the authors define it.

        Inspect never cuts its results.
        """

        async def search(query: str) -> str:
            return await self.search(query)

        string = ToolParam(type="string")
        parameters = ToolParams(
            properties={"query": string}, required=["query"], additionalProperties=None
        )
        return ToolDef(search, "search", self.strings.tool, parameters, max_output=0)

    async def tool_tokens(self) -> int:
        """Return the tokens that kani reserves for the tool, which OpenAI shows to its models as TypeScript."""
        shown = f"// {self.strings.tool}\ntype search = (_: {{\nquery: string,\n}}) => any;\n\n"
        return await self.counter.count(shown) + TOOL_MARKUP_TOKENS

    async def search(self, query: str) -> str:
        """Return as many fragments of the page with this title as fit, best first, or the titles of similar pages."""
        async with concurrency("qabench retrieval", RETRIEVALS_AT_ONCE):
            page, result = await in_daemon_thread(self._find, query)
        if page is None:
            self.seen({"title": query, "fragments": 0, "of": 0})
            return str(result)

        def render(n: int) -> str:
            shown = "".join(self.strings.fragment.filled(content=text) for text in result[:n])
            return self.strings.page.filled(title=page.title, fragments=shown)

        n, _ = await how_many_fit(
            result, self.budget - self.counter.message_tokens, self.counter, render
        )
        # a page that did not exist at the epoch has none
        texts = sum(bool(text.strip()) for text in result[:n])
        self.seen({"title": page.title, "pageid": page.pageid, "fragments": texts, "of": len(result)})
        return render(n)

    def _find(self, title: str) -> tuple[WikiPage, list[str]] | tuple[None, str]:
        """Return the page with this title and its ranked fragments, or the result without such a page. Blocks."""
        try:
            page = self.wiki.lookup(title)
        except PageMissing:
            searched = title.strip()[:QUERY_CHARACTERS]
            similar = self.wiki.search(searched, SIMILAR_TITLES) if searched else []
            return None, self.strings.similar.filled(
                titles=self._titles([result.title for result in similar])
            )
        if isinstance(page, list):
            return None, self.strings.ambiguous.filled(titles=self._titles(page))
        try:
            text = self.wiki.content(page)
        except PageMissing:  # it did not exist at the epoch. Upstream treats it as an empty page
            text = ""
        ranked = rank(self.query, [page], lambda _: text, self.normalizer, official=True)
        return page, [fragment.content for fragment in ranked]

    def _titles(self, titles: Sequence[str]) -> str:
        return "\n".join(self.strings.title.filled(title=title) for title in titles)


async def converse(state: TaskState, search: OpenBookSearch, room: int, in_text: bool) -> TaskState:
    """Alternate replies and searches until a reply does not search.

    The answer is the last message with text.

    ``room`` is the maximum number of tokens of the messages and the tool's description. Raises
    QabenchError if there is no answer within ten minutes, or a message is longer than the window.
    """
    room -= 0 if in_text else await search.tool_tokens()
    history = _History(list(state.messages), room, search.counter)
    tools = offered = [] if in_text else [search.tool()]
    errors = 0
    try:
        with anyio.fail_after(SECONDS_PER_QUESTION):
            while True:
                state.messages = await history.newest()
                # Unlike a solver's ``generate``, this accepts parameters without a description.
                state.output = await ask_model(get_model(), state.messages, state, offered)
                reply = state.output.message
                history.messages.append(reply)
                # kani uses the server's count of a reply, if there is one
                if not in_text and state.output.usage:
                    history.tokens[len(history.messages) - 1] = state.output.usage.output_tokens
                if in_text:
                    results = await _search_in_text(search, reply)
                else:
                    results, failed = await _run_calls(reply, tools)
                    errors = errors + 1 if failed else 0
                    offered = [] if errors == ERRORS_IN_A_ROW else offered
                if not results:
                    break
                history.messages += results
    except TimeoutError:
        raise QabenchError(
            f"no answer within {SECONDS_PER_QUESTION} seconds, the authors' limit"
        ) from None
    finally:
        state.messages = history.messages
    texts = [message.text for message in history.messages[1:] if message.text]
    state.output.completion = texts[-1] if texts else ""
    return state


@dataclass
class _History:
    """All messages of a conversation, and the number of tokens of those that were counted, by position."""

    messages: list[ChatMessage]
    room: int
    counter: TokenCounter
    tokens: dict[int, int] = field(default_factory=dict)

    async def newest(self) -> list[ChatMessage]:
        """Return the newest messages that fit.

        The oldest ones, including the question, are dropped.

        A reply and the results of its calls are kept or dropped together. If the results of the
        last reply do not fit, its oldest calls are dropped with their results, but not the newest
        one, for which the reply's reserve has room.

        Raises:
            QabenchError: a message is longer than the window. As in kani, messages older than the
                first one that does not fit are not looked at.
        """
        first, room = len(self.messages), self.room
        while first:
            tokens = await self._tokens(first - 1)
            if tokens > self.room:
                raise QabenchError(
                    f"a message has {tokens} tokens, but the window has room for {self.room}"
                )
            room -= tokens
            if room < 0:
                break
            first -= 1
        starts = [
            i for i, message in enumerate(self.messages) if not isinstance(message, ChatMessageTool)
        ]
        if whole := [start for start in starts if start >= first]:
            return self.messages[whole[0] :]
        reply, oldest = self.messages[starts[-1]], len(self.messages) - 1
        room = self.room - await self._tokens(starts[-1]) - await self._tokens(oldest)
        while oldest - 1 > starts[-1] and (room := room - await self._tokens(oldest - 1)) >= 0:
            oldest -= 1
        results = self.messages[oldest:]
        ids = {result.tool_call_id for result in results if isinstance(result, ChatMessageTool)}
        calls = [call for call in getattr(reply, "tool_calls", None) or [] if call.id in ids]
        return [reply.model_copy(update={"tool_calls": calls}), *results]

    async def _tokens(self, position: int) -> int:
        """Count as kani does: the text, the names and arguments of calls, and the name of a result."""
        if not self.tokens.get(position):
            message = self.messages[position]
            calls = (message.tool_calls or []) if isinstance(message, ChatMessageAssistant) else []
            parts = [part for call in calls for part in (call.function, json.dumps(call.arguments))]
            if isinstance(message, ChatMessageTool) and message.function:
                parts.append(message.function)
            counts = [await self.counter.count(part) for part in parts]
            self.tokens[position] = await self.counter.message(message.text) + sum(counts)
        return self.tokens[position]


async def _run_calls(
    reply: ChatMessageAssistant, tools: Sequence[ToolDef]
) -> tuple[list[ChatMessage], bool]:
    """Return the results of a reply's calls, and whether one cannot be run.

    Its result is in kani's words.
    """
    results: list[ChatMessage] = []
    failed = False
    for call in reply.tool_calls or []:
        if problem := _problem(call):
            failed = True
            name = call.function if call.function == "search" else None
            results.append(ChatMessageTool(content=problem, tool_call_id=call.id, function=name))
        else:
            alone = reply.model_copy(update={"tool_calls": [call]})
            # 0: the whole result, as in kani. Inspect cuts it after 16 KiB by default.
            results += (await execute_tools([alone], tools, max_output=0)).messages
    return results, failed


def _search_arguments(query: str) -> None:
    """Take the arguments of the authors' function, whose name is in the error messages."""


_search_arguments.__qualname__ = "search"
# The version of pydantic that the authors' chat library was used with is a part of the messages'
# addresses.
_DOCS, _DOCS_OF_AUTHORS = re.compile(r"(?<=//errors\.pydantic\.dev/)[\d.]+(?=/)"), "2.6"


def _problem(call: ToolCall) -> str | None:
    """Return what kani tells the model about a call that it cannot run, or None if it can."""
    if call.function != "search":
        return f"The function {call.function!r} is not defined. Only use the provided functions."
    if call.parse_error:
        return call.parse_error.rpartition("Error details: ")[2]
    try:
        validate_call(_search_arguments)(**call.arguments)
    except ValidationError as error:
        return _DOCS.sub(_DOCS_OF_AUTHORS, str(error))
    return None


async def _search_in_text(search: OpenBookSearch, reply: ChatMessageAssistant) -> list[ChatMessage]:
    """Return the result of the search at the beginning of a reply, which is cut after it, or [] if there is none."""
    reply.text = reply.text.strip()  # the authors' engines strip replies
    tag = _SEARCH.match(reply.text)
    if tag is None:
        return []
    reply.text = reply.text[: tag.end()]
    return [ChatMessageUser(content=await search.search(tag[1]))]
