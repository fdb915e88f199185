"""Starts a run, and resumes one that was stopped. Inspect AI does the work."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import inspect_ai
from inspect_ai.hooks import Hooks, ModelUsageData, SampleEnd, TaskStart, hooks
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import SolverSpec

from qabench.benchmarks import benchmark
from qabench.errors import InputError, QabenchError
from qabench.io.files import check_writable
from qabench.llm.endpoint import clean_url
from qabench.llm.exchange import limited_replies
from qabench.runs.plan import KEY_VARIABLE, NO_KEY, at_address, check_task_options, plain, probe
from qabench.runs.trust import checked_log, resume_command, solver_with_digest, task_of
from qabench.tasks.common import naming_arguments, own_tasks_only
from qabench.tasks.replies import REJECTIONS_TO_STOP, caching_replies, rejections

# Inspect's options that suppress its output and its warnings. Its live scores take CPU time even if they are not shown.
QUIET: dict[str, Any] = {"display": "none", "log_level": "error", "score_display": False}


class Interrupted(QabenchError):
    """A run was stopped by Ctrl-C or SIGTERM; ``exit_code`` is 130 or 143."""

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
        max_calls: the maximum number of replies from servers; None for no limit.
        token_budget: the maximum number of tokens of prompts and replies together; None for no limit.
        repeat: how to continue after an interruption; None for the command that resumes the last log.
        replies: the number of replies from servers so far.
        tokens: the number of their tokens.
        done: the number of answered questions.
        total: the number of all questions of the tasks that have started.
        expected: the number of all questions, if it is known before.
        stopped: why the run was stopped before its end, or None.
        number: the signal that ended the run.
        logs: the logs of the run.
    """

    log_dir: Path
    on_log: Callable[[Path], None] = lambda path: None
    on_progress: Callable[[int, int], None] = lambda done, total: None
    max_calls: int | None = None
    token_budget: int | None = None
    repeat: str | None = None
    replies: int = 0
    tokens: int = 0
    done: int = 0
    total: int = 0
    expected: int = 0
    stopped: str | None = None
    number: int = signal.SIGINT
    logs: list[Path] = field(default_factory=list)

    def stop(self, why: str) -> None:
        """End the run, once: Inspect ends on the signal, with the log written."""
        if self.stopped is None and self.done < self.total:
            self.stopped = why
            os.kill(os.getpid(), signal.SIGINT)

    def terminate(self, *_: object) -> None:
        """Handle SIGTERM as Ctrl-C: Inspect writes the log and ends."""
        self.number = signal.SIGTERM
        signal.raise_signal(signal.SIGINT)

    def hint(self) -> str:
        """Return how to continue the run."""
        if not self.logs:
            return "no question was asked"
        return f"the answers are kept; {self.repeat or f'resume with: {resume_command(self.logs[-1])}'}"

    def interrupted(self) -> QabenchError:
        """Return the exception for a run that was stopped, by a limit or by a signal."""
        if self.stopped:
            return QabenchError(f"the run was stopped: {self.stopped}; {self.hint()}")
        return Interrupted(f"interrupted; {self.hint()}", self.number)

    def path_of(self, logs: Sequence[Any]) -> Path:
        """Return the path of the log. Raises Interrupted or QabenchError if the run did not finish."""
        if not logs or logs[0].status == "cancelled" or self.stopped:
            raise self.interrupted()
        if logs[0].status != "success":
            why = f": {plain(logs[0].error)}" if logs[0].error else ""
            raise QabenchError(f"the run ended with the status {logs[0].status}{why}; {self.hint()}")
        return Path(logs[0].location.removeprefix("file://"))


_WATCH: list[Watch] = []  # the run's; Inspect makes the object with the hooks itself


@hooks(name="qabench_progress", description="Progress and limits of qabench run.")
class _Progress(Hooks):
    def enabled(self) -> bool:
        return bool(_WATCH)

    async def on_task_start(self, data: TaskStart) -> None:
        watch, spec = _WATCH[0], data.spec
        watch.total += len(spec.dataset.sample_ids or ()) * (spec.config.epochs or 1)
        # A suite with several seeds has a subfolder for each.
        paths = [path for path in watch.log_dir.rglob(f"*{spec.task_id}*") if not path.name.startswith(".")]
        if paths:
            watch.logs.append(max(paths, key=lambda path: path.stat().st_mtime))
            watch.on_log(watch.logs[-1])

    async def on_sample_end(self, data: SampleEnd) -> None:
        watch = _WATCH[0]
        watch.done += 1
        watch.on_progress(watch.done, max(watch.total, watch.expected))
        if len(rejections) >= REJECTIONS_TO_STOP:
            watch.stop(f"every call is rejected: {rejections[-1]}")

    async def on_model_usage(self, data: ModelUsageData) -> None:
        watch = _WATCH[0]
        watch.replies += 1
        watch.tokens += data.usage.total_tokens
        rejections.clear()
        if watch.max_calls is not None and watch.replies >= watch.max_calls:
            watch.stop(f"the limit of {watch.max_calls} calls (--max-calls) is reached")
        if watch.token_budget is not None and watch.tokens >= watch.token_budget:
            watch.stop(f"the budget of {watch.token_budget:,} tokens (--token-budget) is spent")


def start(
    name: str,
    setting: str | None,
    model: str,
    *,
    base_url: str | None = None,
    task_args: Mapping[str, Any] | None = None,
    model_args: Mapping[str, Any] | None = None,
    log_dir: str | Path = "logs",
    cache: bool = True,
    solver: str | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Path:
    """Run a setting of a benchmark and return the path of the log.

    A sample that fails (a timeout, a server error after all retries) is recorded and does not affect the others; it
    scores as unanswered, and ``resume`` asks it again. Three consecutive calls that are permanently rejected (wrong
    key, unknown model, connection refused) stop the run.

    Args:
        name: the benchmark.
        setting: one of its settings; None for the first.
        model: Inspect's name of the model, such as "hf-inference-providers/ORG/NAME"; with ``base_url`` the model's
            name on the server. The server's key, if it needs one, is read from QABENCH_API_KEY.
        base_url: the base URL of an OpenAI-compatible server.
        task_args: arguments of the Inspect task.
        model_args: arguments of the model's provider.
        log_dir: the folder of the log.
        cache: whether replies are cached and reused.
        solver: "FILE.py@NAME", a solver or an agent of Inspect AI that answers in place of the setting's own.
        watch: receives the log's path and the progress.
        **options: options of ``inspect_ai.eval``: limit, epochs, sample_shuffle, max_connections, temperature, ...

    Raises:
        InputError: an unknown benchmark, setting, option or model.
        MissingExtra: a package of the task or of the provider is not installed.
        QabenchError: the model does not respond, or the run ended before all questions were asked; the message names
            the log to resume.
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
    options = {option: value for option, value in options.items() if value is not None} | {"cache": cache}
    if solver:
        options |= {"solver": SolverSpec(solver), "metadata": {"solver": solver_with_digest(solver)}}
    model_config = GenerateConfig(**{name: options[name] for name in GenerateConfig.model_fields if name in options})
    watch = watch or Watch(Path(log_dir))
    with watching(watch, cache, f"{scorer.title}, {chosen.name}, with {model} could not start", task_args):
        # First what takes no model: loading weights takes long.
        task_config = scorer.task_function(chosen)(**arguments).config
        probe(model, base_url, model_args, model_config, task_config)
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
    *,
    base_url: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    task_args: Mapping[str, Any] | None = None,
    log_dir: str | Path | None = None,
    solver: str | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Path:
    """Resume a run that was killed, canceled or had failed samples: only missing and failed ones are asked.

    The log is data, not configuration: only a task of qabench is run, and of its options only numbers and names from
    a fixed set are read from the log. Paths, addresses, models and texts have to be repeated.

    Args:
        log: the log of the run.
        base_url: the address of the server, if the run was started with one.
        model_args: arguments of the model's provider; those of the log are not used.
        task_args: the arguments of the task that are not read from the log, with the values of the log.
        log_dir: the folder of the new log, which contains the whole run; None for that of the old one.
        solver: the solver of the run, if it was started with one; its file must be the same.
        watch: receives the log's path and the progress.
        **options: options of ``inspect_ai.eval_retry``: max_connections, timeout, ...

    Raises:
        InputError: see ``start``, as for the others; also if another process resumes the log.
    """
    trusted = checked_log(log, base_url, model_args, task_args, solver)
    spec = trusted.eval
    folder = Path(log_dir or Path(log).parent)
    check_writable(folder / "log.eval")
    options = {option: value for option, value in options.items() if value is not None}
    watch = watch or Watch(folder)
    failure = f"the run of {log} cannot be resumed"
    with _locked(Path(log)), watching(watch, trusted.plan.config.cache, failure, task_args):
        scorer, setting = task_of(spec.task, spec.task_args_passed, log)
        task_config = scorer.task_function(setting)(**spec.task_args_passed).config.merge(trusted.plan.config)
        probe(spec.model, spec.model_base_url, model_args, spec.model_generate_config, task_config)
        try:
            logs = inspect_ai.eval_retry(trusted, log_dir=str(folder), **options, **QUIET)
        except IndexError:  # Inspect takes the first log of an interrupted run, of which it has none
            raise watch.interrupted() from None
        return watch.path_of(logs)


@contextmanager
def _locked(log: Path) -> Iterator[None]:
    """Keep other processes from resuming the same log. Raises InputError that names the process that resumes it."""
    from filelock import FileLock, Timeout

    path = log.with_name(f".{log.name}.lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        owner = path.read_text(encoding="utf-8").strip() or "unknown"
        raise InputError(f"{log} is being resumed by another process ({owner}); wait for it, or end it") from None
    try:
        path.write_text(f"process {os.getpid()} on {os.uname().nodename}", encoding="utf-8")
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


@contextmanager
def watching(watch: Watch, cache: bool, failure: str, task_args: Mapping[str, Any] | None = None) -> Iterator[None]:
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
            caching_replies(cache),
            naming_arguments(task_args or {}),
            own_tasks_only(),
        ):
            yield
    except KeyboardInterrupt:
        raise watch.interrupted() from None
    except (QabenchError, PermissionError):
        raise
    except Exception as error:  # an invalid argument, missing data; Inspect's message says which
        raise InputError(f"{failure}: {plain(error)}") from error
    finally:
        _WATCH.clear()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _handle_signals(watch: Watch) -> dict[signal.Signals, Any]:
    """Handle the signals that end a run, and return the handlers before.

    SIGINT is ignored in a process that a script starts with "&"; limits and SIGTERM need it.
    """
    try:
        before: dict[signal.Signals, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, watch.terminate)}
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # not the main thread: the calling program handles signals
        return {}
    return before
