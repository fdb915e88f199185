"""lighteval's details, ``details_TASK_DATE.parquet``, and the results beside them."""

from __future__ import annotations

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
    without_date,
)

COLUMNS = ("doc", "metric", "model_response")


def read_lighteval(path: Path) -> Evaluation:
    """Return the evaluation in a file of details."""
    from qabench.io.parquet import parquet_rows
    from qabench.runs.foreign_rows import LightevalDetail, checked

    records = []
    for number, row in enumerate(parquet_rows(path, str(path), COLUMNS)):
        fields = checked(SourceRow(row, f"{path}, row {number}"), LightevalDetail)
        records.append(_record(fields, number))
    task = without_date(path.stem.removeprefix("details_"))
    # The path is details/MODEL/DATE/details_TASK_DATE.parquet.
    model = path.parent.parent.name or path.stem
    evaluation = evaluation_of(path, task, model, changed_at(path), records)
    return with_reported(evaluation, _reported(path, task))


def _reported(path: Path, task: str) -> list[Reported]:
    """Return the scores of a task in results/MODEL/results_DATE.json, beside details/MODEL/DATE."""
    date_folder = path.parent
    details = [folder for folder in path.parents if folder.name == "details"]
    if not details:
        # The file was moved, so its results cannot be found.
        return []
    # A model on the Hub has two folders: ORG/NAME.
    model = date_folder.parent.relative_to(details[0])
    file = details[0].parent / "results" / model / f"results_{date_folder.name}.json"
    if not file.is_file():
        return []
    by_task = object_or_empty(object_or_empty(json_beside(file)).get("results"))
    reported = []
    for name, value in object_or_empty(by_task.get(task)).items():
        if isinstance(value, int | float) and not name.endswith("_stderr"):
            reported.append(Reported(name, name, value))
    return reported


def _record(row: Row, number: int) -> Record:
    document = row["doc"]
    response = row["model_response"]
    choices = document.get("choices") or ()
    # The correct choices: a number, or a list if there are several.
    gold = document.get("gold_index")
    indices = gold if isinstance(gold, list) else [gold]
    targets = []
    for index in indices:
        if index is not None and index in range(len(choices)):
            targets.append(str(choices[index]))
    return record_of(
        id=str(document.get("id") or number),
        question=document.get("original_query") or document.get("query") or "",
        reference="\n".join(targets),
        answer=first_text(response.get("text_post_processed") or response.get("text")),
        scores=numbers_of(row["metric"]),
        groups=document.get("specific") or {},
    )
