"""The options of a benchmark's tasks (``-T NAME=VALUE``), and the estimated cost of a run."""

from __future__ import annotations

import inspect
import io
import re
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import Any

from qabench.benchmarks import Benchmark, Setting, benchmark
from qabench.errors import InputError, QabenchError, unknown_name
from qabench.llm.client import BYTES_PER_TOKEN, EXPECTED_REPLY_TOKENS, TOKENS_PER_MESSAGE, Plan, Prices

_SAME_AS = re.compile(r"see ``(\w+)``")
_POINTER = re.compile(r"[;.]? see ``[\w.]+``")  # of use to readers of the code only


@dataclass(frozen=True, slots=True)
class TaskOption:
    """An argument of a task: its name, its default, and its description in the task's docstring."""

    name: str
    default: Any
    about: str


def task_options(benchmark: Benchmark, setting: Setting) -> list[TaskOption]:
    """Return the options of a setting's task, without those that make the setting or have no effect in it."""
    function = inspect.unwrap(benchmark.task_function(setting))
    about = _arguments(function)
    return [
        TaskOption(name, parameter.default, about.get(name, ""))
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in setting.arguments and name not in setting.without
    ]


def check_task_options(benchmark: Benchmark, setting: Setting, arguments: Mapping[str, Any]) -> None:
    """Raise InputError, with the allowed names, for an argument that the setting does not have."""
    allowed = [option.name for option in task_options(benchmark, setting)]
    if unknown := [name for name in arguments if name not in allowed]:
        raise unknown_name(f"{benchmark.title}, {setting.name}, has no option", unknown[0], allowed)


def _arguments(function: Any) -> dict[str, str]:
    """Return the arguments' descriptions for the command line; "see ``task``" is replaced by that task's text."""
    about = _documented(function.__doc__ or "")
    for name, text in about.items():
        if (same := _SAME_AS.match(text)) and same[1] in function.__globals__:
            other = _arguments(inspect.unwrap(function.__globals__[same[1]]))[name]
            text = other.removesuffix(".") + text[same.end() :]
        about[name] = _POINTER.sub("", text).replace("``", "")
    return about


def _documented(docstring: str) -> dict[str, str]:
    """Return the descriptions in the section "Args:" of a docstring; "a, b: text" describes both."""
    section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.cleandoc(docstring), re.S | re.M)
    about: dict[str, str] = {}
    names: list[str] = []
    for line in section[1].splitlines() if section else ():
        head = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if head:
            names = head[1].split(", ")
            about |= dict.fromkeys(names, head[2])
        elif line.strip():
            about |= {name: f"{about[name]} {line.strip()}" for name in names}
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

    In settings with tools, further calls are made that are not in the plan. ``options`` are those of
    ``inspect_ai.eval`` that select questions: limit, epochs. Raises InputError as for a run.
    """
    import inspect_ai
    from inspect_ai.model import get_model, get_model_info

    from qabench.runs.probe import plain
    from qabench.tasks.common import own_tasks_only
    from qabench.tasks.replies import IN_PROCESS

    scorer = benchmark(name)
    chosen = scorer.setting(setting)
    title = f"{scorer.title}, {chosen.name}, cannot be planned"
    check_task_options(scorer, chosen, task_args)
    arguments = {**chosen.arguments, **task_args}
    with redirect_stdout(io.StringIO()):  # Inspect prints the list of hooks
        # For a model in this process, Inspect would load the weights.
        info = None if model.startswith(IN_PROCESS) else get_model_info(model)
    if info and info.context_length and "context_length" in {option.name for option in task_options(scorer, chosen)}:
        arguments.setdefault("context_length", info.context_length)
    counts = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
    with (
        own_tasks_only(),
        tempfile.TemporaryDirectory(prefix="qabench-plan-") as folder,
        redirect_stdout(io.StringIO()),
    ):
        try:
            (log,) = inspect_ai.eval(
                f"qabench/{chosen.task}",
                model=get_model(f"mockllm/{model.rpartition('/')[2]}", custom_outputs=partial(_count, counts)),
                task_args=arguments,
                log_dir=folder,
                log_samples=False,
                score=False,
                display="none",
                log_level="error",
                **{name: value for name, value in options.items() if value is not None},
            )
        except QabenchError:
            raise
        except Exception as error:
            raise InputError(f"{title}: {plain(error)}") from error
    if log.status != "success":
        raise QabenchError(f"{title}: {plain(log.error)}")
    cost = prices.cost(counts["prompt_tokens"], counts["completion_tokens"]) if prices else None
    return Plan(counts["calls"], 0, counts["prompt_tokens"], counts["completion_tokens"], cost)


def _count(counts: dict[str, int], messages: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
    """Count a call and its tokens; the answer "0" ends every conversation."""
    from inspect_ai.model import ModelOutput, ModelUsage

    sizes = [len(message.text.encode("utf-8", "replace")) for message in messages]
    prompt = sum(-(-size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE for size in sizes)
    reply = min(EXPECTED_REPLY_TOKENS, config.max_tokens or EXPECTED_REPLY_TOKENS)
    counts["calls"] += 1
    counts["prompt_tokens"] += prompt
    counts["completion_tokens"] += reply * (config.num_choices or 1)
    output = ModelOutput.from_content("counting", "0")
    output.usage = ModelUsage(input_tokens=prompt, output_tokens=1, total_tokens=prompt + 1)
    return output
