"""Shared by the benchmarks' Inspect AI tasks, such as ``inspect eval qabench/fanoutqa_closed_book``.

Metadata, samples, answers, scores and work in threads. Calls of models: the cache of replies,
failures in one line, and providers' differences.

Content of logs, which ``qabench.runs`` reads:

- the task's metadata: {"benchmark", "config", "setting", "data", "available"} (data: the digest of the questions'
  file; available: the number of questions of the config, if known);
- a sample's id is the benchmark's. Its metadata has "question", "reference" (strings for readers) and "groups"
  ({grouping: [group, ...]});
- a score's value is {column: number}, its answer is the text that was scored, and its metadata is {"detail",
  "signatures": {group: signature}}.

``detail`` by benchmark, with unchanged strings:

- fanoutqa: {"found": [text], "missing": [text]}, both normalized;
- felm: {"segments": [{"text", "label", "verdict", "type", "comment"}], "replies": [text], "reasons": [text], "claims"},
  True = factual. Verdict is None if there is none. One reason per reply without a verdict. No
  claims if segments were judged;
- expertqa: {"claims": [{"text", "evidence": [text], "label"}], "passages": [{"id", "text"}]}, label "Y", "N" or None;
- fastbook: {"passages": [{"id", "text", "score"}], "components": [{"text", "contexts", "rank"}], "k"}, rank from 1,
  None if it was not retrieved.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from math import isnan, nan
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import anyio
from anyio.lowlevel import current_token
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    CachePolicy,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelInfo,
    ModelOutput,
    get_model,
    get_model_info,
    set_model_info,
)
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.scorer import SampleScore
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolDef

from qabench.data.rows import Json
from qabench.errors import QabenchError
from qabench.evaluation import ANSWERED, Record
from qabench.evaluation.records import values_of
from qabench.evaluation.score_spec import ScoreSpec
from qabench.io.files import run_replies_dir
from qabench.io.tables import printable
from qabench.io.workers import run_job
from qabench.llm.client import FATAL, Answered, reason_of
from qabench.llm.endpoint import ADDRESSED, clean_url
from qabench.llm.exchange import SURROGATE, TOO_LONG, too_long
from qabench.tasks.facts import GENERATE_CONFIG, UNSIGNED, signed

# in the metadata of a sample: {"all": number of replies, "cached": those from the cache}
COUNTS = "replies"
FOLDER_VARIABLE = "INSPECT_CACHE_DIR"  # where Inspect keeps replies
SECRETS = ("api_key",)  # arguments of providers that do not identify the model
REJECTIONS_TO_STOP = 3  # consecutive rejected calls, without a reply in between
IN_PROCESS = ("hf/",)  # providers that generate with transformers in this process
CUT_OFF_STOPS = ("max_tokens", "model_length")
# Options of generation that do not affect a reply.
WITHOUT_EFFECT = frozenset(
    name for name, (treatment, _) in GENERATE_CONFIG.items() if treatment == UNSIGNED
)

_caching: ContextVar[bool] = ContextVar("qabench_caches_replies", default=False)
_policies: WeakKeyDictionary[Model, CachePolicy] = WeakKeyDictionary()
_adapted: WeakSet[Model] = WeakSet()
rejections: list[str] = []
"""The reasons of the calls since the last reply that were rejected permanently, such as for a wrong key."""
Out = TypeVar("Out")

_named: ContextVar[Mapping[str, Any]] = ContextVar("qabench_named_arguments")


@contextmanager
def naming_arguments(arguments: Mapping[str, Any]) -> Iterator[None]:
    """Record the task arguments that the user gives in this call, for ``named_in_this_call``."""
    token = _named.set(arguments)
    try:
        yield
    finally:
        _named.reset(token)


def named_in_this_call(argument: str, value: Any) -> bool:
    """Tell whether the user gave this argument of a task in this call, so that it is not from a log."""
    return bool(_named.get({}).get(argument) == value)


def texts(value: Sequence[str] | str | int | None) -> list[str]:
    """Split an argument with several values.

    Inspect's command line passes a string with commas, or a number.
    """
    if value is None:
        return []
    parts = str(value).split(",") if isinstance(value, str | int) else map(str, value)
    return [part.strip() for part in parts if part.strip()]


def answer_of(state: TaskState) -> str | None:
    """Return the model's answer: the text of its last reply, if the conversation ends with it.

    None if there is no answer: the sample failed before or between replies, the prompt was too
    long, the model refused, the reply was filtered, or the last reply calls a tool. An empty reply
    is an answer, the string "".
    """
    last = state.messages[-1] if state.messages else None
    if not isinstance(last, ChatMessageAssistant) or last.tool_calls or not state.output.choices:
        return None
    if too_long(state.output):
        return None
    return None if state.output.stop_reason == "content_filter" else state.output.completion


def note_problem(state: TaskState, problem: str) -> None:
    """Add a problem to the sample's metadata["problems"].

    The sample does not fail.
    """
    state.metadata.setdefault("problems", []).append(problem)


def metric_values(scores: Sequence[SampleScore], specs: Sequence[ScoreSpec]) -> dict[str, float]:
    """Return a benchmark's scores over all answers and epochs as ``qabench score`` computes them, by name.

    NaN for each if no sample has an answer, so that nothing was measured.
    """
    # In the order of a log's records: question by question, each by epoch. Inspect passes one epoch
    # after the other. The last digit of a mean depends on the order.
    positions = {score.sample_id: position for position, score in reversed(list(enumerate(scores)))}
    records = []
    for number, each in enumerate(sorted(scores, key=lambda score: positions[score.sample_id])):
        value = each.score.value
        columns = {
            name: float(column)
            for name, column in (value.items() if isinstance(value, dict) else ())
            if column is not None and not isnan(float(column))
        }
        records.append(Record(str(each.sample_id), number, "", "", (), None, ANSWERED, scores=columns))
    values = values_of(specs, records)
    answered = any((score.score.answer or "").strip() for score in scores)
    return values if answered else dict.fromkeys(values, nan)


async def in_daemon_thread(function: Callable[..., Out], *arguments: Any) -> Out:
    """Await a blocking function in a daemon thread, so that an interrupted run does not wait for it.

    It is ``anyio.to_thread.run_sync(..., abandon_on_cancel=True)``, except that the process can end
    before the thread.
    """
    future: Future[Out] = Future()
    done, token, context = anyio.Event(), current_token(), contextvars.copy_context()

    def work() -> None:
        run_job(future, lambda: context.run(function, *arguments))
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the run was interrupted
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=work, name="qabench-request", daemon=True).start()
    await done.wait()
    return future.result()


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
    """Return the model's reply, from the cache of the run if it is there, and count it in the sample ``state``.

    ``sample`` is the number of the reply, if the same messages are sent several times. ``options``
    are generation options for this call only.
    """
    return await _generate(model, state, sample, messages, tools, config=GenerateConfig(**options))


@solver
def ask() -> Solver:
    """Ask the model once."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = await _generate(
            get_model(), state, None, state.messages, state.tools, state.tool_choice
        )
        state.messages.append(state.output.message)
        return state

    return solve


async def _generate(
    model: Model, state: TaskState | None, sample: int | None, messages: Any, *tools: Any, **options: Any
) -> ModelOutput:
    cached = cache_argument(model, sample)
    with failing_in_one_line():
        output = await adapted(model).generate(messages, *tools, **(options | cached))
        for again in itertools.count(1):
            calls = _calls()
            if not calls or not _is_cached_and_empty(calls[-1]):
                break
            # Each repetition has an entry of its own in the cache.
            scopes = cached["cache"].scopes | {"again": str(again)}
            repeated = cached["cache"].model_copy(update={"scopes": scopes})
            output = await adapted(model).generate(messages, *tools, **(options | {"cache": repeated}))
    if too_long(output):
        raise QabenchError(f"{TOO_LONG}: {printable(output.completion)}")
    if state is not None:
        count_replies(state)
    calls = _calls()
    limit = calls[-1].config.max_tokens if calls else None
    used = output.usage.output_tokens if output.usage else 0
    if output.choices and output.stop_reason == "unknown" and limit is not None and used >= limit:
        output.choices[0].stop_reason = "max_tokens"
    return output


def adapted(model: Model) -> Model:
    """Make the provider ``hf`` decode greedily at temperature 0, and say whether a reply is complete.

    Inspect's provider samples unless ``do_sample`` is false, which transformers refuses at
    temperature 0. It uses the seed only when it loads the weights, counts the padding of a batch as
    tokens of each reply, and gives no stop reason. To look up a model that is not in its database,
    Inspect loads the weights again, by the model's name. A registered model is not looked up.
    """
    if not str(model).startswith(IN_PROCESS) or model in _adapted:
        return model
    from transformers import set_seed

    api: Any = model.api
    length = getattr(api.model.config, "max_position_embeddings", None)
    set_model_info(str(model), get_model_info(model) or ModelInfo(context_length=length))
    generate, samples, seeds = api.generate, api.do_sample, [model.config.seed]

    async def generate_greedily(
        input: Any, tools: Any, tool_choice: Any, config: GenerateConfig
    ) -> ModelOutput:
        if config.seed not in (None, seeds[-1]):
            set_seed(config.seed)
            seeds.append(config.seed)
        greedy = config.temperature == 0
        api.do_sample = samples and not greedy  # read by ``generate`` before it awaits anything
        sent = config.model_copy(update={"temperature": None}) if greedy else config
        output: ModelOutput = await generate(input, tools, tool_choice, sent)
        if output.usage and output.choices and config.max_tokens is not None:
            tokens = len(api.tokenizer(output.completion, add_special_tokens=False)["input_ids"])
            cut_off = min(output.usage.output_tokens, tokens) >= config.max_tokens
            output.choices[0].stop_reason = "max_tokens" if cut_off else "stop"
        return output

    api.generate = generate_greedily
    _adapted.add(model)
    return model


@contextmanager
def failing_in_one_line() -> Iterator[None]:
    """Make failed calls fail the sample, with a one-line reason.

    Inspect treats a ``TimeoutError`` as a time limit that the task handles: it would neither log
    nor retry it. Its retries end with a ``RetryError`` without the reason, which makes equal
    failures look different.
    """
    try:
        yield
    except TimeoutError as error:
        raise QabenchError(f"the model did not reply in time: {error or 'no details'}") from error
    except Exception as error:  # the errors of client libraries have no common base class
        of_call = (
            hasattr(error, "last_attempt") or hasattr(error, "status_code") or isinstance(error, OSError)
        )
        if isinstance(error, QabenchError) or not of_call:
            raise
        failure = reason_of(error)
        if failure.unreachable or failure.status in FATAL:
            rejections.append(str(failure))
        raise QabenchError(str(failure)) from error


def answered(output: ModelOutput) -> Answered:
    """Return the text of a reply, or the reason why it is missing.

    Refusals and empty replies count as missing.
    """
    if output.empty:
        return Answered(reason=output.error or "no reply")
    if too_long(output):
        return Answered(reason=TOO_LONG)
    refusal = (output.error or "") if output.stop_reason == "content_filter" else None
    cut_off = output.stop_reason in CUT_OFF_STOPS
    return Answered.of(output.completion, refusal, cut_off=cut_off)


def asked_with(default_limit: str = "max_tokens") -> Json:
    """Return the generation options of the sample's last call that affect its reply, for signatures.

    A user's options override the task's. Empty if the sample has made no call. Lists and dicts are
    replaced by their digests.

    Args:
        default_limit: the name of a limit of tokens that neither the user nor the task set: some
            providers, such as ``hf``, always have one.
    """
    calls = _calls()
    options = calls[-1].config.model_dump(exclude_none=True) if calls else {}
    if "max_tokens" in options and active_generate_config().max_tokens is None:
        options[default_limit] = options.pop("max_tokens")
    return signed(options, GENERATE_CONFIG)


def count_replies(state: TaskState) -> None:
    """Write the number of replies so far, and of those from the cache, to the sample's metadata."""
    replies = [
        call
        for call in _calls()
        if not call.pending and not call.error and not _is_cached_and_empty(call)
    ]
    state.metadata[COUNTS] = {
        "all": len(replies),
        "cached": sum(call.cache == "read" for call in replies),
    }


def _is_cached_and_empty(call: ModelEvent) -> bool:
    """Tell whether a call has an empty reply from the cache, so that the model is asked again."""
    if call.cache != "read" or not _caching.get():
        return False
    return is_empty_output(call.output)


def is_empty_output(output: ModelOutput) -> bool:
    """Tell whether a reply has no text, no call of a tool, and is not a refusal."""
    if not output.choices or output.stop_reason == "content_filter" or too_long(output):
        return False
    return not output.completion.strip() and not output.message.tool_calls


def _calls() -> list[ModelEvent]:
    return [event for event in transcript().events if isinstance(event, ModelEvent)]


@contextmanager
def caching_replies(enabled: bool) -> Iterator[None]:
    """Make the tasks' calls use the cache, which only the user can read."""
    token = _caching.set(enabled)
    before = os.environ.get(FOLDER_VARIABLE)
    if enabled:
        run_replies_dir().mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ[FOLDER_VARIABLE] = str(run_replies_dir())
    try:
        yield
    finally:
        _caching.reset(token)
        os.environ.pop(FOLDER_VARIABLE, None)
        if before is not None:
            os.environ[FOLDER_VARIABLE] = before


def cache_argument(model: Model, sample: int | None = None) -> dict[str, Any]:
    """Return the argument ``cache`` of a call of a model, which is not written to the log.

    There is none outside of ``caching_replies``, as in ``inspect eval``, where the user's options
    decide. But of several samples of one prompt, none is cached there, because they would be equal.
    """
    if not _caching.get():
        return {} if sample is None else {"cache": False}
    if model not in _policies:  # the files of a model are looked at once
        _policies[model] = CachePolicy(expiry=None, scopes=model_identity(model))
    policy = _policies[model]
    if sample is not None:
        policy = policy.model_copy(update={"scopes": policy.scopes | {"sample": str(sample)}})
    return {"cache": policy}


def model_identity(model: Model) -> dict[str, str]:
    """Return what identifies a model: provider, name, base URL, arguments, and the state of its local files."""
    provider, _, name = str(model).partition("/")
    arguments = {key: value for key, value in model.model_args.items() if key not in SECRETS}
    return {
        "provider": provider,
        "name": name,
        "base_url": model.api.base_url or configured_base_url(str(model)) or "",
        "model_args": json.dumps(arguments, sort_keys=True, default=repr),
        "files": _files_digest([name, *(text for text in arguments.values() if isinstance(text, str))]),
    }


def configured_base_url(model: str) -> str | None:
    """Return the address for the provider of a model in the user's environment."""
    parts = model.split("/")
    provider = parts[1] if f"{parts[0]}/" in ADDRESSED and len(parts) > 1 else parts[0]
    value = os.environ.get(f"{provider.upper().replace('-', '_')}_BASE_URL")
    return clean_url(value) if value else None


def _files_digest(names: Iterable[str]) -> str:
    """Return a digest of the sizes and modification times of the files at these paths, or "" if there are none."""
    states = []
    for path in map(Path, names):
        files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
        for file in files:
            if file.is_file():
                state = file.stat()
                states.append((str(file.relative_to(path)), state.st_size, state.st_mtime_ns))
    return hashlib.sha256(repr(states).encode()).hexdigest() if states else ""
