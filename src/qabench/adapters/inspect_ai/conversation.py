"""The conversation of one Inspect AI sample, as the benchmarks' protocols see it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
    execute_tools,
    get_model,
)
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolDef, ToolParam, ToolParams
from inspect_ai.util import collect, concurrency

from qabench.adapters.inspect_ai.language_model import InspectModel
from qabench.adapters.inspect_ai.replies import (
    answer_of,
    answered,
    ask_model,
    asked_with,
    chat,
    count_replies,
    generate_reply,
)
from qabench.benchmarks.conversation import Call, ModelReply, Tool
from qabench.data.rows import Json, Row
from qabench.evaluation.scoring import Messages
from qabench.llm.exchange import Answered

# The key in a sample's store under which ``note_prediction`` records the prediction.
STORE = "qabench"
# The key in a sample's metadata for the fields of the prediction that the task knows in advance.
# They are scored if no protocol calls ``note_prediction``.
PREDICTED = "prediction"


class InspectConversation:
    """The conversation of a sample.

    ``qabench.benchmarks.conversation.Conversation`` describes the attributes and methods. The
    docstrings here say what they are for Inspect AI.
    """

    def __init__(self, state: TaskState) -> None:
        self._state = state
        self._model = get_model()
        self.model = InspectModel(self._model)

    @property
    def messages(self) -> list[Any]:
        """The sample's messages."""
        return self._state.messages

    @messages.setter
    def messages(self, messages: list[Any]) -> None:
        self._state.messages = messages

    @property
    def row(self) -> Row:
        """The row of the dataset."""
        row: Row = self._state.metadata["row"]
        return row

    @property
    def question(self) -> str:
        """The question's text."""
        return str(self._state.metadata["question"])

    @property
    def metadata(self) -> MutableMapping[str, Any]:
        """The sample's metadata."""
        return self._state.metadata

    def note_prediction(
        self,
        fields: Mapping[str, Any],
        signed: Mapping[str, object],
        detail: Mapping[str, Any] | None = None,
        add_answer: bool = False,
    ) -> None:
        """Record the sample's prediction for the scorer."""
        # Copy the dicts, because a protocol may change them later and then note them again.
        values: Json = {
            "prediction": dict(fields),
            "signed": dict(signed),
            "detail": dict(detail or {}),
            "add_answer": add_answer,
        }
        self._state.store.set(STORE, values)

    def note_problem(self, problem: str) -> None:
        """Add a problem to the sample's metadata["problems"]."""
        self._state.metadata.setdefault("problems", []).append(problem)

    def at_most(self, count: int, what: str) -> AbstractAsyncContextManager[Any]:
        """Return a context that at most ``count`` samples can be in at the same time."""
        return concurrency(what, count)

    async def ask(self) -> None:
        """Ask the model with the messages so far, and add the reply."""
        state = self._state
        state.output = await generate_reply(
            self._model, state, None, state.messages, state.tools, state.tool_choice
        )
        state.messages.append(state.output.message)

    async def ask_separately(
        self, messages: Messages, samples: int = 1, **options: Any
    ) -> list[Answered]:
        """Ask with only these messages. The sample's output becomes the first reply with text."""
        state, model = self._state, self._model
        sent = chat(messages)
        state.messages += sent
        if samples == 1:
            outputs: list[ModelOutput] = [await ask_model(model, sent, state, **options)]
        else:
            calls = [ask_model(model, sent, state, sample=number) for number in range(samples)]
            outputs = await collect(*calls)
        replies = [answered(output) for output in outputs]
        # A log shows one output only. If no reply has a text, the first one at least shows what
        # went wrong.
        state.output = outputs[0]
        for output, reply in zip(outputs, replies, strict=True):
            if reply.text is not None:
                state.output = output
                break
        # A failed call has no choices.
        state.messages += [choice.message for choice in state.output.choices[:1]]
        return replies

    async def ask_with(self, messages: Sequence[Any], tools: Sequence[Tool]) -> ModelReply:
        """Ask with these messages and tools."""
        offered = [_tool_of_inspect(tool) for tool in tools]
        output = await ask_model(self._model, list(messages), self._state, offered)
        self._state.output = output
        n_tokens = output.usage.output_tokens if output.usage else None
        return ModelReply(output.message, n_tokens)

    async def result_of(self, call: Call, reply: Any, tools: Sequence[Tool]) -> list[Any]:
        """Run one tool call of a reply, without Inspect's limit of 16 KiB for its result."""
        offered = [_tool_of_inspect(tool) for tool in tools]
        messages = [self.with_calls(reply, [call])]
        executed = await execute_tools(messages, offered, max_output=0)
        return executed.messages

    def user_message(self, text: str) -> ChatMessageUser:
        """Return a user message with this text."""
        return ChatMessageUser(content=text)

    def tool_message(self, text: str, call: Call, name: str | None) -> ChatMessageTool:
        """Return a message with the result of a call of the tool ``name``."""
        return ChatMessageTool(content=text, tool_call_id=call.id, function=name)

    def with_calls(self, reply: Any, calls: Sequence[Call]) -> Any:
        """Return a reply with only these calls."""
        return reply.model_copy(update={"tool_calls": list(calls)})

    def set_prompt(self, text: str) -> None:
        """Replace the text of the user's last message."""
        self._state.user_prompt.text = text

    def set_answer(self, text: str) -> None:
        """Replace the text of the sample's output."""
        self._state.output.completion = text

    def answer(self) -> str | None:
        """Return the text of the last reply, or None. See ``answer_of``."""
        return answer_of(self._state)

    def answer_unasked(self, messages: Messages, text: str) -> None:
        """Answer with this text without asking the model."""
        state = self._state
        state.messages = [*chat(messages), ChatMessageAssistant(content=text)]
        state.output = ModelOutput.from_content(str(state.model), text)
        state.metadata["unasked"] = True
        count_replies(state)

    def generation(self) -> Json:
        """Return the generation options of the last call. See ``asked_with``."""
        return asked_with()


def _tool_of_inspect(tool: Tool) -> ToolDef:
    """Return a tool for Inspect. The output limit 0 means that results are not truncated."""
    properties = {name: ToolParam(type="string") for name in tool.parameters}
    parameters = ToolParams(
        properties=properties, required=list(tool.parameters), additionalProperties=None
    )
    return ToolDef(tool.function, tool.name, tool.description, parameters, max_output=0)
