"""Reads logs with Inspect AI's own classes: unfinished ones, older ones, and logs to resume."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.rows import Json
from qabench.errors import MissingExtra
from qabench.evaluation.records import Message
from qabench.io.limits import check_json_depth
from qabench.llm.exchange import too_long
from qabench.runs.archive import (
    check_archive,
    check_is_file,
    named_errors,
    open_archive,
    with_samples_once,
)
from qabench.runs.log_fields import check_is_own, check_sample
from qabench.runs.log_types import (
    Log,
    ModelTokens,
    Sample,
    SampleError,
    SampleScore,
    Step,
    limit_text,
    shown_message,
)

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ChatMessage, ModelUsage
    from pydantic import BaseModel

# These fields take up most of a log, and records do not need them.
_LEFT_OUT = {"events", "events_data", "store", "timelines", "role_usage"}


def read_header(path: str | Path) -> EvalLog:
    """Return the log of a qabench task without its samples, for a run that resumes it.

    Raises:
        InputError: the file does not exist, is not an Inspect log, is damaged, or is the log of
            another task.
    """
    log = _read(path, header_only=True)
    check_is_own(path, log.eval.task, log.metadata)
    return log


def whole_log(path: str | Path) -> EvalLog:
    """Return a log to resume, with the samples that a killed run left in Inspect's buffer."""
    status = read_header(path).status
    check_archive(Path(path))
    with named_errors(path), _with_buffer(path, status) as file:
        log = _read(path, file)
    benchmark = benchmark_of(log.metadata["benchmark"])
    for sample in log.samples or ():
        check_sample(path, _sample_of(sample), benchmark)
    log.location = str(path)
    return log


def read_header_by_inspect(path: str | Path) -> Log:
    """Return the header of a log of any task."""
    return _log_of(_read(path, header_only=True))


def read_samples_by_inspect(path: str | Path, status: str) -> tuple[list[str], list[Sample]]:
    """Return the ids of a run's questions, which older headers do not list, and its samples."""
    with named_errors(path), _with_buffer(path, status) as file:
        log = _read(path, file, resolve_attachments="core", exclude_fields=_LEFT_OUT)
    ids = list(map(str, log.eval.dataset.sample_ids or ()))
    return ids, list(map(_sample_of, log.samples or ()))


def _read(path: str | Path, file: Path | None = None, **options: Any) -> EvalLog:
    """Return a log, or its header, as Inspect reads it, perhaps from a copy."""
    check_is_file(path)
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise MissingExtra(
            'reading logs of runs needs inspect_ai: pip install "qabench[run]"'
        ) from None
    with named_errors(path):
        _check_bounds(file or Path(path), header_only=options.get("header_only", False))
        return read_eval_log(str(file or path), **options)


def _check_bounds(file: Path, header_only: bool) -> None:
    """Raise TooLarge for JSON that is too deep or too large. Inspect reads JSON without limits."""
    if file.suffix == ".json":
        with file.open("rb") as content:
            check_json_depth(content, file.name)
    if not zipfile.is_zipfile(file):
        return
    with open_archive(file) as archive:
        for member in archive.infolist():
            is_sample = member.filename.startswith("samples/")
            if member.filename.endswith(".json") and not (header_only and is_sample):
                with archive.open(member) as content:
                    check_json_depth(content, member.filename)


@contextmanager
def _with_buffer(path: str | Path, status: str) -> Iterator[Path]:
    """Yield the path of a log, or of a copy.

    For a killed run, the copy also has the samples in Inspect's buffer. If Inspect wrote a sample
    several times, the copy has it once.
    """
    with tempfile.TemporaryDirectory(prefix="qabench-recovered-") as folder:
        file = Path(path)
        if status == "started":
            from inspect_ai.log import recover_eval_log

            copy = Path(folder) / file.name
            with suppress(Exception):
                # Inspect may have nothing to recover.
                recover_eval_log(str(file), str(copy), cleanup=False)
                file = copy
        if file.suffix != ".json":
            file = with_samples_once(file, Path(folder) / "once.eval")
        yield file


def _values_of(part: BaseModel) -> Json:
    """Return the fields that are set in a part of a log, as JSON."""
    return part.model_dump(mode="json", exclude_none=True)


def _log_of(log: EvalLog) -> Log:
    spec = log.eval
    finish = log.plan.finish
    return Log(
        is_plain=False,
        status=log.status,
        invalidated=log.invalidated,
        task=spec.task,
        task_id=spec.task_id,
        created=spec.created,
        model=spec.model,
        server=spec.model_base_url or "",
        task_args=spec.task_args,
        model_args=spec.model_args,
        metadata=log.metadata or {},
        listed_ids=list(map(str, spec.dataset.sample_ids or ())),
        epochs=spec.config.epochs or 1,
        spec=_values_of(spec),
        run_options=_values_of(spec.config),
        model_generation=_values_of(spec.model_generate_config),
        generation=_values_of(log.plan.config),
        solver=spec.solver,
        solver_args=spec.solver_args,
        steps=[Step(step.solver, step.params or {}) for step in log.plan.steps],
        finish=finish.solver if finish else None,
        results=_values_of(log.results) if log.results else {},
    )


def _sample_of(sample: EvalSample) -> Sample:
    """Return an Inspect sample as the plain reader would return it."""
    output = sample.output
    error = sample.error
    limit = sample.limit
    invalidation = sample.invalidation
    scores = {}
    for name, score in (sample.scores or {}).items():
        scores[name] = SampleScore(
            value=score.value,
            answer=score.answer,
            explanation=score.explanation,
            reason=score.reason,
            metadata=score.metadata or {},
        )
    return Sample(
        id=sample.id,
        epoch=sample.epoch,
        question=_joined(sample.input),
        target=_joined(sample.target),
        messages=list(map(_message, sample.messages)),
        has_output=bool(output.choices),
        completion=output.completion or "",
        model_in_reply=output.model or "",
        stop_reason=output.stop_reason if output.choices else None,
        output_error=output.error,
        is_too_long=too_long(output),
        error=SampleError(error.message, error.traceback) if error else None,
        limit=limit_text(limit.type, limit.limit) if limit else None,
        usages=list(map(_usage, sample.model_usage.values())),
        seconds=sample.working_time,
        metadata=sample.metadata or {},
        scores=scores,
        is_invalidated=invalidation is not None,
        invalidation_reason=invalidation.reason if invalidation else None,
    )


def _usage(usage: ModelUsage) -> ModelTokens:
    # Providers count cached tokens separately.
    prompt_tokens = usage.input_tokens
    prompt_tokens += usage.input_tokens_cache_read or 0
    prompt_tokens += usage.input_tokens_cache_write or 0
    return ModelTokens(prompt_tokens, usage.output_tokens, usage.total_cost)


def _joined(value: str | Sequence[str | ChatMessage]) -> str:
    """Return an input (a text or messages) or a target (a text or several) as one text."""
    if isinstance(value, str):
        return value
    texts = []
    for item in value:
        texts.append(item if isinstance(item, str) else item.text)
    return "\n".join(texts)


def _message(message: ChatMessage) -> Message:
    calls = getattr(message, "tool_calls", None) or ()
    arguments = [(call.function, call.arguments) for call in calls]
    return shown_message(message.role, message.text, arguments)
