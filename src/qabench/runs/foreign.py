"""Logs of any task of other harnesses, as evaluations without official scores.

The scores of a record are the numbers in the log, and the metrics of the evaluation follow from
these numbers. The readers of samples of
lm-evaluation-harness, details of lighteval, and instance-level files of Every Eval Ever are here,
the reader of Inspect's logs in ``log``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.data.predictions import some
from qabench.data.rows import Json, Row, SourceRow, grouped, read_json, read_json_lines, read_json_list
from qabench.errors import DataError, InputError, unreadable
from qabench.evaluation import ANSWERED, EMPTY, FAILED, Evaluation, Message, Record
from qabench.evaluation.matching import DOC_HASH, with_passes
from qabench.evaluation.score_spec import ScoreSpec
from qabench.runs.aggregates import Reported, with_reported

if TYPE_CHECKING:
    from qabench.runs.foreign_rows import Typed

# What every sample of lm-evaluation-harness has. The other keys of a sample before 0.4.6 are its metrics.
SAMPLE_KEYS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
NO_METRIC = "bypass"  # lm-evaluation-harness gives it the value 999 if nothing is to be scored
MOST_GROUPS = 50  # a field of the metadata with more values is not a grouping
VERDICTS = {"c": 1.0, "yes": 1.0, "true": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "no": 0.0, "false": 0.0}
FIRST_BYTES = 4096
# How the JSON of a log of Inspect starts, and not logs.json and eval-set.json, which Inspect writes
# beside the logs of a suite.
START = re.compile(rb'\s*\{\s*"(version|status|eval)"\s*:')
POINTER = b"version https://git-lfs.github.com/spec/"  # how a pointer of Git LFS starts
DATE = r"_\d{4}-\d{2}-\d{2}T[\d:.+-]+"
# The first of these fields of a document is shown as the question.
QUESTIONS = ("question", "query", "problem", "prompt", "input", "text", "goal", "ctx", "sentence")


def number_of(value: Any) -> float | None:
    """Return a value of a log as a number: C, P, I and N (correct, partly, incorrect, no answer), yes and no also.

    Examples:
        >>> number_of("P"), number_of(True), number_of("0.25"), number_of([1, 2])
        (0.5, 1.0, 0.25, None)
    """
    text = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    try:
        number = VERDICTS[text] if text in VERDICTS else float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def numbers_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the values that are numbers or verdicts, by name.

    A value of a dictionary is NAME.KEY.
    """
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            numbers |= numbers_of({f"{name}.{key}": each for key, each in value.items()})
        elif (number := number_of(value)) is not None:
            numbers[name] = number
    return numbers


def groups_of(metadata: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the fields of a question's metadata that can be groupings: short texts, integers, and true or false."""
    return {
        name: (str(value),)
        for name, value in metadata.items()
        if isinstance(value, str | int) and 0 < len(str(value)) <= MOST_GROUPS
    }


def evaluation_of(
    path: Path,
    task: str,
    model: str,
    created: str,
    records: Sequence[Record],
    lower: Collection[str] = (),
    problems: Sequence[str] = (),
    **fields: Any,
) -> Evaluation:
    """Return a log as an evaluation: its scores are means over the records.

    Of repeated records, the last one counts. They are counted among the problems.

    Args:
        path: the file.
        task: the name of the task.
        model: its name, or the name of the file if the log does not have it.
        created: an ISO date and time.
        records: in the order of the log.
        lower: the names of scores for which lower values are better.
        problems: one sentence for each kind of problem.
        **fields: other fields of the evaluation.
    """
    if not records:
        raise InputError(f"{path} has no samples; was the run stopped?")
    counts = Counter((record.id, record.epoch) for record in records)
    repeated = [id for (id, _), count in counts.items() if count > 1]
    if repeated:
        count = f"{len(repeated)} ({some(repeated)})"
        problems = [*problems, f"repeated ids, of which the last one counts: {count}"]
    records = list({(record.id, record.epoch): record for record in records}.values())
    evaluation = Evaluation(
        path=str(path),
        task=task,
        benchmark="",
        config=task,
        setting="",
        model=model,
        created=created,
        records=_with_groupings(records),
        problems=problems,
        score_specs=_specs(records, lower),
        **{"status": "success", "expected": len(records), **fields},
    )
    return with_passes(evaluation)


def _specs(records: Sequence[Record], lower: Collection[str]) -> list[ScoreSpec]:
    values = grouped(pair for record in records for pair in record.scores.items())
    specs = []
    for name, numbers in values.items():
        graded = all(0 <= value <= 1 for value in numbers)
        about, higher = "As recorded in the log.", name not in lower
        specs.append(ScoreSpec(name, name, about, name, graded=graded, higher_is_better=higher))
    return specs


def _with_groupings(records: Sequence[Record]) -> list[Record]:
    """Return the records with the groups of fields that have several values, and fewer than there are questions."""
    distinct = {(name, *groups) for record in records for name, groups in record.groups.items()}
    counts = Counter(name for name, *_ in distinct)
    most = min(MOST_GROUPS, len({record.id for record in records}) - 1)
    return [
        replace(record, groups={n: g for n, g in record.groups.items() if 1 < counts[n] <= most})
        for record in records
    ]


def read_lm_eval(path: Path) -> Evaluation:
    """Return a file ``samples_TASK_DATE.jsonl``. Scores of several filters are named SCORE,FILTER, as in the harness.

    The model and the direction of scores are in the file ``results_DATE.json`` next to it, if there
    is one.
    """
    task = lm_eval_task(path)
    results = lm_eval_results(path)
    from qabench.runs.foreign_rows import LmEvalSample

    rows = _with_filters(_rows(path, LmEvalSample), task, results)
    filters = {row.get("filter") for row in rows}
    ends = [f",{name}" for name in filters] if len(filters) > 1 else [""]
    directions = results.get("higher_is_better", {}).get(task, {})
    lower = [name for name, higher in directions.items() if higher is False]
    samples = _samples(rows, lambda row: str(row["doc_id"]), lambda row: row.get("filter"))
    evaluation = evaluation_of(
        path=path,
        task=task,
        model=str(results.get("model_name") or path.parent.name or path.stem),
        created=_date(path),
        records=[_lm_eval_record(sample, several=len(filters) > 1) for sample in samples],
        lower=[name + end for name in lower for end in ends],
    )
    return with_reported(evaluation, _reported_by_lm_eval(results, task, several=len(filters) > 1))


def _with_filters(rows: list[Row], task: str, results: Json) -> list[Row]:
    """Return rows that name their filter and their metrics, as the harness writes them since 0.4.6.

    Before, it wrote all samples once for each filter, without the filter's name.
    """
    if any("filter" in row for row in rows):
        return rows
    config = _object(_object(results.get("configs")).get(task))
    names = [str(_object(each).get("name")) for each in config.get("filter_list") or ()]
    counts = Counter(str(row["doc_id"]) for row in rows)
    repetitions = max(counts.values(), default=1)
    # A file to which a second one was appended also repeats ids, but not the number of filters.
    is_by_filter = repetitions > 1 and set(counts.values()) == {repetitions}
    if names:
        is_by_filter = is_by_filter and repetitions == len(names)
    else:
        names = [f"filter {number}" for number in range(1, repetitions + 1)]
    seen: Counter[str] = Counter()
    named: list[Row] = []
    for row in rows:
        id = str(row["doc_id"])
        metrics = row.get("metrics") or [key for key in row if key not in SAMPLE_KEYS]
        named.append({**row, "metrics": metrics, "filter": names[seen[id]] if is_by_filter else None})
        seen[id] += 1
    return named


def _reported_by_lm_eval(results: Json, task: str, several: bool) -> list[Reported]:
    """Return the scores of a task in the harness's file of results, whose keys are METRIC,FILTER."""
    counts = _object(_object(results.get("n-samples")).get(task))
    reported = []
    for key, value in _object(_object(results.get("results")).get(task)).items():
        metric, _, filter_name = key.partition(",")
        is_score = filter_name and metric != NO_METRIC and not metric.endswith("_stderr")
        if is_score and isinstance(value, int | float):
            name = key if several else metric
            reported.append(Reported(name, key, value, counts.get("effective")))
    return reported


def _samples(
    rows: Sequence[Row], sample_of: Callable[[Row], Any], part_of: Callable[[Row], Any]
) -> list[list[Row]]:
    """Return the rows of each sample. A second row of the same part is of a repetition of the sample."""
    counts: Counter[Any] = Counter()
    samples: dict[Any, list[Row]] = {}
    for row in rows:
        sample, part = sample_of(row), part_of(row)
        samples.setdefault((sample, counts[sample, part]), []).append(row)
        counts[sample, part] += 1
    return list(samples.values())


def lm_eval_results(path: Path) -> Json:
    """Return the harness's file of results next to a file of samples, by its date, or {} without one."""
    date = re.search(DATE + "$", path.stem)
    file = path.with_name(f"results{date[0] if date else ''}.json")
    if not file.is_file():
        return {}
    from qabench.runs.foreign_rows import LmEvalResults, checked

    return dict(checked(SourceRow.of(_read_json(file), str(file)), LmEvalResults))


def lm_eval_task(path: Path) -> str:
    """Return the task of a file samples_TASK_DATE.jsonl, or MODEL_TASK.jsonl of the harness before 0.4.3."""
    if path.stem.startswith("samples_"):
        return re.sub(DATE + "$", "", path.stem.removeprefix("samples_"))
    tasks = _object(lm_eval_results(path).get("results"))
    known = [task for task in tasks if path.stem.endswith(f"_{task}")]
    return max(known, key=len, default=path.stem)


def lm_eval_config(path: Path, configs: Collection[str]) -> str | None:
    """Return the config of qabench's task in a file of samples, or None if neither results nor name say it.

    Examples:
        >>> lm_eval_config(Path("samples_qabench_felm_math_raw_2026-01-01T00-00-00.jsonl"), ["all", "math"])
        'math'
    """
    task = lm_eval_task(path)
    own = _object(_object(lm_eval_results(path).get("configs")).get(task)).get("dataset_name")
    if own in configs:
        return str(own)
    named = [config for config in configs if f"_{config.replace('-', '_')}_" in f"{task}_"]
    return max(named, key=len, default=None)


def _lm_eval_record(rows: Sequence[Row], several: bool) -> Record:
    row, doc = rows[0], _object(rows[0]["doc"])
    scores: dict[str, float] = {}
    for each in rows:
        end = f",{each.get('filter')}" if several else ""
        metrics = [name for name in each.get("metrics", ()) if name != NO_METRIC]
        scores |= numbers_of({name + end: each.get(name) for name in metrics})
    questions = [doc[name] for name in QUESTIONS if isinstance(doc.get(name), str)]
    return _record(
        id=str(row["doc_id"]),
        question=questions[0] if questions else json.dumps(doc, ensure_ascii=False),
        reference=str(row.get("target", "")),
        answer=_first_text(row.get("filtered_resps")),
        scores=scores,
        groups={name: value for name, value in doc.items() if name not in QUESTIONS},
        detail={DOC_HASH: row.get(DOC_HASH)},
    )


def generations(path: Path) -> str:
    """Return the answers that ``lm_eval --log_samples`` wrote, as predictions for ``qabench score``.

    The harness writes a missing reply as the string "None".

    Args:
        path: a file ``samples_qabench_*.jsonl``.

    Returns:
        One line ``{"id", "answer"}`` per sample, in the file's order.

    Raises:
        InputError: the file cannot be read, is empty, or belongs to a task that is not qabench's.
    """
    try:
        rows = [_answer(row) for row in sample_rows(path)]
    except OSError as error:
        raise unreadable(f"the samples {path}", error) from None
    if not rows:
        raise InputError(f"{path} has no samples; was the run stopped?")
    return "".join(json.dumps(row) + "\n" for row in rows)


def _answer(row: SourceRow) -> dict[str, str]:
    try:
        question = SourceRow.of(row.get("doc", dict), f"{row.where}, field 'doc'")
        (answer,) = row.list_of("filtered_resps")
        # Some datasets name the id "index".
        name = "index" if "id" not in question.fields and "index" in question.fields else "id"
        return {"id": question.get(name, str), "answer": answer}
    except (DataError, ValueError) as error:
        raise InputError(
            f"{row.where} is not a sample of a qabench task ({error}); give a file samples_qabench_... of "
            "`lm_eval --log_samples --output_path ...`"
        ) from None


def read_lighteval(path: Path) -> Evaluation:
    """Return lighteval's details (``details_TASK_DATE.parquet``): columns doc, metric and model_response."""
    from qabench.io.parquet import parquet_rows
    from qabench.runs.foreign_rows import LightevalDetail, checked

    records = []
    for number, row in enumerate(parquet_rows(path, str(path), ("doc", "metric", "model_response"))):
        fields = checked(SourceRow(row, f"{path}, row {number}"), LightevalDetail)
        records.append(_lighteval_record(fields, number))
    task = re.sub(DATE + "$", "", path.stem.removeprefix("details_"))
    evaluation = evaluation_of(path, task, path.parent.parent.name or path.stem, _date(path), records)
    return with_reported(evaluation, _reported_by_lighteval(path, task))


def _reported_by_lighteval(path: Path, task: str) -> list[Reported]:
    """Return the scores of a task in results/MODEL/results_DATE.json, beside details/MODEL/DATE."""
    date = path.parent
    details = [folder for folder in path.parents if folder.name == "details"]
    if not details:
        return []
    model = date.parent.relative_to(details[0])
    file = details[0].parent / "results" / model / f"results_{date.name}.json"
    if not file.is_file():
        return []
    values = _object(_object(_object(_read_json(file)).get("results")).get(task))
    return [
        Reported(name, name, value)
        for name, value in values.items()
        if isinstance(value, int | float) and not name.endswith("_stderr")
    ]


def _lighteval_record(row: Row, number: int) -> Record:
    doc, response = row["doc"], row["model_response"]
    gold = doc.get("gold_index")
    choices = doc.get("choices") or ()
    indices = gold if isinstance(gold, list) else [gold]
    targets = [choices[i] for i in indices if i is not None and i in range(len(choices))]
    return _record(
        id=str(doc.get("id") or number),
        question=doc.get("original_query") or doc.get("query") or "",
        reference="\n".join(map(str, targets)),
        answer=_first_text(response.get("text_post_processed") or response.get("text")),
        scores=numbers_of(row["metric"]),
        groups=doc.get("specific") or {},
    )


def read_shared(path: Path) -> list[Evaluation]:
    """Return the evaluations in an instance-level file of Every Eval Ever, one for each model."""
    from qabench.runs.foreign_rows import SharedInstance

    by_log = grouped(
        ((row.get("evaluation_name", ""), row.get("model_id", "")), row)
        for row in _rows(path, SharedInstance)
    )
    evaluations = []
    for (task, model), rows in by_log.items():
        evaluation = evaluation_of(
            path=path,
            task=task or path.stem,
            model=model or path.stem,
            created=_date(path),
            records=list(map(_shared, _samples(rows, _sample_and_epoch, _result))),
        )
        evaluations.append(with_reported(evaluation, _reported_by_document(path, task, model)))
    return evaluations


def _reported_by_document(path: Path, task: str, model: str) -> list[Reported]:
    """Return the scores of a model in NAME.json, the aggregate of Every Eval Ever beside NAME_samples.jsonl."""
    file = path.with_name(path.stem.removesuffix("_samples") + ".json")
    if not file.is_file():
        return []
    from qabench.runs.foreign_rows import SharedDocument, checked

    document = checked(SourceRow.of(_read_json(file), str(file)), SharedDocument)
    if model and _object(document.get("model_info")).get("id") != model:
        return []
    reported = []
    for each in map(_object, document.get("evaluation_results") or ()):
        details = _object(each.get("score_details"))
        value = details.get("score")
        if each.get("evaluation_name", task) == task and isinstance(value, int | float):
            count = _object(details.get("uncertainty")).get("num_samples")
            reported.append(Reported(_result(each), file.name, value, count))
    return reported


def _sample_and_epoch(row: Row) -> tuple[str, int]:
    text = str(_object(row.get("metadata")).get("epoch", "1"))
    return str(row["sample_id"]), int(text) if re.fullmatch("[0-9]{1,9}", text) else 1


def _result(row: Row) -> str:
    return str(row.get("evaluation_result_id") or row.get("evaluation_name") or "score")


def _shared(rows: Sequence[Row]) -> Record:
    row = rows[0]
    id, epoch = _sample_and_epoch(row)
    content, output = _object(row.get("input")), _object(row.get("output"))
    references = content.get("reference") or ()
    references = [references] if isinstance(references, str) else references
    attributed = [_object(each).get("extracted_value") for each in row.get("answer_attribution") or ()]
    metadata = _object(row.get("metadata"))
    return _record(
        id=id,
        epoch=epoch,
        question=str(content.get("raw", "")),
        reference="\n".join(map(str, references)),
        answer=_first_text(attributed or output.get("raw")),
        scores=numbers_of({_result(each): _object(each["evaluation"]).get("score") for each in rows}),
        groups={name: text for name, text in metadata.items() if name != "epoch"},
        problem=row.get("error"),
    )


def _record(
    *, question: str, answer: str | None, scores: Mapping[str, float], groups: Row, **fields: Any
) -> Record:
    status = ANSWERED if answer or scores else EMPTY  # the scores of log-likelihoods have no answer
    if fields.get("problem") and not answer:
        status = FAILED
    return Record(
        **{"epoch": 1, **fields},
        question=question,
        messages=[Message("assistant", answer)] if answer else [],
        answer=answer,
        status=status,
        scores=scores,
        groups=groups_of(groups),
    )


def _rows(path: Path, kind: type[Typed]) -> list[Row]:
    """Return the rows of a file, which must be of this type."""
    from qabench.runs.foreign_rows import checked

    try:
        return [checked(row, kind) for row in sample_rows(path)]
    except OSError as error:
        raise unreadable(path, error) from None


def _read_json(path: Path) -> Any:
    try:
        return read_json(path)
    except OSError as error:
        raise unreadable(path, error) from None


def sample_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a file of samples: JSON Lines, or a list as lm-evaluation-harness wrote before 0.4.3."""
    with path.open("rb") as file:
        is_list = file.read(FIRST_BYTES).lstrip().startswith(b"[")
    yield from read_json_list(path) if is_list else read_json_lines(path)


def starts_as_log(path: Path) -> bool:
    """Return whether a file starts as a log of Inspect in JSON does."""
    with path.open("rb") as file:
        return START.match(file.read(FIRST_BYTES)) is not None


def pointer_error(path: Path) -> str | None:
    """Return what is wrong with a file that Git LFS left in place of the real one, or None for other files."""
    with path.open("rb") as file:
        is_pointer = file.read(len(POINTER)) == POINTER
    if not is_pointer:
        return None
    return "is a pointer of Git LFS, not the file itself; in its repository, run: git lfs pull"


def _object(value: Any) -> Row:
    return value if isinstance(value, Mapping) else {}


def _first_text(value: Any) -> str | None:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return value if isinstance(value, str) else None


def _date(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
