"""``qabench.run``: a Python function, such as an agent, or a model answers the questions.

The digest of a function covers all that its answers depend on, as far as Python can tell: the text
of its file or notebook cell, its code, defaults and closure, and the constants and functions that
it uses from its module. It does not cover what other modules, files and servers do.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.joining import WITHOUT_PREDICTION
from qabench.data.predictions import read_predictions
from qabench.data.rows import Json, Row
from qabench.errors import InputError, QabenchError
from qabench.evaluation import FAILED, Evaluation
from qabench.evaluation.scoring import Progress
from qabench.evaluation.signature import asked_field, short_digest
from qabench.io.files import check_writable, write_text
from qabench.io.redaction import write_line
from qabench.io.workers import run_sync
from qabench.runs.facts import with_solver
from qabench.runs.log import read_run
from qabench.runs.predictions import evaluate_predictions
from qabench.runs.selection import with_scores

Reply = str | dict[str, Any]
# The row is typed as a dict, so that functions with ``row: dict[str, Any]`` and with ``row:
# Mapping`` fit.
Answer = Callable[[str, dict[str, Any]], Reply | Awaitable[Reply]]
# In the file of answers, the field for the exception that the function raised for a question.
ERROR = "error"
# In the same file, the field for the name and the digest of the function that answered.
FUNCTION = "function"
CONSTANTS = (type(None), bool, int, float, complex, str, bytes, PurePath)
_digests: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def run(
    name: str,
    config: str | None = None,
    answer: Answer | None = None,
    *,
    model: str | None = None,
    output: str | Path | None = None,
    keep_answers: bool = False,
    concurrency: int = 8,
    limit: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Evaluation:
    """Answer a benchmark's questions with a Python function or a model, and score the answers.

    Ctrl-C ends the run of a function early: no further question is asked, and the answers that are
    being computed are awaited. The result has the answers until then, and its status is
    "cancelled". A second Ctrl-C does not wait.

    Args:
        name: the benchmark. ``qabench.benchmark_names()`` returns all.
        config: the config's name, such as "dev". None for the default.
        answer: a function of a question's text and its row in the dataset. It returns the answer,
            or the fields of a prediction as in a file of predictions. It may be ``async``.
            Otherwise it runs in threads. An exception, and anything that is not an answer, is
            recorded as the failure of its question.
        model: a model to run instead, as in ``qabench run --model``.
        output: a JSONL file for the answers of the function. Questions with an answer in it are not
            asked again. Its lines name the function by a digest of its code, defaults, closure and
            file.
        keep_answers: also count the answers of another function in this file. Signatures then name
            both functions.
        concurrency: the maximum number of questions that are answered at once.
        limit: the number of questions to answer, from the first. None for all.
        progress: called with the number of answered questions, and the number of all questions.
        **options: for a function, the options of ``qabench.evaluate_predictions``, such as
            ``scores``. For a model, the options of ``qabench.runs.running.start``, such as
            ``setting`` and ``base_url``.

    Raises:
        InputError: no function and no model, or both; an unknown name; or a file with the answers of
            another function.
        QabenchError: no question was answered, or the file cannot be written. What is in it is
            kept.
        MissingExtra: running a model needs the extra ``run``.
        SourceError: the data of the benchmark is not available.
    """
    if callable(config) or (answer is None) == (model is None):
        raise InputError(
            "give a function, qabench.run(NAME, CONFIG, answer), or a model, qabench.run(NAME, CONFIG, model=...)"
        )
    show = progress or (lambda done, total: None)
    if answer is None:
        if output is not None:
            raise InputError(
                "output is for a function's answers. A model's answers are in its log: give log_dir"
            )
        options = {"max_connections": concurrency, "limit": limit} | options
        return _run_model(name, config, str(model), show, options)

    # Find which questions have no answer yet.
    benchmark = benchmark_of(name)
    questions = benchmark.questions(config)
    asked = dict(list(questions.items())[:limit])
    path = None if output is None else Path(output)
    function = name_with_digest(answer)
    predictions = {}
    if path:
        required_function = None if keep_answers else function
        answered_before = _answered_before(path, questions, required_function)
        for id in asked:
            if id in answered_before:
                predictions[id] = answered_before[id]

    # Ask these questions.
    prediction_of = partial(_prediction, benchmark, function)
    status = "success"
    try:
        run_sync(_ask(answer, prediction_of, asked, predictions, path, concurrency, show))
    except KeyboardInterrupt:
        status = "cancelled"
        again = "set output=FILE to be able to continue"
        if path:
            again = f"repeat the call to ask the others; {path} has the answers"
        done = f"interrupted after {len(predictions)} of {len(asked)} questions"
        write_line(f"qabench: {done}; {again}", sys.stderr)

    # Score the answers, in the order of the questions, not in the order in which they were given.
    errors: dict[str, str] = {}
    answers: list[Json] = []
    for id in asked:
        if id not in predictions:
            continue
        # A failed question must have no prediction at all, because null can be an answer.
        if ERROR in predictions[id]:
            errors[id] = predictions[id][ERROR]
        else:
            answers.append(predictions[id])
    if not answers:
        why = next(iter(errors.values()), "there is no answer yet")
        raise QabenchError(f"no question was answered: {why}")
    evaluation = evaluate_predictions(name, config, answers, **options)
    solver = "+".join(sorted({fields.get(FUNCTION, "unknown") for fields in answers}))

    # Leave out the questions that were not asked, and say which function answered the others.
    records = []
    for record in evaluation.records:
        if record.id in errors:
            record = replace(record, status=FAILED, problem=errors[record.id])
        if record.id in predictions:
            records.append(record)
    problems = [text for text in evaluation.problems if not text.startswith(WITHOUT_PREDICTION)]
    evaluation = replace(
        evaluation.signed({}, asked=asked_field(asked)),
        path=str(path or solver),
        model=solver,
        records=records,
        expected=len(asked),
        status=status,
        available=len(questions),
        problems=problems,
    )
    return with_solver(evaluation, solver)


def _run_model(
    name: str, config: str | None, model: str, show: Progress, options: Json
) -> Evaluation:
    """Run a model as ``qabench run`` does, and return the evaluation of its log."""
    # Imported here because it imports Inspect AI.
    from qabench.runs.running import start
    from qabench.runs.watching import Watch

    benchmark = benchmark_of(name)
    folder = options.pop("log_dir", "logs")
    if config:
        options["task_args"] = {**(options.get("task_args") or {}), "config": config}
    watch = Watch(Path(folder), on_progress=show)
    setting = benchmark.setting(options.pop("setting", None))
    log = start(benchmark, setting, model, watch=watch, log_dir=folder, **options)
    return with_scores(read_run(log, scored_here=True), None)


async def _ask(
    answer: Answer,
    prediction_of: Callable[[str, Reply], Json],
    questions: Mapping[str, tuple[str, Row]],
    predictions: dict[str, Json],
    path: Path | None,
    concurrency: int,
    progress: Progress,
) -> None:
    """Add the missing predictions, and append each to the file as soon as it is computed.

    If the run ends early, no further question is asked, and the answers in flight are awaited and
    written.
    """
    limit = asyncio.Semaphore(concurrency)
    loop = asyncio.get_running_loop()
    is_stopped = False

    async def reply_to(question: str, row: Row) -> Any:
        if inspect.iscoroutinefunction(answer):
            return await answer(question, dict(row))
        return await loop.run_in_executor(threads, answer, question, dict(row))

    async def ask(id: str, question: str, row: Row) -> None:
        async with limit:
            if is_stopped:
                return
            try:
                reply = await reply_to(question, row)
                if reply is None:
                    raise InputError("the function returned None; expected a string or a dict")
                predictions[id] = prediction_of(id, reply)
            except Exception as error:
                # The user's function may raise anything. Then its question has failed.
                predictions[id] = {"id": id, ERROR: f"{type(error).__name__}: {error}"}
        if path:
            _append(path, predictions[id])
        progress(len(predictions), len(questions))

    progress(len(predictions), len(questions))
    threads = ThreadPoolExecutor(concurrency, "qabench-answer")
    tasks = []
    for id, (question, row) in questions.items():
        if id not in predictions:
            tasks.append(asyncio.create_task(ask(id, question, row)))
    try:
        if tasks:
            # Unlike ``gather``, this does not cancel the tasks when it is canceled by Ctrl-C.
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        write_line(
            "qabench: waiting for the answers in flight (press Ctrl-C again to stop now)",
            sys.stderr,
        )
        raise
    finally:
        is_stopped = True
        if tasks:
            await asyncio.wait(tasks)
        threads.shutdown(wait=False, cancel_futures=True)
    for task in tasks:
        # This raises the task's exception, such as for a full disk.
        task.result()


def _append(path: Path, prediction: Json) -> None:
    """Write a prediction as the last line. On a full disk, no part of the line stays."""
    line = json.dumps(prediction) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            try:
                if file.write(line.encode()) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                # Otherwise, the next answer would be appended to this incomplete line.
                file.truncate(size)
                raise
    except OSError as error:
        raise QabenchError(
            f"cannot write {path}: {error.strerror}; repeat the call to continue"
        ) from error


def _prediction(benchmark: Benchmark, function: str, id: str, reply: Reply) -> Json:
    """Return a reply as a prediction. Raises InputError if it is not one."""
    fields = benchmark.prediction_fields
    field = "answer" if "answer" in fields else fields[0]
    fields_of_reply = reply if isinstance(reply, dict) else {field: reply}
    prediction = {**fields_of_reply, "id": id, FUNCTION: function}
    try:
        # A repeated run reads the answer from the file, so convert it in the same way now: a tuple
        # becomes a list, and NaN is rejected.
        written: Json = json.loads(json.dumps(prediction, allow_nan=False))
        benchmark.read([written])
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the function's answer is {reply!r:.200}; allowed: a string, or a dict for JSON with "
            f"{' or '.join(map(repr, fields))} ({error})"
        ) from error
    return written


def _answered_before(path: Path, questions: Row, function: str | None) -> dict[str, Json]:
    """Return the predictions in the file that did not fail, and remove all others from the file.

    Raises InputError if a function other than ``function`` gave one of them, or if a line answers no
    question of ``questions``. None allows every function.
    """
    check_writable(path)
    if not path.exists() or not path.stat().st_size:
        return {}
    rows = read_predictions(path).rows
    for row in rows:
        if row.id not in questions:
            raise InputError(
                f"{path}, line {row.line}: no question has the id {row.id!r:.80}; answers of "
                "another benchmark or config need another file"
            )
    predictions: dict[str, Json] = {}
    functions: set[str] = set()
    for row in rows:
        if ERROR not in row.fields:
            predictions[row.id] = {**row.fields, "id": row.id}
    for fields in predictions.values():
        functions.add(str(fields.get(FUNCTION, "an unknown function")))
    if function and functions - {function}:
        named = ", ".join(sorted(functions - {function}))
        raise InputError(
            f"{path} has answers of {named}, not of {function}: the function, its file, a default "
            "or a variable that it uses has changed. To keep the old answers apart, give another output; to discard "
            "them, delete the file; to count them as well, set keep_answers=True"
        )
    # Failed questions are asked again, so their lines are removed. So is an incomplete last line.
    lines = [json.dumps(fields) + "\n" for fields in predictions.values()]
    write_text(path, "".join(lines))
    return predictions


def name_with_digest(function: Callable[..., Any]) -> str:
    """Return the name of a function, and a digest of it.

    Two functions with the same source have different digests if their defaults or closures differ.
    In one process, a function keeps its first digest, even if it changes lists and objects that it
    refers to.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition(".")[2]
    constants = _text(function, True, {})
    try:
        digests = _digests.setdefault(getattr(function, "__self__", function), {})
    except TypeError:
        # Some objects cannot have weak references.
        digests = {}
    if constants not in digests:
        digests[constants] = short_digest(_text(function, False, {}))
    return f"{name}-{digests[constants]}"


def _text(value: Any, constants_only: bool, met: dict[int, Any]) -> str:
    """Describe a value as text. A value has the same text in all processes.

    Objects are described by their class, because their content could be large, or differ between
    processes. With ``constants_only``, lists, sets and dicts are described in this way, too.
    ``met`` has the values described so far, by id. A value in it is written as "#" and its index, so
    that cycles end. It also keeps the values alive, because Python reuses the ids of deleted objects.
    """
    if isinstance(value, CONSTANTS):
        return f"{type(value).__name__} {value!r}"
    if not isinstance(value, tuple | frozenset | CodeType):
        if id(value) in met:
            return f"#{list(met).index(id(value))}"
        met[id(value)] = value
    type_or_function = value
    if not isinstance(value, type | BuiltinFunctionType):
        type_or_function = type(value)
    text = f"{type_or_function.__module__}.{type_or_function.__qualname__}"
    if constants_only and isinstance(value, list | set | Mapping):
        return text
    texts = [_text(part, constants_only, met) for part in _parts(value)]
    if isinstance(value, set | frozenset):
        # The order of a set differs between processes.
        texts.sort()
    return f"{text}({', '.join(texts)})"


def _parts(value: Any) -> Iterable[Any]:
    """Return the items of a container, or what a function depends on, or () for other objects."""
    if isinstance(value, tuple | frozenset | list | set):
        return value
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_varnames, value.co_consts
    if isinstance(value, FunctionType):
        keywords = (value.__kwdefaults__ or {}).items()
        return value.__code__, value.__defaults__, *keywords, *_outer_values(value), _source(value)
    if isinstance(value, MethodType):
        return value.__func__, getattr(value.__self__, "__dict__", None)
    if isinstance(value, partial):
        return value.func, value.args, *value.keywords.items()
    if hasattr(value, "__wrapped__"):
        # Decorators such as ``functools.cache`` hide the function.
        return (value.__wrapped__,)
    if callable(value) and isinstance(type(value).__call__, FunctionType):
        return (value.__call__,)
    return ()


def _outer_values(function: FunctionType) -> Iterable[Any]:
    """Yield a function's closure, and the constants and functions of its module that it uses."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            # A variable of an outer function may not be assigned yet.
            yield cell.cell_contents
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        is_own = isinstance(value, FunctionType) and value.__module__ == function.__module__
        if is_own or isinstance(value, CONSTANTS):
            yield name, value


def _source(function: FunctionType) -> str:
    """Return the text of a function's file or notebook cell, or "" if Python has no such text."""
    try:
        lines, _ = inspect.findsource(function)
    except (TypeError, OSError):
        return ""
    return "".join(lines)
