"""``qabench.run``: a Python function, such as an agent, or a model over the questions of a benchmark.

The digest of a function covers all that its answers depend on, as far as Python can tell: the text
of its file or notebook cell, its code, defaults and closure, and the constants and functions that
it uses from its module. It does not cover what other modules, files and servers do.
"""

from __future__ import annotations

import asyncio
import inspect
import json
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

from qabench.benchmarks import Benchmark, benchmark
from qabench.data.predictions import WITHOUT_PREDICTION, read_predictions
from qabench.data.rows import Json, Row
from qabench.errors import InputError, QabenchError
from qabench.evaluation import FAILED, Evaluation
from qabench.evaluation.scoring import Progress
from qabench.evaluation.signature import asked_field, short_digest
from qabench.io.files import check_writable, write_text
from qabench.io.tables import write_line
from qabench.io.workers import run_sync
from qabench.runs.facts import with_solver
from qabench.runs.log import read_run
from qabench.runs.sources import evaluate_predictions

Reply = str | dict[str, Any]
Answer = Callable[[str, Row], Reply | Awaitable[Reply]]
ERROR = "error"  # the field of the file with the exception of a question
FUNCTION = "function"  # the field with the name and the digest of the function that answered
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
    """Answer the questions of a benchmark with a Python function or with a model, and score the answers.

    Ctrl-C ends the run of a function early: the result has the answers until then, and its status
    is "cancelled".

    Args:
        name: the benchmark. ``qabench.benchmark_names()`` returns all.
        config: such as "dev". None for the default.
        answer: a function of a question's text and its row in the dataset. It returns the answer,
            or the fields of a prediction as in a file of predictions. It may be ``async``.
            Otherwise it runs in threads. An exception is recorded as the failure of its question.
        model: a model to run instead, as in ``qabench run --model``.
        output: a JSONL file for the answers of the function. Questions with an answer in it are not
            asked again. Its lines name the function by a digest of its code, defaults, closure and
            file.
        keep_answers: also count the answers of another function in this file. Signatures then name
            both functions.
        concurrency: the maximum number of questions that are being answered.
        limit: answer only the first questions.
        progress: called with the number of answered questions, and of all questions.
        **options: for a function, the options of ``qabench.evaluate_predictions``, such as
            ``scores``. For a model, the options of ``qabench.runs.running.start``, such as
            ``setting`` and ``base_url``.

    Raises:
        InputError: not either a function or a model, an unknown name, a file with the answers of
            another function, or the function returned something that is not an answer.
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
                "output is for the answers of a function. A model's are in its log: give log_dir"
            )
        from qabench.runs.running import Watch, start

        folder = options.pop("log_dir", "logs")
        if config:
            options["task_args"] = {**(options.get("task_args") or {}), "config": config}
        options = {"max_connections": concurrency, "limit": limit} | options
        watch = Watch(Path(folder), on_progress=show)
        setting = options.pop("setting", None)
        return read_run(start(name, setting, str(model), watch=watch, log_dir=folder, **options))
    scorer = benchmark(name)
    questions = scorer.questions(config)
    asked = dict(list(questions.items())[:limit])
    path = None if output is None else Path(output)
    function = name_with_digest(answer)
    before = _answered_before(path, questions, None if keep_answers else function) if path else {}
    predictions = {id: before[id] for id in asked if id in before}
    prediction_of = partial(_prediction, scorer, function)
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
    replies = [predictions[id] for id in asked if id in predictions]
    errors = {fields["id"]: fields[ERROR] for fields in replies if ERROR in fields}
    # A failed question has no prediction: null can be an answer.
    answers = [fields for fields in replies if ERROR not in fields]
    if not answers:
        why = next(iter(errors.values()), "there is no answer yet")
        raise QabenchError(f"no question was answered: {why}")
    evaluation = evaluate_predictions(name, config, answers, **options)
    solver = "+".join(sorted({fields.get(FUNCTION, "unknown") for fields in answers}))
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


async def _ask(
    answer: Answer,
    prediction_of: Callable[[str, Reply], Json],
    questions: Mapping[str, tuple[str, Row]],
    predictions: dict[str, Json],
    path: Path | None,
    concurrency: int,
    progress: Progress,
) -> None:
    """Add the missing predictions, and write each to the file when it is there."""
    limit, loop = asyncio.Semaphore(concurrency), asyncio.get_running_loop()
    stopped = asyncio.Event()

    async def ask(id: str, question: str, row: Row) -> None:
        async with limit:
            if stopped.is_set():
                return
            try:
                if inspect.iscoroutinefunction(answer):
                    reply = await answer(question, row)
                else:
                    reply = await loop.run_in_executor(threads, answer, question, row)
                if reply is None:
                    raise InputError("the function returned None; expected a string or a dict")
            except Exception as error:  # the user's function may raise anything; the question failed
                prediction = {"id": id, ERROR: f"{type(error).__name__}: {error}"}
            else:
                try:
                    prediction = prediction_of(id, reply)
                except InputError:
                    stopped.set()  # other answers would have the same error
                    raise
        predictions[id] = prediction
        if path:
            try:
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(prediction) + "\n")
            except OSError as error:
                raise QabenchError(
                    f"cannot write {path}: {error.strerror}; repeat the call to continue"
                ) from error
        progress(len(predictions), len(questions))

    progress(len(predictions), len(questions))
    threads = ThreadPoolExecutor(concurrency, "qabench-answer")
    try:
        await asyncio.gather(
            *(ask(id, *item) for id, item in questions.items() if id not in predictions)
        )
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _prediction(scorer: Benchmark, function: str, id: str, reply: Reply) -> Json:
    """Return a reply as a prediction. Raises InputError if it is not one."""
    fields = scorer.prediction_fields
    field = "answer" if "answer" in fields else fields[0]
    prediction = {**(reply if isinstance(reply, dict) else {field: reply}), "id": id, FUNCTION: function}
    try:
        json.dumps(prediction)
        scorer.read([prediction])
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the function's answer to the question {id} is {reply!r:.200}; allowed: a string, or a dict for JSON with "
            f"{' or '.join(map(repr, fields))} ({error})"
        ) from error
    return prediction


def _answered_before(path: Path, questions: Row, function: str | None) -> dict[str, Json]:
    """Return the predictions in the file that did not fail, and leave only these in it.

    Raises InputError if they are of another function than ``function``. None allows every function.
    """
    check_writable(path)
    if not path.exists() or not path.stat().st_size:
        return {}
    rows = read_predictions(path).rows
    if unknown := [row for row in rows if row.id not in questions]:
        raise InputError(
            f"{path}, line {unknown[0].line}: no question has the id {unknown[0].id!r:.80}; answers of "
            "another benchmark or config need another file"
        )
    predictions = {row.id: {**row.fields, "id": row.id} for row in rows if ERROR not in row.fields}
    functions = {str(each.get(FUNCTION, "an unknown function")) for each in predictions.values()}
    if function and functions - {function}:
        named = ", ".join(sorted(functions - {function}))
        raise InputError(
            f"{path} has answers of {named}, not of {function}: the function, its file, a default "
            "or a variable that it uses has changed. To keep the old answers apart, give another output; to discard "
            "them, delete the file; to count them as well, set keep_answers=True"
        )
    write_text(path, "".join(json.dumps(fields) + "\n" for fields in predictions.values()))
    return predictions


def name_with_digest(function: Callable[..., Any]) -> str:
    """Return the name of a function, and a digest of it.

    Two functions with the same source have different digests if their defaults or closures differ.
    In one process, a function keeps the digest of its first run, even if it changes lists and
    objects that it refers to.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition(".")[2]
    constants = _text(function, True, {})
    try:
        digests = _digests.setdefault(getattr(function, "__self__", function), {})
    except TypeError:  # an object without weak references
        digests = {}
    if constants not in digests:
        digests[constants] = short_digest(_text(function, False, {}))
    return f"{name}-{digests[constants]}"


def _text(value: Any, constants_only: bool, met: dict[int, Any]) -> str:
    """Return a text of a value, equal for equal values in all processes.

    Objects are described by their class, because their content could be large, or differ between
    processes. With ``constants_only``, so are lists, sets and dicts. ``met`` keeps the values alive
    that were described: ids of deleted objects are used again.
    """
    if isinstance(value, CONSTANTS):
        return f"{type(value).__name__} {value!r}"
    if not isinstance(value, tuple | frozenset | CodeType):
        if id(value) in met:
            return f"#{list(met).index(id(value))}"
        met[id(value)] = value
    named = value if isinstance(value, type | BuiltinFunctionType) else type(value)
    text = f"{named.__module__}.{named.__qualname__}"
    if constants_only and isinstance(value, list | set | Mapping):
        return text
    texts = [_text(part, constants_only, met) for part in _parts(value)]
    if isinstance(value, set | frozenset):
        texts.sort()
    return f"{text}({', '.join(texts)})"


def _parts(value: Any) -> Iterable[Any]:
    """Return the values that a container has or that a function depends on, or none for another object."""
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
    if hasattr(value, "__wrapped__"):  # such as functools.cache
        return (value.__wrapped__,)
    if callable(value) and isinstance(type(value).__call__, FunctionType):
        return (value.__call__,)
    return ()


def _outer_values(function: FunctionType) -> Iterable[Any]:
    """Yield the content of a function's closure, and the constants and functions of its module that it uses by name."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            yield cell.cell_contents
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        is_own = isinstance(value, FunctionType) and value.__module__ == function.__module__
        if is_own or isinstance(value, CONSTANTS):
            yield name, value


def _source(function: FunctionType) -> str:
    """Return the text of a function's file or notebook cell, or "" for a function of a prompt."""
    try:
        lines, _ = inspect.findsource(function)
    except (TypeError, OSError):
        return ""
    return "".join(lines)
