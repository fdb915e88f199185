"""lm-evaluation-harness samples, and the results file beside them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from qabench.data.rows import Json, Row, SourceRow
from qabench.errors import DataError, InputError
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.matching import DOC_HASH
from qabench.runs.aggregates import Reported, with_reported
from qabench.runs.foreign import (
    changed_at,
    date_in,
    evaluation_of,
    first_text,
    json_beside,
    numbers_of,
    object_or_empty,
    record_of,
    rows_of_samples,
    typed_rows,
    without_date,
)

# The keys of every sample. Before version 0.4.6, the other keys of a sample are its metrics.
SAMPLE_KEYS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
# The harness writes this metric, with the value 999, if nothing is scored (``--predict_only``).
NO_METRIC = "bypass"
# The first of these fields of a document is shown as the question.
QUESTIONS = ("question", "query", "problem", "prompt", "input", "text", "goal", "ctx", "sentence")


def read_lm_eval(path: Path) -> Evaluation:
    """Return the evaluation in a file ``samples_TASK_DATE.jsonl``.

    Scores of several filters are named SCORE,FILTER, as in the harness. The model and the direction
    of scores are in the file ``results_DATE.json`` next to it, if there is one.
    """
    from qabench.runs.foreign_rows import LmEvalSample

    task = lm_eval_task(path)
    results = lm_eval_results(path)
    rows = _with_filters(typed_rows(path, LmEvalSample), task, results)
    filters = {row.get("filter") for row in rows}
    has_filters = len(filters) > 1
    endings = [f",{name}" for name in filters] if has_filters else [""]
    directions = results.get("higher_is_better", {}).get(task, {})
    lower = []
    for name, is_higher_better in directions.items():
        # The harness writes null if a metric does not say its direction.
        if is_higher_better is False:
            for ending in endings:
                lower.append(name + ending)
    records = []
    for sample in rows_of_samples(rows, _document_id, lambda row: row.get("filter")):
        records.append(_record(sample, has_filters))
    evaluation = evaluation_of(
        path=path,
        task=task,
        model=str(results.get("model_name") or path.parent.name or path.stem),
        created=changed_at(path),
        records=records,
        lower=lower,
    )
    return with_reported(evaluation, _reported(results, task, has_filters))


def _document_id(row: Row) -> str:
    return str(row["doc_id"])


def _with_filters(rows: list[Row], task: str, results: Json) -> list[Row]:
    """Return rows that name their filter and metrics, as the harness has written them since 0.4.6.

    Older versions wrote all samples once per filter, in the order of the filters, without their
    names.
    """
    # New versions name the filter in every row.
    if any("filter" in row for row in rows):
        return rows
    config = object_or_empty(object_or_empty(results.get("configs")).get(task))
    names = []
    for declared in config.get("filter_list") or ():
        names.append(str(object_or_empty(declared).get("name")))
    counts = Counter(map(_document_id, rows))
    repetitions = max(counts.values(), default=1)
    # Two concatenated files repeat ids as well, but usually not exactly once per filter.
    is_by_filter = repetitions > 1 and set(counts.values()) == {repetitions}
    if names:
        is_by_filter = is_by_filter and repetitions == len(names)
    else:
        names = [f"filter {number}" for number in range(1, repetitions + 1)]
    seen: Counter[str] = Counter()
    named: list[Row] = []
    for row in rows:
        id = _document_id(row)
        metrics = row.get("metrics") or [key for key in row if key not in SAMPLE_KEYS]
        # The second row of a document belongs to the second filter, wherever it is in the file.
        filter_name = names[seen[id]] if is_by_filter else None
        named.append({**row, "metrics": metrics, "filter": filter_name})
        seen[id] += 1
    return named


def _reported(results: Json, task: str, has_filters: bool) -> list[Reported]:
    """Return the scores of a task in the harness's file of results, whose keys are METRIC,FILTER."""
    counts = object_or_empty(object_or_empty(results.get("n-samples")).get(task))
    scores = object_or_empty(object_or_empty(results.get("results")).get(task))
    reported = []
    for key, value in scores.items():
        metric, _, filter_name = key.partition(",")
        is_score = filter_name and metric != NO_METRIC and not metric.endswith("_stderr")
        if is_score and isinstance(value, int | float):
            name = key if has_filters else metric
            reported.append(Reported(name, key, value, counts.get("effective")))
    return reported


def _record(rows: Sequence[Row], has_filters: bool) -> Record:
    first = rows[0]
    document = object_or_empty(first["doc"])
    scores: dict[str, float] = {}
    for row in rows:
        ending = f",{row.get('filter')}" if has_filters else ""
        values = {}
        for name in row.get("metrics", ()):
            if name != NO_METRIC:
                values[name + ending] = row.get(name)
        scores |= numbers_of(values)
    # If a document has none of ``QUESTIONS``, the whole document is shown.
    question = json.dumps(document, ensure_ascii=False)
    for name in QUESTIONS:
        if isinstance(document.get(name), str):
            question = document[name]
            break
    return record_of(
        id=_document_id(first),
        question=question,
        reference=str(first.get("target", "")),
        answer=first_text(first.get("filtered_resps")),
        scores=scores,
        groups={name: value for name, value in document.items() if name not in QUESTIONS},
        detail={DOC_HASH: first.get(DOC_HASH)},
    )


def lm_eval_results(path: Path) -> Json:
    """Return the harness's file of results next to a file of samples, or {} if there is none."""
    file = path.with_name(f"results{date_in(path.stem)}.json")
    if not file.is_file():
        return {}
    from qabench.runs.foreign_rows import LmEvalResults, checked

    return dict(checked(SourceRow.of(json_beside(file), str(file)), LmEvalResults))


def lm_eval_task(path: Path) -> str:
    """Return the task of a file samples_TASK_DATE.jsonl, or MODEL_TASK.jsonl before 0.4.3."""
    if path.stem.startswith("samples_"):
        return without_date(path.stem.removeprefix("samples_"))
    tasks = object_or_empty(lm_eval_results(path).get("results"))
    in_name = [task for task in tasks if path.stem.endswith(f"_{task}")]
    # The name of one task may be the end of another's, such as "math" of "minerva_math".
    return max(in_name, key=len, default=path.stem)


def lm_eval_config(path: Path, configs: Collection[str]) -> str | None:
    """Return the config of qabench's task in a file of samples, or None if it is unknown.

    Examples:
        >>> lm_eval_config(Path("samples_qabench_felm_math_raw_2026-01-01T00-00-00.jsonl"), ["all", "math"])
        'math'
    """
    task = lm_eval_task(path)
    task_config = object_or_empty(object_or_empty(lm_eval_results(path).get("configs")).get(task))
    in_results = task_config.get("dataset_name")
    if in_results in configs:
        return str(in_results)
    in_name = []
    for config in configs:
        # Task names have "_" instead of "-", and contain the config's name between underscores.
        if f"_{config.replace('-', '_')}_" in f"{task}_":
            in_name.append(config)
    return max(in_name, key=len, default=None)


def answer_in(row: SourceRow) -> dict[str, str]:
    """Return the prediction ``{"id", "answer"}`` in a sample of a qabench task.

    The harness writes a missing reply as the string "None".

    Raises:
        InputError: the sample is of another task.
    """
    try:
        question = SourceRow.of(row.get("doc", dict), f"{row.where}, field 'doc'")
        (answer,) = row.list_of("filtered_resps")
        # Some datasets name the id "index".
        name_of_id = "id"
        if "id" not in question.fields and "index" in question.fields:
            name_of_id = "index"
        return {"id": question.get(name_of_id, str), "answer": answer}
    except (DataError, ValueError) as error:
        raise InputError(
            f"{row.where} is not a sample of a qabench task ({error}); give a file samples_qabench_... of "
            "`lm_eval --log_samples --output_path ...`"
        ) from None
