"""Instance-level Every Eval Ever files, and the documents with the aggregates beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from qabench.data.rows import Row, SourceRow
from qabench.evaluation import Evaluation, Record
from qabench.runs.aggregates import Reported, with_reported
from qabench.runs.foreign import (
    changed_at,
    evaluation_of,
    first_text,
    json_beside,
    numbers_of,
    object_or_empty,
    record_of,
    rows_of_samples,
    typed_rows,
)


def read_shared(path: Path) -> list[Evaluation]:
    """Return the evaluations in an instance-level file, one for each model and task."""
    from qabench.runs.foreign_rows import SharedInstance

    rows_by_run: dict[tuple[str, str], list[Row]] = {}
    for row in typed_rows(path, SharedInstance):
        task_and_model = (row.get("evaluation_name", ""), row.get("model_id", ""))
        rows_by_run.setdefault(task_and_model, []).append(row)
    evaluations = []
    for (task, model), rows in rows_by_run.items():
        # A sample has one row per score.
        samples = rows_of_samples(rows, _sample_and_epoch, _result)
        evaluation = evaluation_of(
            path=path,
            task=task or path.stem,
            model=model or path.stem,
            created=changed_at(path),
            records=list(map(_record, samples)),
        )
        evaluations.append(with_reported(evaluation, _reported(path, task, model)))
    return evaluations


def _reported(path: Path, task: str, model: str) -> list[Reported]:
    """Return the scores of a model in NAME.json, the document beside NAME_samples.jsonl."""
    file = path.with_name(path.stem.removesuffix("_samples") + ".json")
    if not file.is_file():
        return []
    from qabench.runs.foreign_rows import SharedDocument, checked

    document = checked(SourceRow.of(json_beside(file), str(file)), SharedDocument)
    # A document of another model does not apply to these rows.
    if model and object_or_empty(document.get("model_info")).get("id") != model:
        return []
    reported = []
    for result in map(object_or_empty, document.get("evaluation_results") or ()):
        details = object_or_empty(result.get("score_details"))
        value = details.get("score")
        if result.get("evaluation_name", task) == task and isinstance(value, int | float):
            count = object_or_empty(details.get("uncertainty")).get("num_samples")
            reported.append(Reported(_result(result), file.name, value, count))
    return reported


def _sample_and_epoch(row: Row) -> tuple[str, int]:
    """Return the id of a sample, and its epoch, which this package writes and others need not."""
    text = str(object_or_empty(row.get("metadata")).get("epoch", "1"))
    epoch = 1
    if re.fullmatch("[0-9]{1,9}", text):
        epoch = int(text)
    return str(row["sample_id"]), epoch


def _result(row: Row) -> str:
    """Return the name of the score of an instance or of a result."""
    return str(row.get("evaluation_result_id") or row.get("evaluation_name") or "score")


def _record(rows: Sequence[Row]) -> Record:
    """Return the rows of one sample as a record."""
    first = rows[0]
    id, epoch = _sample_and_epoch(first)
    content = object_or_empty(first.get("input"))
    output = object_or_empty(first.get("output"))
    references = content.get("reference") or ()
    if isinstance(references, str):
        references = [references]
    extracted = []
    for attribution in first.get("answer_attribution") or ():
        extracted.append(object_or_empty(attribution).get("extracted_value"))
    metadata = object_or_empty(first.get("metadata"))
    values = {}
    for row in rows:
        values[_result(row)] = object_or_empty(row["evaluation"]).get("score")
    return record_of(
        id=id,
        epoch=epoch,
        question=str(content.get("raw", "")),
        reference="\n".join(map(str, references)),
        answer=first_text(extracted or output.get("raw")),
        scores=numbers_of(values),
        groups={name: text for name, text in metadata.items() if name != "epoch"},
        problem=first.get("error"),
    )
