"""Starting a run and resuming one that was stopped. Inspect AI does the work."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.files import check_writable
from qabench.llm.endpoint import clean_url
from qabench.llm.exchange import limited_replies
from qabench.runs.probe import KEY_VARIABLE, NO_KEY, at_address, plain, probe
from qabench.runs.progress import Watch, watched_by
from qabench.runs.task_options import check_task_options
from qabench.runs.trust import checked_log, resume_command
from qabench.tasks.common import naming_arguments
from qabench.tasks.reply_cache import caching_replies

# Inspect's options that suppress its output and its warnings. Its live scores take CPU time even if they are not shown.
QUIET = {"display": "none", "log_level": "error", "score_display": False}


class Interrupted(QabenchError):
    """A run was stopped by Ctrl-C or SIGTERM; ``exit_code`` is 130 or 143."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


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
    watch: Watch | None = None,
    **options: Any,
) -> Path:
    """Runs a setting of a benchmark and returns the path of the log.

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
        watch: receives the log's path and the progress.
        **options: options of ``inspect_ai.eval``: limit, epochs, sample_shuffle, max_connections, temperature, ...

    Raises:
        InputError: an unknown benchmark, setting, option or model.
        MissingExtra: inspect_ai or a provider's package is not installed.
        QabenchError: the model does not respond, or the run ended before all questions were asked; the message names
            the log to resume.
        Interrupted: by Ctrl-C or SIGTERM.
    """
    found = benchmark(name)
    chosen = found.setting(setting)
    inspect_ai = _inspect_ai()
    check_task_options(found, chosen, task_args or {})
    check_writable(Path(log_dir) / "log.eval")
    if base_url:
        base_url = clean_url(base_url)
        os.environ.setdefault(KEY_VARIABLE, NO_KEY)
        model = at_address(model)
    probe(model, base_url, model_args)
    given = {name: value for name, value in options.items() if value is not None} | QUIET
    with watching(watch or Watch(Path(log_dir)), log_dir, cache, task_args) as stop:
        try:
            logs = inspect_ai.eval(
                f"qabench/{chosen.task}",
                model=model,
                model_base_url=base_url,
                model_args=dict(model_args or {}),
                task_args={**chosen.arguments, **(task_args or {})},
                log_dir=str(log_dir),
                log_format="eval",
                cache=cache,
                **given,
            )
        except (QabenchError, KeyboardInterrupt, PermissionError):
            raise
        except Exception as error:  # an invalid argument, missing data; Inspect's message says which
            raise InputError(f"{found.title}, {chosen.name}, with {model} could not start: {plain(error)}") from error
        return stop.finished(logs)


def resume(
    log: str | Path,
    *,
    base_url: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    task_args: Mapping[str, Any] | None = None,
    log_dir: str | Path | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Path:
    """Resumes a run that was killed, canceled or had failed samples: only missing and failed ones are asked.

    The log is data, not configuration: only a task of qabench is run, and of its options only numbers and names from
    a fixed set are read from the log. Paths, addresses, models and texts have to be repeated.

    Args:
        log: the log of the run.
        base_url: the address of the server, if the run was started with one.
        model_args: arguments of the model's provider; those of the log are not used.
        task_args: the arguments of the task that are not read from the log, with the values of the log.
        log_dir: the folder of the new log; None for that of the old one.
        watch: receives the log's path and the progress.
        **options: options of ``inspect_ai.eval_retry``: max_connections, timeout, ...

    Returns:
        The path of the new log, which contains the whole run.

    Raises:
        InputError: see ``start``; also if the log names another server.
        MissingExtra: see ``start``.
        QabenchError: see ``start``.
        Interrupted: see ``start``.
    """
    inspect_ai = _inspect_ai()
    trusted = checked_log(log, base_url, model_args, task_args)
    folder = Path(log_dir or Path(log).parent)
    check_writable(folder / "log.eval")
    os.environ.setdefault(KEY_VARIABLE, NO_KEY)
    probe(trusted.eval.model, trusted.eval.model_base_url, model_args)
    with watching(watch or Watch(folder), folder, trusted.plan.config.cache, task_args) as stop:
        try:
            logs = inspect_ai.eval_retry(trusted, log_dir=str(folder), **options, **QUIET)
        except (QabenchError, KeyboardInterrupt, PermissionError):
            raise
        except IndexError:  # Inspect takes the first log of an interrupted run, of which it has none
            raise stop.interrupted() from None
        except Exception as error:
            raise InputError(f"the run of {log} cannot be resumed: {plain(error)}") from error
        return stop.finished(logs)


class _Stop:
    """How a run ended: the signal that stopped it, and its log."""

    def __init__(self, watch: Watch, log_dir: Path) -> None:
        self.watch, self.log_dir = watch, log_dir
        self.number: int | None = None

    def terminate(self, *_: object) -> None:
        """The handler of SIGTERM: as on Ctrl-C, Inspect writes the log and ends."""
        self.number = signal.SIGTERM
        signal.raise_signal(signal.SIGINT)

    def hint(self) -> str:
        if not self.watch.logs:
            return "no question was asked"
        return f"the answers are kept; resume with: {resume_command(self.watch.logs[-1])}"

    def interrupted(self) -> QabenchError:
        if self.watch.stopped:
            return QabenchError(f"the run was stopped: {self.watch.stopped}; {self.hint()}")
        return Interrupted(f"interrupted; {self.hint()}", self.number or signal.SIGINT)

    def finished(self, logs: Sequence[Any]) -> Path:
        """The path of the log. Raises Interrupted or QabenchError if the run did not finish."""
        if not logs or logs[0].status == "cancelled" or self.watch.stopped:
            raise self.interrupted()
        path = Path(logs[0].location.removeprefix("file://"))
        if logs[0].status != "success":
            why = f": {plain(logs[0].error)}" if logs[0].error else ""
            raise QabenchError(f"the run ended with the status {logs[0].status}{why}; {self.hint()}")
        return path


@contextmanager
def watching(
    watch: Watch, log_dir: str | Path, cache: bool, task_args: Mapping[str, Any] | None = None
) -> Iterator[_Stop]:
    """Report events to ``watch``, and turn Ctrl-C and SIGTERM into ``Interrupted``.

    Args:
        watch: receives the events.
        log_dir: the folder of the log.
        cache: whether replies are cached.
        task_args: the arguments of the task that the user gave in this call.
    """
    stop = _Stop(watch, Path(log_dir))
    before = _handled(stop)
    watched_by(watch)
    try:
        # Inspect prints the list of hooks on standard output.
        with (
            redirect_stdout(io.StringIO()),
            limited_replies(),
            caching_replies(cache),
            naming_arguments(task_args or {}),
        ):
            yield stop
    except KeyboardInterrupt:
        raise stop.interrupted() from None
    finally:
        watched_by(None)
        for number, handler in before.items():
            signal.signal(number, handler)


def _handled(stop: _Stop) -> dict[signal.Signals, Any]:
    """Handles the signals that end a run, and returns the handlers before.

    SIGINT is ignored in a process that a script starts with "&"; limits and SIGTERM need it.
    """
    try:
        before: dict[signal.Signals, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop.terminate)}
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # not the main thread: the calling program handles signals
        return {}
    return before


def _inspect_ai() -> Any:
    try:
        import inspect_ai
    except ImportError:
        raise MissingExtra('running models needs inspect_ai: pip install "qabench[run]"') from None
    return inspect_ai
