"""The estimated cost of a run: the task is run with a model that only counts its prompts."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, ModelUsage, get_model_info, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from qabench.benchmarks import benchmark
from qabench.errors import InputError, QabenchError
from qabench.llm.client import BYTES_PER_TOKEN, EXPECTED_REPLY_TOKENS, TOKENS_PER_MESSAGE, Plan, Prices
from qabench.runs.probe import plain
from qabench.runs.task_options import check_task_options, task_options

COUNTING = "qabench_counting"
COUNTS = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}


@modelapi(name=COUNTING)
class _Counting(ModelAPI):
    """Counts calls and tokens, and answers "0"."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **_: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Returns an answer that ends every conversation."""
        sizes = [len(message.text.encode("utf-8", "replace")) for message in input]
        prompt = sum(-(-size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE for size in sizes)
        reply = min(EXPECTED_REPLY_TOKENS, config.max_tokens or EXPECTED_REPLY_TOKENS)
        COUNTS["calls"] += 1
        COUNTS["prompt_tokens"] += prompt
        COUNTS["completion_tokens"] += reply * (config.num_choices or 1)
        output = ModelOutput.from_content(COUNTING, "0")
        output.usage = ModelUsage(input_tokens=prompt, output_tokens=1, total_tokens=prompt + 1)
        return output


def plan_run(
    name: str,
    setting: str | None,
    model: str,
    task_args: Mapping[str, Any],
    prices: Prices | None = None,
    **options: Any,
) -> Plan:
    """The estimated calls and tokens of a run; no model is called and nothing is written.

    In settings with tools, further calls are made that are not in the plan.

    Args:
        name: the benchmark.
        setting: one of its settings; None for the first.
        model: the model that would run, for its context window.
        task_args: arguments of the task.
        prices: prices per million tokens.
        **options: options of ``inspect_ai.eval`` that select questions: limit, epochs.

    Raises:
        InputError: as for a run.
    """
    import inspect_ai

    found = benchmark(name)
    chosen = found.setting(setting)
    check_task_options(found, chosen, task_args)
    arguments = {**chosen.arguments, **task_args}
    info = get_model_info(model)
    if info and info.context_length and "context_length" in {option.name for option in task_options(chosen)}:
        arguments.setdefault("context_length", info.context_length)
    COUNTS.update(dict.fromkeys(COUNTS, 0))
    given = {name: value for name, value in options.items() if value is not None}
    with tempfile.TemporaryDirectory(prefix="qabench-plan-") as folder, redirect_stdout(io.StringIO()):
        try:
            (log,) = inspect_ai.eval(
                f"qabench/{chosen.task}",
                model=f"{COUNTING}/{model.rpartition('/')[2]}",
                task_args=arguments,
                log_dir=folder,
                log_samples=False,
                score=False,
                display="none",
                log_level="error",
                **given,
            )
        except QabenchError:
            raise
        except Exception as error:
            raise InputError(f"{found.title}, {chosen.name}, cannot be planned: {plain(error)}") from error
    if log.status != "success":
        raise QabenchError(f"{found.title}, {chosen.name}, cannot be planned: {plain(log.error)}")
    cost = prices.cost(COUNTS["prompt_tokens"], COUNTS["completion_tokens"]) if prices else None
    return Plan(COUNTS["calls"], 0, COUNTS["prompt_tokens"], COUNTS["completion_tokens"], cost)
