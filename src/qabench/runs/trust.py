"""Checks a log before it is resumed: a log is data, so it must not determine what code runs or where keys are sent.

A resumed run gets a new configuration. Only the fields that are listed here are read from the log.
What names code, a server or a model, and what multiplies the price, has to be repeated on the
command line.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalConfig, EvalLog, EvalPlan, EvalSpec
from inspect_ai.model import GenerateConfig

from qabench.benchmarks import Benchmark, Setting, benchmark, benchmark_names
from qabench.data.rows import Json, without_none
from qabench.errors import InputError
from qabench.io.limits import yaml_of
from qabench.io.tables import printable
from qabench.llm.endpoint import clean_url
from qabench.loading_scripts import dataset_table
from qabench.runs.facts import NO_MODEL, setting_of
from qabench.runs.log import read_header, whole_log
from qabench.runs.plan import (
    Arguments,
    TaskOption,
    at_address,
    check_task_options,
    selected,
    task_options,
)
from qabench.tasks.common import WITHOUT_EFFECT, configured_base_url

RUN_OPTIONS = ("limit", "epochs", "sample_shuffle")
# The generation options that are read from a log, with the smallest and the largest value.
RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "top_k": (0, 1_000_000),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "max_tokens": (1, 1_000_000),
    "seed": (-(2**63), 2**64 - 1),
    "max_connections": (1, 1_000),
    "max_retries": (0, 1_000),
    "timeout": (1, 604_800),
    "attempt_timeout": (1, 604_800),
}
EFFORT = "reasoning_effort"  # is read from a log, too: Inspect checks its value
# Options of a run that change answers and are not read from a log.
CHANGING = (
    *("sample_id", "approval", "message_limit", "token_limit", "turn_limit"),
    *("time_limit", "working_limit", "cost_limit"),
)
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def checked_log(
    path: str | Path,
    model: str | None = None,
    *,
    base_url: str | None = None,
    model_args: Arguments = None,
    task_args: Arguments = None,
    solver: str | None = None,
    epochs: int | None = None,
    on: str | None = None,
) -> Any:
    """Return a log with the samples of the log, and a new configuration from the fields that may be read from it.

    The other arguments come from the user's call. ``check_task`` makes the checks that need the
    task. Raises InputError if it is not a log of a task of qabench, a value is out of its range, or
    something was not repeated.
    """
    log = whole_log(path)
    spec = log.eval
    passed = spec.task_args_passed
    scorer, setting = task_of(spec.task, passed, path)
    repeated = without_none(task_args or {})
    check_task_options(scorer, setting, _without_setting(passed | repeated, setting))
    model = model or NO_MODEL
    if base_url and model != spec.model:
        model = at_address(model)
    server = None  # the provider's own
    if base_url or spec.model_base_url:
        server = clean_url(base_url) if base_url else configured_base_url(spec.model)
    logged_server = clean_url(spec.model_base_url) if spec.model_base_url else server
    digest = (spec.metadata or {}).get("solver")
    checks = [
        ("model", spec.model, model),
        ("server", logged_server, server),
        ("solver", digest, solver and solver_with_digest(solver)),
        ("number of epochs", spec.config.epochs or 1, epochs or 1),
    ]
    names = {**arguments_to_repeat(spec.task, passed), **repeated}
    checks += [
        (f"option {name}", passed.get(name, "its default"), repeated.get(name)) for name in names
    ]
    checks += [
        (f"argument {name}", value, value if name in (model_args or {}) else None)
        for name, value in spec.model_args.items()
    ]
    for what, logged, named in checks:
        if logged != named:
            other = "" if named is None or named == NO_MODEL else f", not {printable(str(named))}"
            raise InputError(
                f"{path} was run with the {what} {printable(str(logged))}{other}. It is not read from a log. "
                f"To use the same one again: {resume_command(path, on)}"
            )
    if not _TASK_ID.fullmatch(spec.task_id):
        raise InputError(
            f"{path} has the task id {printable(spec.task_id)!r}, which is not an id of Inspect AI"
        )
    task = f"qabench/{setting.task}"
    fresh = EvalSpec(
        created=spec.created,
        task=task,
        task_registry_name=task,
        task_id=spec.task_id,
        task_args_passed=passed,
        dataset=spec.dataset,
        model=spec.model,
        model_base_url=server,
        model_args=dict(model_args or {}),
        solver=solver,
        metadata={"solver": digest} if solver else None,
        config=EvalConfig(**{name: getattr(spec.config, name) for name in RUN_OPTIONS}),
    )
    generation = spec.model_generate_config.merge(log.plan.config)
    values = {name: _in_range(path, name, getattr(generation, name)) for name in RANGES}
    values |= {EFFORT: generation.reasoning_effort, "cache": bool(generation.cache)}
    plan = EvalPlan(config=GenerateConfig(**values))
    # With the status "started", Inspect would read the file again.
    return EvalLog(
        status="error",
        eval=fresh,
        plan=plan,
        stats=log.stats,
        samples=log.samples,
        location=str(path),
    )


def check_task(path: str | Path, task: Any) -> None:
    """Raise InputError if a log has options that are not read from it, or other questions than its task."""
    log = read_header(path)
    spec = log.eval
    generation = spec.model_generate_config.merge(log.plan.config)
    read = {*RANGES, EFFORT, *WITHOUT_EFFECT}
    options = {
        name: (value, getattr(task.config, name)) for name, value in generation if name not in read
    }
    options |= {name: (getattr(spec.config, name), getattr(task, name, None)) for name in CHANGING}
    for name, (value, default) in options.items():
        if value is not None and value != default:
            raise InputError(
                f"{path} was run with the option {name}={printable(repr(value))}, which is not read from a log; "
                "start a new run, or resume a log that you trust with `inspect eval-retry`"
            )
    available = len(task.dataset)
    expected = selected(available, spec.config.limit)
    logged = len(spec.dataset.sample_ids or ())
    if (logged, spec.dataset.samples) != (expected, available):
        raise InputError(
            f"{path} has {logged} of {spec.dataset.samples} questions, but its options select {expected} of "
            f"{available}; a run is resumed with the same questions, so start a new run"
        )


def arguments_to_repeat(task: str, passed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task that are not read from a log."""
    scorer, setting = task_of(task, passed, "")
    options = {option.name: option for option in task_options(scorer, setting)}
    own = _without_setting(passed, setting)
    return {
        name: value
        for name, value in own.items()
        if not _harmless(scorer, name, value, options.get(name))
    }


def resume_command(path: str | Path, on: str | None = None) -> str:
    """Return the command that resumes a log, on a machine of the Hub or here, with all that has to be repeated."""
    spec = read_header(path).eval
    words = ["qabench", "run", "--resume", str(path)]
    if spec.model != NO_MODEL:
        model = spec.model
        if on:
            model = "/".join(model.split("/")[-2:])  # the repository. The job adds the provider
        elif spec.model_base_url:
            model = model.removeprefix(at_address(""))
        words += ["--model", printable(model)]
    if spec.model_base_url:
        words += ["--base-url", printable(spec.model_base_url)]
    if spec.solver:
        words += ["--solver", printable(spec.solver)]
    if (spec.config.epochs or 1) > 1:
        words += ["--epochs", str(spec.config.epochs)]
    texts = [("-M", spec.model_args), ("-T", arguments_to_repeat(spec.task, spec.task_args_passed))]
    for option, arguments in texts:
        for name, value in arguments.items():
            words += [option, printable(f"{name}={_typed(value)}")]
    if on:
        words += ["--on", on]
    return shlex.join(words)


def task_of(name: str, passed: Mapping[str, Any], path: str | Path) -> tuple[Benchmark, Setting]:
    """Return the benchmark and setting of a task.

    Raises:
        InputError: it is not a task of qabench. The message names the log ``path``.
    """
    task = name.removeprefix("qabench/")
    if "/" not in task:  # of another package
        for scorer in map(benchmark, benchmark_names()):
            if setting := setting_of(scorer, task, passed):
                return scorer, setting
    raise InputError(f"{path} is the log of {printable(name)!r}, which is not a task of qabench")


def solver_with_digest(solver: str) -> str:
    """Return the name of a solver "FILE.py@NAME" with a digest of its file.

    Raises InputError if there is no file.
    """
    path, _, name = solver.rpartition("@")
    try:
        return f"{name}-{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}"
    except OSError as error:
        reason = error.strerror if path else "no file"
        raise InputError(
            f"cannot read the solver {solver!r}: {reason}; expected FILE.py@NAME"
        ) from None


def _in_range(path: str | Path, name: str, value: Any) -> Any:
    low, high = RANGES[name]
    if value is not None and not low <= value <= high:
        raise InputError(f"{path} was run with {name}={value!r}; it must be from {low} to {high}")
    return value


def _without_setting(arguments: Mapping[str, Any], setting: Setting) -> Json:
    return {name: value for name, value in arguments.items() if name not in setting.arguments}


def _harmless(scorer: Benchmark, name: str, value: Any, option: TaskOption | None) -> bool:
    """Tell whether a value may come from a log: the default, a choice of the task, or a selection of questions."""
    if option is None:
        return False
    if name in ("ids", scorer.part) or isinstance(value, bool) or value == option.default:
        return True
    if name == "config":
        return isinstance(value, str) and value in dataset_table(scorer.name).configs
    return value in option.choices


def _typed(value: Any) -> str:
    """Return an argument's value as it is typed.

    It is read as YAML.
    """
    if isinstance(value, str):
        try:
            if yaml_of(value) == value:
                return value
        except ValueError:
            pass
    return json.dumps(value, default=str)
