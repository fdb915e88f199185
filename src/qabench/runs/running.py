"""Starts a run, resumes one that was stopped, and runs suites from YAML files.

Inspect AI does the work.
"""

from __future__ import annotations

import io
import os
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import inspect_ai
from filelock import FileLock, SoftFileLock, Timeout
from inspect_ai._eval.loader import solver_from_spec
from inspect_ai.hooks import Hooks, ModelRetry, ModelUsageData, SampleEnd, TaskStart, hooks
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import SolverSpec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from qabench.benchmarks import benchmark
from qabench.data.rows import without_none
from qabench.errors import InputError, QabenchError, unreadable
from qabench.evaluation.scoring import Progress
from qabench.io.files import check_writable
from qabench.io.limits import yaml_of
from qabench.llm.endpoint import clean_url, without_account
from qabench.llm.exchange import limited_replies
from qabench.runs.log import read_header
from qabench.runs.plan import (
    KEY_VARIABLE,
    NO_KEY,
    Arguments,
    at_address,
    check_task_options,
    plain,
    probe,
)
from qabench.runs.trust import check_task, checked_log, resume_command, solver_with_digest, task_of
from qabench.tasks.common import (
    REJECTIONS_TO_STOP,
    caching_replies,
    naming_arguments,
    rejections,
)

# Inspect's options that suppress its output and its warnings. Its live scores take CPU time even if
# they are not shown.
QUIET: dict[str, Any] = {"display": "none", "log_level": "error", "score_display": False}
EXAMPLE_SUITE = """models: [openai/gpt-4o, hf-inference-providers/ORG/NAME]
base_url: http://localhost:8000/v1   # optional: all models are at this server
benchmarks:
  - {benchmark: NAME, settings: [SETTING], config: CONFIG, options: {}}
seeds: [0, 1]                        # optional
limit: 50                            # optional
max_new_tokens: 512                  # optional
cache: true                          # optional"""

BEFORE_NOTE = 5.0  # seconds without an answer of the server before a note says so
OF_SUITE = ("base_url", "limit", "max_tokens", "cache")  # options of ``Suite.with_options``
Positive = Annotated[int, Field(ge=1)]


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
        max_calls: the maximum number of replies from servers. None for no limit.
        token_budget: the maximum number of tokens of prompts and replies together. None for no
            limit.
        repeat: how to continue after an interruption. None for the command that resumes the last
            log.
        replies: the number of replies from servers so far.
        tokens: the number of their tokens.
        done: the number of answered questions.
        total: the number of all questions of the tasks that have started.
        stopped: why the run was stopped before its end, or None.
        number: the signal that ended the run.
        logs: the logs of the run.
        reused: the number of answered questions in the log that is resumed.
        patience: the seconds after which a call is not repeated any more. None if it is repeated
            without end.
        silence: the timer that says that the server does not answer. None while it answers.
        silent: whether the timer has said so.
        locks: the locks of the run's logs, until it ends.
    """

    log_dir: Path
    on_log: Callable[[Path], None] = lambda path: None
    on_progress: Progress = lambda done, total: None
    say: Callable[[str], None] = lambda text: None
    max_calls: int | None = None
    token_budget: int | None = None
    repeat: str | None = None
    replies: int = 0
    tokens: int = 0
    done: int = 0
    total: int = 0
    stopped: str | None = None
    number: int = signal.SIGINT
    logs: list[Path] = field(default_factory=list)
    reused: int = 0
    patience: float | None = None
    silence: threading.Timer | None = None
    silent: bool = False
    locks: ExitStack = field(default_factory=ExitStack)

    def failed(self, reason: str) -> None:
        """Note that a call failed and is repeated.

        Say so if the server still does not answer after some seconds.
        """
        if self.silence is None:
            self.silence = threading.Timer(BEFORE_NOTE, self._say_silent, [reason, time.time()])
            self.silence.daemon = True
            self.silence.start()

    def _say_silent(self, reason: str, since: float) -> None:
        self.silent = True
        until = ""
        if self.patience is not None:
            until = time.strftime(" until about %H:%M:%S", time.localtime(since + self.patience))
        self.say(f"the server does not answer ({reason}), trying again{until}")

    def answered(self) -> None:
        """Note that the server answers."""
        if self.silence:
            self.silence.cancel()
        if self.silent:
            self.say("the server answers again")
        self.silence, self.silent = None, False

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
        if not self.logs:
            return "no question was asked"
        return f"the answers are kept; {self.repeat or f'resume with: {resume_command(self.logs[-1])}'}"

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
            raise QabenchError(
                f"the run ended with the status {logs[0].status}{why}; {self.hint()}"
            )
        return Path(logs[0].location.removeprefix("file://"))


_WATCH: list[Watch] = []  # the run's. Inspect makes the object with the hooks itself


@hooks(name="qabench_progress", description="Progress and limits of qabench run.")
class _Progress(Hooks):
    def enabled(self) -> bool:
        return bool(_WATCH)

    async def on_task_start(self, data: TaskStart) -> None:
        watch, spec = _WATCH[0], data.spec
        watch.total += len(spec.dataset.sample_ids or ()) * (spec.config.epochs or 1) - watch.reused
        # A suite with several seeds has a subfolder for each.
        paths = watch.log_dir.rglob(f"[!.]*{spec.task_id}*")
        if log := max(paths, key=os.path.getmtime, default=None):
            watch.logs.append(log)
            watch.locks.enter_context(_locked(log))
            watch.on_log(log)

    async def on_sample_end(self, data: SampleEnd) -> None:
        watch = _WATCH[0]
        watch.done += 1
        watch.on_progress(watch.done, watch.total)
        if len(rejections) >= REJECTIONS_TO_STOP:
            watch.stop(f"every call is rejected: {rejections[-1]}")

    async def on_model_retry(self, data: ModelRetry) -> None:
        _WATCH[0].failed(
            f"HTTP {data.status_code}" if data.status_code else data.exception_type or "no reply"
        )

    async def on_model_usage(self, data: ModelUsageData) -> None:
        watch = _WATCH[0]
        watch.answered()
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
        options |= {
            "solver": SolverSpec(solver),
            "metadata": {"solver": solver_with_digest(solver)},
        }
    model_config = _generation(options)
    watch = watch or Watch(Path(log_dir))
    watch.patience = _patience(model_config)
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
    the options, only known names, temperature, seed and limits within their ranges are read from
    the log. All others are repeated.

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
    model_config = spec.model_generate_config.merge(_generation(options))
    watch = watch or Watch(folder)
    watch.patience = _patience(trusted.plan.config.merge(model_config))
    watch.reused = sum(sample.error is None for sample in trusted.samples or ())
    failure = f"the run of {log} cannot be resumed"
    cache = trusted.plan.config.cache
    with (
        _locked(Path(log)),
        watching(watch, cache, failure, task_args),
        without_account(spec.model),
    ):
        scorer, setting = task_of(spec.task, spec.task_args_passed, log)
        task = scorer.task_function(setting)(**spec.task_args_passed)
        check_task(log, task)
        task_config = task.config.merge(trusted.plan.config)
        if solver:
            _check_solver(solver)
        probe(spec.model, spec.model_base_url, model_args, model_config, task_config, watch.say)
        asked = len(spec.dataset.sample_ids or ()) * (spec.config.epochs or 1) - watch.reused
        watch.say(f"{watch.reused} kept, {asked} to ask")
        try:
            logs = inspect_ai.eval_retry(trusted, log_dir=str(folder), **options, **QUIET)
        except (
            IndexError
        ):  # Inspect takes the first log of an interrupted run, of which it has none
            raise watch.interrupted() from None
        return watch.path_of(logs)


def _generation(options: Mapping[str, Any]) -> GenerateConfig:
    """Return the options of generation among the options of a run."""
    return GenerateConfig(
        **{name: options[name] for name in GenerateConfig.model_fields if name in options}
    )


def _patience(config: GenerateConfig) -> float | None:
    """Return for how many seconds Inspect repeats a failing call: it waits 3 s, then twice as long each time."""
    waits = None
    if config.max_retries is not None:
        waits = sum(min(3 * 2**number, 1800) for number in range(config.max_retries))
    limits = [limit for limit in (waits, config.timeout) if limit is not None]
    return min(limits, default=None)


def _check_solver(name: str) -> None:
    """Raise InputError if "FILE.py@NAME" is not a solver or an agent of Inspect."""
    try:
        solver_from_spec(SolverSpec(name))
    except (QabenchError, PermissionError):
        raise
    except Exception as error:
        raise InputError(
            f"--solver {name} is not a solver or an agent of Inspect AI: {plain(error)}; decorate its function with "
            "@solver or @agent"
        ) from error


@contextmanager
def _locked(log: Path) -> Iterator[None]:
    """Keep other processes from resuming a log that this one writes or resumes.

    Without effect on file systems without locks, such as a mounted bucket. Raises InputError that
    names the process that has the log.
    """
    path, owner_path = (log.with_name(f".{log.name}.{suffix}") for suffix in ("lock", "owner"))
    lock: Any = FileLock(path, thread_local=False)  # Inspect can end a run in another thread
    try:
        with warnings.catch_warnings(action="ignore"):  # about the soft lock
            lock.acquire(timeout=0)
        if isinstance(lock, SoftFileLock):  # a killed process on another machine would keep it
            raise NotImplementedError
        owner_path.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
    except Timeout:  # on Windows, others cannot read the locked file itself
        owner = owner_path.read_text(encoding="utf-8").strip() if owner_path.exists() else "unknown"
        raise InputError(
            f"{log} is being written or resumed by another process ({owner}); wait for it, or end it"
        ) from None
    except (OSError, NotImplementedError):
        lock.release()
    try:
        yield
    finally:
        if lock.is_locked:
            owner_path.unlink(missing_ok=True)
            with suppress(PermissionError):  # Windows deletes it when it is released
                path.unlink(missing_ok=True)
            lock.release()


@contextmanager
def watching(
    watch: Watch, cache: bool, failure: str, task_args: Arguments = None
) -> Iterator[None]:
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
        if watch.silence:
            watch.silence.cancel()
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


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Benchmark(_Strict):
    benchmark: str
    settings: list[str] | None = None
    config: str | None = None
    options: dict[str, Any] | None = None


@dataclass(frozen=True)
class SuiteEntry:
    """One setting of a benchmark in a suite, with the arguments of its task."""

    benchmark: str
    setting: str
    arguments: Mapping[str, Any]


class Suite(_Strict):
    """The content of a suite's file, as in ``EXAMPLE_SUITE``.

    A key without a value counts as absent.
    """

    models: list[str]
    benchmarks: list[_Benchmark]
    base_url: str | None = None
    seeds: list[int] | None = None
    limit: Positive | None = None  # with --limit also a range
    max_new_tokens: Positive | None = None
    cache: bool | None = None

    @property
    def entries(self) -> list[SuiteEntry]:
        """Return the settings of all benchmarks.

        Raises InputError for an unknown benchmark, setting or option.
        """
        entries = []
        for part in self.benchmarks:
            scorer = benchmark(part.benchmark)
            arguments = dict(part.options or {}) | without_none({"config": part.config})
            names: Sequence[str | None] = part.settings or [None]
            for name in names:
                setting = scorer.setting(name)
                check_task_options(scorer, setting, arguments)
                entries.append(SuiteEntry(scorer.name, setting.name, arguments))
        return entries

    def with_options(
        self,
        base_url: str | None = None,
        limit: Any = None,
        max_tokens: int | None = None,
        cache: bool | None = None,
        **_: Any,
    ) -> Suite:
        """Return the suite with the options that are not None instead of the file's."""
        changes = without_none({"limit": limit, "max_new_tokens": max_tokens, "cache": cache})
        if base_url:
            changes |= {
                "base_url": clean_url(base_url),
                "models": list(map(at_address, self.models)),
            }
        return self.model_copy(update=changes)


def read_suite(path: Path) -> Suite:
    """Return the suite in a YAML file.

    Raises InputError if it cannot be read, or a key or a value is invalid.
    """
    try:
        suite = Suite.model_validate(yaml_of(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise unreadable(f"the suite {path}", error) from None
    except ValidationError as error:
        raise _wrong(path, error) from None
    except ValueError as error:
        raise InputError(f"the suite {path} is not YAML: {error}") from None
    if not suite.models or not suite.entries:
        raise InputError(
            f"the suite {path} must list models and benchmarks, as in this example:\n{EXAMPLE_SUITE}"
        )
    return suite.with_options(suite.base_url)


def run_suite(
    suite: Suite,
    log_dir: Path,
    *,
    watch: Watch | None = None,
    model_args: Arguments = None,
    **options: Any,
) -> tuple[list[Path], list[str]]:
    """Run a suite, or continue it: questions with answers in the folder's logs are not asked again.

    Returns the logs, and those that are not finished. Each seed has its own folder. Options that
    ``Suite.with_options`` does not have are options of ``inspect_ai.eval_set``. Raises
    QabenchError and Interrupted as ``start``.
    """
    suite = suite.with_options(**options)
    passed = {name: value for name, value in without_none(options).items() if name not in OF_SUITE}
    passed |= {"max_tokens": suite.max_new_tokens, "cache": suite.cache is not False}
    tasks = list(map(_task, suite.entries))  # first what takes no model: loading weights takes long
    watch = watch or Watch(log_dir)
    seeds: Sequence[int | None] = suite.seeds or [None]
    config = _generation(passed)
    watch.patience = _patience(config)
    models = [
        probe(model, suite.base_url, model_args, config, tasks[0].config, watch.say)
        for model in suite.models
    ]
    passed |= {"model": models, "model_args": dict(model_args or {})}
    watch.repeat = "repeat the command to continue the suite"
    logs: list[Path] = []
    for seed in seeds:
        with watching(watch, passed["cache"], "the suite cannot run"):
            _, headers = inspect_ai.eval_set(
                list(map(_task, suite.entries)),
                log_dir=str(log_dir if seed is None else log_dir / f"seed-{seed}"),
                model_base_url=suite.base_url,
                limit=suite.limit,
                seed=seed,
                retry_attempts=1,
                max_tasks=len(suite.models),
                log_dir_allow_dirty=True,
                **passed,
                **QUIET,
            )
            if watch.stopped:
                raise watch.interrupted()
        paths = [Path(header.location.removeprefix("file://")) for header in headers]
        logs += sorted(paths, key=partial(_place, suite))
    return logs, [str(path) for path in logs if read_header(path).status != "success"]


def _place(suite: Suite, log: Path) -> tuple[int, int]:
    """Return the place of a log in the order of the suite's file: by setting, then by model."""
    spec = read_header(log).eval
    scorer, setting = task_of(spec.task, spec.task_args_passed, log)
    settings = [(entry.benchmark, entry.setting) for entry in suite.entries]
    models = [*suite.models, spec.model]
    return settings.index((scorer.name, setting.name)), models.index(spec.model)


def _task(entry: SuiteEntry) -> Any:
    descriptor = benchmark(entry.benchmark)
    setting = descriptor.setting(entry.setting)
    with naming_arguments(entry.arguments):
        return descriptor.task_function(setting)(**{**setting.arguments, **entry.arguments})


def _wrong(path: Path, error: ValidationError) -> InputError:
    """Return the first error of a suite's file: the key, its value, and a valid suite."""
    errors = error.errors()
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    key = ".".join(map(str, first["loc"])) or "the file"
    # the value of an unknown key could be a secret, and a missing key has none
    if first["type"] not in ("extra_forbidden", "missing"):
        key += f" is {first['input']!r:.80}"
    return InputError(
        f"the suite {path}: {key}: {first['msg']}; an example of a suite:\n{EXAMPLE_SUITE}"
    )
