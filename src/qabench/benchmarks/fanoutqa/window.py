"""A model's context window: its length, token counts, and the number of passages that fit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import accumulate

from qabench.benchmarks.conversation import LanguageModel, TokenCounter
from qabench.benchmarks.fanoutqa.official import AS_KANI
from qabench.benchmarks.fanoutqa.prompts import ANSWER_TOKENS
from qabench.benchmarks.plan import planned_model
from qabench.errors import InputError
from qabench.io.workers import run_sync

# Tokens reserved for the chat template: markers, and the system prompt that some templates add.
TEMPLATE_TOKENS = 64
# The tokens that kani 0.7.2 adds to every message to an OpenAI model, for the chat template.
KANI_MESSAGE_TOKENS = 7


def context_window(model: LanguageModel, context_length: int | None) -> int:
    """Return the length of a model's context window in tokens, for prompt and reply together.

    ``context_length`` is the length that the user gives. If it is None, the length that the harness
    knows is returned. Raises InputError if that is unknown.
    """
    if context_length is not None and context_length < 1:
        raise InputError(
            f"context_length is {context_length}; it must be at least 1 (a number of tokens)"
        )
    length = context_length or model.context_length
    if not length:
        raise InputError(
            f"the context window of {model.name} is not known: set it in tokens, such as -T context_length=8192, "
            "or register the model with inspect_ai.model.set_model_info"
        )
    return length


def check_window(context_length: int | None, tokenizer: str | None = None) -> None:
    """Check before a run starts that its prompts can be cut to fit the model's context window.

    Nothing is checked if the model is not known yet.

    Raises:
        InputError: the window is unknown or below 1, or the tokenizer that the user named cannot be
            read.
    """
    model = planned_model()
    if model is None:
        return
    context_window(model, context_length)
    if tokenizer:
        run_sync(model.token_counter(tokenizer))


def prompt_tokens(model: LanguageModel, context_length: int | None) -> int:
    """Return the maximum number of tokens of a prompt that leaves room for the reply.

    ``ANSWER_TOKENS`` are reserved for the reply, or the run's ``--max-tokens`` if that is larger.
    """
    window = context_window(model, context_length)
    reserve = max(ANSWER_TOKENS, model.reply_tokens or 0)
    # The prompt is counted without the markup of the chat template.
    room = window - reserve - TEMPLATE_TOKENS
    if context_length is None and model.input_tokens:
        room = min(room, model.input_tokens - TEMPLATE_TOKENS)
    if room < 1:
        raise InputError(
            f"a window of {window} tokens is too short: {reserve} of them are reserved for the answer and "
            f"{TEMPLATE_TOKENS} for the chat template"
        )
    return room


async def how_many_fit(
    texts: Sequence[str], budget: int, counter: TokenCounter, render: Callable[[int], str]
) -> tuple[int, int]:
    """Return how many texts, from the first, fit into a prompt, and the tokens of that prompt.

    Each step counts the tokens of a whole prompt, so the result is exact for any tokenizer. Few
    steps are needed, because each estimates the number of texts from the tokens per character in
    the previous step.

    ``budget`` is the maximum number of tokens. ``render`` returns the prompt with the first n
    texts, and a longer prompt must have more tokens. If even the prompt without texts exceeds the
    budget, the result is 0 and the tokens of that prompt.
    """
    # The cumulative lengths of the texts, from which the number of texts that fit is estimated.
    ends = list(accumulate(map(len, texts), initial=0))
    # The search narrows these bounds: ``fits`` texts fit, and ``too_many`` texts do not.
    fits, too_many = 0, len(texts) + 1
    # The first step assumes four characters per token.
    tokens_a_character = 0.25
    tokens_of_fitting = await counter.count(render(0))
    while tokens_of_fitting <= budget and too_many - fits > 1:
        characters = ends[fits] + (budget - tokens_of_fitting) / tokens_a_character
        # Try at least one text more than fits, so that each step gets closer.
        guess = min(max(bisect_right(ends, characters) - 1, fits + 1), too_many - 1)
        prompt = render(guess)
        tokens = await counter.count(prompt)
        if tokens <= budget:
            fits, tokens_of_fitting = guess, tokens
        else:
            too_many = guess
        # The minimum avoids a division by zero if a tokenizer reports no tokens.
        tokens_a_character = max(tokens / max(len(prompt), 1), 0.01)
    return fits, tokens_of_fitting


def counters(tokenizer: str | None) -> Callable[[LanguageModel], Awaitable[TokenCounter]]:
    """Return ``counter_of`` with a cache by model."""
    by_model: dict[str, TokenCounter] = {}

    async def cached(model: LanguageModel) -> TokenCounter:
        if model.name not in by_model:
            by_model[model.name] = await counter_of(model, tokenizer)
        return by_model[model.name]

    return cached


async def counter_of(model: LanguageModel, tokenizer: str | None) -> TokenCounter:
    """Return the best available way to count a model's tokens."""
    counter = await model.token_counter(tokenizer)
    if not counter.of_openai:
        return counter
    # The authors' chat library, kani, adds tokens for the template of each message. Without these,
    # 3 of 80 evidence-provided prompts get another number of documents.
    return replace(counter, name=counter.name + AS_KANI, message_tokens=KANI_MESSAGE_TOKENS)
