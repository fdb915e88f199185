"""Calls a model from a task: caches replies, reports failures in one line, adapts providers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelInfo,
    ModelOutput,
    get_model_info,
    set_model_info,
)
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolDef

from qabench.adapters.inspect_ai.facts import GENERATE_CONFIG
from qabench.adapters.inspect_ai.reply_cache import asked_once, cache_argument, is_caching
from qabench.data.rows import Json
from qabench.errors import QabenchError
from qabench.evaluation.harness_fields import UNSIGNED, signed
from qabench.io.http_error import FATAL, reason_of
from qabench.io.redaction import printable
from qabench.llm.endpoint import IN_PROCESS
from qabench.llm.exchange import SURROGATE, TOO_LONG, Answered, too_long

# The key in a sample's metadata for {"all": number of replies, "cached": replies from the cache}.
COUNTS = "replies"
# A run stops after this many consecutive rejected calls.
REJECTIONS_TO_STOP = 3
CUT_OFF_STOPS = ("max_tokens", "model_length")
# Generation options that do not affect a reply.
WITHOUT_EFFECT = frozenset(
    name for name, (treatment, _) in GENERATE_CONFIG.items() if treatment == UNSIGNED
)

_adapted: WeakSet[Model] = WeakSet()
rejections: list[str] = []
"""Why calls failed since the last reply, if more calls would fail in the same way.

The server is unreachable, or rejects all calls, such as those with a wrong key.
"""


def answer_of(state: TaskState) -> str | None:
    """Return the model's answer: the text of its last reply, if the conversation ends with it.

    None if there is no answer: the sample failed before or between replies, the prompt was too
    long, the model refused, the reply was filtered, or the last reply calls a tool. An empty reply
    is an answer, the string "".
    """
    last = state.messages[-1] if state.messages else None
    if not isinstance(last, ChatMessageAssistant) or last.tool_calls or not state.output.choices:
        return None
    if too_long(state.output) or state.output.stop_reason == "content_filter":
        return None
    return state.output.completion


def chat(messages: Iterable[tuple[str, str]]) -> list[ChatMessage]:
    """Return the (role, text) pairs of a prompt as messages, with lone surrogates replaced."""
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
    """Return the model's reply, perhaps from the run's cache, and count it in the sample ``state``.

    ``sample`` is the number of the reply, if the same messages are sent several times. ``options``
    are generation options for this call only.
    """
    config = GenerateConfig(**options)
    return await generate_reply(model, state, sample, messages, tools, config=config)


async def generate_reply(
    model: Model,
    state: TaskState | None,
    sample: int | None,
    messages: Any,
    *tools: Any,
    **options: Any,
) -> ModelOutput:
    """Return and count the model's reply, as ``ask_model`` does.

    ``tools`` and ``options`` are passed to ``Model.generate``, whose documentation describes them.
    """
    cached = cache_argument(model, sample)
    epoch = state.epoch if state else 0
    with failing_in_one_line():
        async with asked_once(cached.get("cache") or None, epoch, messages):
            output = await adapted(model).generate(messages, *tools, **(options | cached))
            for repetition in itertools.count(1):
                calls = _calls()
                if not calls or not _is_cached_and_empty(calls[-1]):
                    break
                # An empty reply in the cache is requested again. Each repetition has a separate
                # cache entry.
                scopes = cached["cache"].scopes | {"again": str(repetition)}
                options["cache"] = cached["cache"].model_copy(update={"scopes": scopes})
                output = await adapted(model).generate(messages, *tools, **options)
    if too_long(output):
        raise QabenchError(f"{TOO_LONG}: {printable(output.completion)}")
    if state is not None:
        count_replies(state)
    # Some providers do not report that a reply was cut off.
    calls = _calls()
    limit = calls[-1].config.max_tokens if calls else None
    used = output.usage.output_tokens if output.usage else 0
    if output.choices and output.stop_reason == "unknown" and limit is not None and used >= limit:
        output.choices[0].stop_reason = "max_tokens"
    return output


def adapted(model: Model) -> Model:
    """Make the provider ``hf`` decode greedily at temperature 0, and report truncated replies.

    This replaces the method ``generate`` of the provider's object, once for each model. Models of
    other providers are returned as they are.
    """
    if not str(model).startswith(IN_PROCESS) or model in _adapted:
        return model
    from transformers import set_seed

    api: Any = model.api
    # To look up a model that is not in its database, Inspect would load the weights again, by the
    # model's name. A registered model is not looked up.
    length = getattr(api.model.config, "max_position_embeddings", None)
    set_model_info(str(model), get_model_info(model) or ModelInfo(context_length=length))
    generate, samples = api.generate, api.do_sample
    seed_in_use = model.config.seed

    async def generate_greedily(
        input: Any, tools: Any, tool_choice: Any, config: GenerateConfig
    ) -> ModelOutput:
        nonlocal seed_in_use
        # The provider itself uses the seed only when it loads the weights.
        if config.seed not in (None, seed_in_use):
            set_seed(config.seed)
            seed_in_use = config.seed
        # The provider samples unless ``do_sample`` is false, and transformers rejects sampling at
        # temperature 0. ``generate`` reads ``do_sample`` before it awaits anything, so no other
        # call can change it meanwhile.
        is_greedy = config.temperature == 0
        api.do_sample = samples and not is_greedy
        sent = config
        if is_greedy:
            sent = config.model_copy(update={"temperature": None})
        output: ModelOutput = await generate(input, tools, tool_choice, sent)
        # The provider gives no stop reason, and counts the padding of a batch as tokens of each
        # reply, so the tokens of the text are counted here.
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

    Inspect treats a ``TimeoutError`` as a time limit that the task handles, so the failure would be
    neither logged nor retried. Inspect's retries end with a ``RetryError`` whose text does not have
    the reason, and is different each time.
    """
    try:
        yield
    except TimeoutError as error:
        raise QabenchError(f"the model did not reply in time: {error or 'no details'}") from error
    except Exception as error:
        # The errors of client libraries have no common base class.
        of_call = (
            hasattr(error, "last_attempt")
            or hasattr(error, "status_code")
            or isinstance(error, OSError)
        )
        if isinstance(error, QabenchError) or not of_call:
            raise
        failure = reason_of(error)
        if failure.unreachable or failure.status in FATAL:
            rejections.append(str(failure))
        raise QabenchError(str(failure)) from error


def answered(output: ModelOutput) -> Answered:
    """Return the text of a reply, or why there is none, such as a refusal or an empty reply."""
    if output.empty:
        return Answered(reason=output.error or "no reply")
    if too_long(output):
        return Answered(reason=TOO_LONG)
    refusal = None
    if output.stop_reason == "content_filter":
        refusal = output.error or ""
    cut_off = output.stop_reason in CUT_OFF_STOPS
    return Answered.of(output.completion, refusal, cut_off=cut_off)


def asked_with(default_limit: str = "max_tokens") -> Json:
    """Return the options of the sample's last call that affect its reply, for signatures.

    A user's options override the task's. Empty if the sample has made no call. Lists and dicts are
    replaced by their digests.

    Args:
        default_limit: the name for a token limit that neither the user nor the task has set. Some
            providers, such as ``hf``, always have one.
    """
    calls = _calls()
    if not calls:
        return {}
    options = calls[-1].config.model_dump(exclude_none=True)
    if "max_tokens" in options and active_generate_config().max_tokens is None:
        options[default_limit] = options.pop("max_tokens")
    return signed(options, GENERATE_CONFIG)


def count_replies(state: TaskState) -> None:
    """Write the number of replies so far, and of those from the cache, to the sample's metadata."""
    counts = {"all": 0, "cached": 0}
    for call in _calls():
        if call.pending or call.error or _is_cached_and_empty(call):
            continue
        counts["all"] += 1
        counts["cached"] += call.cache == "read"
    state.metadata[COUNTS] = counts


def _is_cached_and_empty(call: ModelEvent) -> bool:
    """Tell whether a call has an empty reply from the cache, so that the model is asked again."""
    if call.cache != "read" or not is_caching():
        return False
    return is_empty_output(call.output)


def is_empty_output(output: ModelOutput) -> bool:
    """Tell whether a reply has neither text nor tool calls, and no refusal or error explains it."""
    if not output.choices or output.stop_reason == "content_filter" or too_long(output):
        return False
    return not output.completion.strip() and not output.message.tool_calls


def _calls() -> list[ModelEvent]:
    return [event for event in transcript().events if isinstance(event, ModelEvent)]
