"""Estimates the calls of a task that needs Inspect AI for tokenizers, tools or a custom solver."""

from __future__ import annotations

import io
import tempfile
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import inspect_ai
from inspect_ai.hooks import Hooks, SampleEnd, hooks
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from qabench.adapters.inspect_ai.tasks import inspect_tasks
from qabench.benchmarks import Benchmark, Setting
from qabench.data.rows import Json, without_none
from qabench.errors import InputError, QabenchError
from qabench.runs.counting import Counts
from qabench.runs.models import known_window, plain
from qabench.runs.task_options import task_options

# The counts of the plan in progress, or nothing between plans. This is a global, because Inspect
# itself creates the ``_Failures`` object.
_COUNTS: list[Counts] = []


@hooks(name="qabench_estimate", description="Questions that qabench run --dry-run cannot plan.")
class _Failures(Hooks):
    def enabled(self) -> bool:
        return bool(_COUNTS)

    async def on_sample_end(self, data: SampleEnd) -> None:
        if data.sample.error:
            _COUNTS[0].add_failure(QabenchError(data.sample.error.message))


def counted_by_inspect(
    benchmark: Benchmark, setting: Setting, model: str, arguments: Json, **options: Any
) -> Counts:
    """Return the calls of a setting, counted by running its task with a model that replies at once.

    Args:
        benchmark: the benchmark.
        setting: the setting, whose task runs.
        model: the model that the run would call. Only its name and context window are used.
        arguments: all arguments of the task, with the setting's own.
        **options: options of ``inspect_ai.eval``, such as limit, epochs and max_tokens.

    Raises:
        InputError: the task cannot be made with these arguments, or Inspect AI refuses an option.
        QabenchError: the task failed. A question that fails is counted as a failure instead.
    """
    title = f"{benchmark.title}, {setting.name}, cannot be planned"
    arguments = dict(arguments)
    # Only commands that need tasks register them, because registering imports all of Inspect.
    inspect_tasks(benchmark)
    # Inspect does not know the context window of the model that only counts.
    window = known_window(model)
    names = [option.name for option in task_options(benchmark, setting)]
    if window and "context_length" in names:
        arguments.setdefault("context_length", window)
    counts = Counts()
    _COUNTS[:] = [counts]
    with (
        tempfile.TemporaryDirectory(prefix="qabench-plan-") as folder,
        redirect_stdout(io.StringIO()),
    ):
        try:
            counting_model = get_model(
                f"mockllm/{model.rpartition('/')[2]}",
                custom_outputs=partial(_count, counts, benchmark.planned_reply),
            )
            (log,) = inspect_ai.eval(
                f"qabench/{setting.task}",
                model=counting_model,
                task_args=arguments,
                log_dir=folder,
                log_samples=False,
                score=False,
                fail_on_error=False,
                display="none",
                log_level="error",
                **without_none(options),
            )
        except QabenchError:
            raise
        except Exception as error:
            # Inspect and providers have their own exception classes, such as for an invalid option.
            raise InputError(f"{title}: {plain(error)}") from error
        finally:
            _COUNTS.clear()
    if log.status != "success":
        raise QabenchError(f"{title}: {plain(log.error)}")
    return counts


def _count(
    counts: Counts, reply: str, messages: Any, tools: Any, tool_choice: Any, config: Any
) -> Any:
    """Count a call, and return the benchmark's planned reply, which calls no tools."""
    texts = [(message.role, message.text) for message in messages]
    prompt = counts.add(texts, config.max_tokens)
    output = ModelOutput.from_content("counting", reply)
    output.usage = ModelUsage(input_tokens=prompt, output_tokens=1, total_tokens=prompt + 1)
    return output
