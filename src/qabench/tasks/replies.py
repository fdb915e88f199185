"""Calls of Inspect AI's models, with messages and replies as the evaluators of ``qabench.llm`` have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, GenerateConfig, Model, ModelOutput

from qabench.llm.caller import Answered
from qabench.llm.exchange import SURROGATE
from qabench.tasks.common import timeouts_fail


def chat(messages: Iterable[tuple[str, str]]) -> list[ChatMessage]:
    """(role, text) pairs of a prompt as a conversation; lone surrogates, which no request can hold, are replaced."""
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return [kinds[role](content=SURROGATE.sub("\ufffd", text)) for role, text in messages]


async def ask_model(model: Model, messages: list[ChatMessage], **options: Any) -> ModelOutput:
    """The model's reply; ``options`` are those of generation for this call alone."""
    with timeouts_fail():
        return await model.generate(messages, config=GenerateConfig(**options))


def answered(output: ModelOutput) -> Answered:
    """What became of a call: a refusal or an empty reply is a reason, too."""
    if output.empty:
        return Answered(reason=output.error or "no reply")
    if output.stop_reason == "content_filter":
        return Answered(reason=f"refused: {output.error or output.completion or 'content filter'!r:.120}")
    cut_off = output.stop_reason in ("max_tokens", "model_length")
    if not output.completion.strip():
        return Answered(reason="the reply is empty" + " (it was cut off)" * cut_off, cut_off=cut_off)
    return Answered(output.completion, cut_off=cut_off)


def asked_with(names: Iterable[str]) -> dict[str, Any]:
    """These options of generation as the sample's last call had them: a user's go before the task's own.

    Empty where the sample has made no call.
    """
    calls = [event for event in transcript().events if isinstance(event, ModelEvent)]
    return {name: getattr(calls[-1].config, name) for name in names} if calls else {}
