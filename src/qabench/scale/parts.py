"""Rows of a source of any size, worked on in parts: the results of each part are a Parquet file.

A part has the same rows on any number of machines, so results that depend on which rows are computed together (the
last digits of a network's output) are the same, too. A part's file is complete or does not exist, so a repeated part
changes nothing, and an interrupted job continues with the missing parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.io.files import replacing, sweep, write_json
from qabench.io.limits import json_of
from qabench.io.workers import Load, map_loaded
from qabench.retrieval.corpus_file import CorpusFile

ROWS_PER_PART = 1000
JOB = "job.json"

Rows = list[dict[str, Any]]
Columns = Mapping[str, Sequence[Any]]
Progress = Callable[[int, int], None]
Task = tuple[Path, int, int]  # the file of a part, and its first row and the one after its last


@dataclass(frozen=True)
class Source:
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
    read: Callable[[int, int], Iterable[dict[str, Any]]]


def open_source(source: Any, columns: Sequence[str]) -> Source:
    """Return the columns of a ``datasets.Dataset``, or of a .jsonl or .parquet file.

    On a cluster, all machines must see the file, or the dataset's Arrow files, at the same path. Raises InputError: the
    file cannot be read, has another format or no rows, or lacks a column.
    """
    if isinstance(source, str | Path):
        path = Path(source).absolute()
        file = CorpusFile.open(path, columns[0])
        stamp, read = "-".join(map(str, file.stamp)), partial(file.rows, columns=tuple(columns))
        return Source(str(path), file.size, stamp, read)
    if missing := [name for name in columns if name not in source.column_names]:
        raise InputError(f"the dataset has no column {missing[0]!r}; the columns are {', '.join(source.column_names)}")
    if not len(source):
        raise InputError("the dataset has no rows")
    rows = source.select_columns(list(columns))
    return Source("the dataset", len(rows), str(source._fingerprint), partial(_read_dataset, rows))


def run(
    source: Source,
    output: str | Path,
    load: Load[Rows, Columns],
    types: Mapping[str, str],
    job: Mapping[str, Any],
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
    gpu: bool = False,
) -> list[Path]:
    """Compute columns for all rows, and return the Parquet files in the order of the rows.

    Args:
        source: the rows.
        output: the folder of the files. A job that was interrupted continues.
        load: returns the function from a part's rows to its columns; called once in each process.
        types: column -> its Arrow type, such as "string".
        job: everything that the columns depend on except the rows.
        rows_per_part: the rows of one file.
        progress: called with the number of rows processed and of all rows.
        gpu: whether the function runs on a GPU, if the cluster has one.
    """
    folder = Path(output).absolute()
    identity = {"source": source.name, "stamp": source.stamp, "rows": source.size, "rows_per_part": rows_per_part}
    _begin(folder, {**identity, **job})
    bounds = [(start, min(start + rows_per_part, source.size)) for start in range(0, source.size, rows_per_part)]
    paths = {bound: folder / f"part-{number:06}.parquet" for number, bound in enumerate(bounds)}
    left = [bound for bound in bounds if not paths[bound].exists()]
    done = source.size - sum(end - start for start, end in left)
    tasks = ((paths[bound], *bound) for bound in left)
    for rows in map_loaded(partial(_loaded, source, load, dict(types)), tasks, gpu):
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


def _loaded(source: Source, load: Load[Rows, Columns], types: Mapping[str, str]) -> Callable[[Task], int]:
    return partial(_compute, source, load(), types)


def _compute(source: Source, function: Callable[[Rows], Columns], types: Mapping[str, str], task: Task) -> int:
    """Write the file of a part, and return the number of rows."""
    import pyarrow
    import pyarrow.parquet

    path, start, end = task
    columns = function(list(source.read(start, end)))
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in types.items()])
    table = pyarrow.table({name: list(columns[name]) for name in types}, schema=schema)
    with replacing(path) as file:
        pyarrow.parquet.write_table(table, file)
    return end - start


def cells(rows: Rows, column: str) -> Iterator[Any]:
    """Yield a column of rows. Raises InputError for a row without it."""
    for row in rows:
        if column not in row:
            raise InputError(f"a row has no field {column!r}; its fields are {', '.join(row) or '(none)'}")
        yield row[column]


def _read_dataset(dataset: Any, start: int, end: int) -> Iterable[dict[str, Any]]:
    selected: Iterable[dict[str, Any]] = dataset.select(range(start, end))
    return selected
