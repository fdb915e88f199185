"""Calls of Inspect AI's models, with the types for messages and replies of ``qabench.llm``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolDef

from qabench.llm.client import Answered
from qabench.llm.exchange import SURROGATE
from qabench.tasks.common import timeouts_fail
from qabench.tasks.reply_cache import cache_argument, count_replies


def chat(messages: Iterable[tuple[str, str]]) -> list[ChatMessage]:
    """Return the (role, text) pairs of a prompt as messages, without lone surrogates, which UTF-8 cannot encode."""
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return [kinds[role](content=SURROGATE.sub("\ufffd", text)) for role, text in messages]


async def ask_model(
    model: Model,
    messages: list[ChatMessage],
    state: TaskState | None = None,
    tools: Sequence[ToolDef] = (),
    sample: int | None = None,
    **options: Any,
) -> ModelOutput:
    """Return the model's reply, from the cache of the run if it is there.

    Args:
        model: the model.
        messages: the conversation.
        state: the sample, in which the reply is counted.
        tools: the tools that the model may call.
        sample: the number of the reply, if the same messages are sent several times.
        **options: generation options for this call only.
    """
    with timeouts_fail():
        output = await model.generate(
            messages, tools, config=GenerateConfig(**options), **cache_argument(model, sample)
        )
    if state is not None:
        count_replies(state)
    return output


async def continue_conversation(state: TaskState) -> TaskState:
    """Append the model's reply to the conversation of a sample, without calling the tools that the reply names."""
    model = get_model()
    with timeouts_fail():
        state.output = await model.generate(state.messages, state.tools, state.tool_choice, **cache_argument(model))
    count_replies(state)
    state.messages.append(state.output.message)
    return state


@solver
def ask() -> Solver:
    """Ask the model once."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await continue_conversation(state)

    return solve


def answered(output: ModelOutput) -> Answered:
    """Return the text of a reply, or the reason why it is missing. Refusals and empty replies count as missing."""
    if output.empty:
        return Answered(reason=output.error or "no reply")
    if output.stop_reason == "content_filter":
        return Answered(reason=f"refused: {output.error or output.completion or 'content filter'!r:.120}")
    cut_off = output.stop_reason in ("max_tokens", "model_length")
    if not output.completion.strip():
        return Answered(reason="the reply is empty" + " (it was cut off)" * cut_off, cut_off=cut_off)
    return Answered(output.completion, cut_off=cut_off)


# Options of generation that do not affect a reply, or only by chance (the seed).
WITHOUT_EFFECT = {
    "max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections",
    "seed", "logprobs", "top_logprobs", "prompt_logprobs", "cache_prompt", "cache", "batch", "max_tool_output",
    "parallel_tool_calls", "internal_tools", "fail_on_refusal", "reasoning_history", "reasoning_summary",
    "extra_headers",
}  # fmt: skip


def asked_with(*, with_seed: bool = False) -> dict[str, Any]:
    """Return the generation options of the sample's last call that affect its reply, for signatures.

    A user's options override the task's. Empty if the sample has made no call.

    Args:
        with_seed: whether the seed is returned as well, for replies that are sampled several times.
    """
    calls = [event for event in transcript().events if isinstance(event, ModelEvent)]
    options = calls[-1].config.model_dump(exclude_none=True) if calls else {}
    return {
        name: value for name, value in options.items() if name not in WITHOUT_EFFECT or (with_seed and name == "seed")
    }
