"""Starts a run, and resumes one that was stopped.

Inspect AI does the work.
"""

from __future__ import annotations

import io
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import inspect_ai
from filelock import FileLock, SoftFileLock, Timeout
from inspect_ai._eval.loader import solver_from_spec
from inspect_ai.hooks import Hooks, ModelRetry, ModelUsageData, SampleEnd, SampleStart, TaskStart, hooks
from inspect_ai.model import GenerateConfig, ModelUsage
from inspect_ai.solver import SolverSpec

from qabench.benchmarks import benchmark
from qabench.data.rows import without_none
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Progress
from qabench.io.files import check_writable
from qabench.llm.endpoint import clean_url, without_account
from qabench.llm.exchange import CallGate, gated_calls, limited_replies
from qabench.runs.plan import (
    KEY_VARIABLE,
    NO_KEY,
    Arguments,
    at_address,
    check_task_options,
    make_model,
    plain,
    probe,
)
from qabench.runs.trust import (
    check_conditions,
    check_task,
    checked_log,
    resume_command,
    solver_with_digest,
    task_of,
)
from qabench.tasks.common import REJECTIONS_TO_STOP, caching_replies, naming_arguments, rejections
from qabench.tasks.facts import ASKED_WITH

# Inspect's options that suppress its output and its warnings. Its live scores take CPU time even if
# they are not shown.
QUIET: dict[str, Any] = {"display": "none", "log_level": "error", "score_display": False}
BEFORE_NOTE = 5.0  # seconds without an answer of the server before a note says so


class Interrupted(QabenchError):
    """A run was stopped by Ctrl-C or SIGTERM.

    ``exit_code`` is 130 or 143.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


@dataclass
class Watch:
    """Receives the events of a run, and says how it ended.

    Attributes:
        log_dir: the folder of the log.
        on_log: called with the log's path before the first question.
        on_progress: called with the number of answered questions and of all questions.
        say: called with a sentence when the user has to wait, and why.
        max_calls: the maximum number of calls to servers, with repeated ones and the first one,
            which checks the model. For models in this process, of replies. None for no limit.
        token_budget: the maximum number of tokens of prompts and replies together. None for no
            limit.
        replies: the number of replies from servers so far.
        tokens: the number of their tokens.
        done: the number of answered questions.
        total: the number of all questions.
        stopped: why the run was stopped before its end, or None.
        number: the signal that ended the run.
        log: the log of the run, when it has started.
        reused: the number of answered questions in the log that is resumed.
        failing_since: the time of the first failed call since the last reply. None after a reply.
        locks: the locks of the run's logs, until it ends.
        active: the number of questions that are being asked.
        gate: counts calls to servers and keeps back those beyond ``max_calls``.
    """

    log_dir: Path
    on_log: Callable[[Path], None] = lambda path: None
    on_progress: Progress = lambda done, total: None
    say: Callable[[str], None] = lambda text: None
    max_calls: int | None = None
    token_budget: int | None = None
    replies: int = 0
    tokens: int = 0
    done: int = 0
    total: int = 0
    stopped: str | None = None
    number: int = signal.SIGINT
    log: Path | None = None
    reused: int = 0
    failing_since: float | None = None
    locks: ExitStack = field(default_factory=ExitStack)
    gate: CallGate | None = None
    active: int = 0

    def __post_init__(self) -> None:
        if self.max_calls is not None:
            self.gate = CallGate(self.max_calls, self.stop_if_waiting)

    def stop_if_waiting(self) -> None:
        """Stop the run at the limit of calls when no question can go on without a further call.

        Before, the answers of the last calls are scored and written.
        """
        gate = self.gate
        if gate is not None and not gate.in_flight and gate.waiting >= max(1, self.active):
            self.calls_used_up()

    def calls_used_up(self) -> None:
        """Stop the run at the limit of calls."""
        self.stop(f"the limit of {self.max_calls} calls (--max-calls) is reached")

    def failed(self, reason: str) -> None:
        """Note that a call failed and is repeated.

        Say so, once, if the server still does not answer after some seconds.
        """
        now = time.monotonic()
        if self.failing_since is None:
            self.failing_since = now
        elif now - self.failing_since > BEFORE_NOTE:
            self.failing_since = inf
            self.say(f"the server does not answer ({reason}), trying again")

    def answered(self, usage: ModelUsage) -> None:
        """Count a reply, and stop the run at its limits."""
        self.failing_since = None
        self.replies += 1
        self.tokens += usage.total_tokens
        in_process = self.gate is None or not self.gate.sent
        if in_process and self.max_calls is not None and self.replies >= self.max_calls:
            self.calls_used_up()
        if self.token_budget is not None and self.tokens >= self.token_budget:
            self.stop(f"the budget of {self.token_budget:,} tokens (--token-budget) is spent")

    def stop(self, why: str) -> None:
        """End the run, once: Inspect ends on the signal, with the log written."""
        if self.stopped is None and self.done < self.total:
            self.stopped = why
            signal.raise_signal(signal.SIGINT)

    def terminate(self, *_: object) -> None:
        """Handle SIGTERM as Ctrl-C: Inspect writes the log and ends."""
        self.number = signal.SIGTERM
        signal.raise_signal(signal.SIGINT)

    def hint(self) -> str:
        """Return how to continue the run."""
        if not self.log:
            return "no question was asked"
        return f"the answers are kept; resume with: {resume_command(self.log)}"

    def interrupted(self) -> QabenchError:
        """Return the exception for a run that was stopped, by a limit or by a signal."""
        if self.stopped:
            return QabenchError(f"the run was stopped: {self.stopped}; {self.hint()}")
        return Interrupted(f"interrupted; {self.hint()}", self.number)

    def path_of(self, logs: Sequence[Any]) -> Path:
        """Return the path of the log.

        Raises Interrupted or QabenchError if the run did not finish.
        """
        if not logs or logs[0].status == "cancelled" or self.stopped:
            raise self.interrupted()
        if logs[0].status != "success":
            why = f": {plain(logs[0].error)}" if logs[0].error else ""
            raise QabenchError(f"the run ended with the status {logs[0].status}{why}; {self.hint()}")
        return Path(logs[0].location.removeprefix("file://"))


_WATCH: list[Watch] = []  # the run's. Inspect makes the object with the hooks itself


@hooks(name="qabench_progress", description="Progress and limits of qabench run.")
class _Progress(Hooks):
    def enabled(self) -> bool:
        return bool(_WATCH)

    async def on_task_start(self, data: TaskStart) -> None:
        watch, spec = _WATCH[0], data.spec
        watch.total = len(spec.dataset.sample_ids or ()) * (spec.config.epochs or 1) - watch.reused
        paths = watch.log_dir.glob(f"[!.]*{spec.task_id}*")
        if log := max(paths, key=os.path.getmtime, default=None):
            watch.log = log
            watch.locks.enter_context(_locked(log))
            watch.on_log(log)

    async def on_sample_start(self, data: SampleStart) -> None:
        _WATCH[0].active += 1

    async def on_sample_end(self, data: SampleEnd) -> None:
        watch = _WATCH[0]
        watch.done += 1
        watch.on_progress(watch.done, watch.total)
        watch.active -= 1
        watch.stop_if_waiting()
        if len(rejections) >= REJECTIONS_TO_STOP:
            watch.stop(f"every call is rejected: {rejections[-1]}")

    async def on_model_retry(self, data: ModelRetry) -> None:
        _WATCH[0].failed(
            f"HTTP {data.status_code}" if data.status_code else data.exception_type or "no reply"
        )

    async def on_model_usage(self, data: ModelUsageData) -> None:
        rejections.clear()
        _WATCH[0].answered(data.usage)


def start(
    name: str,
    setting: str | None,
    model: str,
    *,
    base_url: str | None = None,
    task_args: Arguments = None,
    model_args: Arguments = None,
    log_dir: str | Path = "logs",
    cache: bool = True,
    solver: str | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Path:
    """Run a setting of a benchmark and return the path of the log.

    A sample that fails (a timeout, a server error after all retries) is recorded and does not
    affect the others. It scores as unanswered, and ``resume`` asks it again. Three consecutive
    calls that are permanently rejected (wrong key, unknown model, connection refused) stop the run.

    Args:
        name: the benchmark.
        setting: one of its settings. None for the first.
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
        watch: receives the log's path and the progress.
        **options: options of ``inspect_ai.eval``: limit, epochs, sample_shuffle, max_connections, temperature, ...

    Raises:
        InputError: an unknown benchmark, setting, option or model.
        MissingExtra: a package of the task or of the provider is not installed.
        QabenchError: the model does not respond, or the run ended before all questions were asked.
            The message names the log to resume.
        Interrupted: by Ctrl-C or SIGTERM.
    """
    scorer = benchmark(name)
    chosen = scorer.setting(setting)
    check_task_options(scorer, chosen, task_args or {})
    check_writable(Path(log_dir) / "log.eval")
    if base_url:
        base_url = clean_url(base_url)
        model = at_address(model)
    arguments = {**chosen.arguments, **(task_args or {})}
    options = without_none(options) | {"cache": cache}
    if solver:
        options |= {"solver": SolverSpec(solver), "metadata": {"solver": solver_with_digest(solver)}}
    model_config = _generation(options)
    watch = watch or Watch(Path(log_dir))
    failure = f"{scorer.title}, {chosen.name}, with {model} could not start"
    with watching(watch, cache, failure, task_args), without_account(model):
        # First what takes no model: loading weights takes long.
        task_config = scorer.task_function(chosen)(**arguments).config
        if solver:
            _check_solver(solver)
        probe(model, base_url, model_args, model_config, task_config, watch.say)
        logs = inspect_ai.eval(
            f"qabench/{chosen.task}",
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
    watch: Watch | None = None,
    **options: Any,
) -> Path:
    """Resume a run that was killed, canceled or had failed samples: only missing and failed ones are asked.

    The log is data, not configuration: only a task of qabench is run, with the same questions. Of
    the options, only choices of the task, options of sampling, the seed and the limit of tokens are
    read from the log. All others are repeated.

    Args:
        log: the log of the run.
        model: the model of the run, as in ``start``. None if only the solver called models.
        base_url: the address of the server, if the run was started with one.
        model_args: arguments of the model's provider. The arguments in the log are not used.
        task_args: the arguments of the task that are not read from the log, with the values of the
            log.
        log_dir: the folder of the new log, which contains the whole run. None means the folder of
            the old one.
        solver: the solver of the run, if it was started with one. Its file must be the same.
        epochs: how many times each question is asked, if it is more than once.
        watch: receives the log's path and the progress.
        **options: options of ``inspect_ai.eval_retry``: max_connections, timeout, ...

    Raises:
        InputError: see ``start``, as for the others, also if another process resumes the log.
    """
    trusted = checked_log(
        log,
        model,
        base_url=base_url,
        model_args=model_args,
        task_args=task_args,
        solver=solver,
        epochs=epochs,
    )
    spec = trusted.eval
    folder = Path(log_dir or Path(log).parent)
    check_writable(folder / "log.eval")
    options = without_none(options)
    model_config = _generation(options)
    watch = watch or Watch(folder)
    watch.reused = sum(sample.error is None for sample in trusted.samples or ())
    failure = f"the run of {log} cannot be resumed"
    cache = trusted.plan.config.cache
    with _locked(Path(log)), watching(watch, cache, failure, task_args), without_account(spec.model):
        scorer, setting = task_of(spec.task, spec.task_args_passed, log)
        task = scorer.task_function(setting)(**spec.task_args_passed)
        check_task(log, task)
        check_conditions(trusted, scorer, task.metadata[ASKED_WITH], log)
        task_config = task.config.merge(trusted.plan.config)
        if solver:
            _check_solver(solver)
        probed = probe(spec.model, spec.model_base_url, model_args, model_config, task_config, watch.say)
        if isinstance(probed, str):
            probed = make_model(spec.model, spec.model_base_url, model_args, config=model_config)
        of_model = scorer.conditions_of_model(setting, spec.task_args_passed, probed)
        check_conditions(trusted, scorer, of_model, log)
        watch.say(f"{watch.reused} answers are kept")
        try:
            logs = inspect_ai.eval_retry(trusted, log_dir=str(folder), **options, **QUIET)
        except IndexError:  # Inspect takes the first log, but an interrupted run may have none
            raise watch.interrupted() from None
        return watch.path_of(logs)


def _generation(options: Mapping[str, Any]) -> GenerateConfig:
    """Return the options of generation among the options of a run."""
    return GenerateConfig(
        **{name: options[name] for name in GenerateConfig.model_fields if name in options}
    )


def _check_solver(name: str) -> None:
    """Raise InputError if "FILE.py@NAME" is not a solver or an agent of Inspect."""
    try:
        solver_from_spec(SolverSpec(name))
    except (QabenchError, PermissionError):
        raise
    except Exception as error:  # the user's file is imported, and may raise anything
        raise InputError(
            f"--solver {name} is not a solver or an agent of Inspect AI: {plain(error)}; decorate its function with "
            "@solver or @agent"
        ) from error


@contextmanager
def _locked(log: Path) -> Iterator[None]:
    """Keep other processes from resuming a log that this one writes or resumes.

    Without effect on file systems without locks, such as a mounted bucket.
    """
    path = log.with_name(f".{log.name}.lock")
    lock: Any = FileLock(path, thread_local=False)  # Inspect can end a run in another thread
    try:
        with warnings.catch_warnings(action="ignore"):  # about the soft lock
            lock.acquire(timeout=0)
        if isinstance(lock, SoftFileLock):  # a killed process on another machine would keep it
            lock.release()
    except Timeout:
        raise InputError(
            f"{log} is being written or resumed by another process; wait for it, or end it"
        ) from None
    except (OSError, NotImplementedError):
        pass
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(PermissionError):  # Windows deletes it when it is released
                path.unlink(missing_ok=True)
            lock.release()


@contextmanager
def watching(watch: Watch, cache: bool, failure: str, task_args: Arguments = None) -> Iterator[None]:
    """Report events to ``watch``, turn Ctrl-C and SIGTERM into ``Interrupted``, and other errors into InputError.

    Args:
        watch: receives the events.
        cache: whether replies are cached.
        failure: what could not be done, for errors that are not of this package.
        task_args: the arguments of the task that the user gave in this call.
    """
    os.environ.setdefault(KEY_VARIABLE, NO_KEY)
    handlers = _handle_signals(watch)
    _WATCH[:] = [watch]
    rejections.clear()
    try:
        # Inspect prints the list of hooks on standard output.
        with (
            redirect_stdout(io.StringIO()),
            limited_replies(),
            gated_calls(watch.gate),
            caching_replies(cache),
            naming_arguments(task_args or {}),
            watch.locks,
        ):
            yield
    except KeyboardInterrupt:
        raise watch.interrupted() from None
    except (QabenchError, PermissionError):
        raise
    except Exception as error:  # an invalid argument, missing data. Inspect's message says which
        raise InputError(f"{failure}: {plain(error)}") from error
    finally:
        _WATCH.clear()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _handle_signals(watch: Watch) -> dict[signal.Signals, Any]:
    """Handle the signals that end a run, and return the handlers before.

    SIGINT is ignored in a process that a script starts with "&". Limits and SIGTERM need it.
    """
    try:
        before: dict[signal.Signals, Any] = {
            signal.SIGTERM: signal.signal(signal.SIGTERM, watch.terminate)
        }
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # not the main thread: the calling program handles signals
        return {}
    return before
