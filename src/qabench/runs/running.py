"""Starts runs of Inspect AI, and resumes runs that were stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import inspect_ai
from inspect_ai._eval.loader import solver_from_spec
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import SolverSpec

from qabench.adapters.inspect_ai.facts import ASKED_WITH
from qabench.adapters.inspect_ai.language_model import InspectModel
from qabench.adapters.inspect_ai.tasks import inspect_tasks
from qabench.benchmarks import Benchmark, Setting
from qabench.benchmarks.checks import check_answers_public
from qabench.data.rows import without_none
from qabench.errors import InputError, QabenchError
from qabench.evaluation.score_spec import Names
from qabench.io.files import check_writable
from qabench.io.redaction import printable
from qabench.llm.endpoint import clean_url, without_account
from qabench.runs.inspect_logs import read_header
from qabench.runs.log_fields import NAME
from qabench.runs.models import at_address, make_model, plain, planning_to_call, probe
from qabench.runs.started import was_started_here
from qabench.runs.task_options import Arguments, check_task_options
from qabench.runs.trust import (
    check_conditions,
    check_task,
    checked_log,
    is_complete,
    solver_with_digest,
    task_of,
)
from qabench.runs.watching import Watch, locked, watching

# Inspect's options that suppress its output and its warnings. Its live scores take CPU time even if
# they are not shown.
QUIET: dict[str, Any] = {"display": "none", "log_level": "error", "score_display": False}


def start(
    benchmark: Benchmark,
    setting: Setting,
    model: str,
    *,
    base_url: str | None = None,
    task_args: Arguments = None,
    model_args: Arguments = None,
    log_dir: str | Path = "logs",
    cache: bool = True,
    solver: str | None = None,
    display_name: str | None = None,
    watch: Watch | None = None,
    generate_only: bool = False,
    **options: Any,
) -> Path:
    """Run a setting of a benchmark and return the path of the log.

    A sample that fails (a timeout, a server error after all retries) is recorded and does not
    affect the others. It scores as unanswered, and ``resume`` asks its question again. Three consecutive
    calls that are permanently rejected (wrong key, unknown model, connection refused) stop the run.

    Args:
        benchmark: the benchmark.
        setting: one of its settings.
        generate_only: ask questions whose answers are not public, although no score can be
            computed.
        model: Inspect's name of the model, such as "hf-inference-providers/ORG/NAME". With
            ``base_url`` the model's name on the server. The server's key, if it needs one, is read
            from QABENCH_API_KEY.
        base_url: the base URL of an OpenAI-compatible server.
        task_args: arguments of the Inspect task.
        model_args: arguments of the model's provider.
        log_dir: the folder of the log.
        cache: whether replies are cached and reused.
        solver: "FILE.py@NAME", a solver or an agent of Inspect AI that answers in place of the
            setting's own.
        display_name: the name of the system in all outputs. By default, it follows from the model.
        watch: receives the log's path and the progress.
        **options: options of ``inspect_ai.eval``: limit, epochs, sample_shuffle, max_connections,
            temperature, ...

    Raises:
        InputError: an unknown option or model.
        MissingExtra: a package of the task or of the provider is not installed.
        QabenchError: the model does not respond, or the run ended before all questions were asked.
            The message names the log to resume.
        Interrupted: by Ctrl-C or SIGTERM.
    """
    check_task_options(benchmark, setting, task_args or {})
    check_answers_public(benchmark, task_args or {}, generate_only)
    check_writable(Path(log_dir) / "log.eval")
    if base_url:
        base_url = clean_url(base_url)
        model = at_address(model)
    arguments = {**setting.arguments, **(task_args or {})}
    options = without_none(options) | {"cache": cache}
    metadata: dict[str, str] = {}
    if display_name:
        metadata[NAME] = display_name
    if solver:
        options["solver"] = SolverSpec(solver)
        metadata["solver"] = solver_with_digest(solver)
    if metadata:
        options["metadata"] = metadata
    options = _writing_options(cache, solver) | options
    model_config = _generation(options)
    watch = watch or Watch(Path(log_dir))
    failure = f"{benchmark.title}, {setting.name}, with {model} could not start"
    with watching(watch, cache, failure, task_args), without_account(model):
        # Check first what needs no model, because loading weights takes long.
        with planning_to_call(model, base_url, model_args):
            task_config = inspect_tasks(benchmark)[setting.task](**arguments).config
        if solver:
            _check_solver(solver)
        probe(model, base_url, model_args, model_config, task_config, watch.say)
        logs = inspect_ai.eval(
            f"qabench/{setting.task}",
            model=model,
            model_base_url=base_url,
            model_args=dict(model_args or {}),
            task_args=arguments,
            log_dir=str(log_dir),
            log_format="eval",
            **options,
            **QUIET,
        )
        return watch.path_of(logs)


def resume(
    log: str | Path,
    model: str | None = None,
    *,
    base_url: str | None = None,
    model_args: Arguments = None,
    task_args: Arguments = None,
    log_dir: str | Path | None = None,
    solver: str | None = None,
    epochs: int | None = None,
    scores: Names = None,
    watch: Watch | None = None,
    **options: Any,
) -> Path:
    """Ask the missing and failed questions of a run that was killed, canceled or had failures.

    For a run that was started on this machine, the log is enough: all options are read from it. A
    log from elsewhere is data, not configuration: only a task of qabench is run, with the same
    questions, and the only options that are read are choices of the task, the selection of the
    questions, and generation options, such as the temperature and the seed. All others must be
    repeated. If the run is complete, nothing is asked, and the path of its log is returned.

    Args:
        log: the log of the run.
        model: the model of the run, as in ``start``. None for the one in the log.
        base_url: the address of the server, if the run was started with one.
        model_args: arguments of the model's provider. Keys are in no log.
        task_args: the arguments of the task that are not read from the log, with the values of the
            log.
        log_dir: the folder of the new log, which contains the whole run. None means the folder of
            the old one.
        solver: the solver of the run, if it was started with one. Its file must be the same.
        epochs: how many times each question is asked, if it is more than once.
        scores: the scores of the run, if it was started with a selection.
        watch: receives the log's path and the progress.
        **options: options of ``inspect_ai.eval_retry``: max_connections, timeout, ...

    Raises:
        InputError: as for ``start``, or the file is not a log of a task of qabench, an option was
            not repeated, or another process resumes the log. The other errors are those of
            ``start``, too.
    """
    trusted = checked_log(
        log,
        model,
        base_url=base_url,
        model_args=model_args,
        task_args=task_args,
        solver=solver,
        epochs=epochs,
        scores=scores,
    )
    folder = Path(log_dir or Path(log).parent)
    watch = watch or Watch(folder)
    if is_complete(trusted):
        watch.say(f"{log} is complete: each question has an answer, and nothing is asked")
        return Path(log)
    address_before = read_header(log).eval.model_base_url
    spec = trusted.eval
    check_writable(folder / "log.eval")
    options = without_none(options)
    model_config = _generation(options)
    watch.reused = sum(sample.error is None for sample in trusted.samples or ())
    failure = f"the run of {log} cannot be resumed"
    cache = bool(trusted.plan.config.cache)
    model_args, solver = spec.model_args, spec.solver
    options = _writing_options(cache, solver) | options
    # Arguments that the user wrote, now or for the run on this machine, may name a model or a
    # server. The arguments in a log from elsewhere may not.
    arguments_of_user = task_args
    if was_started_here(spec):
        arguments_of_user = spec.task_args_passed
    with (
        locked(Path(log)),
        watching(watch, cache, failure, arguments_of_user),
        without_account(spec.model),
    ):
        benchmark, setting = task_of(spec.task, spec.task_args_passed, log)
        with planning_to_call(spec.model, spec.model_base_url, model_args):
            task = inspect_tasks(benchmark)[setting.task](**spec.task_args_passed)
        check_task(log, task)
        # Loading a model takes long, so conditions that depend only on the task are checked before.
        check_conditions(trusted, benchmark, (task.metadata or {})[ASKED_WITH], log)
        task_config = task.config.merge(trusted.plan.config)
        if solver:
            _check_solver(solver)
        probed = probe(
            spec.model, spec.model_base_url, model_args, model_config, task_config, watch.say
        )
        if isinstance(probed, str):
            probed = make_model(spec.model, spec.model_base_url, model_args, config=model_config)
        conditions_of_model = benchmark.logs().conditions_of_model(
            setting, spec.task_args_passed, InspectModel(probed)
        )
        check_conditions(trusted, benchmark, conditions_of_model, log)
        watch.say(f"{watch.reused} answers are kept")
        if base_url and clean_url(base_url) != address_before:
            server = address_before or "of the provider"
            watch.say(f"they are from the server {printable(server)}")
        try:
            logs = inspect_ai.eval_retry(trusted, log_dir=str(folder), **options, **QUIET)
        except IndexError:
            # Inspect returns the first of its logs, but an interrupted run may have none.
            raise watch.interrupted() from None
        return watch.path_of(logs)


def _writing_options(cache: bool, solver: str | None) -> dict[str, Any]:
    """Return the Inspect options that say when finished answers are written to the log.

    By default, Inspect collects up to 10 answers for a minute. If the process is killed, they are
    only in its database in the user's folder, which a container loses. With the cache, asking those
    questions again costs nothing. Otherwise, and for a solver, whose tools are not cached, each
    answer is written as soon as it is finished. That takes 2 ms more per question, because the log
    is copied.
    """
    if cache and not solver:
        return {}
    return {"log_buffer": 1}


def _generation(options: Mapping[str, Any]) -> GenerateConfig:
    """Return the options of generation among the options of a run."""
    generation = {}
    for name in GenerateConfig.model_fields:
        if name in options:
            generation[name] = options[name]
    return GenerateConfig(**generation)


def _check_solver(name: str) -> None:
    """Raise InputError if "FILE.py@NAME" is not an Inspect solver or agent."""
    try:
        solver_from_spec(SolverSpec(name))
    except (QabenchError, PermissionError):
        raise
    except Exception as error:
        # The user's file is imported, and may raise anything.
        raise InputError(
            f"--solver {name} is not a solver or an agent of Inspect AI: {plain(error)}; decorate its function with "
            "@solver or @agent"
        ) from error
