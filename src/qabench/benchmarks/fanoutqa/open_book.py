"""The open-book setting: the model searches Wikipedia, by tool calls or in plain text.

The protocol is the authors': the tool, its results, and what happens when the window is full.
Source: ``reference/paper_benchmarks/run_openbook.py`` of https://github.com/zhudotexe/fanoutqa and
the chat library that it uses, kani 0.7.2.

The protocol differs where this project cannot or should not send the same requests:

- If kani has dropped a call, it sends the call's result with the role "function". Here, a call and
  its result are dropped together, because OpenAI rejects a result without its call.
- If a search fails even after retries, the question fails. kani tells the model about the error.
- If the arguments of a call are not JSON, Inspect AI takes them as the query. kani tells the model
  that they are not JSON.
- The request has `tool_choice: auto`, the default of OpenAI's API.
- Similar titles are searched for with the first 300 characters of a query, because Wikipedia
  rejects longer queries.

Three numbers of tokens are used below. The window is the model's context window. The room is what
remains of it for the messages and the tool's description after the tokens for the reply are
reserved. The budget is the maximum length of one search's result: half of the window.

kani is not installed with this project. Its behavior and that of the authors' runner are pinned by
these tests of ``tests/benchmarks/fanoutqa/test_official_messages.py``, which need the authors' files
(QABENCH_MIRROR):

- ``test_open_book_prompts`` and ``test_search_results``: the authors' runner is executed.
- ``test_text_searches_are_recognized_as_upstream``: searches in plain text.
- ``test_the_room_and_the_time_of_a_question``: the tokens for the reply, and the ten minutes.
- ``test_the_newest_messages_are_those_of_kani``: the messages that are sent from a full window.
- ``test_tokens_are_counted_as_kani_counts_them``: messages and the tool's description.
- ``test_failed_calls_are_worded_as_in_kani``: recorded messages, and when tools are withdrawn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic import ValidationError, validate_call

from qabench.benchmarks.conversation import (
    Call,
    CarryOut,
    Conversation,
    LanguageModel,
    TokenCounter,
    Tool,
)
from qabench.benchmarks.fanoutqa.evidence import RETRIEVALS_AT_ONCE, rank, retrieval_signature
from qabench.benchmarks.fanoutqa.logs import pages_read
from qabench.benchmarks.fanoutqa.normalizer import Normalizer, shared_normalizer
from qabench.benchmarks.fanoutqa.prompts import SearchPrompts
from qabench.benchmarks.fanoutqa.window import context_window, counters, how_many_fit, prompt_tokens
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.io.daemon_thread import in_daemon_thread
from qabench.prompts.prompt import Prompt
from qabench.retrieval.wiki.client import Wikipedia, wikipedia
from qabench.retrieval.wiki.page import PageMissing, WikiPage

SEARCHES = ("auto", "tools", "text")
# The authors' runner stops working on a question after ten minutes.
SECONDS_PER_QUESTION = 600
# The tokens that kani, the authors' chat library, keeps free by default.
TOKENS_FOR_REPLY = 450
# kani adds this number to the tokens of the tool's description.
TOOL_MARKUP_TOKENS = 16
# kani sends no tools after two turns in a row with a failed call.
ERRORS_IN_A_ROW = 2
SIMILAR_TITLES = 10
# Wikipedia's search rejects longer queries.
QUERY_CHARACTERS = 300
# A run counts the questions with these problems.
WITHOUT_QUESTION = "the question no longer fit into the model's window"
REPEATED_SEARCH = "a search was repeated"
# A reply is a search only if it begins with this tag. The query must be on one line.
_SEARCH = re.compile("<search>(.+?)</search>")


def open_book(
    strings: SearchPrompts,
    official: bool,
    search: str,
    context_length: int | None,
    tokenizer: str | None,
    lemmatizer: str,
    wiki: str | None,
    max_turns: int,
) -> CarryOut:
    """Let the model search until it answers.

    After ``max_turns`` replies that search, the model's last text is the answer. This is a
    deviation.

    In the log, metadata["searches"] of a question lists its searches in order: the title and the id
    of the page (or the query if no page has this title), the number of fragments that were shown,
    and the number of all fragments.

    With ``official``, the fragments of a page are ranked by the column ``query`` of the row, and
    the authors' number of tokens is reserved for the reply. Otherwise, fragments are ranked by the
    question, and ``ANSWER_TOKENS`` are reserved. The task describes the other arguments.

    Raises:
        InputError: ``search`` is unknown, or ``wiki`` is wrong.
    """
    if search not in SEARCHES:
        raise InputError(f"search is {search!r}; allowed: {', '.join(SEARCHES)}")
    if max_turns < 1:
        raise InputError(f"max_turns is {max_turns}; it must be 1 or more")
    protocol = _OpenBook(
        strings=strings,
        official=official,
        search=search,
        context_length=context_length,
        wiki=wiki,
        max_turns=max_turns,
        source=wikipedia(wiki),
        normalizer=shared_normalizer(lemmatizer),
        counter_of=counters(tokenizer),
    )
    return protocol.search_and_answer


@dataclass
class _OpenBook:
    """The protocol, with the arguments of ``open_book``.

    Attributes:
        source: the Wikipedia that the argument ``wiki`` or the environment names.
        normalizer: the normalizer of the lemmatizer.
        counter_of: returns the counter of a model's tokens.
        refusing: the names of the models whose providers have rejected tools.
    """

    strings: SearchPrompts
    official: bool
    search: str
    context_length: int | None
    wiki: str | None
    max_turns: int
    source: Wikipedia
    normalizer: Normalizer
    counter_of: Callable[[LanguageModel], Awaitable[TokenCounter]]
    refusing: set[str] = field(default_factory=set)

    async def search_and_answer(self, conversation: Conversation) -> None:
        """Let the model search until it answers: with tools, or else in plain text."""
        model = conversation.model
        counter = await self.counter_of(model)
        log = _SearchLog(conversation)
        conversation.metadata["searches"] = log.searches
        log.note()
        window = context_window(model, self.context_length)
        if self.official:
            room = window - TOKENS_FOR_REPLY
            ranked_by = conversation.row["query"]
        else:
            room = prompt_tokens(model, self.context_length)
            ranked_by = conversation.row["question"]
        tool = OpenBookSearch(
            conversation=conversation,
            ranked_by=ranked_by,
            # As upstream, the result of a search fills at most half of the window.
            budget=window // 2,
            counter=counter,
            normalizer=self.normalizer,
            record_search=log.record_search,
            wiki=self.source,
            strings=self.strings,
        )
        # A model that has rejected tools once is not asked with tools again.
        if self.search == "tools" or (self.search == "auto" and model.name not in self.refusing):
            try:
                return await self._attempt("tools", tool, log, room)
            # Each provider has its own error for tools that it rejects, so any error is caught.
            # Other errors are raised again below.
            except Exception as error:
                refused = _are_tools_refused(error, conversation)
                if self.search == "tools" or not refused:
                    raise
                self.refusing.add(model.name)
        await self._attempt("text", tool, log, room)

    async def _attempt(self, how: str, tool: OpenBookSearch, log: _SearchLog, room: int) -> None:
        """Have the conversation in which the model searches with "tools" or in "text"."""
        conversation = tool.conversation
        prompt = prompt_for(self.strings, how, conversation.model)
        conversation.set_prompt(prompt.filled(question=conversation.question))
        signed = retrieval_signature(tool.counter.name, self.normalizer, self.wiki)
        signed |= {"search": how, "prompt": prompt.label}
        # Sign now, so that the log has the signature even if the first call fails.
        log.sign(signed)
        turns = await converse(
            conversation, tool, room=room, in_text=how == "text", max_turns=self.max_turns
        )
        if turns == self.max_turns:
            log.sign(signed | {"turns": f"cut after {self.max_turns}"})


def _are_tools_refused(error: Exception, conversation: Conversation) -> bool:
    """Tell whether a conversation failed because the model's provider rejects tools."""
    # If there was a reply, tools were accepted, and the error has another reason.
    roles = [message.role for message in conversation.messages]
    return "tool" in str(error).lower() and "assistant" not in roles


@dataclass
class _SearchLog:
    """What the log has about a question: its searches, and how the model was asked.

    Attributes:
        searches: an entry for each search, in order. This list is also in the question's metadata.
        signed: the fields for the signature.
    """

    conversation: Conversation
    searches: list[Json] = field(default_factory=list)
    signed: dict[str, str] = field(default_factory=dict)

    def record_search(self, entry: Json) -> None:
        """Add the entry of a search."""
        self.searches.append(entry)
        self.note()

    def sign(self, fields: dict[str, str]) -> None:
        """Replace the fields for the signature."""
        self.signed = fields
        self.note()

    def note(self) -> None:
        """Record the pages that were read so far, and the fields for the signature."""
        pages = {"pages": pages_read(self.searches)}
        self.conversation.note_prediction(pages, self.signed, add_answer=True)


def prompt_for(strings: SearchPrompts, search: str, model: LanguageModel | None) -> Prompt:
    """Return the prompt for a way of searching. The authors have another one for gpt-3.5-turbo*."""
    if search == "text":
        return strings.text
    name = ""
    if model is not None:
        # The name may begin with the provider, as in "openai/gpt-4o".
        name = model.name.rpartition("/")[2]
    if name.startswith("gpt-3.5-turbo"):
        return strings.tools_gpt_35
    return strings.tools


@dataclass
class OpenBookSearch:
    """The tool ``search`` for one question.

    Attributes:
        ranked_by: the text by which the fragments of a page are ranked, whatever the model searches
            for. See ``open_book``.
        budget: the maximum number of tokens of a result.
        record_search: called with the entry of each search. ``open_book`` describes these entries.
    """

    conversation: Conversation
    ranked_by: str
    budget: int
    counter: TokenCounter
    normalizer: Normalizer
    record_search: Callable[[Json], None]
    wiki: Wikipedia
    strings: SearchPrompts

    def tool(self) -> Tool:
        """Return the tool for a model that calls tools, as the authors define it."""
        return Tool("search", self.strings.tool, ("query",), self.search)

    async def tool_tokens(self) -> int:
        """Return the number of tokens that kani reserves for the tool, written as TypeScript."""
        shown = f"// {self.strings.tool}\ntype search = (_: {{\nquery: string,\n}}) => any;\n\n"
        return await self.counter.count(shown) + TOOL_MARKUP_TOKENS

    async def search(self, query: str) -> str:
        """Return as many of a page's best fragments as fit, or similar titles if it does not exist."""
        async with self.conversation.at_most(RETRIEVALS_AT_ONCE, "qabench retrieval"):
            page, result = await in_daemon_thread(self._find, query)
        if page is None:
            self.record_search({"title": query, "fragments": 0, "of": 0})
            return str(result)

        def render(n: int) -> str:
            shown = "".join(self.strings.fragment.filled(content=text) for text in result[:n])
            return self.strings.page.filled(title=page.title, fragments=shown)

        n, _ = await how_many_fit(
            result, self.budget - self.counter.message_tokens, self.counter, render
        )
        # A page that did not exist at the dataset's date has one empty fragment.
        n_shown = sum(bool(text.strip()) for text in result[:n])
        self.record_search(
            {"title": page.title, "pageid": page.pageid, "fragments": n_shown, "of": len(result)}
        )
        return render(n)

    def _find(self, title: str) -> tuple[WikiPage, list[str]] | tuple[None, str]:
        """Download a page, and return it with its ranked fragments.

        Returns:
            The page and the fragments. If there is no such page, None and the text that the model
            gets instead.
        """
        try:
            page = self.wiki.lookup(title)
        except PageMissing:
            searched = title.strip()[:QUERY_CHARACTERS]
            similar: list[str] = []
            if searched:
                results = self.wiki.search(searched, SIMILAR_TITLES)
                similar = [result.title for result in results]
            return None, self.strings.similar.filled(titles=self._titles(similar))
        if isinstance(page, list):
            return None, self.strings.ambiguous.filled(titles=self._titles(page))
        try:
            text = self.wiki.content(page)
        except PageMissing:
            # The page did not exist at the dataset's date. Upstream treats it as an empty page.
            text = ""
        ranked = rank(self.ranked_by, [page], lambda _: text, self.normalizer, official=True)
        return page, [fragment.content for fragment in ranked]

    def _titles(self, titles: Sequence[str]) -> str:
        return "\n".join(self.strings.title.filled(title=title) for title in titles)


async def converse(
    conversation: Conversation,
    search: OpenBookSearch,
    room: int,
    in_text: bool,
    max_turns: int,
) -> int:
    """Alternate replies and searches until a reply does not search.

    The answer is the last message with text.

    Args:
        conversation: the conversation about the question.
        search: the tool.
        room: the maximum number of tokens of the messages and the tool's description together.
        in_text: whether the model searches in plain text.
        max_turns: the maximum number of replies that search.

    Returns:
        The number of replies that searched.

    Raises:
        QabenchError: there is no answer within ten minutes, or a message is longer than the window.
    """
    tools: list[Tool] = []
    if not in_text:
        # The authors reserve tokens for the tool's description if the model calls tools. In plain
        # text, the prompt describes the search.
        room -= await search.tool_tokens()
        tools = [search.tool()]
    history = _History(conversation, list(conversation.messages), room, search.counter)
    offered = tools
    errors = turns = 0
    problems: set[str] = set()
    queries: set[str] = set()
    try:
        with anyio.fail_after(SECONDS_PER_QUESTION):
            while turns < max_turns:
                conversation.messages = await history.newest()
                is_question_sent = conversation.messages[0] is history.messages[0]
                if not is_question_sent:
                    problems.add(WITHOUT_QUESTION)
                reply = await conversation.ask_with(conversation.messages, offered)
                history.messages.append(reply.message)
                # kani takes the number of a reply's tokens from the server if it reports one.
                if not in_text and reply.tokens is not None:
                    history.tokens[len(history.messages) - 1] = reply.tokens
                if in_text:
                    results = await _search_in_text(search, reply.message)
                else:
                    results, failed = await _run_calls(conversation, reply.message, tools)
                    errors = errors + 1 if failed else 0
                    if errors == ERRORS_IN_A_ROW:
                        offered = []
                if not results:
                    break
                turns += 1
                history.messages += results
                new_queries = _queries(reply.message, in_text)
                if queries.intersection(new_queries):
                    problems.add(REPEATED_SEARCH)
                queries.update(new_queries)
    except TimeoutError:
        raise QabenchError(
            f"no answer within {SECONDS_PER_QUESTION} seconds, the authors' limit"
        ) from None
    finally:
        conversation.messages = history.messages
    # The first message is the question. All others can be the answer, even the result of a search.
    answers = history.messages[1:]
    if turns == max_turns:
        problems.add(f"stopped after {max_turns} turns with a search")
        # Here, the last message is the result of a search, which is not an answer.
        answers = [message for message in answers if message.role == "assistant"]
    for problem in sorted(problems):
        conversation.note_problem(problem)
    answer = ""
    for message in answers:
        if message.text:
            answer = message.text
    conversation.set_answer(answer)
    return turns


def _queries(reply: Any, in_text: bool) -> list[str]:
    """Return the queries in a reply."""
    if in_text:
        tag = _SEARCH.match(reply.text)
        return [tag[1]] if tag else []
    return [str(call.arguments.get("query")) for call in reply.tool_calls or []]


@dataclass
class _History:
    """All messages of a conversation, and which of them are sent.

    Attributes:
        messages: all messages, oldest first.
        room: the maximum number of tokens of the messages that are sent.
        tokens: the numbers of tokens that are known so far, by the message's position.
    """

    conversation: Conversation
    messages: list[Any]
    room: int
    counter: TokenCounter
    tokens: dict[int, int] = field(default_factory=dict)

    async def newest(self) -> list[Any]:
        """Return the newest messages that fit. Older messages are dropped, even the question.

        A reply and the results of its calls are kept or dropped together. If the results of the
        last reply do not fit, its oldest calls are dropped together with their results. The newest
        call is always kept, because the tokens reserved for the reply leave room for its result.

        For example, after the question Q, reply A made a call with the result a, and then reply B
        made two calls with the results b and c. If the newest messages that fit are

        - ``A a B b c``, these are returned;
        - ``a B b c``, the result is ``B b c``, because ``a`` would be without its call;
        - ``b c``, the result is ``B c``, and only the call of ``c`` is left in ``B``.

        Raises:
            QabenchError: a message is longer than the window. As in kani, messages are looked at
                from the newest to the first one that does not fit. Older ones are not checked.
        """
        first = await self._first_that_fits()
        # A reply and the results of its calls stay together: results cannot be the first message.
        for start in range(first, len(self.messages)):
            if self.messages[start].role != "tool":
                return self.messages[start:]
        # Only results of the last reply fit.
        return await self._last_reply_cut()

    async def _first_that_fits(self) -> int:
        """Return the position of the oldest message that fits together with all newer ones."""
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
        return first

    async def _last_reply_cut(self) -> list[Any]:
        """Return the last reply with its newest results that fit, and only the calls of these.

        The reply counts with all its calls. It is returned with its newest result even if the two
        do not fit together.
        """
        newest = len(self.messages) - 1
        reply_position = newest
        while self.messages[reply_position].role == "tool":
            reply_position -= 1
        reply = self.messages[reply_position]
        first_result = newest
        room = self.room - await self._tokens(reply_position) - await self._tokens(newest)
        while first_result - 1 > reply_position:
            room -= await self._tokens(first_result - 1)
            if room < 0:
                break
            first_result -= 1
        results = self.messages[first_result:]
        ids = {result.tool_call_id for result in results}
        # A solver of the user that ran before may have left results without a reply.
        calls = getattr(reply, "tool_calls", None) or []
        kept_calls = [call for call in calls if call.id in ids]
        return [self.conversation.with_calls(reply, kept_calls), *results]

    async def _tokens(self, position: int) -> int:
        """Count a message's tokens as kani does: its text, and its calls or the name of its tool."""
        if not self.tokens.get(position):
            message = self.messages[position]
            texts = []
            if message.role == "assistant":
                for call in message.tool_calls or []:
                    texts += [call.function, json.dumps(call.arguments)]
            elif message.role == "tool" and message.function:
                texts.append(message.function)
            n_tokens = 0
            for text in texts:
                n_tokens += await self.counter.count(text)
            self.tokens[position] = n_tokens + await self.counter.message(message.text)
        return self.tokens[position]


async def _run_calls(
    conversation: Conversation, reply: Any, tools: Sequence[Tool]
) -> tuple[list[Any], bool]:
    """Return the results of a reply's calls, and whether one of them cannot be run.

    For a call that cannot be run, the model gets the same message as from kani, the authors' chat
    library.
    """
    results: list[Any] = []
    failed = False
    for call in reply.tool_calls or []:
        if problem := _problem(call):
            failed = True
            name = call.function if call.function == "search" else None
            results.append(conversation.tool_message(problem, call, name))
        else:
            results += await conversation.result_of(call, reply, tools)
    return results, failed


def _search_arguments(query: str) -> None:
    """Do nothing. pydantic validates arguments against this signature, which is the authors'."""


_search_arguments.__qualname__ = "search"
# pydantic's messages contain a URL with pydantic's version. That version is replaced by the one
# with which the authors' chat library was used.
_DOCS, _DOCS_OF_AUTHORS = re.compile(r"(?<=//errors\.pydantic\.dev/)[\d.]+(?=/)"), "2.6"


def _problem(call: Call) -> str | None:
    """Return kani's message to the model about a call that cannot be run, or None if it can."""
    if call.function != "search":
        return f"The function {call.function!r} is not defined. Only use the provided functions."
    if call.parse_error:
        # Inspect's message repeats the arguments before the parser's error. kani's message is only
        # the error.
        return call.parse_error.rpartition("Error details: ")[2]
    try:
        validate_call(_search_arguments)(**call.arguments)
    except ValidationError as error:
        return _DOCS.sub(_DOCS_OF_AUTHORS, str(error))
    return None


async def _search_in_text(search: OpenBookSearch, reply: Any) -> list[Any]:
    """Cut a reply after the search with which it begins, and return the search's result.

    This changes the message itself, which is in the history already, so the model and the log also
    get the cut reply. Returns [] if the reply does not begin with a search.
    """
    # The authors' engines strip replies.
    reply.text = reply.text.strip()
    tag = _SEARCH.match(reply.text)
    if tag is None:
        return []
    reply.text = reply.text[: tag.end()]
    # For models without tools, the authors' engine turns the result into a user message.
    return [search.conversation.user_message(await search.search(tag[1]))]
