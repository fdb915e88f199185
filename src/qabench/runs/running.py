"""Starts runs of Inspect AI, and resumes runs that were stopped."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import inspect_ai
from inspect_ai._eval.loader import solver_from_spec
from inspect_ai.event import ModelEvent
from inspect_ai.hooks import (
    BeforeModelGenerate,
    Hooks,
    ModelRetry,
    ModelUsageData,
    SampleEnd,
    SampleEvent,
    TaskStart,
    hooks,
)
from inspect_ai.log._samples import sample_active
from inspect_ai.model import GenerateConfig, ModelUsage
from inspect_ai.solver import SolverSpec

from qabench.adapters.inspect_ai.facts import ASKED_WITH
from qabench.adapters.inspect_ai.language_model import InspectModel
from qabench.adapters.inspect_ai.replies import REJECTIONS_TO_STOP, rejections
from qabench.adapters.inspect_ai.reply_cache import caching_replies
from qabench.adapters.inspect_ai.tasks import inspect_tasks
from qabench.benchmarks import Benchmark, Setting
from qabench.benchmarks.checks import check_answers_public
from qabench.benchmarks.plan import naming_arguments
from qabench.data.rows import without_none
from qabench.errors import InputError, QabenchError
from qabench.evaluation.score_spec import Names
from qabench.evaluation.scoring import Progress
from qabench.io.files import check_writable
from qabench.io.locks import ProcessLock
from qabench.io.redaction import printable
from qabench.llm.call_gate import IN_JUDGE, CallGate, gated_calls
from qabench.llm.endpoint import clean_url, without_account
from qabench.llm.exchange import ChatRequest, limited_replies
from qabench.llm.token_estimates import BYTES_PER_TOKEN, prompt_tokens
from qabench.runs.inspect_logs import read_header
from qabench.runs.log_fields import NAME
from qabench.runs.models import (
    KEY_VARIABLE,
    NO_KEY,
    at_address,
    make_model,
    plain,
    planning_to_call,
    probe,
)
from qabench.runs.started import note_started, was_started_here
from qabench.runs.task_options import Arguments, check_task_options
from qabench.runs.trust import (
    check_conditions,
    check_task,
    checked_log,
    is_complete,
    resume_command,
    solver_with_digest,
    task_of,
)

if TYPE_CHECKING:
    from qabench.llm.caller import Prices

# Inspect's options that suppress its output and its warnings. Its live scores take CPU time even if
# they are not shown.
QUIET: dict[str, Any] = {"display": "none", "log_level": "error", "score_display": False}
# The user is told if the server gives no answer for this many seconds.
BEFORE_NOTE = 5.0
# Schedulers kill a process 10 or more seconds after SIGTERM, so the run ends before that.
SECONDS_AFTER_SIGTERM = 5.0
# The time after an interrupt or a limit to score and write the answers whose replies have arrived.
# It is limited because a question that goes on to search for pages could take minutes.
SECONDS_TO_WRITE = 10.0
WAITING = "waiting for the replies in flight, so that they are kept (Ctrl-C again: don't)"


class Interrupted(QabenchError):
    """A run was stopped by Ctrl-C (``exit_code`` 130) or SIGTERM (143)."""

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
        max_calls: the maximum number of calls to servers, including retries and the first call,
            which checks the model. A model in this process makes no calls, so its replies are
            counted. None for no limit.
        token_budget: the maximum number of tokens of prompts and replies together. None for no
            limit.
        max_cost: the run stops when its calls have cost this much, by ``prices``. None for no
            limit.
        prices: per million tokens.
        replies: the number of replies from servers so far.
        tokens: the number of tokens of prompts and replies so far.
        cost: the cost of these tokens by ``prices``.
        done: the number of answered questions.
        total: the number of all questions.
        stopped: why the run was stopped before its end, or None.
        limit_reached: which limit is reached, or None. The run then stops as soon as no reply is in
            flight.
        number: the signal that ended the run.
        log: the log of the run. None before it has started.
        reused: the number of answered questions in the log that is resumed.
        failing_since: the time of the first failed call since the last reply. None after a reply.
        locks: the locks of the run's logs, until it ends.
        gate: counts calls to servers, and holds further ones after a limit or an interrupt.
        is_interrupted: whether the user has interrupted the run, which then ends as soon as no
            reply is in flight.
        is_cancelled: whether Inspect has been told to end the run.
        estimated: the calls whose tokens were estimated, because the server does not report them.
        handler: the handler of SIGINT while Inspect runs, which cancels everything.
        timer: stops the run after a limit if no call or question ends for some seconds.
    """

    log_dir: Path
    on_log: Callable[[Path], None] = lambda path: None
    on_progress: Progress = lambda done, total: None
    say: Callable[[str], None] = lambda text: None
    max_calls: int | None = None
    token_budget: int | None = None
    max_cost: float | None = None
    prices: Prices | None = None
    replies: int = 0
    tokens: int = 0
    cost: float = 0.0
    done: int = 0
    total: int = 0
    stopped: str | None = None
    limit_reached: str | None = None
    number: int = signal.SIGINT
    log: Path | None = None
    reused: int = 0
    failing_since: float | None = None
    locks: ExitStack = field(default_factory=ExitStack)
    gate: CallGate = field(init=False)
    is_interrupted: bool = False
    is_cancelled: bool = False
    estimated: set[str | None] = field(default_factory=set)
    handler: Any = None
    timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.gate = CallGate(self.max_calls, _asked_now, self.stop_if_waiting)

    def stop_if_waiting(self) -> None:
        """Stop the run at a limit or after an interrupt, once the replies in flight are written."""
        if self.is_cancelled or self.gate.in_flight:
            return
        if self.is_interrupted:
            seconds = 0.0
            if self.gate.replied:
                seconds = SECONDS_TO_WRITE
            self.cancel_later(seconds)
            return
        limit = self.limit_reached
        if limit is None and self.max_calls is not None:
            limit = self._limit_of_calls()
        if limit is None or not self.gate.waiting:
            return
        if not self.gate.replied:
            self.stop(limit)
            return
        # A question with a reply may need a further call and wait for a connection that a held call
        # occupies. Then no event would end the run, so a timer does.
        if self.timer:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(SECONDS_TO_WRITE, self.stop, limit)

    def _limit_of_calls(self) -> str:
        return f"the limit of {self.max_calls} calls (--max-calls) is reached"

    def reach(self, limit: str) -> None:
        """Stop sending calls, because a limit is reached."""
        if self.limit_reached is None:
            self.limit_reached = limit
        self.gate.close()

    def failed(self, reason: str) -> None:
        """Note that a call failed and is repeated. After some seconds, say so once."""
        now = time.monotonic()
        if self.failing_since is None:
            self.failing_since = now
        elif now - self.failing_since > BEFORE_NOTE:
            self.failing_since = inf
            self.say(f"the server does not answer ({reason}), trying again")

    def answered(self, usage: ModelUsage) -> None:
        """Count a reply, and stop the run at its limits."""
        self.failing_since = None
        self.gate.note_reply()
        self.replies += 1
        self.tokens += usage.total_tokens
        # The gate counts the calls that are sent to servers. A model in this process sends none, so
        # its replies are counted.
        in_process = not self.gate.sent
        if in_process and self.max_calls is not None and self.replies >= self.max_calls:
            self.reach(self._limit_of_calls())
        if self.token_budget is not None and self.tokens >= self.token_budget:
            self.reach(f"the budget of {self.token_budget:,} tokens (--token-budget) is spent")
        if self.prices is not None:
            # Tokens that the provider has cached count at the full price, so the run stops early
            # rather than late.
            prompt_tokens = usage.total_tokens - usage.output_tokens
            self.cost += self.prices.cost(prompt_tokens, usage.output_tokens)
            if self.max_cost is not None and self.cost >= self.max_cost:
                self.reach(f"the limit of the cost, {self.max_cost:g} (--max-cost), is reached")

    def stop(self, why: str) -> None:
        """End the run, unless it was stopped before or is done. Inspect still writes the log."""
        if self.stopped is None and self.done < self.total:
            self.stopped = why
            self.cancel()

    def cancel(self) -> None:
        """Let Inspect cancel what it does, and write the log."""
        if not self.is_cancelled:
            self.is_cancelled = True
            signal.raise_signal(signal.SIGINT)

    def cancel_later(self, seconds: float) -> None:
        """Call ``cancel`` after some seconds, unless the run has ended before."""
        asyncio.get_running_loop().call_later(seconds, self.cancel)

    def handle_signals(self) -> None:
        """Handle Ctrl-C while Inspect runs, so that replies in flight, which are paid, are kept.

        It is called after Inspect has started its server in this process, which replaces the signal
        handlers.
        """
        with suppress(ValueError):
            # Only the main thread can handle signals. Otherwise, the calling program does.
            previous = signal.signal(signal.SIGINT, self.interrupt)
            self.handler = previous or signal.default_int_handler
            signal.signal(signal.SIGTERM, self.terminate)

    def interrupt(self, number: int, frame: Any) -> None:
        """Wait for the replies in flight at the first Ctrl-C, and end the run at the second one."""
        if self.is_cancelled or self.is_interrupted or not self.gate.is_busy:
            self.is_cancelled = True
            self.handler(number, frame)
            return
        self.is_interrupted = True
        self.gate.close()
        # The handler must not print: it may have interrupted a write to the same stream.
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(self.say, WAITING)
        loop.call_soon_threadsafe(self.stop_if_waiting)
        if self.number == signal.SIGTERM:
            loop.call_soon_threadsafe(self.cancel_later, SECONDS_AFTER_SIGTERM)

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
        """Return the path of the log. Raises Interrupted or QabenchError if the run did not finish."""
        if not logs or logs[0].status == "cancelled" or self.stopped:
            raise self.interrupted()
        if logs[0].status != "success":
            why = ""
            if logs[0].error:
                why = f": {plain(logs[0].error)}"
            raise QabenchError(
                f"the run ended with the status {logs[0].status}{why}; {self.hint()}"
            )
        return Path(logs[0].location.removeprefix("file://"))


def _asked_now() -> str | None:
    """Return the id of the sample whose code runs now, or None."""
    sample = sample_active()
    return sample.sample_uuid if sample else None


def _estimated_usage(event: ModelEvent) -> ModelUsage:
    """Estimate the tokens of a call, as ``qabench run --dry-run`` does."""
    messages = tuple((message.role, message.text) for message in event.input)
    prompt = prompt_tokens(ChatRequest("", messages))
    size = len(event.output.completion.encode("utf-8", "replace"))
    # Rounded up.
    reply = -(-size // BYTES_PER_TOKEN)
    return ModelUsage(input_tokens=prompt, output_tokens=reply, total_tokens=prompt + reply)


# The watch of the run in progress. Inspect creates the object with the hooks itself, so they find
# it here.
_WATCH: list[Watch] = []


@hooks(name="qabench_progress", description="Progress and limits of qabench run.")
class _Progress(Hooks):
    def enabled(self) -> bool:
        return bool(_WATCH)

    async def on_task_start(self, data: TaskStart) -> None:
        watch, spec = _WATCH[0], data.spec
        questions = len(spec.dataset.sample_ids or ())
        watch.total = questions * (spec.config.epochs or 1) - watch.reused
        # A resumed run has the task id of the first run, so the newest log with this id is taken.
        paths = watch.log_dir.glob(f"[!.]*{spec.task_id}*")
        if log := max(paths, key=os.path.getmtime, default=None):
            watch.log = log
            note_started(spec)
            watch.locks.enter_context(_locked(log))
            watch.on_log(log)
        watch.handle_signals()

    async def on_sample_end(self, data: SampleEnd) -> None:
        watch = _WATCH[0]
        if not watch.is_cancelled:
            watch.done += 1
            watch.on_progress(watch.done, watch.total)
        watch.gate.note_end(data.sample_id)
        if len(rejections) >= REJECTIONS_TO_STOP:
            watch.stop(f"every call is rejected: {rejections[-1]}")

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        # Models in this process send no requests, so this is their only check of the gate.
        if not IN_JUDGE.get():
            await _WATCH[0].gate.wait_if_closed()

    async def on_model_retry(self, data: ModelRetry) -> None:
        if IN_JUDGE.get():
            return
        reason = data.exception_type or "no reply"
        if data.status_code:
            reason = f"HTTP {data.status_code}"
        _WATCH[0].failed(reason)

    async def on_sample_event(self, data: SampleEvent) -> None:
        # Some servers report no tokens, so the limits count an estimate.
        event = data.event
        if not isinstance(event, ModelEvent) or event.pending or event.error:
            return
        watch = _WATCH[0]
        has_reply = event.cache != "read" and event.output.choices
        # Inspect can report the same event more than once, but its tokens are counted once.
        if has_reply and event.output.usage is None and event.uuid not in watch.estimated:
            watch.estimated.add(event.uuid)
            watch.answered(_estimated_usage(event))

    async def on_model_usage(self, data: ModelUsageData) -> None:
        if IN_JUDGE.get():
            return
        rejections.clear()
        _WATCH[0].answered(data.usage)


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
    affect the others. It scores as unanswered, and ``resume`` asks it again. Three consecutive
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
    questions, and the only options that are read are choices of the task, options of sampling, the
    seed and the limit of tokens. All others must be repeated. If the run is complete, nothing is
    asked, and the path of its log is returned.

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
        InputError: as for ``start``, or another process resumes the log. The other errors are those
            of ``start``, too.
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
    cache = trusted.plan.config.cache
    model_args, solver = spec.model_args, spec.solver
    # Arguments that the user wrote, now or for the run on this machine, may name a model or a
    # server. The arguments in a log from elsewhere may not.
    arguments_of_user = task_args
    if was_started_here(spec):
        arguments_of_user = spec.task_args_passed
    with (
        _locked(Path(log)),
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


def _generation(options: Mapping[str, Any]) -> GenerateConfig:
    """Return the options of generation among the options of a run."""
    generation = {}
    for name in GenerateConfig.model_fields:
        if name in options:
            generation[name] = options[name]
    return GenerateConfig(**generation)


def _check_solver(name: str) -> None:
    """Raise InputError if "FILE.py@NAME" is not a solver or an agent of Inspect."""
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


@contextmanager
def _locked(log: Path) -> Iterator[None]:
    """Lock a log for this process, as far as the file system can (a mounted bucket cannot)."""
    lock = ProcessLock(log.with_name(f".{log.name}.lock"))
    if not lock.try_acquire():
        raise InputError(
            f"{log} is being written or resumed by another process; wait for it, or end it"
        )
    try:
        yield
    finally:
        lock.release()


@contextmanager
def watching(
    watch: Watch, cache: bool, failure: str, task_args: Arguments = None
) -> Iterator[None]:
    """Report events to ``watch``, and turn signals and errors into exceptions of qabench.

    Ctrl-C and SIGTERM raise ``Interrupted``, and all other errors raise InputError.

    Args:
        watch: receives the events.
        cache: whether replies are cached.
        failure: what could not be done. Begins the message for errors of other packages.
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
    except Exception as error:
        # An invalid argument, or missing data. Inspect's message says which.
        raise InputError(f"{failure}: {plain(error)}") from error
    finally:
        watch.is_cancelled = True
        _WATCH.clear()
        for number, handler in handlers.items():
            # None stands for a handler that Python did not install, as in programs that embed
            # Python. It cannot be set again.
            if handler is not None:
                signal.signal(number, handler)


def _handle_signals(watch: Watch) -> dict[signal.Signals, Any]:
    """Handle the signals that end a run, and return the previous handlers.

    Limits raise SIGINT to end the run. A process that a shell script started with "&" ignores
    SIGINT, and with the system's default handler it would end at once, so both are replaced.
    """
    try:
        before: dict[signal.Signals, Any] = {
            signal.SIGTERM: signal.signal(signal.SIGTERM, watch.terminate),
            signal.SIGINT: signal.getsignal(signal.SIGINT),
        }
        if before[signal.SIGINT] in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:
        # Only the main thread can handle signals. Otherwise, the calling program does.
        return {}
    return before
