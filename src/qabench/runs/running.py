"""Starting a run and going on with one that was stopped: Inspect AI does the work, this only says how."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks.settings import setting as setting_of
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.runs.log import read_header

SERVICE = "qabench"  # Inspect's name for a server that is given by its address: its key is in QABENCH_API_KEY
KEY_VARIABLE = f"{SERVICE.upper()}_API_KEY"


def start(
    benchmark: str,
    setting: str | None,
    model: str,
    *,
    base_url: str | None = None,
    task_args: Mapping[str, Any] | None = None,
    model_args: Mapping[str, Any] | None = None,
    log_dir: str | Path = "logs",
    **options: Any,
) -> Path:
    """Runs a setting of a benchmark and gives the path of the log.

    A sample that fails (a time-out, a server's error after all retries) is recorded and costs no other; it scores as
    unanswered, and ``resume`` asks again.

    Args:
        benchmark, setting: see ``qabench.benchmarks.settings``.
        model: as Inspect names models, such as "hf-inference-providers/ORG/NAME"; with ``base_url`` the name that an
            OpenAI-compatible server knows the model by. Its key is read from QABENCH_API_KEY; many need none.
        task_args, model_args: for the Inspect task and the model's provider.
        **options: of ``inspect_ai.eval``: limit, epochs, sample_shuffle, max_connections, temperature, ...

    Raises:
        InputError: an unknown benchmark, setting or model, or an argument that does not fit.
        MissingExtra: inspect_ai is not installed.
        QabenchError: the run ended before all samples were through; its message names the log to go on with.
    """
    _, (task, arguments) = setting_of(benchmark, setting)
    inspect_ai = _inspect_ai()
    if base_url:
        os.environ.setdefault(KEY_VARIABLE, "none")
        named = model.startswith(("openai-api/", "openai-api-completions/"))  # the second: plain completion
        model = model if named else f"openai-api/{SERVICE}/{model}"
    options = {name: value for name, value in options.items() if value is not None}
    try:
        logs = inspect_ai.eval(
            f"qabench/{task}",
            model=model,
            model_base_url=base_url,
            model_args=dict(model_args or {}),
            task_args={**arguments, **(task_args or {})},
            log_dir=str(log_dir),
            log_format="eval",
            **options,
        )
    except QabenchError:
        raise
    except Exception as error:  # a provider's package or key is missing, an argument is wrong: Inspect says which
        raise InputError(f"the run of {task} with {model} could not start: {error}") from error
    return _finished(logs)


def resume(log: str | Path, *, log_dir: str | Path | None = None, **options: Any) -> Path:
    """Goes on with a run that was killed, cancelled or had failed samples: only those that are not there are asked.

    Args:
        log: the log of the run. log_dir: where the new log goes; by default beside the old one.
        **options: of ``inspect_ai.eval_retry``: max_connections, timeout, ...

    Returns:
        The path of the new log, which holds everything.

    Raises:
        InputError, MissingExtra, QabenchError: see ``start``.
    """
    header = read_header(log)
    inspect_ai = _inspect_ai()
    if f"/{SERVICE}/" in header.eval.model:
        os.environ.setdefault(KEY_VARIABLE, "none")
    try:
        logs = inspect_ai.eval_retry(str(log), log_dir=str(log_dir or Path(log).parent), **options)
    except Exception as error:
        raise InputError(f"the run of {log} cannot go on: {error}") from error
    return _finished(logs)


def _finished(logs: Sequence[Any]) -> Path:
    (log,) = logs
    path = Path(log.location.removeprefix("file://"))
    if log.status != "success":
        why = f": {log.error.message}" if log.error else ""
        raise QabenchError(
            f"the run ended with the status {log.status}{why}. What is done is kept; go on with "
            f"`qabench run --resume {path}`"
        )
    return path


def _inspect_ai() -> Any:
    try:
        import inspect_ai
    except ImportError:
        raise MissingExtra('running models needs inspect_ai: pip install "qabench[run]"') from None
    return inspect_ai
