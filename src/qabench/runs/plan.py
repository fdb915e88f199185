"""What comes before a run: the options of its task (``-T NAME=VALUE``), its estimated cost, and a first call.

The model is called before the first question: a wrong URL, key, name or option costs seconds, not a
run.
"""

from __future__ import annotations

import inspect
import io
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

import inspect_ai
from docstring_parser import parse
from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model, get_model_info
from rich.errors import MarkupError
from rich.text import Text

from qabench.benchmarks import Benchmark, Setting, benchmark
from qabench.data.predictions import some
from qabench.data.rows import without_none
from qabench.errors import InputError, MissingExtra, QabenchError, unknown_name
from qabench.io.http import HttpClient
from qabench.io.http_error import HttpError
from qabench.io.limits import Limits, json_of
from qabench.io.tables import printable
from qabench.io.workers import run_sync
from qabench.llm.client import Plan, Prices, prompt_tokens, reason_of, reply_tokens
from qabench.llm.endpoint import ADDRESSED
from qabench.llm.exchange import MAX_REPLY_BYTES, ChatRequest, limited_replies
from qabench.tasks.common import IN_PROCESS, adapted

Arguments = Mapping[str, Any] | None
"""Arguments of a task or of a provider, by name."""
# Inspect's name for a server that is given by its address: its key is in QABENCH_API_KEY
SERVICE = "qabench"
KEY_VARIABLE = f"{SERVICE.upper()}_API_KEY"
NO_KEY = "none"  # sent to servers that need no key
SECONDS = 30  # for the list of a server's models
# seconds for the first call without --timeout: a server may have to load the model
FIRST_ANSWER = 300
TOKENS = 16
# Providers that start a server or load weights when they are made, which is not done twice, and
# those for tests.
MADE_ONLY = (
    *("vllm", "vllm-completions", "sglang", "llama-cpp-python"),
    *("transformer_lens", "nnterp", "mockllm", "none"),
)
_POINTER = re.compile(r"[;.]? [Ss]ee ``[\w.]+``")  # of use to readers of the code only


@dataclass(frozen=True, slots=True)
class TaskOption:
    """An argument of a task: its name, its default, its description in the docstring, and the texts in its type."""

    name: str
    default: Any
    about: str
    choices: tuple[str, ...] = ()


def task_options(benchmark: Benchmark, setting: Setting) -> list[TaskOption]:
    """Return the options of a setting's task, without those that make the setting or have no effect in it."""
    function = inspect.unwrap(benchmark.task_function(setting))
    about, types = _arguments(function), get_type_hints(function)
    return [
        TaskOption(name, parameter.default, about.get(name, ""), tuple(_choices(types[name])))
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in setting.arguments and name not in setting.without
    ]


def check_task_options(benchmark: Benchmark, setting: Setting, arguments: Mapping[str, Any]) -> None:
    """Raise InputError, with the allowed names, for an argument that the setting does not have."""
    allowed = [option.name for option in task_options(benchmark, setting)]
    if unknown := [name for name in arguments if name not in allowed]:
        raise unknown_name(f"{benchmark.title}, {setting.name}, has no option", unknown[0], allowed)


def _choices(annotation: Any) -> Iterator[str]:
    """Yield the values of the ``Literal`` types in an annotation."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for part in get_args(annotation):
            yield from _choices(part)


def _arguments(function: Any) -> dict[str, str]:
    """Return the arguments' descriptions for the command line."""
    about = {}
    for parameter in parse(function.__doc__ or "").params:
        text = " ".join((parameter.description or "").split())
        about[parameter.arg_name] = _POINTER.sub("", text).replace("``", "")
    return about


def plan_run(
    name: str,
    setting: str | None,
    model: str,
    task_args: Mapping[str, Any],
    prices: Prices | None = None,
    **options: Any,
) -> Plan:
    """Estimate the calls and tokens of a run: the task runs with a model that only counts its prompts.

    In settings with tools, further calls are made that are not in the plan. ``options`` are those
    of ``inspect_ai.eval`` that select questions: limit, epochs. Raises InputError as for a run.
    """
    scorer = benchmark(name)
    chosen = scorer.setting(setting)
    title = f"{scorer.title}, {chosen.name}, cannot be planned"
    check_task_options(scorer, chosen, task_args)
    arguments = {**chosen.arguments, **task_args}
    with redirect_stdout(io.StringIO()):  # Inspect prints the list of hooks
        # For a model in this process, Inspect would load the weights.
        info = None if model.startswith(IN_PROCESS) else get_model_info(model)
    if (
        info
        and info.context_length
        and "context_length" in {option.name for option in task_options(scorer, chosen)}
    ):
        arguments.setdefault("context_length", info.context_length)
    counts = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
    with tempfile.TemporaryDirectory(prefix="qabench-plan-") as folder, redirect_stdout(io.StringIO()):
        try:
            (log,) = inspect_ai.eval(
                f"qabench/{chosen.task}",
                model=get_model(
                    f"mockllm/{model.rpartition('/')[2]}",
                    custom_outputs=partial(_count, counts, scorer.planned_reply),
                ),
                task_args=arguments,
                log_dir=folder,
                log_samples=False,
                score=False,
                display="none",
                log_level="error",
                **without_none(options),
            )
        except QabenchError:
            raise
        except Exception as error:  # Inspect's and a provider's own, such as for an invalid option
            raise InputError(f"{title}: {plain(error)}") from error
    if log.status != "success":
        raise QabenchError(f"{title}: {plain(log.error)}")
    cost = prices.cost(counts["prompt_tokens"], counts["completion_tokens"]) if prices else None
    return Plan(counts["calls"], 0, counts["prompt_tokens"], counts["completion_tokens"], cost)


def _count(
    counts: dict[str, int], reply: str, messages: Any, tools: Any, tool_choice: Any, config: Any
) -> Any:
    """Count a call and its tokens, and return a reply that leads to all further calls but those of tools."""
    texts = tuple((message.role, message.text) for message in messages)
    request = ChatRequest("", texts, {"max_tokens": config.max_tokens})
    prompt = prompt_tokens(request)
    counts["calls"] += 1
    counts["prompt_tokens"] += prompt
    counts["completion_tokens"] += reply_tokens(request) * (config.num_choices or 1)
    output = ModelOutput.from_content("counting", reply)
    output.usage = ModelUsage(input_tokens=prompt, output_tokens=1, total_tokens=prompt + 1)
    return output


def at_address(model: str) -> str:
    """Return Inspect's name of a model at an address: a chat model, unless the name says plain completion."""
    return model if model.startswith(ADDRESSED) else f"{ADDRESSED[0]}{SERVICE}/{model}"


def probe(
    model: str,
    base_url: str | None = None,
    model_args: Arguments = None,
    model_config: Any = None,
    task_config: Any = None,
    say: Callable[[str], None] = lambda text: None,
) -> Any:
    """Make sure that a model answers, with a short call that has the parameters of the run, and return it for Inspect.

    It is the name, or the model itself if its weights are loaded in this process, so that this is
    done once. Of the two ``GenerateConfig``, the run's overrides the task's. Its ``timeout``
    is the limit of the call. ``say`` receives a sentence when the user has to wait. Raises
    QabenchError with the cause, the address, and the models at the server.
    """
    os.environ.setdefault(KEY_VARIABLE, NO_KEY)
    made_with = model_config or GenerateConfig()
    called_with = (task_config or GenerateConfig()).merge(made_with)
    called_with.max_tokens = min(TOKENS, called_with.max_tokens or TOKENS)
    provider = model.partition("/")[0]
    try:
        with redirect_stdout(io.StringIO()):  # Inspect prints which hooks there are
            if provider in MADE_ONLY:
                # vLLM's server, which all objects of a model share, starts now and not with each
                # question again.
                if provider not in ("mockllm", "none"):
                    say(f"starting {provider}, which loads the weights")
                started = {"lazy_init": False} if provider.startswith("vllm") else {}
                make_model(model, base_url, started | dict(model_args or {}), config=made_with)
            elif model.startswith(IN_PROCESS):
                say(f"loading the weights of {model}")
                loaded = make_model(model, base_url, model_args, config=made_with)
                run_sync(_call(loaded, called_with))
                return loaded
            else:
                seconds = called_with.timeout or FIRST_ANSWER
                say(f"waiting for the model's first answer, up to {seconds} s (--timeout)")
                make = partial(make_model, model, base_url, model_args, config=made_with)
                run_sync(_call_once(make, called_with))
    except QabenchError:
        raise
    except Exception as error:  # a provider's client may raise anything
        place = f" at {printable(base_url)}" if base_url else ""
        hint = ""
        failure = reason_of(error)
        if base_url and failure.status in (401, 403):
            hint = f"; set {KEY_VARIABLE} to the server's key"
        elif base_url and failure.status == 404:
            models = _models_at(base_url)
            hint = f"; models there: {some(models)}" if models else "; most base URLs end with /v1"
        text = failure.reason if place and failure.status is None else str(failure)
        detail = plain(error) if text == "HTTP" else text
        named = model.removeprefix(f"{ADDRESSED[0]}{SERVICE}/")
        raise QabenchError(f"the model {named}{place} does not answer: {detail}{hint}") from error
    return model


async def _call(model: Any, config: Any) -> None:
    output = await adapted(model).generate("Reply with the word ready.", config=config, cache=False)
    if output.error:
        raise QabenchError(f"the model {model} rejects calls: {printable(output.error)}")


async def _call_once(make: Callable[..., Any], config: Any) -> None:
    config.timeout = config.attempt_timeout = config.timeout or FIRST_ANSWER
    config.max_retries = 1 if config.max_retries is None else min(1, config.max_retries)
    with limited_replies():
        # Not the run's own object: its connections would belong to this event loop.
        instance = make(memoize=False)
        try:
            await _call(instance, config)
        finally:
            await instance.api.aclose()


def make_model(
    model: str, base_url: str | None = None, model_args: Arguments = None, **options: Any
) -> Any:
    """Return Inspect's model.

    Raises InputError or MissingExtra with Inspect's reason in one line.
    """
    try:
        if model.startswith(IN_PROCESS):
            _quiet_transformers()
        return get_model(model, base_url=base_url, **options, **(model_args or {}))
    except ImportError as error:
        raise _missing_package(model, error) from error
    except TypeError as error:
        raise InputError(
            f"the model {model} was given a wrong argument with -M: {plain(error)}; the documentation of Inspect AI "
            "lists the arguments of its providers"
        ) from error
    except Exception as error:  # Inspect's own classes: no key, no such provider, no weights
        if "pip install" in plain(error):
            raise _missing_package(model, error) from error
        no_provider = "" if "/" in model else f" Add --base-url URL, or a provider: openai/{model}"
        raise InputError(f"the model {model} cannot be used: {plain(error)}{no_provider}") from error


def _missing_package(model: str, error: Exception) -> MissingExtra:
    """Return the error for a model whose provider is not installed, with the extra if there is one."""
    reason = f"the model {model} needs a package that is not installed"
    if model.startswith(IN_PROCESS):
        return MissingExtra(f"{reason}: pip install 'qabench[hf]'")
    return MissingExtra(f"{reason}: {plain(error)}")


def _quiet_transformers() -> None:
    """Keep transformers from reporting its own work: shards of weights, optional kernels, generation flags."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    from huggingface_hub.utils.tqdm import enable_progress_bars
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    enable_progress_bars()  # of downloads


def plain(error: object) -> str:
    """Return the message of an error in one line.

    Inspect writes its messages with markup.
    """
    message = str(getattr(error, "message", "") or error)
    with suppress(MarkupError):  # a message that contains brackets
        message = Text.from_markup(message).plain
    return printable(" ".join(message.split()).removeprefix("ERROR: ")) or type(error).__name__


def _models_at(url: str) -> list[str]:
    """Return the models that a server lists, or none if it has no such list."""
    limits = Limits(MAX_REPLY_BYTES, SECONDS, redirects="none")
    headers = {"Authorization": f"Bearer {os.environ.get(KEY_VARIABLE, NO_KEY)}"}
    try:
        with closing(HttpClient(limits, headers=headers)) as client:
            models = json_of(client.once(f"{url}/models").content)["data"]
        return [str(model["id"]) for model in models]
    except (HttpError, ValueError, KeyError, TypeError):
        return []
