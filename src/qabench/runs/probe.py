"""One call to the model before the first question, so that a wrong URL, key or model costs seconds and not a run."""

from __future__ import annotations

import asyncio
import io
import os
import traceback
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from inspect import signature
from typing import Any

from qabench.data.predictions import some
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.limits import json_of
from qabench.io.terminal import printable
from qabench.llm.client import reason_of
from qabench.llm.endpoint import clean_url
from qabench.llm.exchange import limited_replies
from qabench.tasks.reply_cache import ADDRESSED

SERVICE = "qabench"  # Inspect's name for a server that is given by its address: its key is in QABENCH_API_KEY
KEY_VARIABLE = f"{SERVICE.upper()}_API_KEY"
NO_KEY = "none"  # sent to servers that need no key
SET_BY_OPTIONS = {"model_name", "base_url", "api_key", "config"}  # arguments of providers that -M cannot set
SECONDS = 30
TOKENS = 16
# These load weights, or start a server, when they are made: that they can is all there is to find out.
LOCAL = (
    "hf",
    "vllm",
    "vllm-completions",
    "sglang",
    "llama-cpp-python",
    "transformer_lens",
    "nnterp",
    "mockllm",
    "none",
)


def at_address(model: str) -> str:
    """Inspect's name of a model at an address that is given: a chat model, unless the name says plain completion."""
    return model if model.startswith(ADDRESSED) else f"{ADDRESSED[0]}{SERVICE}/{model}"


def probe(model: str, base_url: str | None = None, model_args: Mapping[str, Any] | None = None) -> None:
    """Makes sure that a model answers.

    Args:
        model: as Inspect names it.
        base_url: the server's address, if it was given.
        model_args: of the provider.

    Raises:
        InputError: the address is not a URL.
        MissingExtra: the provider's package is not installed.
        QabenchError: the model does not answer, with the cause, the address, and which models there are.
    """
    os.environ.setdefault(KEY_VARIABLE, NO_KEY)
    there = models_at(clean_url(base_url)) if base_url else []
    try:
        with redirect_stdout(io.StringIO()):  # Inspect prints which hooks there are
            if model.partition("/")[0] in LOCAL:
                made(model, base_url, model_args)
            else:
                asyncio.run(_call(model, base_url, model_args))
    except QabenchError:
        raise
    except Exception as error:
        known = f"; models there: {some(there)}" if there else ""
        where = f" at {printable(base_url)}" if base_url else ""
        raise QabenchError(f"the model {model}{where} does not answer: {_reason(error, bool(where))}{known}") from error


def made(model: str, base_url: str | None = None, model_args: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """Inspect's model. Raises InputError or MissingExtra with Inspect's reason in one line."""
    from inspect_ai.model import get_model

    try:
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


def _accepted(error: TypeError) -> list[str]:
    """The arguments of the provider's class and of the client that it makes, which refused one of -M."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    known = frames[-1].f_globals | frames[-1].f_locals
    refusing = str(error).partition(".__init__()")[0]
    classes = [one for one in known.values() if isinstance(one, type) and one.__name__ == refusing]
    classes += [type(frame.f_locals["self"]) for frame in frames if frame.f_code.co_name == "__init__"]
    parameters = [one for found in classes for one in signature(found).parameters.values()]
    names = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD and one.name[0] != "_"}
    return sorted(names - SET_BY_OPTIONS)


def plain(error: object) -> str:
    """The message of an error in one line; Inspect writes its messages with markup."""
    from rich.errors import MarkupError
    from rich.text import Text

    message = str(getattr(error, "message", "") or error)
    with suppress(MarkupError):  # a message that contains brackets
        message = Text.from_markup(message).plain
    return printable(" ".join(message.split()).removeprefix("ERROR: ")) or type(error).__name__


def models_at(url: str) -> list[str]:
    """The models that a server says it has; [] if it does not say.

    Raises:
        QabenchError: nobody answers at the address, or the key is rejected.
    """
    import httpx2

    key = os.environ.get(KEY_VARIABLE, NO_KEY)
    try:
        response = asyncio.run(_get(f"{url}/models", {"Authorization": f"Bearer {key}"}))
    except httpx2.HTTPError as error:
        raise QabenchError(f"no server answers at {printable(url)}: {reason_of(error).cause}") from error
    if response.status_code in (401, 403):
        raise QabenchError(
            f"the server at {printable(url)} rejects the key (HTTP {response.status_code}): set {KEY_VARIABLE}"
        )
    try:
        return [str(one["id"]) for one in json_of(response.content)["data"]]
    except (ValueError, KeyError, TypeError):
        return []


async def _get(url: str, headers: Mapping[str, str]) -> Any:
    import httpx2

    with limited_replies():
        async with httpx2.AsyncClient(timeout=SECONDS) as client:
            return await client.get(url, headers=headers)


def _reason(error: Exception, place_known: bool) -> str:
    found = reason_of(error)
    said = found.cause if place_known else found.text
    return said if said != "HTTP" else plain(error)


async def _call(model: str, base_url: str | None, model_args: Mapping[str, Any] | None) -> None:
    from inspect_ai.model import GenerateConfig

    # Not the run's own object: its connections would belong to this event loop.
    one = made(model, base_url, model_args, memoize=False)
    config = GenerateConfig(max_tokens=TOKENS, max_retries=1, attempt_timeout=SECONDS, timeout=SECONDS)
    try:
        with limited_replies():
            output = await one.generate("Reply with the word ready.", config=config)
    finally:
        await one.api.aclose()
    if output.error:
        raise QabenchError(f"the model {model} rejects calls: {printable(output.error)}")
