"""Events during a run, from Inspect's hooks: the log's path, progress, when to stop."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from inspect_ai.hooks import (
    Hooks,
    ModelUsageData,
    SampleEnd,
    TaskStart,
    hooks,
)

from qabench.tasks.rejections import rejections


@dataclass
class Watch:
    """Receives the events of a run.

    Attributes:
        log_dir: the folder of the log.
        on_log: called with the log's path before the first question.
        on_progress: called with the number of answered questions and of all questions.
        replies: the number of replies from servers so far.
        stopped: why the run was stopped before its end, or None.
        max_calls: the maximum number of replies from servers; None for no limit.
        token_budget: the maximum number of tokens of prompts and replies together; None for no limit.
    """

    log_dir: Path
    on_log: Callable[[Path], None] = lambda path: None
    on_progress: Callable[[int, int], None] = lambda done, total: None
    replies: int = 0
    stopped: str | None = None
    max_calls: int | None = None
    token_budget: int | None = None
    tokens: int = 0
    done: int = 0
    total: int = 0
    logs: list[Path] = field(default_factory=list)

    def stop(self, why: str) -> None:
        """Ends the run, once: Inspect ends on the signal, with the log written."""
        if self.stopped is None and self.done < self.total:
            self.stopped = why
            os.kill(os.getpid(), signal.SIGINT)


_WATCH: list[Watch] = []


def watched_by(watch: Watch | None) -> None:
    """Makes the hooks report to ``watch``, or to nothing for None."""
    _WATCH[:] = [watch] if watch else []
    rejections.reset()


@hooks(name="qabench_progress", description="Progress and limits of qabench run.")
class _Progress(Hooks):
    def enabled(self) -> bool:
        return bool(_WATCH)

    async def on_task_start(self, data: TaskStart) -> None:
        watch, spec = _WATCH[0], data.spec
        watch.total += len(spec.dataset.sample_ids or ()) * (spec.config.epochs or 1)
        found = sorted(watch.log_dir.glob(f"*{spec.task_id}*"), key=lambda path: path.stat().st_mtime)
        if found:
            watch.logs.append(found[-1])
            watch.on_log(found[-1])

    async def on_sample_end(self, data: SampleEnd) -> None:
        watch = _WATCH[0]
        watch.done += 1
        watch.on_progress(watch.done, watch.total)
        if why := rejections.enough():
            watch.stop(f"every call is rejected: {why}")

    async def on_model_usage(self, data: ModelUsageData) -> None:
        watch = _WATCH[0]
        watch.replies += 1
        watch.tokens += data.usage.total_tokens
        rejections.reset()
        if watch.max_calls is not None and watch.replies >= watch.max_calls:
            watch.stop(f"the limit of {watch.max_calls} calls (--max-calls) is reached")
        if watch.token_budget is not None and watch.tokens >= watch.token_budget:
            watch.stop(f"the budget of {watch.token_budget:,} tokens (--token-budget) is spent")
