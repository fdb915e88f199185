"""Counts the calls and tokens of a run before it starts.

The protocols are executed without a harness, with a model that only counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from qabench.benchmarks.conversation import ModelReply, Tool
from qabench.benchmarks.plan import ProtocolStep, TaskPlan
from qabench.data.rows import Json, Row
from qabench.errors import QabenchError
from qabench.evaluation.scoring import Messages, Question
from qabench.io.redaction import printable
from qabench.io.workers import run_sync
from qabench.llm.exchange import Answered, ChatRequest
from qabench.llm.token_estimates import prompt_tokens, reply_tokens

# The maximum number of questions whose passages are searched for at the same time.
CONCURRENCY = 8
# The number of characters of a reason that are shown.
MAX_REASON = 200


class NeedsHarness(Exception):
    """A protocol asks for something that only a model of the harness has, such as its tokenizer."""


@dataclass
class Counts:
    """The calls of a run, and the estimated tokens of prompts and replies.

    Attributes:
        calls: the number of calls.
        prompt_tokens: the tokens of all prompts.
        completion_tokens: the tokens of all replies.
        failures: the number of questions whose calls could not all be counted.
        failure: the reason for the first failure.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: int = 0
    failure: str = ""

    def add(self, texts: Sequence[tuple[str, str]], max_tokens: int | None) -> int:
        """Count a call with these messages, and return the tokens of its prompt."""
        request = ChatRequest("", tuple(texts), {"max_tokens": max_tokens})
        prompt = prompt_tokens(request)
        self.calls += 1
        self.prompt_tokens += prompt
        self.completion_tokens += reply_tokens(request)
        return prompt

    def add_failure(self, error: Exception) -> None:
        """Count a question whose planning failed."""
        self.failures += 1
        if not self.failure:
            reason = repr(error)
            if isinstance(error, QabenchError):
                # Messages of other packages may be incomprehensible without the type of the
                # exception.
                reason = str(error)
            self.failure = printable(reason, MAX_REASON)

    def warning(self) -> str | None:
        """Return a sentence about the questions whose planning failed, or None."""
        if not self.failures:
            return None
        return (
            f"questions that cannot be planned, whose calls are not counted: {self.failures:,} "
            f"({self.failure or 'their code raised an exception'})"
        )


@dataclass
class _Message:
    """A message with the attributes that protocols read from the harness's messages."""

    role: str
    text: str
    tool_calls: None = None


class NamedModel:
    """A model that is only known by name. Everything else about it raises ``NeedsHarness``."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def context_length(self) -> int | None:
        """The length of the context window of the model with this name, if Inspect knows it."""
        from qabench.runs.models import known_window

        return known_window(self.name)

    def __getattr__(self, name: str) -> Any:
        raise NeedsHarness


@dataclass
class CountingConversation:
    """A conversation whose model only counts (see ``qabench.benchmarks.conversation``)."""

    row: Row
    question: str
    messages: list[Any]
    model: Any
    counts: Counts
    reply: str
    max_tokens: int | None
    metadata: MutableMapping[str, Any] = field(default_factory=dict)

    def note_prediction(self, *_: Any, **__: Any) -> None:
        """Record nothing: nothing is scored."""

    def note_problem(self, problem: str) -> None:
        """Record nothing."""

    def at_most(self, count: int, what: str) -> AbstractAsyncContextManager[Any]:
        """Return a context that no other call shares, so that nothing has to wait."""
        return asyncio.Semaphore(count)

    async def ask(self) -> None:
        """Count a call with the messages so far."""
        self._count(self.messages)

    async def ask_separately(
        self, messages: Messages, samples: int = 1, **options: Any
    ) -> list[Answered]:
        """Count calls with these messages alone."""
        sent = [_Message(role, text) for role, text in messages]
        history = [*self.messages, *sent]
        for _ in range(samples):
            self._count(sent, **options)
        # As in a run, the conversation goes on with one of the replies.
        self.messages = [*history, _Message("assistant", self.reply)]
        return list(repeat(Answered(self.reply), samples))

    def _count(self, messages: Sequence[_Message], max_tokens: int | None = None, **_: Any) -> None:
        texts = [(message.role, message.text) for message in messages]
        if max_tokens is None:
            max_tokens = self.max_tokens
        self.counts.add(texts, max_tokens)
        self.messages = [*self.messages, _Message("assistant", self.reply)]

    async def ask_with(self, messages: Sequence[Any], tools: Sequence[Tool]) -> ModelReply:
        """Raise NeedsHarness: tools are in the harness's form."""
        raise NeedsHarness

    result_of = ask_with

    def user_message(self, text: str) -> Any:
        """Return a user message."""
        return _Message("user", text)

    def tool_message(self, *_: Any) -> Any:
        """Raise NeedsHarness."""
        raise NeedsHarness

    with_calls = tool_message

    def set_prompt(self, text: str) -> None:
        """Replace the text of the user's last message."""
        for message in reversed(self.messages):
            if message.role == "user":
                message.text = text
                return

    def set_answer(self, text: str) -> None:
        """Replace the text of the last reply."""
        self.messages[-1].text = text

    def answer(self) -> str | None:
        """Return None. Nothing depends on the answer, and reading it from a reply takes seconds."""
        return None

    def answer_unasked(self, messages: Messages, text: str) -> None:
        """Answer with this text without a call."""
        self.messages = [_Message("assistant", text)]

    def generation(self) -> Json:
        """Return no options: nothing is signed."""
        return {}


def count_calls(
    plan: TaskPlan,
    reply: str,
    model: NamedModel,
    *,
    limit: int | tuple[int, int] | None = None,
    epochs: int | None = None,
    max_tokens: int | None = None,
) -> Counts:
    """Count the calls of a plan.

    Args:
        plan: a plan whose steps are all protocols.
        reply: what the model is assumed to reply.
        model: the model that is asked.
        limit: only the first questions, or a range.
        epochs: how often each question is asked.
        max_tokens: the user's limit for a reply. None for the plan's limit.

    Raises:
        NeedsHarness: a step cannot be carried out without the harness.
    """
    for step in plan.steps:
        # Other steps are solvers of the harness.
        if not isinstance(step, ProtocolStep):
            raise NeedsHarness
    # slice(N) are the first N questions, and slice(A, B) is a range.
    bounds = limit if isinstance(limit, tuple) else (limit,)
    selected = plan.selected[slice(*bounds)]
    counts = Counts()
    if max_tokens is None:
        max_tokens = plan.asking.parameters.get("max_tokens")
    protocols = [step.protocol(**step.arguments) for step in plan.steps]

    async def count(question: Question, limit_of_questions: asyncio.Semaphore) -> None:
        messages: Any = (("user", question.text),)
        if plan.prompted:
            messages = plan.asking.messages(question.row)
        first = [_Message(role, text) for role, text in messages]
        conversation = CountingConversation(
            question.row, question.text, first, model, counts, reply, max_tokens
        )
        async with limit_of_questions:
            try:
                for carry_out in protocols:
                    await carry_out(conversation)
            except NeedsHarness:
                raise
            except Exception as error:
                # A question that fails, for example because its page is missing, does not end a
                # run. A protocol from outside may raise anything.
                counts.add_failure(error)

    async def count_all() -> None:
        limit_of_questions = asyncio.Semaphore(CONCURRENCY)
        await asyncio.gather(*(count(question, limit_of_questions) for question in selected))

    run_sync(count_all())
    # Every epoch sends the same prompts, so they are counted once.
    repeats = epochs or 1
    return Counts(
        counts.calls * repeats,
        counts.prompt_tokens * repeats,
        counts.completion_tokens * repeats,
        counts.failures,
        counts.failure,
    )
