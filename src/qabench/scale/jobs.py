"""Labeling and other work on columns of a dataset or a file of any size, worked on in parts.

The results of each part are a Parquet file. A part has the same rows on any number of machines, so
results that depend on which rows are computed together (the last digits of a network's output) are
the same, too. A part's file is complete or does not exist, so a repeated part changes nothing, and
an interrupted job continues with the missing parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation.scoring import Progress
from qabench.io.files import replacing, sweep, write_json
from qabench.io.limits import json_of
from qabench.io.workers import Load, map_loaded
from qabench.models import entailment
from qabench.models.loader import ModelSource, locate
from qabench.retrieval.corpus_file import CorpusFile

ROWS_PER_PART = 1000
JOB = "job.json"

Rows = list[dict[str, Any]]
Columns = Mapping[str, Sequence[Any]]
Task = tuple[Path, int, int]  # the file of a part, and its first row and the one after its last


def label(
    source: Any,
    output: str | Path,
    claim: str = "claim",
    evidence: str = "evidence",
    model: str = entailment.MODEL,
    *,
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
) -> list[Path]:
    """Write "Y" for each claim that its evidence entails, else "N", as the column "label" (AutoAIS).

    Args:
        source: a ``datasets.Dataset``, or the path of a .jsonl or .parquet file.
        output: the folder of the Parquet files. An interrupted job continues in it.
        claim: the column of the claims.
        evidence: the column of their evidence: a list of strings, or null.
        model: see ``qabench.models.entailment.load_entailment``.
        rows_per_part: the rows of one file. The network's batches are formed in each part, so
            labels of close cases may depend on it.
        progress: called with the number of rows processed and of all rows.

    Raises:
        InputError: the source cannot be read, or the folder has other results.
        MissingExtra: a package is not installed.
        QabenchError: the model cannot be loaded.
    """
    location = locate(model)
    load = partial(_load_labels, location, claim, evidence)
    job = {
        "job": "label",
        "claim": claim,
        "evidence": evidence,
        "model": location.label,
        "device": location.device,
    }
    opened = open_source(source, [claim, evidence])
    return run(opened, output, load, {"label": "string"}, job, rows_per_part, progress, gpu=True)


def _load_labels(source: ModelSource, claim: str, evidence: str) -> Callable[[Rows], Columns]:
    network = entailment.load_entailment(source)

    def labels(rows: Rows) -> Columns:
        claims = list(zip(cells(rows, claim), map(_pieces, cells(rows, evidence)), strict=True))
        return {"label": entailment.label_claims(claims, network, entailment.punkt)}

    return labels


def _pieces(evidence: Any) -> list[str] | None:
    if evidence is None or (
        isinstance(evidence, list) and all(isinstance(piece, str) for piece in evidence)
    ):
        return evidence
    raise InputError(
        f"the evidence of a claim is {evidence!r:.60}; allowed: a list of strings, or null"
    )


@dataclass(frozen=True)
class RowSource:
    """Rows that every machine can read.

    Attributes:
        name: what error messages call it.
        size: the number of rows.
        stamp: changes when the rows do.
        read: the rows from a position (included) to another one (excluded).
    """

    name: str
    size: int
    stamp: str
    read: Callable[[int, int], Iterable[Json]]


def open_source(source: Any, columns: Sequence[str]) -> RowSource:
    """Return the columns of a ``datasets.Dataset``, or of a .jsonl or .parquet file.

    On a cluster, all machines must see the file, or the dataset's Arrow files, at the same path.
    Raises InputError: the file cannot be read, has another format or no rows, or lacks a column.
    """
    if isinstance(source, str | Path):
        path = Path(source).absolute()
        file = CorpusFile.open(path, columns[0])
        stamp, read = "-".join(map(str, file.stamp)), partial(file.rows, columns=tuple(columns))
        return RowSource(str(path), file.size, stamp, read)
    if missing := [name for name in columns if name not in source.column_names]:
        raise InputError(
            f"the dataset has no column {missing[0]!r}; the columns are {', '.join(source.column_names)}"
        )
    if not len(source):
        raise InputError("the dataset has no rows")
    rows = source.select_columns(list(columns))
    return RowSource(
        "the dataset",
        len(rows),
        source._fingerprint,
        lambda start, end: rows.select(range(start, end)),
    )


def run(
    source: RowSource,
    output: str | Path,
    load: Load[Rows, Columns],
    types: Mapping[str, str],
    job: Mapping[str, Any],
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
    gpu: bool = False,
) -> list[Path]:
    """Compute columns for all rows, and return the Parquet files in the order of the rows.

    ``label`` describes the other arguments.

    Args:
        load: returns the function from a part's rows to its columns. Called once in each process.
        types: column -> its Arrow type, such as "string".
        job: everything that the columns depend on except the rows.
        gpu: whether the function runs on a GPU, if the cluster has one.
    """
    folder = Path(output).absolute()
    identity = {
        "source": source.name,
        "stamp": source.stamp,
        "rows": source.size,
        "rows_per_part": rows_per_part,
    }
    _begin(folder, {**identity, **job})
    bounds = [
        (start, min(start + rows_per_part, source.size))
        for start in range(0, source.size, rows_per_part)
    ]
    paths = {bound: folder / f"part-{number:06}.parquet" for number, bound in enumerate(bounds)}
    left = [bound for bound in bounds if not paths[bound].exists()]
    done = source.size - sum(end - start for start, end in left)
    tasks = ((paths[bound], *bound) for bound in left)
    for rows in map_loaded(partial(_load_writer, source, load, types), tasks, gpu):
        done += rows
        if progress:
            progress(done, source.size)
    return list(paths.values())


def _begin(folder: Path, job: Mapping[str, Any]) -> None:
    path = folder / JOB
    if not path.exists():
        write_json(path, job)
        return
    try:
        state = dict(json_of(path.read_bytes()))
    except (TypeError, ValueError):
        raise InputError(f"{path} is damaged: use another folder, or delete this one") from None
    if differing := [name for name in {**job, **state} if job.get(name) != state.get(name)]:
        raise InputError(
            f"{folder} has the results of another job, which differs in {', '.join(differing)}: use another folder, or "
            "delete this one"
        )
    sweep(folder, "*.parquet")


def _load_writer(
    source: RowSource, load: Load[Rows, Columns], types: Mapping[str, str]
) -> Callable[[Task], int]:
    """Return the function that writes the file of a part, and returns the number of its rows."""
    function = load()
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in types.items()])

    def write(task: Task) -> int:
        path, start, end = task
        columns = function(list(source.read(start, end)))
        table = pyarrow.table({name: list(columns[name]) for name in types}, schema=schema)
        with replacing(path) as file:
            pyarrow.parquet.write_table(table, file)
        return end - start

    return write


def cells(rows: Rows, column: str) -> Iterator[Any]:
    """Yield a column of rows. Raises InputError for a row without it."""
    for row in rows:
        if column not in row:
            raise InputError(
                f"a row has no field {column!r}; its fields are {', '.join(row) or '(none)'}"
            )
        yield row[column]
