"""A scripted model of Inspect AI for tests, without network access or a tokenizer."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from inspect_ai import eval as evaluate
from inspect_ai.log import EvalLog, EvalSample, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelAPI, ModelOutput, ModelUsage, get_model, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

Reply = str | ModelOutput | Exception
Script = Callable[..., Reply | Awaitable[Reply]]

SCRIPTS: dict[str, Script] = {}
"""The replies of ``scripted/NAME``. A script takes the messages, and the tools if it has a second parameter."""


def scripted(script: Script | Mapping[str, Reply] | Iterable[Reply], name: str = "model") -> Model:
    """The model ``scripted/NAME``, which ``eval``, ``eval_retry`` and the command line in this
    process find by name.

    Args:
        script: a function; a mapping from a part of the prompt to a reply (the first that fits); or
            the replies in order. An exception as a reply is raised.
    """
    SCRIPTS[name] = _function(script)
    return get_model(f"scripted/{name}", memoize=False)


def text(reply: str, stop_reason: Any = "stop") -> ModelOutput:
    """A reply that ended for this reason: "stop", "max_tokens", "content_filter", ..."""
    return ModelOutput.from_content("scripted", reply, stop_reason=stop_reason)


def call(tool: str, **arguments: Any) -> ModelOutput:
    """A reply that calls a tool."""
    return ModelOutput.for_tool_call("scripted", tool, arguments, content="")


def _function(script: Script | Mapping[str, Reply] | Iterable[Reply]) -> Script:
    if callable(script):
        return script
    if isinstance(script, Mapping):
        table = dict(script)
        return lambda messages: next(reply for part, reply in table.items() if part in messages[0].text)
    replies = iter(script)
    return lambda messages: next(replies)


@modelapi(name="scripted")
class ScriptedAPI(ModelAPI):
    """Tokens are words. ``model_args`` of the command line are accepted and ignored."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **_: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())

    async def count_text_tokens(self, text: str) -> int:
        return len(text.split())

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        script = SCRIPTS[self.model_name]
        wanted = len(inspect.signature(script).parameters)
        reply = script(*(input, tools)[:wanted])
        if inspect.isawaitable(reply):
            reply = await reply
        if isinstance(reply, Exception):
            raise reply
        output = text(reply) if isinstance(reply, str) else reply
        tokens = sum(len(message.text.split()) for message in input), len(output.completion.split())
        output.usage = output.usage or ModelUsage(
            input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=sum(tokens)
        )
        return output


def run(task: Any, script: Script | Mapping[str, Reply] | Iterable[Reply], folder: Path, **options: Any) -> EvalLog:
    """The log of a task run with this script's model, read from the file."""
    logs = evaluate(task, model=scripted(script), log_dir=str(folder), display="none", log_realtime=False, **options)
    return read_eval_log(logs[0].location)


def edited(log: Path, folder: Path, edit: Callable[[EvalLog], object]) -> Path:
    """A copy of a log with a change, in this folder."""
    content = read_eval_log(str(log))
    edit(content)
    write_eval_log(content, str(folder / "edited.eval"), format="eval")
    return folder / "edited.eval"


def in_order(log: EvalLog) -> list[EvalSample]:
    """The samples in the order of the task's questions: logs are read sorted by id."""
    by_id = {sample.id: sample for sample in log.samples or []}
    return [by_id[id] for id in log.eval.dataset.sample_ids or []]
