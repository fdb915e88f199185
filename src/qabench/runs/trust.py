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
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalConfig, EvalLog, EvalPlan, EvalSpec
from inspect_ai.model import GenerateConfig

from qabench.benchmarks import Benchmark, Setting, search_order
from qabench.data.rows import without_none
from qabench.errors import InputError
from qabench.evaluation.signature import parse
from qabench.io.tables import printable
from qabench.llm.endpoint import clean_url
from qabench.loading_scripts import dataset_table
from qabench.runs.facts import NO_MODEL, setting_of
from qabench.runs.log import read_header, whole_log
from qabench.runs.plan import Arguments, at_address, check_task_options, task_options
from qabench.tasks.common import WITHOUT_EFFECT, configured_base_url, is_empty_output
from qabench.tasks.facts import EVAL_CONFIG, SIGNED

# What is read from a log: options of the run, and of generation.
RUN_OPTIONS = ("limit", "epochs", "sample_shuffle")
GENERATION_OPTIONS = (
    *("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"),
    *("max_tokens", "seed", "reasoning_effort"),
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
) -> Any:
    """Return a log with the samples of the log, and a new configuration from the fields that may be read from it.

    The other arguments come from the user's call. ``check_task`` makes the checks that need the
    task. Raises InputError if it is not a log of a task of qabench, or something was not repeated.
    """
    log = whole_log(path)
    spec = log.eval
    passed = spec.task_args_passed
    scorer, setting = task_of(spec.task, passed, path)
    repeated = without_none(task_args or {})
    own = {name: value for name, value in passed.items() if name not in setting.arguments}
    check_task_options(scorer, setting, own | repeated)
    model = model or NO_MODEL
    if base_url and model != spec.model:
        model = at_address(model)
    server = None  # the provider's own
    if base_url or spec.model_base_url:
        server = clean_url(base_url) if base_url else configured_base_url(spec.model)
    logged_server = clean_url(spec.model_base_url) if spec.model_base_url else server
    digest = (spec.metadata or {}).get("solver")
    # Each option that the user has to repeat, with its value in the log and the repeated one.
    checks = {
        "model": (spec.model, model),
        "server": (logged_server, server),
        "solver": (digest, solver and solver_with_digest(solver)),
        "number of epochs": (spec.config.epochs or 1, epochs or 1),
    }
    # A choice that the log left to the default can be made now: ``check_conditions`` compares it with
    # what happened.
    choices = {option.name for option in task_options(scorer, setting) if option.choices}
    chosen = {name: value for name, value in repeated.items() if name in choices and name not in passed}
    passed = passed | chosen
    for name in {**arguments_to_repeat(spec.task, passed), **repeated}:
        checks[f"option {name}"] = passed.get(name, "its default"), repeated.get(name)
    for name, value in spec.model_args.items():
        checks[f"argument {name}"] = value, (model_args or {}).get(name)
    for what, (logged, named) in checks.items():
        if logged != named:
            other = "" if named in (None, NO_MODEL) else f", not {printable(str(named))}"
            raise InputError(
                f"{path} was run with the {what} {printable(str(logged))}{other}. It is not read from a log. "
                f"To use the same one again: {resume_command(path)}"
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
    values = {name: getattr(generation, name) for name in GENERATION_OPTIONS}
    config = GenerateConfig(**values, cache=bool(generation.cache))
    # With the status "started", Inspect would read the file again.
    return EvalLog(
        status="error",
        eval=fresh,
        plan=EvalPlan(config=config),
        stats=log.stats,
        # Empty replies are asked again, as failed questions are.
        samples=[sample for sample in log.samples or () if not _is_empty(sample)],
        location=str(path),
    )


def _is_empty(sample: Any) -> bool:
    return sample.error is None and is_empty_output(sample.output)


def check_task(path: str | Path, task: Any) -> None:
    """Raise InputError if a log has options that are not read from it, or other questions than its task."""
    log = read_header(path)
    spec = log.eval
    options = {
        name: (value, getattr(task.config, name))
        for name, value in spec.model_generate_config.merge(log.plan.config)
        if name not in {*GENERATION_OPTIONS, *WITHOUT_EFFECT}
    }
    for name, (treatment, _) in EVAL_CONFIG.items():
        if treatment == SIGNED:
            options[name] = getattr(spec.config, name), getattr(task, name, None)
    for name, (value, default) in options.items():
        if value is not None and value != default:
            raise InputError(
                f"{path} was run with the option {name}={printable(repr(value))}, which is not read from a log; "
                "start a new run, or resume a log that you trust with `inspect eval-retry`"
            )
    available, limit = len(task.dataset), spec.config.limit
    bounds = limit if isinstance(limit, tuple) else (limit,)
    expected = len(range(available)[slice(*bounds)])
    logged = len(spec.dataset.sample_ids or ())
    if (logged, spec.dataset.samples) != (expected, available):
        raise InputError(
            f"{path} has {logged} of {spec.dataset.samples} questions, but its options select {expected} of "
            f"{available}; a run is resumed with the same questions, so start a new run"
        )


def check_conditions(
    log: Any, scorer: Benchmark, conditions: Mapping[str, str | Sequence[str]], path: str | Path
) -> None:
    """Raise InputError if answers that a resumed run keeps were asked under other conditions than the new ones.

    Args:
        log: the log with the samples that are kept.
        scorer: the benchmark.
        conditions: field of signatures -> the value with which the run would go on, or the possible
            values.
        path: the log's path.
    """
    kept = [sample for sample in log.samples or () if sample.error is None]
    for name, values in conditions.items():
        allowed = [values] if isinstance(values, str) else list(values)
        others = Counter(
            value
            for sample in kept
            if (value := signed_values(sample).get(name)) is not None and value not in allowed
        )
        if others:
            (value, count), *_ = others.most_common()
            hint = scorer.resume_hints.get(name, "")
            if name in ("prompt", "protocol"):
                origin = value.rpartition("-")[0] or value
                hint = f"-T {name}={origin}"
            raise InputError(
                f"{path}: {count} of its answers were asked with the {name} {printable(value)}, and now it is "
                f"{printable(' or '.join(allowed))}. All answers of a run need the same one"
                + (f": use {hint}" if hint else "")
                + ", or start a new run"
            )


def signed_values(sample: Any) -> dict[str, str]:
    """Return the fields of all signatures of a sample by name."""
    fields: dict[str, str] = {}
    for score in (sample.scores or {}).values():
        for line in ((score.metadata or {}).get("signatures") or {}).values():
            with suppress(InputError):  # an edited one, which scoring reports
                fields |= parse(line)[1]
    return fields


def arguments_to_repeat(task: str, passed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task that are not read from a log.

    Read are a default, a choice of the task, and a selection of questions.
    """
    scorer, setting = task_of(task, passed, "")
    options = {option.name: option for option in task_options(scorer, setting)}
    configs = tuple(dataset_table(scorer.name).configs)
    repeated = {}
    for name, value in passed.items():
        if name in (*setting.arguments, "ids", scorer.part) or isinstance(value, bool):
            continue
        choices = configs if name == "config" else ()
        if option := options.get(name):
            choices += (option.default, *option.choices)
        if value not in choices:
            repeated[name] = value
    return repeated


def resume_command(path: str | Path) -> str:
    """Return the command that resumes a log, with all that has to be repeated."""
    spec = read_header(path).eval
    model = spec.model.removeprefix(at_address("")) if spec.model_base_url else spec.model
    options = {
        "--model": None if spec.model == NO_MODEL else model,
        "--base-url": spec.model_base_url,
        "--solver": spec.solver,
        "--epochs": spec.config.epochs if spec.config.epochs != 1 else None,
    }
    words = ["qabench", "run", "--resume", str(path)]
    for option, value in options.items():
        if value:
            words += [option, printable(str(value))]
    pairs = [("-M", spec.model_args), ("-T", arguments_to_repeat(spec.task, spec.task_args_passed))]
    for option, arguments in pairs:
        for name, value in arguments.items():  # JSON is YAML, as which the value is read
            words += [option, printable(f"{name}={json.dumps(value, default=str, ensure_ascii=False)}")]
    return shlex.join(words)


def task_of(name: str, passed: Mapping[str, Any], path: str | Path) -> tuple[Benchmark, Setting]:
    """Return the benchmark and setting of a task.

    Raises:
        InputError: it is not a task of qabench. The message names the log ``path``.
    """
    task = name.removeprefix("qabench/")
    if "/" not in task:  # of another package
        for scorer in search_order():
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
        raise InputError(f"cannot read the solver {solver!r}: {reason}; expected FILE.py@NAME") from None
