"""Makes models, and calls one before the first question: a wrong URL, key, name or option costs seconds, not a run."""

from __future__ import annotations

import io
import logging
import os
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from inspect import signature
from typing import Any

from qabench.data.predictions import some
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.limits import json_of
from qabench.io.tables import printable
from qabench.llm.client import reason_of, run_sync
from qabench.llm.endpoint import clean_url
from qabench.llm.exchange import limited_replies
from qabench.tasks.replies import ADDRESSED, IN_PROCESS, adapted

SERVICE = "qabench"  # Inspect's name for a server that is given by its address: its key is in QABENCH_API_KEY
KEY_VARIABLE = f"{SERVICE.upper()}_API_KEY"
NO_KEY = "none"  # sent to servers that need no key
SET_BY_OPTIONS = {"model_name", "base_url", "api_key", "config"}  # arguments of providers that -M cannot set
SECONDS = 30
TOKENS = 16
# Providers that start a server or load weights when they are made, which is not done twice, and those for tests.
MADE_ONLY = (
    *("vllm", "vllm-completions", "sglang", "llama-cpp-python"),
    *("transformer_lens", "nnterp", "mockllm", "none"),
)


def at_address(model: str) -> str:
    """Return Inspect's name of a model at an address: a chat model, unless the name says plain completion."""
    return model if model.startswith(ADDRESSED) else f"{ADDRESSED[0]}{SERVICE}/{model}"


def probe(
    model: str,
    base_url: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    model_config: Any = None,
    task_config: Any = None,
) -> Any:
    """Make sure that a model answers, with a short call that has the parameters of the run, and return it for Inspect.

    It is the name, or the model itself if its weights are loaded in this process, so that this is done once. Of the
    two ``GenerateConfig``, that of the run overrides the task's. Raises QabenchError with the cause, the address, and
    the models at the server.
    """
    from inspect_ai.model import GenerateConfig

    os.environ.setdefault(KEY_VARIABLE, NO_KEY)
    models = models_at(clean_url(base_url)) if base_url else []
    made_with = model_config or GenerateConfig()
    called_with = (task_config or GenerateConfig()).merge(made_with)
    called_with.max_tokens = min(TOKENS, called_with.max_tokens or TOKENS)
    provider = model.partition("/")[0]
    try:
        with redirect_stdout(io.StringIO()):  # Inspect prints which hooks there are
            if provider in MADE_ONLY:
                # vLLM's server, which all objects of a model share, starts now and not with each question again.
                started = {"lazy_init": False} if provider.startswith("vllm") else {}
                make_model(model, base_url, {**started, **(model_args or {})}, config=made_with)
            elif model.startswith(IN_PROCESS):
                loaded = make_model(model, base_url, model_args, config=made_with)
                run_sync(_call(loaded, called_with))
                return loaded
            else:
                run_sync(_call_once(model, base_url, model_args, made_with, called_with))
    except QabenchError:
        raise
    except Exception as error:
        place = f" at {printable(base_url)}" if base_url else ""
        hint = f"; models there: {some(models)}" if models else ""
        reason = reason_of(error)
        text = reason.cause if place else reason.text
        detail = plain(error) if text == "HTTP" else text
        raise QabenchError(f"the model {model}{place} does not answer: {detail}{hint}") from error
    return model


async def _call(model: Any, config: Any) -> None:
    output = await adapted(model).generate("Reply with the word ready.", config=config, cache=False)
    if output.error:
        raise QabenchError(f"the model {model} rejects calls: {printable(output.error)}")


async def _call_once(
    model: str, base_url: str | None, model_args: Mapping[str, Any] | None, made_with: Any, called_with: Any
) -> None:
    # Not the run's own object: its connections would belong to this event loop.
    instance = make_model(model, base_url, model_args, config=made_with, memoize=False)
    called_with.max_retries, called_with.attempt_timeout, called_with.timeout = 1, SECONDS, SECONDS
    try:
        with limited_replies():
            await _call(instance, called_with)
    finally:
        await instance.api.aclose()


def make_model(
    model: str, base_url: str | None = None, model_args: Mapping[str, Any] | None = None, **options: Any
) -> Any:
    """Return Inspect's model. Raises InputError or MissingExtra with Inspect's reason in one line."""
    from inspect_ai.model import get_model

    try:
        if model.startswith(IN_PROCESS):
            _quiet_transformers()
        return get_model(model, base_url=base_url, **options, **(model_args or {}))
    except (ImportError, ModuleNotFoundError) as error:
        raise MissingExtra(f"the model {model} needs a package that is not installed: {plain(error)}") from error
    except TypeError as error:
        names = _accepted(error)
        allowed = f"; allowed: {', '.join(names)}" if names else ""
        raise InputError(f"the model {model} was given a wrong argument with -M: {plain(error)}{allowed}") from error
    except Exception as error:  # Inspect's own classes: no key, no such provider, no weights
        if "pip install" in plain(error):
            raise MissingExtra(f"the model {model} cannot be used: {plain(error)}") from error
        raise InputError(f"the model {model} cannot be used: {plain(error)}") from error


def _quiet_transformers() -> None:
    """Keep transformers from reporting its own work: shards of weights, optional kernels, generation flags."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    from huggingface_hub.utils.tqdm import enable_progress_bars
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    enable_progress_bars()  # of downloads


def _accepted(error: TypeError) -> list[str]:
    """Return the arguments of the provider's class and of the client that it makes, which refused one of -M."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    names = frames[-1].f_globals | frames[-1].f_locals
    refusing = str(error).partition(".__init__()")[0]
    classes = [value for value in names.values() if isinstance(value, type) and value.__name__ == refusing]
    classes += [type(frame.f_locals["self"]) for frame in frames if frame.f_code.co_name == "__init__"]
    parameters = [parameter for kind in classes for parameter in signature(kind).parameters.values()]
    accepted = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.name[0] != "_"}
    return sorted(accepted - SET_BY_OPTIONS)


def plain(error: object) -> str:
    """Return the message of an error in one line; Inspect writes its messages with markup."""
    from rich.errors import MarkupError
    from rich.text import Text

    message = str(getattr(error, "message", "") or error)
    with suppress(MarkupError):  # a message that contains brackets
        message = Text.from_markup(message).plain
    return printable(" ".join(message.split()).removeprefix("ERROR: ")) or type(error).__name__


def models_at(url: str) -> list[str]:
    """Return the models that a server lists. Raises QabenchError if it does not answer, or rejects the key."""
    import httpx2

    key = os.environ.get(KEY_VARIABLE, NO_KEY)
    try:
        response = run_sync(_get(f"{url}/models", {"Authorization": f"Bearer {key}"}))
    except httpx2.HTTPError as error:
        raise QabenchError(f"no server answers at {printable(url)}: {reason_of(error).cause}") from error
    if response.status_code in (401, 403):
        raise QabenchError(
            f"the server at {printable(url)} rejects the key (HTTP {response.status_code}): set {KEY_VARIABLE}"
        )
    try:
        return [str(model["id"]) for model in json_of(response.content)["data"]]
    except (ValueError, KeyError, TypeError):
        return []


async def _get(url: str, headers: Mapping[str, str]) -> Any:
    import httpx2

    with limited_replies():
        async with httpx2.AsyncClient(timeout=SECONDS) as client:
            return await client.get(url, headers=headers)
