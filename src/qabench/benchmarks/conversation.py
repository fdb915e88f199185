"""The conversation with a model about one question, as the protocols of benchmarks see it.

A protocol is what a benchmark does between question and answer: it retrieves, asks, reads the reply
and asks again. Protocols are written against the classes in this module. A harness implements these
classes and logs the conversation (see ``qabench.adapters.inspect_ai``), so a benchmark does not
import a harness.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from qabench.data.rows import Json, Row
from qabench.evaluation.scoring import Messages
from qabench.llm.exchange import Answered


@dataclass(frozen=True)
class TokenCounter:
    """A way to count the tokens of a text.

    Attributes:
        name: the name for signatures.
        count: returns the number of tokens of a text.
        of_openai: whether this is the tokenizer of one of OpenAI's own models.
        message_tokens: the number of tokens of a message in addition to its text.
    """

    name: str
    count: Callable[[str], Awaitable[int]]
    of_openai: bool = False
    message_tokens: int = 0

    async def message(self, text: str) -> int:
        """Return the number of tokens of a message with this text."""
        if not text:
            return self.message_tokens
        return self.message_tokens + await self.count(text)


class LanguageModel(Protocol):
    """The model that is asked."""

    @property
    def name(self) -> str:
        """Return the name with the provider, such as "openai/gpt-4o"."""

    @property
    def context_length(self) -> int | None:
        """Return the limit of tokens of prompt and reply together, or None if it is unknown."""

    @property
    def input_tokens(self) -> int | None:
        """Return the limit of tokens of a prompt, or None if only ``context_length`` limits them."""

    @property
    def reply_tokens(self) -> int | None:
        """Return the limit of tokens per reply that the user has set, or None."""

    async def token_counter(self, tokenizer: str | None) -> TokenCounter:
        """Return the best available way to count the model's tokens.

        Raises:
            InputError: the tokenizer that the user named cannot be read.
        """


@dataclass(frozen=True)
class Tool:
    """A function that the model can call.

    Attributes:
        name: the name that the model calls.
        description: the description that the model reads.
        parameters: the names of the parameters. All are required and strings.
        function: called with the parameters by name, returns the text of the result.
    """

    name: str
    description: str
    parameters: Sequence[str]
    function: Callable[..., Awaitable[str]]


class Call(Protocol):
    """A call of a tool in a reply."""

    id: str
    function: str
    arguments: dict[str, Any]
    parse_error: str | None


@dataclass(frozen=True)
class ModelReply:
    """A reply of the model: its message, and the number of its tokens if the server counts them."""

    message: Any
    tokens: int | None


class Conversation(Protocol):
    """The conversation about one question.

    Messages are objects of the harness, which can have more attributes than these. All messages
    have ``role`` ("system", "user", "assistant" or "tool") and ``text``. An assistant message has
    ``tool_calls``, a list of ``Call`` or None. A tool message has ``tool_call_id`` and
    ``function``, the tool's name.

    Attributes:
        row: the row of the dataset.
        question: the question's text.
        metadata: what is logged about the question.
        messages: the messages so far, which the log shows. At first, the messages of ``Asking``.
        model: the model that is asked.
    """

    messages: list[Any]

    @property
    def row(self) -> Row: ...

    @property
    def question(self) -> str: ...

    @property
    def metadata(self) -> MutableMapping[str, Any]: ...

    @property
    def model(self) -> LanguageModel: ...

    def note_prediction(
        self,
        fields: Mapping[str, Any],
        signed: Mapping[str, object],
        detail: Mapping[str, Any] | None = None,
        add_answer: bool = False,
    ) -> None:
        """Record the prediction for the scorer, and how the model was asked.

        The fields are those that a file of predictions would have. A protocol also calls this
        method before it first calls the model, so that there is a signature if that call fails.
        ``detail`` is added to the details of the scoring (see ``Record.detail``), such as the
        passages that the model was given. With ``add_answer``, the model's answer becomes the field
        ``answer``, and the generation options of the last call are signed.
        """

    def note_problem(self, problem: str) -> None:
        """Record a problem. The question does not fail."""

    def at_most(self, count: int, what: str) -> AbstractAsyncContextManager[Any]:
        """Return an async context manager that at most ``count`` questions can enter at once.

        The limit belongs to ``what``, such as "qabench retrieval": all questions that pass the same
        name share it.
        """

    async def ask(self) -> None:
        """Ask with the messages so far, and add the reply."""

    async def ask_separately(
        self, messages: Messages, samples: int = 1, **options: Any
    ) -> list[Answered]:
        """Ask with these messages alone. Return the replies, or why they are missing.

        The messages and the first reply with a text are added to the conversation for the log.
        Generation options apply to this call only. They cannot be combined with several
        ``samples``.
        """

    async def ask_with(self, messages: Sequence[Any], tools: Sequence[Tool]) -> ModelReply:
        """Ask with these messages and tools. The reply is not added to the conversation."""

    async def result_of(self, call: Call, reply: Any, tools: Sequence[Tool]) -> list[Any]:
        """Run one call of a reply. Return the messages with the result, which is never truncated."""

    def user_message(self, text: str) -> Any:
        """Return a user message with this text."""

    def tool_message(self, text: str, call: Call, name: str | None) -> Any:
        """Return a tool message with the result of a call of the tool ``name``."""

    def with_calls(self, reply: Any, calls: Sequence[Call]) -> Any:
        """Return a reply with only these calls."""

    def set_prompt(self, text: str) -> None:
        """Replace the text of the user's last message."""

    def set_answer(self, text: str) -> None:
        """Replace the text of the last reply, which is the answer."""

    def answer(self) -> str | None:
        """Return the text of the last reply, or None if the conversation has no answer.

        There is no answer if the model was not asked, if it refused or called a tool, or if the
        prompt was too long. An empty reply is an answer.
        """

    def answer_unasked(self, messages: Messages, text: str) -> None:
        """Set the answer without asking the model, as if it had replied to the messages."""

    def generation(self) -> Json:
        """Return the options of the last call that affect its reply, for signatures."""


CarryOut = Callable[[Conversation], Awaitable[None]]
"""A protocol: a function that carries out the conversation about one question."""


async def ask_once(conversation: Conversation) -> None:
    """Ask once, with the messages of ``Asking``."""
    await conversation.ask()
