"""Reads the log of a qabench run as an evaluation: the log's samples become records."""

from __future__ import annotations

import ast
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.rows import Json
from qabench.evaluation import (
    ANSWERED,
    CUT_OFF,
    EMPTY,
    FAILED,
    REFUSED,
    Evaluation,
    Record,
)
from qabench.evaluation.passes import with_passes
from qabench.evaluation.signature import Field, merged
from qabench.io.redaction import printable
from qabench.llm.endpoint import is_another_model
from qabench.llm.exchange import TOO_LONG
from qabench.runs.archive import (
    check_archive,
    check_is_file,
    damaged,
    named_errors,
    with_samples_once,
)
from qabench.runs.facts import with_facts
from qabench.runs.log_fields import NAME, RUN, check, check_is_own, check_sample
from qabench.runs.log_types import Log, Sample, SampleError, in_order
from qabench.runs.plain import read_plain_header, read_plain_samples
from qabench.runs.rescoring import rescored

# Inspect writes the repr of an exception.
_OWN_ERROR = re.compile(r"(?:QabenchError|InputError)\(((['\"]).*\2)\)", re.DOTALL)
_CUT_OFF_STOPS = ("max_tokens", "model_length")
STOPPED = "the run was stopped before the answer"
# This key of a record's detail says that somebody invalidated the sample with Inspect's command.
INVALIDATED = "invalidated"
_INVALIDATED = Field((), "{value} in Inspect's log were invalidated", absent=True)


def read_run(
    path: str | Path,
    questions: Path | None = None,
    *,
    scored_here: bool = False,
    **options: Any,
) -> Evaluation:
    """Return the run in a log, with its answers scored again.

    If the run was killed, the evaluation has the answers that ``resume`` would keep.

    Args:
        path: the log (.eval or .json).
        questions: the file of questions of a run with custom questions.
        scored_here: whether this process scored all answers of the log, so that today's code
            computed their scores.
        **options: options of the benchmark, which replace the run's.

    Raises:
        InputError: the file does not exist, is not an Inspect log, is damaged, or is the log of
            another task.
    """
    log = header_of(path)
    check_is_own(path, log.task, log.metadata)
    log, samples = read_samples(path, log)
    run = with_facts(_evaluation(path, log, samples), log)
    if not scored_here:
        run = rescored(run, questions, **options)
    return with_passes(run)


def header_of(path: str | Path) -> Log:
    """Return the header of the log of any task, without importing Inspect if possible.

    Raises:
        InputError: the file does not exist, is not an Inspect log, or is damaged.
    """
    check_is_file(path)
    try:
        return read_plain_header(path)
    except Exception:
        # The file may not be a log at all. Inspect's reader says why.
        from qabench.runs.inspect_logs import read_header_by_inspect

        return read_header_by_inspect(path)


def read_samples(path: str | Path, log: Log) -> tuple[Log, list[Sample]]:
    """Return a log's header with the ids of all questions, and the samples in the order of the ids.

    Inspect is imported only if the log has a form that the plain reader does not know, because
    importing it takes longer than reading most logs.
    """
    if Path(path).suffix != ".json":
        check_archive(Path(path))
    if log.is_plain:
        with named_errors(path), tempfile.TemporaryDirectory(prefix="qabench-log-") as folder:
            file = with_samples_once(Path(path), Path(folder) / "once.eval")
            # Inspect reads what the plain reader cannot, or says why it cannot.
            with suppress(Exception):
                samples = list(read_plain_samples(file, log.positions, log.epochs))
                return log, in_order(log, samples)
    from qabench.runs.inspect_logs import read_samples_by_inspect

    ids, samples = read_samples_by_inspect(path, log.status)
    # Headers of older logs do not list the ids.
    log = replace(log, listed_ids=ids)
    return log, in_order(log, samples)


def _evaluation(path: str | Path, log: Log, samples: list[Sample]) -> Evaluation:
    """Return a run with the scores in its log."""
    metadata = log.metadata
    benchmark = benchmark_of(metadata["benchmark"])
    check(path, "metadata", metadata, RUN)
    check(path, "task_args", log.task_args, dict(benchmark.logs().kinds.get("arguments", {})))
    for id, count in Counter(log.listed_ids).items():
        if count > 1:
            raise damaged(path, f"the question {id!r} is listed several times")

    records: list[Record] = []
    lines: dict[str, list[tuple[str, bool]]] = {}
    for sample in samples:
        check_sample(path, sample, benchmark)
        record, signatures_of_sample = scored_record(sample)
        if log.status == "started" and record.problem == STOPPED:
            # This question was being answered when the run ended, or still is.
            continue
        records.append(record)
        # The signature of a sample that failed, or that asked no model, lacks some fields about how
        # the model was asked. ``merged`` must not take that for a difference.
        is_complete = record.status != FAILED and record.replies != 0
        for group, line in signatures_of_sample.items():
            lines.setdefault(group, []).append((line, is_complete))

    # Signatures of the run as a whole.
    signatures = dict(metadata.get("signatures") or {})
    for group, lines_of_group in lines.items():
        signatures[group] = merged(lines_of_group)
    notes = other_models(log.model, samples)
    has_scores = any(record.scores for record in records)
    # Users know a local model by its folder.
    local = {}
    if "model_path" in log.model_args:
        local["model_path"] = log.model_args["model_path"]
    evaluation = Evaluation(
        path=str(path),
        task=log.task.removeprefix("qabench/"),
        config=metadata["config"],
        setting=metadata["setting"],
        model=log.model,
        created=log.created,
        status=log.status,
        expected=len(log.positions) * log.epochs,
        records=records,
        signatures=signatures,
        unscored=None if has_scores else metadata.get("unscored"),
        available=metadata.get("available"),
        origin=log.task_id,
        server=log.server,
        given_name=metadata.get(NAME) or "",
        arguments=log.task_args | log.generation | local,
        notes=notes,
        **benchmark.scoring(),
    )
    invalidated = sum(record.detail.get(INVALIDATED, False) for record in records)
    if invalidated or log.invalidated:
        what = f"{invalidated} answers" if invalidated else "the log"
        return evaluation.signed({INVALIDATED: _INVALIDATED}, invalidated=what)
    return evaluation


def other_models(asked: str, samples: Iterable[Sample]) -> list[str]:
    """Return a note for each model name in the replies that differs from the asked model's."""
    n_replies: Counter[str] = Counter()
    for sample in samples:
        n_replies[sample.model_in_reply] += sample.has_output
    # A model at an address is named "openai-api/SERVICE/NAME", and its NAME may have slashes.
    asked_name = asked.split("/", 2)[-1]
    notes = []
    for name, count in n_replies.items():
        if is_another_model(asked, name):
            notes.append(
                f"the server calls the model {printable(name)} in {count} of {n_replies.total()} replies, not "
                f"{printable(asked_name)}: one of the two names may be an alias, or another model answered"
            )
    return notes


def scored_record(sample: Sample) -> tuple[Record, dict[str, str]]:
    """Return a sample of a qabench task as a record, and the signatures of its scores."""
    scores = list(sample.scores.values())
    detail: Json = {}
    signatures: dict[str, str] = {}
    # Group of scores -> its status, where it differs from the question's.
    statuses: dict[str, str] = {}
    values: dict[str, float] = {}
    for score in scores:
        detail |= score.metadata.get("detail") or {}
        signatures |= score.metadata.get("signatures") or {}
        statuses |= score.metadata.get("statuses") or {}
        if not isinstance(score.value, dict):
            continue
        for name, number in score.value.items():
            # Undefined values are NaN in the log.
            if isinstance(number, int | float) and isfinite(number):
                values[name] = float(number)
    if sample.is_invalidated:
        detail[INVALIDATED] = True
    record = record_of(sample, scores[0].answer if scores else sample.completion)
    replies = sample.metadata.get("replies") or {}
    problems = list(sample.metadata.get("problems") or ())
    if record.problem:
        problems.insert(0, record.problem)
    record = replace(
        record,
        question=str(sample.metadata.get("question", "")),
        reference=str(sample.metadata.get("reference", "")),
        problem="; ".join(problems) or None,
        scores=values,
        groups=sample.metadata.get("groups") or {},
        detail=detail,
        statuses=statuses,
        replies=replies.get("all"),
        cached=replies.get("cached") or 0,
    )
    return record, signatures


def record_of(sample: Sample, answer: str | None) -> Record:
    """Return the parts of a sample's record that do not depend on the task."""
    status, problem = _status(sample)
    if status in (FAILED, REFUSED):
        answer = None
    elif answer is None and status in (ANSWERED, CUT_OFF):
        status, problem = EMPTY, "the conversation ended without an answer"
    input_tokens = output_tokens = cost = None
    if sample.usages:
        input_tokens = sum(usage.prompt_tokens for usage in sample.usages)
        output_tokens = sum(usage.output_tokens for usage in sample.usages)
        costs = [usage.cost for usage in sample.usages if usage.cost is not None]
        # If one model's cost is unknown, the sum would be too low.
        if len(costs) == len(sample.usages):
            cost = sum(costs)
    return Record(
        id=str(sample.id),
        epoch=sample.epoch,
        question="",
        reference="",
        messages=sample.messages,
        answer=answer,
        status=status,
        problem=problem,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        seconds=sample.seconds,
        cost=cost,
    )


def _status(sample: Sample) -> tuple[str, str | None]:
    """Return the record's status and its problem, if any."""
    if sample.error is not None:
        return FAILED, failure(sample.error)
    if not sample.has_output:
        reason = "the model returned no output"
        if sample.limit:
            reason += f" before the {sample.limit}"
        return FAILED, sample.output_error or reason
    if sample.is_too_long:
        return FAILED, f"{TOO_LONG}: {printable(sample.completion)}"
    if sample.stop_reason == "content_filter":
        return REFUSED, sample.output_error or "the model's provider filtered the reply"
    if not sample.completion.strip():
        return EMPTY, "the reply is empty"
    if sample.limit is not None:
        return CUT_OFF, f"stopped at the {sample.limit}"
    if sample.stop_reason in _CUT_OFF_STOPS:
        return CUT_OFF, "the reply was cut off at the token limit"
    return ANSWERED, None


def failure(error: SampleError) -> str:
    """Say why a sample failed, in one line that is the same for equal failures."""
    if error.message.startswith("CancelledError("):
        return STOPPED
    if error.message.startswith("RetryError("):
        # In logs of other programs, the cause is only in the traceback.
        for line in error.traceback.splitlines():
            if line[:1].strip() and "Error: " in line:
                return printable(line)
        return "the call failed in all its retries"
    # This package's messages are comprehensible without the name of the exception class.
    message = error.message
    own = _OWN_ERROR.fullmatch(message)
    if own:
        message = _unquoted(own[1])
    return printable(" ".join(message.split()))


def _unquoted(quotation: str) -> str:
    """Return the text of a Python string literal."""
    # An edited log may have quotes around a text that is not a literal. Only they are removed then.
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        text = ast.literal_eval(quotation)
        if isinstance(text, str):
            return text
    return quotation[1:-1]
