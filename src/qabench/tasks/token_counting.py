"""Token counts by the model's tokenizer if it is available, else by a documented estimate."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from inspect_ai.model import Model, ModelAPI

from qabench.errors import InputError, MissingExtra
from qabench.sources.resolve import offline_variable

_PIECE = re.compile(r"[A-Za-z]+|\n+|[^A-Za-z\s]")
_LETTERS_A_TOKEN = 5
ESTIMATE = f"an estimate: {_LETTERS_A_TOKEN} letters, or 1 other character, per token"


@dataclass(frozen=True)
class TokenCounter:
    """Counts tokens. ``name`` describes the method, for logs."""

    name: str
    count: Callable[[str], Awaitable[int]]

    async def __call__(self, text: str) -> int:
        """The number of tokens of a text."""
        return await self.count(text)


async def token_counter(model: Model, tokenizer: str | None = None) -> TokenCounter:
    """The best available way to count a model's tokens.

    In this order: the given tokenizer; the provider's count (OpenAI's tokenizer, and the counting services of
    Anthropic, Google and xAI); the tokenizer with the model's name, if that is a folder or in the Hugging Face cache;
    Inspect's estimate, which needs OpenAI's vocabulary; ``estimated_tokens``.

    Args:
        model: the model that will read the text.
        tokenizer: a folder with tokenizer.json, that file, or a repository on the Hub.

    Raises:
        InputError: the tokenizer does not exist.
        MissingExtra: the package tokenizers is not installed.
    """
    if tokenizer:
        return _of_tokenizer(tokenizer, _tokenizer(tokenizer, fetch=offline_variable() is None))
    if _counts_itself(model) and await _works(model):
        return TokenCounter(f"the provider of {model}", model.count_tokens)
    for name in _names(model):
        try:
            return _of_tokenizer(name, _tokenizer(name, fetch=False))
        except (InputError, MissingExtra):
            continue
    if not offline_variable() and await _works(model):
        return TokenCounter("Inspect's estimate: tokens of o200k_base plus 10%", model.count_tokens)

    async def estimate(text: str) -> int:
        return estimated_tokens(text)

    return TokenCounter(ESTIMATE, estimate)


def counters(tokenizer: str | None) -> Callable[[Model], Awaitable[TokenCounter]]:
    """``token_counter`` with a cache by model."""
    known: dict[str, TokenCounter] = {}

    async def of(model: Model) -> TokenCounter:
        if str(model) not in known:
            known[str(model)] = await token_counter(model, tokenizer)
        return known[str(model)]

    return of


def estimated_tokens(text: str) -> int:
    """The estimated tokens of a text for an unknown tokenizer; an overestimate, so that prompts are not too long.

    A word counts as one token per five letters. A digit, a punctuation mark, a character of another script, and a run
    of line breaks count as one token each. Compared with OpenAI's cl100k, this gives 1.2 to 1.3 times the tokens for
    prose and models' answers, and 1.3 times for tables of numbers, whose digits some tokenizers count one by one.
    """
    return sum(
        -(-len(piece) // _LETTERS_A_TOKEN) if piece[0].isascii() and piece[0].isalpha() else 1
        for piece in _PIECE.findall(text)
    )


def _of_tokenizer(name: str, tokenizer: Any) -> TokenCounter:
    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    async def in_thread(text: str) -> int:
        return await anyio.to_thread.run_sync(count, text)

    return TokenCounter(f"the tokenizer {name}", in_thread)


def _tokenizer(name: str, fetch: bool) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra('counting with a tokenizer needs tokenizers: pip install "qabench[run]"') from None
    path = Path(name).expanduser()
    if path.exists():
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.is_file():
            raise InputError(f"the folder {path} has no tokenizer.json")
    else:
        file = _from_hub(name, fetch)
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain exceptions
        raise InputError(f"{file} is not a tokenizer that the package tokenizers can read: {error}") from None


def _from_hub(name: str, fetch: bool) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(name, "tokenizer.json", local_files_only=not fetch))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        raise InputError(
            f"the tokenizer {name!r} does not exist ({type(error).__name__}): use a folder with tokenizer.json, that "
            "file, or a repository on the Hub (without network access: one in the cache)"
        ) from None


def _counts_itself(model: Model) -> bool:
    api = type(model.api)
    return api.count_tokens is not ModelAPI.count_tokens or api.count_text_tokens is not ModelAPI.count_text_tokens


async def _works(model: Model) -> bool:
    try:
        # Without Inspect's retries: a service that cannot be reached does not work.
        await model.api.count_tokens("one two three")
    except Exception:
        return False
    return True


def _names(model: Model) -> list[str]:
    """The model's name, and the name without its first parts, which can be providers and services."""
    parts = model.api.model_name.partition(":")[0].split("/")  # "org/name:provider" names a provider of the Hub
    return ["/".join(parts[i:]) for i in range(max(len(parts) - 1, 1))]
