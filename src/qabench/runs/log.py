"""Reads Inspect AI's logs, finished or not: of qabench tasks, whose answers are scored again, and of any task."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import isclose, isfinite
from pathlib import Path
from typing import Any, TypeVar

from qabench.adapters.files import absent_scores, evaluate
from qabench.benchmarks import Benchmark, benchmark
from qabench.data.predictions import Prediction, Predictions, some
from qabench.data.rows import Json, grouped
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.evaluation import ANSWERED, CUT_OFF, EMPTY, FAILED, REFUSED, Evaluation, Message, Record
from qabench.evaluation.matching import with_passes
from qabench.evaluation.records import column_names
from qabench.evaluation.signature import ASKED, VERSION, Field, merged, parse, signature
from qabench.io.limits import check_json_depth, json_of
from qabench.io.tables import printable
from qabench.llm.exchange import TOO_LONG, too_long
from qabench.runs.aggregates import reported_by_inspect, with_reducers, with_reported
from qabench.runs.facts import with_facts
from qabench.runs.foreign import evaluation_of, groups_of, numbers_of, pointer_error, starts_as_log
from qabench.runs.own_fields import RUN, check, check_sample
from qabench.runs.plain import VERSION as FORMAT
from qabench.runs.plain import Fields, open_archive, read_plain_header, read_plain_samples, values_of

# Most of a log's bytes, which records do not need.
_LEFT_OUT = {"events", "events_data", "store", "timelines", "role_usage"}
# Inspect writes exceptions by their repr.
_OWN = re.compile(r"(?:QabenchError|InputError)\((['\"])(.*)\1\)", re.DOTALL)
_CUT_OFF_STOPS = ("max_tokens", "model_length")
_READ_AT_ONCE = 1 << 20
_LARGEST_MEMBER = 4 << 30  # bytes, unpacked
STOPPED = "the run was stopped before the answer"
INVALIDATED = "invalidated"  # in the detail of a record: by somebody who used Inspect's command for it
_INVALIDATED = Field((), "{value} in Inspect's log were invalidated", absent=True)
UNSTATED, NONE = "unstated", "none"
T = TypeVar("T")
TOLERANCE = 1e-9  # versions of libraries differ in the last digits


def read_run(path: str | Path, questions: Path | None = None, **options: Any) -> Evaluation:
    """Return the run in a log, with its answers scored again.

    For a killed run, it has the answers that ``resume`` keeps.

    For ``questions`` and ``options`` see ``rescored``. Raises InputError if the file does not
    exist, is not a log of Inspect (.eval), is damaged, or is the log of another task.
    """
    log = header_of(path)
    _check_task(path, log)
    recorded = _evaluation(path, log)
    return with_passes(rescored(with_facts(recorded, log), questions, **options))


def header_of(path: str | Path) -> Any:
    """Return the log of any task without its samples: without importing Inspect if possible.

    Raises as ``read_run`` does.
    """
    _check_is_file(path)
    try:
        return read_plain_header(path)
    except Exception:  # also a file that is not a log: Inspect says why
        return _by_inspect(path, header_only=True)


def read_header(path: str | Path) -> Any:
    """Return the log without its samples, an ``EvalLog``. Raises as ``read_run`` does."""
    log = _by_inspect(path, header_only=True)
    _check_task(path, log)
    return log


def whole_log(path: str | Path) -> Any:
    """Return the log with its samples, an ``EvalLog``.

    For a killed run, it also has the samples that only Inspect's buffer has.
    """
    status = read_header(path).status
    check_archive(Path(path))
    with _naming(path), _with_buffer(path, status) as file:
        log = _by_inspect(path, file)
    scorer = benchmark(log.metadata["benchmark"])
    for sample in log.samples or ():
        check_sample(path, sample, scorer)
    log.location = str(path)
    return log


def _by_inspect(path: str | Path, file: Path | None = None, **options: Any) -> Any:
    """Return a log, or its header, as Inspect reads it, perhaps from a copy. Raises as ``read_run`` does."""
    _check_is_file(path)
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise MissingExtra('reading logs of runs needs inspect_ai: pip install "qabench[run]"') from None
    with _naming(path):
        _check_bounds(file or Path(path), header_only=options.get("header_only", False))
        return read_eval_log(str(file or path), **options)


def _check_bounds(file: Path, header_only: bool) -> None:
    """Raise TooLarge for JSON that Inspect, which has no limits of size and depth, would read."""
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


def _check_is_file(path: str | Path) -> None:
    """Raise InputError for a path without a regular file. Reading a pipe would wait for its writer."""
    if not isinstance(path, str | Path) or not Path(path).exists():
        raise InputError(
            f"the log {path} does not exist; `qabench run` prints the path of its .eval file before the first question"
        )
    if not Path(path).is_file():
        raise InputError(f"the log {path} is not a regular file; give the path of a log (.eval)")


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Turn any exception about the content of a log into an InputError that names the log."""
    try:
        yield
    except (QabenchError, ImportError):
        raise
    except Exception as error:  # content in another format can cause any exception
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def _check_task(path: str | Path, log: Any) -> None:
    """Raise InputError for the log of a task that is not of qabench."""
    metadata = log.metadata or {}
    names = ("benchmark", "config", "setting")
    if lacking := [name for name in names if not isinstance(metadata.get(name), str)]:
        raise InputError(
            f"{path} is the log of {log.eval.task!r}, which is not a task of qabench (its metadata has no "
            f"{', '.join(lacking)}); allowed: logs of `qabench run` or of `inspect eval qabench/...`"
        )
    try:
        benchmark(metadata["benchmark"])
    except InputError as error:
        raise InputError(
            f"{path} is the log of the benchmark {metadata['benchmark']!r:.80}: {error}"
        ) from None


def check_archive(path: Path) -> None:
    """Compare each member of a log with its checksum, and name a damaged one in the InputError.

    Inspect's reader does not compare them, so a flipped bit could change an answer or a score.
    """
    name = "its table of contents"
    try:
        with open_archive(path) as archive:
            names = [name for name in archive.namelist() if not name.startswith("samples/")]
            if len(set(names)) < len(names):
                raise zipfile.BadZipFile("two files have the same name")
            for member in archive.infolist():
                name = member.filename
                if member.file_size > _LARGEST_MEMBER:
                    raise zipfile.BadZipFile(f"{member.file_size} bytes")
                with archive.open(member) as content:  # compares the names in both headers
                    while content.read(_READ_AT_ONCE):  # compares the checksum at the end
                        pass
    except Exception as error:  # also the decompressor's own
        raise damaged(path, f"{name}: {error}") from None


def failure(error: Any) -> str:
    """Return why a sample failed, in one line that is the same for equal failures."""
    if error.message.startswith("CancelledError("):
        return STOPPED
    if error.message.startswith("RetryError("):
        # In logs of other programs, the cause is only in the traceback.
        causes = [
            line for line in error.traceback.splitlines() if line[:1].strip() and "Error: " in line
        ]
        return printable(causes[0]) if causes else "the call failed in all its retries"
    own = _OWN.fullmatch(error.message)
    return printable(" ".join((own[2] if own else error.message).split()))


def damaged(path: str | Path, reason: str) -> InputError:
    """Return the error for a file that is not a log, is of another format, or is damaged."""
    if cause := _cause(Path(path)):
        return InputError(f"{path} {cause}")
    detail = printable(reason, 300)
    return InputError(f"{path} is not a log of Inspect AI, or is damaged ({detail}); copy it again")


def _cause(path: Path) -> str | None:
    """Return why a file cannot be read as a log although it may be whole, or None if that is not known."""
    if cause := pointer_error(path):
        return cause
    try:
        if path.suffix == ".json":
            header = json_of(path.read_text(encoding="utf-8"))
        else:
            with open_archive(path) as archive:
                header = json_of(archive.read("header.json"))
    except Exception:  # it is damaged, which the caller says. The decompressor has errors of its own.
        return None
    if not isinstance(header, dict):
        return None
    version = header.get("version")
    if version is None and isinstance(header.get("eval"), dict):
        return "has no field 'version', which logs of Inspect AI have; was it edited, or written by another program?"
    if isinstance(version, int) and version > FORMAT:
        return (
            f"is of version {version} of the format of Inspect AI's logs, and the installed inspect_ai reads up to "
            f"{FORMAT}; to read it: pip install --upgrade inspect_ai"
        )
    return None


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
            with suppress(Exception):  # there is nothing to recover
                recover_eval_log(str(file), str(copy), cleanup=False)
                file = copy
        yield file if file.suffix == ".json" else _with_samples_once(file, Path(folder) / "once.eval")


def _with_samples_once(file: Path, copy: Path) -> Path:
    """Return a log in which each sample is once: the file itself, or a copy with the last answered ones.

    Inspect writes a sample again if a run was killed and resumed. Raises ValueError for two answers
    to one question.
    """
    with open_archive(file) as archive:
        by_name = grouped((member.filename, member) for member in archive.infolist())
        if len(by_name) == len(archive.infolist()):
            return file
        with zipfile.ZipFile(copy, "w") as once:
            for name, members in by_name.items():
                contents = list(map(archive.read, members))
                if len(contents) > 1:
                    contents = _answered_copies(name, contents) or contents
                once.writestr(name, contents[-1])
    return copy


def _answered_copies(name: str, contents: Sequence[bytes]) -> list[bytes]:
    samples = [(content, json_of(content)) for content in contents]
    answered = [(content, sample) for content, sample in samples if not sample.get("error")]
    answers = {json.dumps([sample.get("output"), sample.get("scores")]) for _, sample in answered}
    if len(answers) > 1:
        raise ValueError(f"{name} is there {len(contents)} times, with different answers")
    return [content for content, _ in answered]


def _evaluation(path: str | Path, log: Any) -> Evaluation:
    about, scorer = log.metadata, benchmark(log.metadata["benchmark"])
    check(path, "metadata", about, RUN)
    check(path, "task_args", log.eval.task_args, dict(scorer.log_kinds.get("arguments", {})))
    records: list[Record] = []
    lines: dict[str, list[tuple[str, bool]]] = {}
    ids = log.eval.dataset.sample_ids or []
    local = {name: value for name, value in log.eval.model_args.items() if name == "model_path"}
    if repeated := [id for id, count in Counter(map(str, ids)).items() if count > 1]:
        raise damaged(path, f"the question {repeated[0]!r} is listed several times")

    def scored(sample: Any) -> tuple[Record, dict[str, str]]:
        check_sample(path, sample, scorer)
        return _scored(sample)

    for record, of_sample in _samples(path, log, scored):
        if log.status == "started" and record.problem == STOPPED:
            continue  # it was being answered, or still is
        records.append(record)
        # A sample that failed, or asked no model, does not know all that the others were asked
        # with.
        is_complete = record.status != FAILED and record.replies != 0
        for group, line in of_sample.items():
            lines.setdefault(group, []).append((line, is_complete))
    signatures = dict(about.get("signatures") or {})  # of the run as a whole
    signatures |= {group: merged(of_group) for group, of_group in lines.items()}
    evaluation = Evaluation(
        path=str(path),
        task=log.eval.task.removeprefix("qabench/"),
        config=about["config"],
        setting=about["setting"],
        model=log.eval.model,
        created=log.eval.created,
        status=log.status,
        expected=len(_ids(log)) * _epochs(log),
        records=records,
        signatures=signatures,
        unscored=None if any(record.scores for record in records) else about.get("unscored"),
        available=about.get("available"),
        origin=log.eval.task_id,
        server=log.eval.model_base_url or "",
        arguments=log.eval.task_args | values_of(log.plan.config) | local,
        **scorer.scoring(),
    )
    invalidated = sum(record.detail.get(INVALIDATED, False) for record in records)
    if invalidated or log.invalidated:
        what = f"{invalidated} answers" if invalidated else "the log"
        return evaluation.signed({INVALIDATED: _INVALIDATED}, invalidated=what)
    return evaluation


def _ids(log: Any) -> dict[str, int]:
    """Return the ids of a whole run, and their positions."""
    ids = dict.fromkeys(map(str, log.eval.dataset.sample_ids or ()))
    return {id: position for position, id in enumerate(ids)}


def _epochs(log: Any) -> int:
    """Return the number of epochs that the header claims. Nothing of this size may be allocated."""
    epochs: int = log.eval.config.epochs or 1
    return epochs


def _samples(path: str | Path, log: Any, convert: Callable[[Any], T]) -> list[T]:
    """Return the converted samples of a log, in the order of its questions: without importing Inspect if possible."""
    if Path(path).suffix != ".json":
        check_archive(Path(path))
    # Only the reader is inside: an error in converting what it read is a bug, and no damage.
    with _naming(path), _with_buffer(path, log.status) as file:
        if isinstance(log, Fields):
            # Inspect reads it, or says why it cannot. An error in converting is raised again below.
            with suppress(Exception):
                plain = read_plain_samples(file, _ids(log), _epochs(log))
                return [convert(sample) for sample in _in_order(log, plain)]
        whole = _by_inspect(path, file, resolve_attachments="core", exclude_fields=_LEFT_OUT)
    log.eval.dataset.sample_ids = whole.eval.dataset.sample_ids  # older logs do not list them
    return [convert(sample) for sample in _in_order(log, whole.samples or ())]


def _in_order(log: Any, samples: Iterable[Any]) -> list[Any]:
    """Return the samples of a run that are in its header, in the order of its questions and epochs.

    Of samples with the same id and epoch, the last one.
    """
    positions, epochs = _ids(log), _epochs(log)
    by_key = {(str(sample.id), sample.epoch): sample for sample in samples}
    keys = [key for key in by_key if key[0] in positions and 1 <= key[1] <= epochs]
    keys.sort(key=lambda key: (positions[key[0]], key[1]))
    return [by_key[key] for key in keys]


def _scored(sample: Any) -> tuple[Record, dict[str, str]]:
    """Return a sample of a task of qabench as a record, and the signatures of its scores."""
    metadata: Mapping[str, Any] = sample.metadata
    scores = list((sample.scores or {}).values())
    detail: Json = {}
    signatures: dict[str, str] = {}
    statuses: dict[str, str] = {}  # of groups of scores
    values: dict[str, float] = {}  # without values that are undefined: NaN in the log
    for score in scores:
        about = score.metadata or {}
        detail |= about.get("detail") or {}
        signatures |= about.get("signatures") or {}
        statuses |= about.get("statuses") or {}
        for name, number in (score.value if isinstance(score.value, dict) else {}).items():
            if isinstance(number, int | float) and isfinite(number):
                values[name] = float(number)
    if sample.invalidation is not None:
        detail[INVALIDATED] = True
    answer = scores[0].answer if scores else sample.output.completion
    record = _record(sample, answer)
    replies = metadata.get("replies") or {}
    problems = [*filter(None, [record.problem]), *(metadata.get("problems") or ())]
    record = replace(
        record,
        question=str(metadata.get("question", "")),
        reference=str(metadata.get("reference", "")),
        problem="; ".join(problems) or None,
        scores=values,
        groups=metadata.get("groups") or {},
        detail=detail,
        statuses=statuses,
        replies=replies.get("all"),
        cached=replies.get("cached") or 0,
    )
    return record, signatures


def _record(sample: Any, answer: str | None) -> Record:
    """Return what the record of a sample has for any task, with the answer that was scored."""
    status, problem = _status(sample)
    if status in (FAILED, REFUSED):
        answer = None
    elif answer is None and status in (ANSWERED, CUT_OFF):
        status, problem = EMPTY, "the conversation ended without an answer"
    usages = list(sample.model_usage.values())
    # Providers count cached tokens separately.
    prompts = [
        usage.input_tokens + (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
        for usage in usages
    ]
    costs = [usage.total_cost for usage in usages]
    return Record(
        id=str(sample.id),
        epoch=sample.epoch,
        question="",
        reference="",
        messages=_messages(sample.messages),
        answer=answer,
        status=status,
        problem=problem,
        input_tokens=sum(prompts) if usages else None,
        output_tokens=sum(usage.output_tokens for usage in usages) if usages else None,
        seconds=sample.working_time,
        cost=sum(costs) if costs and None not in costs else None,
    )


def _status(sample: Any) -> tuple[str, str | None]:
    """Return the record's status and its problem, if any."""
    if sample.error is not None:
        return FAILED, failure(sample.error)
    output = sample.output
    if not output.choices:
        stopped = f"the model returned no output before the {_limit(sample)}" if sample.limit else None
        return FAILED, output.error or stopped or "the model returned no output"
    if too_long(output):
        return FAILED, f"{TOO_LONG}: {printable(output.completion)}"
    if output.stop_reason == "content_filter":
        return REFUSED, output.error or "the model's provider filtered the reply"
    if not output.completion.strip():
        return EMPTY, "the reply is empty"
    if sample.limit is not None:
        return CUT_OFF, f"stopped at the {_limit(sample)}"
    if output.stop_reason in _CUT_OFF_STOPS:
        return CUT_OFF, "the reply was cut off at the token limit"
    return ANSWERED, None


def _limit(sample: Any) -> str:
    """Return the limit that stopped a sample."""
    return f"limit of {sample.limit.type}: {sample.limit.limit:g}"


def _messages(messages: Sequence[Any]) -> list[Message]:
    shown = []
    for message in messages:
        calls = getattr(message, "tool_calls", None) or ()
        texts = [message.text, *(f"{call.function}({call.arguments})" for call in calls)]
        shown.append(Message(message.role, "\n".join(filter(None, texts))))
    return shown


def rescored(run: Evaluation, questions: Any = None, **options: Any) -> Evaluation:
    """Return the evaluation of a log with scores of its answers by today's code.

    Verdicts of models are used only if they are in the reply cache. Scores that cannot be computed
    again are the recorded ones, and ``Evaluation.recorded`` says so, which is a deviation. The
    fields of a signature that describe how the model was asked are the recorded ones. ``questions``
    is the file of questions of a run with custom questions. ``options`` of the benchmark replace
    the run's.
    """
    scorer = benchmark(run.benchmark)
    columns = set(column_names(run.records))
    needs: dict[str, set[str]] = {}
    for spec in scorer.scores:
        if spec.group in run.signatures or columns.intersection(spec.needs):
            needs.setdefault(spec.group, set()).update(spec.needs)
    if not run.answered or not needs:
        return run
    of_run = scorer.rescoring_options(run)
    options = of_run | {name: value for name, value in options.items() if name in of_run}
    config = run.config if questions is None else None
    try:
        epochs = {
            epoch: evaluate(scorer, config, predictions, questions=questions, **options)
            for epoch, predictions in _predictions(run, scorer).items()
        }
    except (QabenchError, ImportError) as error:
        return replace(run, recorded=dict.fromkeys(needs, f"not computed again: {error}"))
    today = next(iter(epochs.values()))
    computed = {
        (epoch, record.id): record
        for epoch, evaluation in epochs.items()
        for record in evaluation.records
    }
    pairs = [(record, computed.get((record.epoch, record.id))) for record in run.records]
    absent = {
        group
        for group, names in needs.items()
        if not _is_by_same_model(scorer, run, today, group)
        or any(new and names & old.scores.keys() - new.scores.keys() for old, new in pairs)
    }
    recorded = {name for group in absent for name in needs[group]}
    records, differing = [], []
    for old, new in pairs:
        scores = {name: value for name, value in old.scores.items() if name in recorded}
        fresh = new.scores if new else {}
        scores |= {name: value for name, value in fresh.items() if name not in recorded}
        detail, both = dict(old.detail), old.scores.keys() & scores.keys()
        if not all(isclose(old.scores[name], scores[name], abs_tol=TOLERANCE) for name in both):
            differing.append(old.id)
            detail |= {name: value for name, value in (new or old).detail.items() if value}
        records.append(replace(old, scores=scores, detail=detail))
    returned = column_names(records)
    problems = [*run.problems, *absent_scores(scorer, run.signatures, returned, today.notes)]
    if differing:
        problems.append(
            f"scores in the log that differ from the scores of its answers: {len(differing)} ({some(differing)}); "
            "the answers were scored again"
        )
    lines = {
        group: line if group in absent else _signed(line, today.signatures.get(group, ""))
        for group, line in run.signatures.items()
    }
    scored = replace(run, records=records, available=today.available, signatures=lines)
    labeled = _labeled(scorer, today, run)
    return replace(scored, problems=problems, recorded=dict.fromkeys(absent, "") | labeled)


def _predictions(run: Evaluation, scorer: Benchmark) -> dict[int, Predictions]:
    """Return the predictions of each epoch that would get the scores of the answers."""
    rows = grouped(
        (old.epoch, Prediction(number, old.id, {"id": old.id} | scorer.rescored_prediction(old)))
        for number, old in enumerate(run.records, start=1)
    )
    return {epoch: Predictions(run.path, of_epoch) for epoch, of_epoch in rows.items()}


def _is_by_same_model(scorer: Benchmark, run: Evaluation, today: Evaluation, group: str) -> bool:
    """Return whether today's code has the group's scores, by the same model as the log."""
    if group not in today.signatures:
        return False
    ours, theirs = _fields(today.signatures[group]), _fields(run.signatures.get(group, ""))
    return all(ours.get(name) in (UNSTATED, theirs.get(name)) for name in scorer.model_fields)


def _labeled(scorer: Benchmark, today: Evaluation, run: Evaluation) -> dict[str, str]:
    """Return the groups that are computed from labels in the log, which a model made."""
    return {
        group: f"{name} by {label}"
        for group, line in run.signatures.items()
        for name in scorer.model_fields
        if (label := _fields(line).get(name, NONE)) not in (NONE, UNSTATED)
        and _fields(today.signatures.get(group, "")).get(name) == UNSTATED
    }


def _fields(line: str) -> dict[str, str]:
    try:
        return parse(line)[1]
    except InputError:
        return {}


def _signed(recorded: str, today: str) -> str:
    """Return the log's signature with the fields that today's scores have."""
    if not today or not _fields(recorded):
        return recorded
    name, fields = parse(today)
    computed = {key: value for key, value in fields.items() if value != UNSTATED and key != ASKED}
    merged = _fields(recorded) | computed
    del merged[VERSION]
    return signature(name, **merged)


def read_any_log(path: Path) -> list[Evaluation]:
    """Return the log of a task that is not of qabench, or [] for other files.

    Raises InputError if it is damaged.
    """
    if path.suffix == ".json" and not starts_as_log(path):
        return []
    log = header_of(path)
    if isinstance((log.eval.metadata or {}).get("benchmark"), str):
        return []
    records = _samples(path, log, _foreign_record)
    if not records and log.status == "success":
        raise InputError(_without_samples(path, log))
    ids, present = _ids(log), {record.id for record in records}
    missing = [id for id in ids if id not in present]
    problems = []
    if missing:
        problems.append(f"questions without a sample: {len(missing)} ({some(missing)})")
    counts = Counter(map(str, log.eval.dataset.sample_ids or ()))
    if repeated := [id for id, count in counts.items() if count > 1]:
        # Also 1 and "1": the files of both samples have one name in the log.
        problems.append(
            f"ids of several questions, of which one has its sample in the log: {len(repeated)} ({some(repeated)})"
        )
    has_epochs = any(record.epoch > 1 for record in records)
    reported, reducers, others = reported_by_inspect(_results(log), has_epochs)
    evaluation = evaluation_of(
        path=path,
        task=log.eval.task,
        model=log.eval.model,
        created=log.eval.created,
        records=records,
        status=log.status,
        expected=len(ids) * _epochs(log),
        arguments=log.eval.task_args | values_of(log.plan.config),
        problems=problems,
        origin=log.eval.task_id,
    )
    return [with_reported(with_reducers(evaluation, reducers), reported, others)]


def _without_samples(path: Path, log: Any) -> str:
    """Return why a finished log has no scores here, with those that its harness wrote."""
    reported = reported_by_inspect(_results(log), has_epochs=False)[0]
    scores = ", ".join(f"{each.score} {each.value:.4f} ({each.metric})" for each in reported) or "none"
    return (
        f"{path} has no samples, as after `inspect eval --no-log-samples`; without them there are no intervals and no "
        f"comparisons. The scores in its header: {scores}"
    )


def _results(log: Any) -> Json:
    """Return the aggregate in the header of a log, or {} without one, as in the log of a killed run."""
    return values_of(_fields_of(log.results)) if log.results else {}


def _foreign_record(sample: Any) -> Record:
    scores = dict(sample.scores or {})
    # A scorer may leave out the answer that it extracted. Whether there is one follows from the completion.
    extracted = [score.answer for score in scores.values() if score.answer]
    record = _record(sample, extracted[0] if extracted else sample.output.completion)
    # Why the scorer gave no value, or an abnormal one, such as "refusal".
    reasons = [f"{name}: {score.reason}" for name, score in scores.items() if score.reason]
    if sample.invalidation:
        why = values_of(_fields_of(sample.invalidation)).get("reason")
        reasons.append(f"invalidated in the log{f' ({why})' if why else ''}, and still in the scores")
    problems = [*filter(None, [record.problem]), *reasons]
    return replace(
        record,
        problem="; ".join(map(printable, problems)) or None,
        question=_text(sample.input),
        reference=_text(sample.target),
        scores=numbers_of({name: score.value for name, score in scores.items()}),
        groups=groups_of(sample.metadata),
        detail={name: score.explanation for name, score in scores.items() if score.explanation},
    )


def _fields_of(part: Any) -> Any:
    return Fields(part) if isinstance(part, dict) else part


def _text(value: str | Sequence[Any]) -> str:
    """Return an input (a text or messages) or a target (a text or several) as one text."""
    if isinstance(value, str):
        return value
    return "\n".join(part if isinstance(part, str) else part.text for part in value)
