"""Watches a run of Inspect AI: its progress, its limits, and the signals that end it."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from inspect_ai.model import ModelUsage

from qabench.adapters.inspect_ai.replies import REJECTIONS_TO_STOP, rejections
from qabench.adapters.inspect_ai.reply_cache import caching_replies
from qabench.benchmarks.plan import naming_arguments
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Progress
from qabench.io.locks import ProcessLock
from qabench.llm.call_gate import IN_JUDGE, CallGate, gated_calls
from qabench.llm.exchange import ChatRequest, limited_replies
from qabench.llm.token_estimates import BYTES_PER_TOKEN, prompt_tokens
from qabench.runs.models import KEY_VARIABLE, NO_KEY, plain
from qabench.runs.started import note_started
from qabench.runs.task_options import Arguments
from qabench.runs.trust import resume_command

if TYPE_CHECKING:
    from qabench.llm.caller import Prices

# The user is told if the server gives no answer for this many seconds.
BEFORE_NOTE = 5.0
# Schedulers kill a process 10 or more seconds after SIGTERM, so the run ends before that.
SECONDS_AFTER_SIGTERM = 5.0
# After an interrupt or at a limit, this many seconds remain to score and write the answers whose
# replies have arrived. Without a maximum, a question that goes on to search for pages could take
# minutes.
SECONDS_TO_WRITE = 10.0
WAITING = (
    "waiting for the replies in flight, so that they are kept (press Ctrl-C again to stop now)"
)


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
        on_progress: called with ``done`` and ``total``.
        say: called with a sentence when the user has to wait, and why.
        max_calls: the maximum number of calls to servers, including retries and the first call,
            which checks the model. A model in this process makes no calls, so its replies are
            counted. None for no limit.
        token_budget: the maximum number of tokens of prompts and replies together. None for no
            limit.
        max_cost: the run stops when its calls have cost this much, by ``prices``. None for no
            limit.
        prices: per million tokens.
        replies: the number of the model's replies so far, without replies from the cache.
        tokens: the number of tokens of prompts and replies so far.
        cost: the cost of these tokens by ``prices``.
        done: the number of answered questions, each counted once per epoch.
        total: the number of questions to answer, counted in the same way, without ``reused``.
        stopped: why the run was stopped before its end, or None.
        limit_reached: which limit is reached, or None. The run then stops as soon as no reply is in
            flight.
        number: the signal that ended the run.
        log: the log of the run. None before it has started.
        reused: the number of answered questions in the log that is resumed.
        failing_since: the time of the first failed call since the last reply. None after a reply.
        locks: the locks of the run's logs, until the run ends.
        gate: counts calls to servers, and holds further ones after a limit or an interrupt.
        is_interrupted: whether the user has interrupted the run, which then ends as soon as no
            reply is in flight.
        is_cancelled: whether Inspect has been told to end the run.
        estimated: the calls whose tokens were estimated, because the server does not report them.
        handler: the handler of SIGINT that ``handle_signals`` has replaced. It cancels everything.
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
            watch.locks.enter_context(locked(log))
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


@contextmanager
def watching(
    watch: Watch, cache: bool, failure: str, task_args: Arguments = None
) -> Iterator[None]:
    """Report events to ``watch``, and turn signals and errors into exceptions of qabench.

    Ctrl-C and SIGTERM raise ``Interrupted``, and a limit raises QabenchError. Exceptions of other
    packages become InputError, except PermissionError.

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


@contextmanager
def locked(log: Path) -> Iterator[None]:
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
