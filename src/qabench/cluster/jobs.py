"""Jobs that compute columns for a dataset of any size, part by part.

Each part's results are written to a Parquet file. Parts have the same rows on any number of
machines, because the last digits of a network's output can depend on which rows are in one batch. A
part's file is complete or does not exist, so an interrupted job continues with the missing parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet

from qabench.data.rows import read_json
from qabench.errors import InputError
from qabench.evaluation.scoring import Progress
from qabench.io.files import replacing, sweep, write_json
from qabench.io.workers import Load, map_loaded
from qabench.models import entailment
from qabench.models.loader import ModelSource, locate

if TYPE_CHECKING:
    from datasets import Dataset

# A resumed job repeats at most one part per process.
ROWS_PER_PART = 1000
# Describes the job that the files of a folder belong to.
JOB = "job.json"

Rows = list[dict[str, Any]]
Columns = Mapping[str, Any]


def map_parts(
    rows: Dataset,
    output: str | Path,
    load: Load[Rows, Columns],
    job: Mapping[str, Any],
    *,
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
    gpu: bool = False,
) -> list[Path]:
    """Compute columns for all rows, and return the Parquet files in the order of the rows.

    On a cluster, all machines must see the dataset's Arrow files and ``output`` at the same paths.

    Args:
        rows: the dataset. For a file: ``Dataset.from_json`` or ``Dataset.from_parquet``.
        output: the folder for the Parquet files. An interrupted job continues in it.
        load: returns the function that maps a part's rows to its columns. Called once in each
            process.
        job: everything that the columns depend on except the rows, as JSON data.
        rows_per_part: the rows of one file.
        progress: called with the number of processed rows and the number of all rows.
        gpu: whether the function runs on a GPU, if the cluster has one.

    Raises:
        InputError: the folder has the results of another job.
    """
    folder = Path(output).absolute()
    _begin(
        folder,
        {"data": rows._fingerprint, "rows": len(rows), "rows_per_part": rows_per_part, **job},
    )
    starts = range(0, len(rows), rows_per_part)
    paths = {start: folder / f"part-{number:06}.parquet" for number, start in enumerate(starts)}
    left = {start: path for start, path in paths.items() if not path.exists()}
    done = len(rows) - sum(min(rows_per_part, len(rows) - start) for start in left)
    for count in map_loaded(partial(_writer, rows, rows_per_part, load), left.items(), gpu):
        done += count
        if progress:
            progress(done, len(rows))
    return list(paths.values())


def _begin(folder: Path, job: Mapping[str, Any]) -> None:
    """Write the job's description to its folder, or raise InputError for another job's folder."""
    path = folder / JOB
    if not path.exists():
        write_json(path, job)
    elif read_json(path) != job:
        raise InputError(
            f"{folder} has the results of another job (see {JOB} there), not of {dict(job)}: use another folder, or "
            "delete this one"
        )
    # Delete the temporary files of killed processes.
    sweep(folder, "*.parquet")


def _writer(
    rows: Dataset, rows_per_part: int, load: Load[Rows, Columns]
) -> Callable[[tuple[int, Path]], int]:
    """Return a function that writes the file of a part and returns the number of its rows."""
    columns_of = load()

    def write(part: tuple[int, Path]) -> int:
        start, path = part
        rows_of_part = rows.select(range(start, min(start + rows_per_part, len(rows)))).to_list()
        table = pyarrow.table(dict(columns_of(rows_of_part)))
        with replacing(path) as file:
            pyarrow.parquet.write_table(table, file)
        return len(rows_of_part)

    return write


def label(
    claims: Dataset, output: str | Path, model: str = entailment.MODEL, **options: Any
) -> list[Path]:
    """Write the column "label": "Y" for each claim that its evidence entails, else "N" (AutoAIS).

    Args:
        claims: rows with "claim", a string, and "evidence", a list of strings, or null.
        output: see ``map_parts``.
        model: see ``qabench.models.entailment.load_entailment``.
        **options: ``rows_per_part`` and ``progress`` of ``map_parts``. The network's batches are
            formed within a part, so ``rows_per_part`` can change the labels of close cases.

    Raises:
        InputError: the folder has the results of another job, or evidence is a string.
        MissingExtra: a package is not installed.
        QabenchError: the model cannot be loaded.
    """
    source = locate(model)
    job = {"job": "label", "model": source.label, "device": source.device}
    columns = claims.select_columns(["claim", "evidence"])
    return map_parts(columns, output, partial(_load_labels, source), job, gpu=True, **options)


def _load_labels(source: ModelSource) -> Callable[[Rows], Columns]:
    network = entailment.load_entailment(source)

    def labels(rows: Rows) -> Columns:
        if any(isinstance(row["evidence"], str) for row in rows):
            raise InputError(
                "the evidence of a claim is a string; allowed: a list of strings, or null"
            )
        claims = [(row["claim"], row["evidence"]) for row in rows]
        return {"label": entailment.label_claims(claims, network, entailment.punkt)}

    return labels
