"""A log as input of a new run: a log is data, so it must not determine what code runs or where keys are sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark, Setting, benchmark, benchmark_names
from qabench.errors import InputError
from qabench.io.terminal import printable
from qabench.llm.endpoint import clean_url
from qabench.runs.log import read_header, whole_log
from qabench.runs.probe import ADDRESSED
from qabench.runs.task_options import check_task_options

# These fields of a log name code, files or servers; a run of qabench does not set them.
DROPPED = ("task_file", "solver", "solver_args", "solver_args_passed", "sandbox", "model_roles", "revision")
DROPPED_CONFIG = ("approval", "review", "sentinel", "notification", "acp_server")


def checked_log(path: str | Path, base_url: str | None, model_args: Mapping[str, Any] | None) -> Any:
    """The whole log, without anything that could determine code, files or a server.

    Args:
        path: the log.
        base_url: the server that the user gave.
        model_args: the arguments for the provider that the user gave.

    Raises:
        InputError: not a task of qabench, arguments that the task does not have, or a server or arguments for the
            provider that the user did not give.
    """
    header = read_header(path)
    passed = header.eval.task_args_passed
    found, setting = _task(header.eval.task, passed, path)
    check_task_options(found, setting, _own(passed, setting))
    url = _endpoint(header.eval, base_url, path)
    _check_model_args(header.eval.model_args, model_args, path)
    log = whole_log(path)
    log.eval.task = log.eval.task_registry_name = f"qabench/{setting.task}"
    for name in DROPPED:
        setattr(log.eval, name, None)
    for name in DROPPED_CONFIG:
        if hasattr(log.eval.config, name):
            setattr(log.eval.config, name, None)
    log.eval.model_base_url = url
    log.eval.model_args = dict(model_args or {})
    if log.status == "started":
        log.status = "error"  # else Inspect reads the file again
    return log


def _task(name: str, passed: Mapping[str, Any], path: str | Path) -> tuple[Benchmark, Setting]:
    """The benchmark and setting of a task; of several settings, the one that the task's arguments make."""
    wanted = name.removeprefix("qabench/")
    alike = [
        (found, one) for found in map(benchmark, benchmark_names()) for one in found.settings if one.task == wanted
    ]
    if not alike:
        raise InputError(f"{path} is the log of {printable(name)!r}, which is not a task of qabench")
    return next((pair for pair in alike if pair[1].arguments.items() <= passed.items()), alike[0])


def _own(arguments: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in setting.arguments}


def _endpoint(spec: Any, base_url: str | None, path: str | Path) -> str | None:
    """The server to call. A log's server is used only if the user gives the same one."""
    named = spec.model_base_url
    given = clean_url(base_url) if base_url else _configured(spec.model)
    if named is None or given == clean_url(named):
        return given if base_url or named else None
    shown = printable(named)
    if given is None:
        raise InputError(
            f"{path} was run on the server {shown}. To send its questions and your key to this server again, use: "
            f"qabench run --resume {path} --base-url {shown}"
        )
    raise InputError(
        f"{path} was run on the server {shown}, not on {printable(given)}; resume it there, or start a new run"
    )


def _configured(model: str) -> str | None:
    """The address for the provider of a model in the user's environment."""
    parts = model.split("/")
    provider = parts[1] if f"{parts[0]}/" in ADDRESSED and len(parts) > 1 else parts[0]
    value = os.environ.get(f"{provider.upper().replace('-', '_')}_BASE_URL")
    return clean_url(value) if value else None


def _check_model_args(logged: Mapping[str, Any], given: Mapping[str, Any] | None, path: str | Path) -> None:
    if lacking := [name for name in logged if name not in (given or {})]:
        shown = " ".join(f"-M {name}={logged[name]!r}" for name in lacking)
        raise InputError(
            f"{path} was run with arguments for the provider, which are not read from a log. To use them again, add: "
            f"{printable(shown)}"
        )
