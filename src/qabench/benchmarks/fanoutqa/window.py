"""A model's context window: its length, its token counts, and the number of passages that fit into it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import anyio
from inspect_ai.model import Model, ModelAPI, get_model_info

# Two objects for which Inspect has no public names.
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.model._model import active_model

from qabench.benchmarks.fanoutqa.official import AS_KANI
from qabench.benchmarks.fanoutqa.prompts import ANSWER_TOKENS
from qabench.errors import InputError
from qabench.io.environment import offline_variable

TEMPLATE_TOKENS = 64
"""Tokens reserved for the chat template: its markers, and the system prompt that some templates add."""
_PIECE = re.compile(r"[A-Za-z]+|\n+|[^A-Za-z\s]")
_LETTERS_A_TOKEN = 5
ESTIMATE = f"an estimate: {_LETTERS_A_TOKEN} letters, or 1 other character, per token"
KANI_MESSAGE_TOKENS = 7
"""The tokens that kani 0.7.2 adds to every message to an OpenAI model, for the chat template."""


def context_window(model: Model, context_length: int | None) -> int:
    """Return the length of a model's context window in tokens, for prompt and reply together.

    ``context_length`` is the user's. None means the one that Inspect knows. Raises InputError if it
    is unknown.
    """
    if context_length is not None and context_length < 1:
        raise InputError(
            f"context_length is {context_length}; it must be at least 1 (a number of tokens)"
        )
    info = get_model_info(model)
    length = context_length or (info and info.context_length)
    if not length:
        raise InputError(
            f"the context window of {model} is not known: set it in tokens, such as -T context_length=8192, "
            "or register the model with inspect_ai.model.set_model_info"
        )
    return length


def check_window(context_length: int | None) -> None:
    """Raise InputError before the run if the context window of its model is unknown.

    Without a model, pass.
    """
    if (model := active_model()) is not None:
        context_window(model, context_length)


def prompt_tokens(model: Model, context_length: int | None) -> int:
    """Return the maximum number of tokens of a prompt that leaves room for the reply.

    ``ANSWER_TOKENS`` are reserved for the reply, or the run's ``--max-tokens`` if that is larger.
    """
    window = context_window(model, context_length)
    reserve = max(ANSWER_TOKENS, active_generate_config().max_tokens or 0)
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
    """Return the number of texts, from the first, that fit into a prompt, and the tokens of that prompt.

    Each step counts the tokens of a whole prompt, so the result is exact for any tokenizer. Few
    steps are needed: each one estimates the position from the tokens per character of the last one.

    ``budget`` is the maximum number of tokens. ``render`` returns the prompt with the first n
    texts, and a longer prompt must have more tokens. The result is (0, tokens of the prompt without
    texts) even if that exceeds the budget.
    """
    ends = list(accumulate((len(text) for text in texts), initial=0))
    fits, too_many, tokens_a_character = 0, len(texts) + 1, 0.25
    tokens = tokens_of_fitting = await counter.count(render(0))
    while tokens_of_fitting <= budget and too_many - fits > 1:
        characters = ends[fits] + (budget - tokens_of_fitting) / tokens_a_character
        guess = min(max(bisect_right(ends, characters) - 1, fits + 1), too_many - 1)
        prompt = render(guess)
        tokens = await counter.count(prompt)
        if tokens <= budget:
            fits, tokens_of_fitting = guess, tokens
        else:
            too_many = guess
        tokens_a_character = max(tokens / max(len(prompt), 1), 0.01)
    return fits, tokens_of_fitting


@dataclass(frozen=True)
class TokenCounter:
    """A way to count tokens, with its name for signatures.

    A message has more tokens than its text.
    """

    name: str
    count: Callable[[str], Awaitable[int]]
    message_tokens: int = 0

    async def message(self, text: str) -> int:
        """Return the number of tokens of a message with this text."""
        return self.message_tokens + (await self.count(text) if text else 0)


async def token_counter(model: Model, tokenizer: str | None = None) -> TokenCounter:
    """Return the best available way to count a model's tokens.

    In this order: ``tokenizer``, a folder with tokenizer.json, that file, or a repository on the
    Hub. For an OpenAI model, its tokenizer and what kani adds to a message. The provider's count
    (the counting services of Anthropic, Google and xAI). The tokenizer with the model's name, if
    that is a folder or in the Hugging Face cache. ``estimated_tokens``.
    """
    if tokenizer:
        try:
            return _of_tokenizer(tokenizer, fetch=offline_variable() is None)
        except Exception as error:  # the libraries raise plain exceptions
            reason = " ".join(str(error).split())  # the Hub's are several lines
            raise InputError(
                f"the tokenizer {tokenizer!r} cannot be read ({reason}): use a folder with tokenizer.json, that file, "
                "or a repository on the Hub (without network access: one in the cache)"
            ) from None
    api = type(model.api)
    counts_itself = (api.count_tokens, api.count_text_tokens) != (
        ModelAPI.count_tokens,
        ModelAPI.count_text_tokens,
    )
    if counts_itself:
        with suppress(
            Exception
        ):  # a provider's client may raise anything; the next way to count is tried
            # Without Inspect's retries: a service that cannot be reached does not work.
            await model.api.count_tokens("one two three")
            if _is_openai(model):
                name = f"the tokenizer of {model}{AS_KANI}"
                return TokenCounter(name, model.count_tokens, KANI_MESSAGE_TOKENS)
            return TokenCounter(f"the provider of {model}", model.count_tokens)
    for name in _names(model):
        with suppress(
            Exception
        ):  # no such tokenizer on this machine; the libraries raise plain exceptions
            return _of_tokenizer(name, fetch=False)

    async def estimate(text: str) -> int:
        return estimated_tokens(text)

    return TokenCounter(ESTIMATE, estimate)


def counters(tokenizer: str | None) -> Callable[[Model], Awaitable[TokenCounter]]:
    """Return ``token_counter`` with a cache by model."""
    by_model: dict[str, TokenCounter] = {}

    async def counter_of(model: Model) -> TokenCounter:
        if str(model) not in by_model:
            by_model[str(model)] = await token_counter(model, tokenizer)
        return by_model[str(model)]

    return counter_of


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text for an unknown tokenizer.

    An overestimate, so that prompts are not too long.

    A word counts as one token per five letters. A digit, a punctuation mark, a character of another
    script, and a run of line breaks count as one token each. Compared with OpenAI's cl100k, this
    gives 1.2 to 1.3 times the tokens for prose and models' answers, and 1.3 times for tables of
    numbers, whose digits some tokenizers count one by one.
    """
    return sum(
        -(-len(piece) // _LETTERS_A_TOKEN) if piece[0].isascii() and piece[0].isalpha() else 1
        for piece in _PIECE.findall(text)
    )


def _of_tokenizer(name: str, fetch: bool) -> TokenCounter:
    from huggingface_hub import hf_hub_download
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    if not path.exists():
        path = Path(hf_hub_download(name, "tokenizer.json", local_files_only=not fetch))
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json" if path.is_dir() else path))

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    async def in_thread(text: str) -> int:
        return await anyio.to_thread.run_sync(count, text)

    return TokenCounter(f"the tokenizer {name}", in_thread)


def _is_openai(model: Model) -> bool:
    """Return whether tiktoken knows the model's encoding.

    Other servers can be used through the same provider.
    """
    provider, _, name = str(model).partition("/")
    if provider != "openai":
        return False
    from tiktoken import encoding_name_for_model

    with suppress(KeyError):
        return bool(encoding_name_for_model(name))
    return False


def _names(model: Model) -> list[str]:
    """Return the model's name, and the name without its first parts, which can be providers and services."""
    # "org/name:provider" names a provider of the Hub
    parts = model.api.model_name.partition(":")[0].split("/")
    return ["/".join(parts[i:]) for i in range(max(len(parts) - 1, 1))]
