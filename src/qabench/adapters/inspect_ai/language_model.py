"""An Inspect AI model as the benchmarks' protocols see it, and ways to count its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path

import anyio
from inspect_ai.model import Model, ModelAPI, get_model_info

# Inspect has no public names for these.
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.model._model import active_model, active_model_context_var

from qabench.benchmarks.conversation import TokenCounter
from qabench.errors import InputError
from qabench.io.environment import offline_variable

# The pieces whose tokens are estimated: words, runs of line breaks, and other characters.
_PIECE = re.compile(r"[A-Za-z]+|\n+|[^A-Za-z\s]")
_LETTERS_A_TOKEN = 5
ESTIMATE = f"an estimate: {_LETTERS_A_TOKEN} letters, or 1 other character, per token"


class InspectModel:
    """An Inspect AI model (see ``qabench.benchmarks.conversation.LanguageModel``)."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """Return the name with the provider."""
        return str(self._model)

    @property
    def context_length(self) -> int | None:
        """Return the length of the context window in tokens, or None if Inspect does not know."""
        info = get_model_info(self._model)
        if info is None:
            return None
        return info.context_length

    @property
    def input_tokens(self) -> int | None:
        """Return the maximum number of tokens of a prompt, or None if Inspect does not know it."""
        info = get_model_info(self._model)
        if info is None:
            return None
        return info.input_tokens

    @property
    def reply_tokens(self) -> int | None:
        """Return the run's limit on tokens per reply, or None if there is none."""
        return active_generate_config().max_tokens

    async def token_counter(self, tokenizer: str | None) -> TokenCounter:
        """Return the best available way to count the model's tokens. See ``token_counter``."""
        return await token_counter(self._model, tokenizer)


def model_of_run() -> InspectModel | None:
    """Return the model of the run that is being started, or None without one."""
    model = active_model()
    if model is None:
        return None
    return InspectModel(model)


@contextmanager
def without_model_of_run() -> Iterator[None]:
    """Let ``model_of_run`` return None. Inspect keeps the model of a run that has ended."""
    token = active_model_context_var.set(None)
    try:
        yield
    finally:
        active_model_context_var.reset(token)


async def token_counter(model: Model, tokenizer: str | None = None) -> TokenCounter:
    """Return the best available way to count a model's tokens.

    If ``tokenizer`` is passed, it is used: a folder with tokenizer.json, that file, or a repository
    on the Hub. Otherwise, the first of these that is available is used:

    - the tokenizer of an OpenAI model,
    - the counting service of the provider (Anthropic, Google and xAI have one),
    - the tokenizer with the model's name, if that is a folder or in the Hugging Face cache,
    - ``estimated_tokens``.

    Raises:
        InputError: ``tokenizer`` cannot be read.
    """
    if tokenizer:
        try:
            return _of_tokenizer(tokenizer, fetch=offline_variable() is None)
        except Exception as error:
            # The libraries raise bare ``Exception``s, and the Hub's messages have several lines.
            reason = " ".join(str(error).split())
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
        # A provider's client may raise anything. Then the next way to count is tried.
        with suppress(Exception):
            # Call the API directly. Inspect would retry, but a service that is unreachable now is
            # not used at all.
            await model.api.count_tokens("one two three")
            if _is_openai(model):
                name = f"the tokenizer of {model}"
                return TokenCounter(name, model.count_tokens, of_openai=True)
            return TokenCounter(f"the provider of {model}", model.count_tokens)
    for name in _names(model):
        # The tokenizer may not be on this machine. The libraries raise bare ``Exception``s.
        with suppress(Exception):
            return _of_tokenizer(name, fetch=False)

    async def estimate(text: str) -> int:
        return estimated_tokens(text)

    return TokenCounter(ESTIMATE, estimate)


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text for an unknown tokenizer.

    It is an overestimate, so that prompts are not too long. A word counts as one token per five
    letters. A digit, a punctuation mark, a character of another script, and a run of line breaks
    count as one token each. Compared with OpenAI's cl100k, this gives 1.2 to 1.3 times the tokens
    for prose and models' answers, and 1.3 times for tables of numbers, whose digits some tokenizers
    count one by one.
    """
    tokens = 0
    for piece in _PIECE.findall(text):
        is_word = piece[0].isascii() and piece[0].isalpha()
        tokens += ceil(len(piece) / _LETTERS_A_TOKEN) if is_word else 1
    return tokens


def _of_tokenizer(name: str, fetch: bool) -> TokenCounter:
    from huggingface_hub import hf_hub_download
    from tokenizers import Tokenizer

    path = Path(name).expanduser()
    if not path.exists():
        path = Path(hf_hub_download(name, "tokenizer.json", local_files_only=not fetch))
    if path.is_dir():
        path = path / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    async def in_thread(text: str) -> int:
        return await anyio.to_thread.run_sync(count, text)

    return TokenCounter(f"the tokenizer {name}", in_thread)


def _is_openai(model: Model) -> bool:
    """Tell whether this is an OpenAI model whose encoding tiktoken knows."""
    provider, _, name = str(model).partition("/")
    if provider != "openai":
        return False
    from tiktoken import encoding_name_for_model

    with suppress(KeyError):
        # The provider may also call another server, whose model names tiktoken does not know.
        return bool(encoding_name_for_model(name))
    return False


def _names(model: Model) -> list[str]:
    """Return the names by which the model's tokenizer may be found.

    These are the model's name, and the name without its first parts, which can be providers and
    services.
    """
    # "org/name:provider" names a provider of the Hub.
    name = model.api.model_name.partition(":")[0]
    names = [name]
    while name.count("/") > 1:
        name = name.partition("/")[2]
        names.append(name)
    return names
