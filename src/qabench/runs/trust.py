"""Checks a log before ``qabench run --resume`` uses it.

A log is data from anywhere, so it must not determine what code runs or where keys are sent.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai.log import EvalConfig, EvalLog, EvalPlan, EvalSample, EvalSpec
from inspect_ai.model import GenerateConfig

from qabench.adapters.inspect_ai.facts import EVAL_CONFIG
from qabench.adapters.inspect_ai.replies import WITHOUT_EFFECT, is_empty_output
from qabench.adapters.inspect_ai.reply_cache import configured_base_url
from qabench.benchmarks import Benchmark, Setting, search_order
from qabench.data.rows import without_none
from qabench.errors import InputError
from qabench.evaluation.harness_fields import SIGNED
from qabench.evaluation.score_spec import Names, split_names
from qabench.evaluation.signature import parse
from qabench.io.redaction import printable
from qabench.llm.endpoint import clean_url
from qabench.loading_scripts import dataset_table
from qabench.runs.facts import setting_of
from qabench.runs.inspect_logs import read_header, whole_log
from qabench.runs.log_fields import NAME
from qabench.runs.log_types import NO_MODEL
from qabench.runs.models import at_address
from qabench.runs.started import was_started_here
from qabench.runs.task_options import Arguments, check_task_options, task_options

# The options of the run and of generation that are read from every log: they name no code, model or
# server. ``checked_log`` compares the number of epochs, because it multiplies the price.
RUN_OPTIONS = ("limit", "epochs", "sample_shuffle")
GENERATION_OPTIONS = (
    *("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty"),
    *("max_tokens", "seed", "reasoning_effort"),
)
# Options that name code, models or servers are read only from logs of runs that the cache notes as
# started on this machine.
NOT_STARTED_HERE = (
    "no note in the cache says that a run with these options was started on this machine (the log is from "
    "elsewhere or was edited, or the cache was deleted or moved)"
)
# The argument of the task that the command's ``--scores`` sets.
SCORES = "scores"
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """The options of a run that a log from elsewhere must not decide.

    They name code, models and servers, or multiply the price. ``checked_log`` has two objects of
    this class: one with what the user gave in the call, and one in which a log that may decide them
    fills in what the user left out. Both have None, or an empty dict, for options without a value.

    Attributes:
        model: a model's name, as the user writes it: with ``base_url`` the name on the server,
            otherwise Inspect's.
        base_url: the address of the model's server.
        model_args: arguments of the model's provider.
        task_args: arguments of the task. Those that any log may decide can be absent.
        solver: "FILE.py@NAME".
        epochs: how often each question is asked.
    """

    model: str | None
    base_url: str | None
    model_args: Mapping[str, Any]
    task_args: Mapping[str, Any]
    solver: str | None
    epochs: int | None


def checked_log(
    path: str | Path,
    model: str | None = None,
    *,
    base_url: str | None = None,
    model_args: Arguments = None,
    task_args: Arguments = None,
    solver: str | None = None,
    epochs: int | None = None,
    scores: Names = None,
) -> EvalLog:
    """Return the log of a run to resume, without the fields that a log from elsewhere could abuse.

    Options that are not read from the log come from the user's call, and must equal those in the
    log. ``check_task`` makes the checks that need the task. The log of a complete run is returned as
    it is, because no question is asked again.

    Raises:
        InputError: the file is not a log of a task of qabench, or an option was not repeated.
    """
    log = whole_log(path)
    spec = log.eval
    benchmark, setting = task_of(spec.task, spec.task_args_passed, path)
    given = ResumeOptions(
        model=model,
        base_url=base_url,
        model_args=model_args or {},
        task_args=_given_task_args(spec, benchmark, setting, task_args, scores),
        solver=solver,
        epochs=epochs,
    )
    complete = is_complete(log)
    options = given
    if was_started_here(spec) or complete:
        options = _filled_from_log(given, spec, complete)
    server = _server(options, spec)
    new_task_args = _with_new_choices(spec, benchmark, setting, options)
    if different := _differences(options, spec, server, new_task_args, complete):
        raise _not_repeated(path, different)
    if complete:
        return log
    return _reduced_log(
        log,
        path,
        task=f"qabench/{setting.task}",
        task_args=new_task_args,
        server=server,
        model_args=options.model_args,
        solver=options.solver,
    )


def _given_task_args(
    spec: EvalSpec, benchmark: Benchmark, setting: Setting, task_args: Arguments, scores: Names
) -> dict[str, Any]:
    """Return the task arguments of the user's call.

    Raises:
        InputError: the setting does not have one of these arguments, or one of the log's.
    """
    logged = spec.task_args_passed
    given = without_none(task_args or {})
    open_arguments = {}
    for name, value in logged.items():
        # The setting fixes the other arguments.
        if name not in setting.arguments:
            open_arguments[name] = value
    check_task_options(benchmark, setting, open_arguments | given)
    # The command's ``--scores`` also selects what is printed of a run. It repeats the task's argument
    # only if it has the same names.
    asked_scores = ",".join(split_names(scores or ()))
    if asked_scores and logged.get(SCORES) == asked_scores:
        given = {SCORES: asked_scores} | given
    return given


def _filled_from_log(given: ResumeOptions, spec: EvalSpec, complete: bool) -> ResumeOptions:
    """Return the user's options. Those that the user left out have the values of the log.

    A log may decide them only if this user started a run with exactly these options, or if the run
    is complete, so that nothing is asked.
    """
    solver = given.solver
    if not complete:
        # A complete run needs no solver, and a log from elsewhere must not make this machine open a
        # file.
        solver = solver or spec.solver
    return ResumeOptions(
        model=given.model or spec.model,
        base_url=given.base_url or spec.model_base_url,
        model_args={**spec.model_args, **given.model_args},
        task_args={**arguments_to_repeat(spec.task, spec.task_args_passed), **given.task_args},
        solver=solver,
        epochs=given.epochs or spec.config.epochs,
    )


def _server(options: ResumeOptions, spec: EvalSpec) -> str | None:
    """Return the address of the resumed run's server, or None for the provider's own.

    If the log has an address and the options have none, it is the address in the user's
    environment, and never the log's: the server gets a key.
    """
    if options.base_url:
        return clean_url(options.base_url)
    if spec.model_base_url:
        return configured_base_url(spec.model)
    return None


def _with_new_choices(
    spec: EvalSpec, benchmark: Benchmark, setting: Setting, options: ResumeOptions
) -> dict[str, Any]:
    """Return all task arguments of the resumed run: the log's, and new choices of the user.

    If the log left a choice to its default, the user may make it now: ``check_conditions`` compares
    it with how the answers were asked.
    """
    choices = {option.name for option in task_options(benchmark, setting) if option.choices}
    task_args = dict(spec.task_args_passed)
    for name, value in options.task_args.items():
        if name in choices:
            task_args.setdefault(name, value)
    return task_args


def _differences(
    options: ResumeOptions,
    spec: EvalSpec,
    server: str | None,
    task_args: Mapping[str, Any],
    complete: bool,
) -> dict[str, tuple[Any, Any]]:
    """Return the options whose value in the log is not the one of the resumed run.

    Args:
        options: those of the resumed run.
        spec: the log's.
        server: the address of the resumed run's server.
        task_args: all task arguments of the resumed run.
        complete: whether nothing is asked.

    Returns:
        The option's name for an error -> its value in the log, and in the resumed run.

    Raises:
        InputError: an address in the log is not a URL, or the solver's file cannot be read.
    """
    model = options.model or NO_MODEL
    if options.base_url and model != spec.model:
        model = at_address(model)
    compared: dict[str, tuple[Any, Any]] = {"model": (spec.model, model)}
    if spec.model_base_url and not options.base_url:
        # An address that the user names may differ from the log's, because a restarted server may
        # have a new one.
        compared["server"] = clean_url(spec.model_base_url), server
    if options.solver or not complete:
        # The file may have been edited since, so its digest is compared as well.
        digest = (spec.metadata or {}).get("solver")
        compared["solver"] = digest, options.solver and solver_with_digest(options.solver)
    compared["number of epochs"] = spec.config.epochs or 1, options.epochs or 1
    for name in {**arguments_to_repeat(spec.task, task_args), **options.task_args}:
        compared[f"option {name}"] = task_args.get(name, "its default"), options.task_args.get(name)
    # The user may add arguments of the provider, such as a key, which is in no log.
    for name, value in spec.model_args.items():
        compared[f"argument {name}"] = value, options.model_args.get(name)

    different = {}
    for what, (logged, resumed) in compared.items():
        if logged != resumed:
            different[what] = logged, resumed
    return different


def _not_repeated(path: str | Path, different: Mapping[str, tuple[Any, Any]]) -> InputError:
    """Return the error for the first of the options that ``_differences`` returns."""
    what, (logged, resumed) = next(iter(different.items()))
    ran = f"{path} was run with the {what} {printable(str(logged))}"
    if resumed in (None, NO_MODEL):
        why = f". It is not read from this log: {NOT_STARTED_HERE}"
    else:
        why = f", not {printable(str(resumed))}. All questions of a run must be asked with the same {what}"
    return InputError(f"{ran}{why}. To resume with it: {resume_command(path)}")


def _reduced_log(
    log: EvalLog,
    path: str | Path,
    *,
    task: str,
    task_args: Mapping[str, Any],
    server: str | None,
    model_args: Mapping[str, Any],
    solver: str | None,
) -> EvalLog:
    """Return a log for Inspect to resume, with only the fields that a log may decide.

    Raises:
        InputError: the log's task id does not have the form of Inspect's ids.
    """
    spec = log.eval
    if not _TASK_ID.fullmatch(spec.task_id):
        raise InputError(
            f"{path} has the task id {printable(spec.task_id)!r}, which is not an id of Inspect AI"
        )
    logged_metadata = spec.metadata or {}
    metadata = {}
    if solver:
        metadata["solver"] = logged_metadata.get("solver")
    if display_name := logged_metadata.get(NAME):
        # This name is only shown, and changes no score.
        metadata[NAME] = str(display_name)
    reduced_spec = EvalSpec(
        created=spec.created,
        task=task,
        task_registry_name=task,
        task_id=spec.task_id,
        task_args_passed=dict(task_args),
        dataset=spec.dataset,
        model=spec.model,
        model_base_url=server,
        model_args=dict(model_args),
        solver=solver,
        metadata=metadata or None,
        config=EvalConfig(**{name: getattr(spec.config, name) for name in RUN_OPTIONS}),
    )
    generation = spec.model_generate_config.merge(log.plan.config)
    values = {name: getattr(generation, name) for name in GENERATION_OPTIONS}
    config = GenerateConfig(**values, cache=bool(generation.cache))
    # With the status "started", Inspect would read the file again.
    return EvalLog(
        status="error",
        eval=reduced_spec,
        plan=EvalPlan(config=config),
        stats=log.stats,
        # Questions with empty replies are asked again, as failed ones are.
        samples=[sample for sample in log.samples or () if not _is_empty(sample)],
        location=str(path),
    )


def is_complete(log: EvalLog) -> bool:
    """Tell whether a run ended with an answer to each question, so that there is nothing to resume.

    Empty, failed and invalidated answers do not count, because resuming asks these questions again.
    """
    answered = set()
    for sample in log.samples or ():
        if sample.error is None and not sample.invalidation and not _is_empty(sample):
            answered.add((str(sample.id), sample.epoch))
    expected = len(log.eval.dataset.sample_ids or ()) * (log.eval.config.epochs or 1)
    return log.status == "success" and len(answered) == expected > 0


def _is_empty(sample: EvalSample) -> bool:
    return sample.error is None and is_empty_output(sample.output)


def check_task(path: str | Path, task: Task) -> None:
    """Raise InputError if a log cannot be resumed with its task.

    Its options select another number of questions of the task than it has, or an option that is not
    read from logs has a value that differs from the task's.
    """
    log = read_header(path)
    spec = log.eval
    # Each option that is not read from a log, with its value there and the task's own.
    options = {}
    for name, value in spec.model_generate_config.merge(log.plan.config):
        if name not in {*GENERATION_OPTIONS, *WITHOUT_EFFECT}:
            options[name] = value, getattr(task.config, name)
    for name, (treatment, _) in EVAL_CONFIG.items():
        if treatment == SIGNED:
            options[name] = getattr(spec.config, name), getattr(task, name, None)
    for name, (value, default) in options.items():
        if value is not None and value != default:
            raise InputError(
                f"{path} was run with the option {name}={printable(repr(value))}, which is not read from a log; "
                "start a new run, or resume a log that you trust with `inspect eval-retry`"
            )
    available = len(task.dataset)
    limit = spec.config.limit
    bounds = limit if isinstance(limit, tuple) else (limit,)
    expected = len(range(available)[slice(*bounds)])
    logged = len(spec.dataset.sample_ids or ())
    if (logged, spec.dataset.samples) != (expected, available):
        raise InputError(
            f"{path} has {logged} of {spec.dataset.samples} questions, but its options select {expected} of "
            f"{available}; a run is resumed with the same questions, so start a new run"
        )


def check_conditions(
    log: EvalLog,
    benchmark: Benchmark,
    conditions: Mapping[str, str | Sequence[str]],
    path: str | Path,
) -> None:
    """Raise InputError if kept answers were asked under conditions that differ from the new ones.

    Args:
        log: the log with the samples that are kept.
        benchmark: the benchmark.
        conditions: field of signatures -> the value that the resumed run would have, or the
            possible values.
        path: the log's path.
    """
    answered = [sample for sample in log.samples or () if sample.error is None]
    for name, values in conditions.items():
        allowed = [values] if isinstance(values, str) else list(values)
        other_values: Counter[str] = Counter()
        for sample in answered:
            value = signed_values(sample).get(name)
            if value is not None and value not in allowed:
                other_values[value] += 1
        if not other_values:
            continue
        value, count = other_values.most_common(1)[0]
        hint = benchmark.logs().resume_hints.get(name, "")
        if name in ("prompt", "protocol"):
            # The value is the origin of the text and its digest, and the option takes the origin.
            origin = value.rpartition("-")[0] or value
            hint = f"-T {name}={origin}"
        advice = ", or start a new run"
        if hint:
            advice = f": use {hint}{advice}"
        raise InputError(
            f"{path}: {count} of its questions were asked with the {name} {printable(value)}, but the {name} is now "
            f"{printable(' or '.join(allowed))}. All questions of a run must be asked with the same {name}{advice}"
        )


def signed_values(sample: EvalSample) -> dict[str, str]:
    """Return the fields of all signatures of a sample by name."""
    fields: dict[str, str] = {}
    for score in (sample.scores or {}).values():
        for line in ((score.metadata or {}).get("signatures") or {}).values():
            with suppress(InputError):
                # Scoring reports a signature that was edited.
                fields |= parse(line)[1]
    return fields


def arguments_to_repeat(task: str, passed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the task arguments that the user must repeat, because a log is not trusted.

    Defaults, choices of the task and selections of questions are harmless, so they are read from
    the log.
    """
    benchmark, setting = task_of(task, passed, "")
    options = {option.name: option for option in task_options(benchmark, setting)}
    configs = tuple(dataset_table(benchmark.name).configs)
    repeated = {}
    for name, value in passed.items():
        if name in (*setting.arguments, "ids", benchmark.part) or isinstance(value, bool):
            continue
        choices: tuple[Any, ...] = ()
        if name == "config":
            choices = configs
        if option := options.get(name):
            choices += (option.default, *option.choices)
        if value not in choices:
            repeated[name] = value
    return repeated


def resume_command(path: str | Path) -> str:
    """Return the command that resumes a log, with all options that have to be repeated."""
    spec = read_header(path).eval
    words = ["qabench", "run", "--resume", str(path)]
    if was_started_here(spec):
        return shlex.join(words)
    model: str | None = spec.model
    if spec.model_base_url:
        # With an address, the user gives the name of the model at the server.
        model = spec.model.removeprefix(at_address(""))
    if spec.model == NO_MODEL:
        model = None
    epochs = spec.config.epochs
    if epochs == 1:
        epochs = None
    # Options without a value are left out below.
    options = {
        "--model": model,
        "--base-url": spec.model_base_url,
        "--solver": spec.solver,
        "--epochs": epochs,
    }
    task_args = arguments_to_repeat(spec.task, spec.task_args_passed)
    if isinstance(task_args.get(SCORES), str):
        options["--scores"] = task_args.pop(SCORES)
    for option, value in options.items():
        if value:
            words += [option, printable(str(value))]
    pairs = [("-M", spec.model_args), ("-T", task_args)]
    for option, arguments in pairs:
        for name, value in arguments.items():
            # Inspect reads the value as YAML, and JSON is valid YAML.
            text = json.dumps(value, default=str, ensure_ascii=False)
            words += [option, printable(f"{name}={text}")]
    return shlex.join(words)


def task_of(name: str, passed: Mapping[str, Any], path: str | Path) -> tuple[Benchmark, Setting]:
    """Return the benchmark and setting of a task.

    Raises:
        InputError: it is not a task of qabench. The message names the log ``path``.
    """
    task = name.removeprefix("qabench/")
    if "/" not in task:
        # A task with a slash in its name belongs to another package.
        for benchmark in search_order():
            if setting := setting_of(benchmark, task, passed):
                return benchmark, setting
    raise InputError(f"{path} is the log of {printable(name)!r}, which is not a task of qabench")


def solver_with_digest(solver: str) -> str:
    """Return the name of a solver "FILE.py@NAME" with a digest of its file.

    Raises:
        InputError: there is no such file.
    """
    path, _, name = solver.rpartition("@")
    try:
        return f"{name}-{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}"
    except OSError as error:
        reason = error.strerror if path else "it has no @NAME"
        raise InputError(
            f"cannot read the solver {solver!r}: {reason}; expected FILE.py@NAME"
        ) from None
