"""The model of a run: its name at a server, its object, and a first call.

The model is called before the first question: a wrong URL, key, name or option costs seconds, not a
run.
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from inspect_ai.model import GenerateConfig, get_model, get_model_info
from rich.errors import MarkupError
from rich.text import Text

from qabench.adapters.inspect_ai.language_model import InspectModel, without_model_of_run
from qabench.adapters.inspect_ai.replies import adapted
from qabench.benchmarks.plan import planning_for
from qabench.errors import InputError, MissingExtra, QabenchError, some
from qabench.io.addresses import is_this_machine
from qabench.io.http import HttpClient
from qabench.io.http_error import HttpError, reason_of
from qabench.io.limits import Limits, json_of
from qabench.io.redaction import printable
from qabench.io.workers import run_sync
from qabench.llm.endpoint import ADDRESSED, IN_PROCESS, is_another_model
from qabench.llm.exchange import MAX_REPLY_BYTES, limited_replies
from qabench.llm.inspect_providers import check_provider, quiet_transformers, unknown_argument
from qabench.runs.task_options import Arguments

# The service in Inspect's names of models at an address (openai-api/SERVICE/NAME). Inspect reads
# the key of a service from SERVICE_API_KEY.
SERVICE = "qabench"
KEY_VARIABLE = f"{SERVICE.upper()}_API_KEY"
# Sent to servers that need no key.
NO_KEY = "none"
# Seconds for a connection, and for the list of a server's models.
SECONDS = 30
# Seconds for the first call without --timeout: a server may have to load the model.
SECONDS_FOR_FIRST_ANSWER = 300
# If the first call takes longer than this, the user is told what the run waits for.
SECONDS_IN_SILENCE = 2.0
# The first call only shows whether the model answers, so its reply is short.
TOKENS = 16
# Providers whose model is created but not called: creating it starts a server or loads the weights.
# If a separate object was called first, the run would repeat that. "mockllm" is for tests, and "none"
# stands for no model.
NOT_CALLED = (
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
    """Return Inspect's name of a model at an address.

    It is asked as a chat model, unless the name begins with the provider for plain completions.
    """
    if model.startswith(ADDRESSED):
        return model
    return f"{ADDRESSED[0]}{SERVICE}/{model}"


def probe(
    model: str,
    base_url: str | None = None,
    model_args: Arguments = None,
    model_config: Any = None,
    task_config: Any = None,
    say: Callable[[str], None] = lambda text: None,
) -> Any:
    """Call a model once with the parameters of the run, and return what Inspect's ``eval`` takes.

    This is the model's name, or the model itself if it is of ``IN_PROCESS``, so that its weights are
    loaded only once. Models of ``NOT_CALLED`` are created, but not called.

    Args:
        model: Inspect's name of the model.
        base_url: the address of its server, or None for the provider's own.
        model_args: arguments of the provider.
        model_config: the ``GenerateConfig`` of the run, which overrides the task's. Its ``timeout``
            limits the call.
        task_config: the ``GenerateConfig`` of the task.
        say: called with a sentence when the user has to wait.

    Raises:
        QabenchError: the call failed. The message has the cause, the address, and the server's
            models.
    """
    os.environ.setdefault(KEY_VARIABLE, NO_KEY)
    run_config = model_config or GenerateConfig()
    call_config = (task_config or GenerateConfig()).merge(run_config)
    call_config.max_tokens = min(TOKENS, call_config.max_tokens or TOKENS)
    provider = model.partition("/")[0]
    try:
        # Inspect prints the list of hooks on standard output.
        with redirect_stdout(io.StringIO()):
            if provider in NOT_CALLED:
                if provider not in ("mockllm", "none"):
                    say(f"starting {provider}, which loads the weights")
                arguments = dict(model_args or {})
                if provider.startswith("vllm"):
                    # All objects of a vLLM model share one server. Start it now, not at the first
                    # question.
                    arguments = {"lazy_init": False} | arguments
                make_model(model, base_url, arguments, config=run_config)
            elif model.startswith(IN_PROCESS):
                say(f"loading the weights of {model}")
                loaded = make_model(model, base_url, model_args, config=run_config)
                run_sync(_call(loaded, call_config))
                return loaded
            else:
                check_port(base_url)
                make = partial(make_model, model, base_url, model_args, config=run_config)
                run_sync(_call_once(make, call_config, say))
    except QabenchError:
        raise
    except Exception as error:
        # A provider's client may raise anything.
        raise _no_answer(model, base_url, error) from error
    return model


def _no_answer(model: str, base_url: str | None, error: Exception) -> QabenchError:
    """Return the error for a model whose first call failed, with the cause and what may help."""
    failure = reason_of(error)
    where = f" at {printable(base_url)}" if base_url else ""
    hint = ""
    if base_url and failure.status in (401, 403):
        hint = f"; set {KEY_VARIABLE} to the server's key"
    elif base_url and failure.status == 404:
        hint = "; most base URLs end with /v1"
        models = _models_at(base_url)
        if models:
            hint = f"; models there: {some(models)}"
    cause = str(failure)
    if base_url and failure.status is None:
        # Without a status, the details of a failure only repeat the address.
        cause = failure.reason
    if cause == "HTTP":
        # The failure itself has no text.
        cause = plain(error)
    name = model.removeprefix(f"{ADDRESSED[0]}{SERVICE}/")
    return QabenchError(f"the model {name}{where} does not answer: {cause}{hint}")


async def _call(model: Any, config: Any) -> str:
    """Call a model, and return the name that the reply has for it. Raises QabenchError."""
    output = await adapted(model).generate("Reply with the word ready.", config=config, cache=False)
    if output.error:
        raise QabenchError(f"the model {model} rejects calls: {printable(output.error)}")
    return str(output.model or "")


@contextmanager
def planning_to_call(
    model: str, base_url: str | None = None, model_args: Arguments = None
) -> Iterator[None]:
    """Tell tasks that are created in this block which model they plan for, before its first call.

    A task can then check the model's context window. A model whose weights would be loaded is not
    created: its task checks the window when it starts.
    """
    planned = None
    if model.partition("/")[0] not in NOT_CALLED and not model.startswith(IN_PROCESS):
        # Inspect prints the list of hooks on standard output.
        with redirect_stdout(io.StringIO()):
            planned = InspectModel(make_model(model, base_url, model_args))
    # The model of an earlier run in this process would take precedence.
    with without_model_of_run(), planning_for(planned):
        yield


def check_port(base_url: str | None) -> None:
    """Raise ConnectionError if nothing listens at an address on this machine.

    Without this check, the client would retry for seconds. Other machines are not checked, because
    they may be behind a proxy.
    """
    parts = urlsplit(base_url or "")
    host = parts.hostname or ""
    if not is_this_machine(host):
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except OSError as error:
        raise ConnectionError(
            f"{error.strerror or error}: nothing listens there; start the server, or check the port"
        ) from None


async def _call_once(make: Callable[..., Any], config: Any, say: Callable[[str], None]) -> None:
    """Call a model, and tell the user through ``say`` if the answer does not come at once."""
    config.timeout = config.attempt_timeout = config.timeout or SECONDS_FOR_FIRST_ANSWER
    if config.max_retries is None or config.max_retries > 1:
        config.max_retries = 1
    waiting = f"waiting for the model's first answer, up to {config.timeout} s (--timeout)"
    with limited_replies():
        # A separate object for this call, because a model's connections belong to the event loop in
        # which they were opened, and the run has another loop.
        instance = make(memoize=False)
        # Servers reject a wrong name at once. Wait a moment before telling the user to wait.
        silence = min(SECONDS_IN_SILENCE, config.timeout / 2)
        sentence = asyncio.get_running_loop().call_later(silence, say, waiting)
        try:
            name_in_reply = await _call(instance, config)
        finally:
            sentence.cancel()
            await instance.api.aclose()
    if is_another_model(str(instance), name_in_reply):
        # This is only a note, because the name that was asked for may be an alias.
        say(f"the server calls the model {printable(name_in_reply)} in its reply")


def make_model(
    model: str, base_url: str | None = None, model_args: Arguments = None, **options: Any
) -> Any:
    """Return Inspect's model. Raises InputError or MissingExtra with Inspect's reason in one line."""
    shown = model
    folder = (model_args or {}).get("model_path")
    if isinstance(folder, str):
        # A value that does not look like a folder may be a name on the Hub.
        if folder.startswith(("/", "~", ".")) and not Path(folder).expanduser().exists():
            raise InputError(f"the model {model}: the folder {folder} (model_path) does not exist")
        shown = f"{model} in {folder}"
    check_provider(model)
    try:
        if model.startswith(IN_PROCESS):
            quiet_transformers()
        return get_model(model, base_url=base_url, **options, **(model_args or {}))
    except ImportError as error:
        raise _missing_package(model, error) from error
    except TypeError as error:
        if named := unknown_argument(error):
            raise InputError(f"the model {shown} was given {named}") from error
        raise InputError(
            f"the model {shown} was given a wrong argument with -M: {plain(error)}; the documentation of Inspect AI "
            "lists the arguments of its providers"
        ) from error
    except Exception as error:
        # Inspect raises its own exceptions if there is no key, no such provider, or no weights.
        if "pip install" in plain(error):
            raise _missing_package(model, error) from error
        advice = ""
        if "/" not in model:
            advice = f" Add --base-url URL, or a provider: openai/{model}"
        raise InputError(f"the model {shown} cannot be used: {plain(error)}{advice}") from error


def _missing_package(model: str, error: Exception) -> MissingExtra:
    """Return the error for a model whose provider is not installed, with the extra if there is one."""
    reason = f"the model {model} needs a package that is not installed"
    if model.startswith(IN_PROCESS):
        return MissingExtra(f"{reason}: pip install 'qabench[hf]'")
    return MissingExtra(f"{reason}: {plain(error)}")


def plain(error: object) -> str:
    """Return the message of an error in one line. Inspect writes its messages with markup."""
    message = str(getattr(error, "message", "") or error)
    with suppress(MarkupError):
        # A message with brackets may not be valid markup.
        message = Text.from_markup(message).plain
    return printable(" ".join(message.split()).removeprefix("ERROR: ")) or type(error).__name__


def _models_at(url: str) -> list[str]:
    """Return the models that a server lists, or [] if it has no such list."""
    limits = Limits(MAX_REPLY_BYTES, SECONDS, redirects="none")
    headers = {"Authorization": f"Bearer {os.environ.get(KEY_VARIABLE, NO_KEY)}"}
    try:
        with closing(HttpClient(limits, headers=headers)) as client:
            models = json_of(client.once(f"{url}/models").content)["data"]
        return [str(model["id"]) for model in models]
    except (HttpError, ValueError, KeyError, TypeError):
        return []


def known_window(model: str) -> int | None:
    """Return the length of a model's context window from Inspect's list of models, or None.

    Inspect lists models as ORG/NAME, so a name is also searched for without its first parts, which
    can be a provider and a service.
    """
    if model.startswith(IN_PROCESS):
        # Inspect would load the weights.
        return None
    names = [model]
    while "/" in names[-1]:
        names.append(names[-1].partition("/")[2])
    # Inspect prints the list of hooks on standard output.
    with redirect_stdout(io.StringIO()):
        for name in names:
            info = get_model_info(name)
            if info and info.context_length:
                return info.context_length
    return None
