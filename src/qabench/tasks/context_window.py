"""A model's context window: its length, and the number of passages that fit into it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from inspect_ai.model import Model, get_model_info

# Two objects for which Inspect has no public names.
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.model._model import active_model

from qabench.errors import InputError
from qabench.tasks.token_counting import TokenCounter

TEMPLATE_TOKENS = 64
"""Tokens reserved for the chat template: its markers, and the system prompt that some templates add."""


def context_window(model: Model, context_length: int | None) -> int:
    """The length of a model's context window in tokens, for prompt and reply together.

    Args:
        model: the model.
        context_length: the length given by the user; None means the one that Inspect knows.

    Raises:
        InputError: the length is unknown, or not above 0.
    """
    info = get_model_info(model) if context_length is None else None
    length = context_length or (info.context_length if info else None)
    if context_length is not None and context_length < 1:
        raise InputError(f"context_length is {context_length}; it must be at least 1 (a number of tokens)")
    if not length:
        raise InputError(
            f"the context window of {model} is not known: set it in tokens, such as --context-length 8192 in "
            "`qabench run` or -T context_length=8192, or register the model with inspect_ai.model.set_model_info"
        )
    return length


def check_window(context_length: int | None) -> None:
    """Fails before the run if the context window of its model is unknown.

    If no model is known when the task is created, the check passes, and each sample fails with the same error later.
    """
    if (model := active_model()) is not None:
        context_window(model, context_length)


def prompt_tokens(model: Model, context_length: int | None, answer_tokens: int) -> int:
    """The maximum number of tokens of a prompt that leaves room for the reply.

    Args:
        model: the model.
        context_length: see ``context_window``.
        answer_tokens: tokens reserved for the reply; the run's ``--max-tokens`` is used if it is larger.

    Raises:
        InputError: the window is unknown, or too short for an answer.
    """
    window = context_window(model, context_length)
    reserve = max(answer_tokens, active_generate_config().max_tokens or 0)
    room = window - reserve - TEMPLATE_TOKENS
    info = get_model_info(model) if context_length is None else None
    if info and info.input_tokens:
        room = min(room, info.input_tokens - TEMPLATE_TOKENS)
    if room < 1:
        raise InputError(
            f"a window of {window} tokens is too short: {reserve} of them are reserved for the answer and "
            f"{TEMPLATE_TOKENS} for the chat template"
        )
    return room


async def how_many_fit(
    texts: Sequence[str], budget: int, counter: TokenCounter, render: Callable[[int], str]
) -> tuple[int, int]:
    """The number of texts, from the first, that fit into a prompt, and the tokens of that prompt.

    Each step counts the tokens of a whole prompt, so the result is exact for any tokenizer. Few steps are needed: each
    one estimates the position from the tokens per character of the last one.

    Args:
        texts: the texts, in order.
        budget: the maximum number of tokens of the prompt.
        render: returns the prompt with the first n texts; a longer prompt must have more tokens.

    Returns:
        (0, tokens of the prompt without texts) even if that exceeds the budget.
    """
    ends = list(accumulate((len(text) for text in texts), initial=0))
    fits, too_many, tokens_a_character = 0, len(texts) + 1, 0.25
    tokens = tokens_of_fitting = await counter(render(0))
    while tokens_of_fitting <= budget and too_many - fits > 1:
        characters = ends[fits] + (budget - tokens_of_fitting) / tokens_a_character
        guess = min(max(bisect_right(ends, characters) - 1, fits + 1), too_many - 1)
        tokens = await counter(render(guess))
        if tokens <= budget:
            fits, tokens_of_fitting = guess, tokens
        else:
            too_many = guess
        tokens_a_character = max(tokens / max(len(render(guess)), 1), 0.01)
    return fits, tokens_of_fitting
