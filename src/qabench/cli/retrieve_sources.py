"""The documents and queries of ``qabench retrieve``, from files, saved datasets and the Hub."""

from __future__ import annotations

import difflib
import os
import re
import socket
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from qabench.benchmarks import benchmark_names
from qabench.cli.output import warn
from qabench.data.rows import Json, SourceRow
from qabench.errors import InputError, QabenchError, unknown_name
from qabench.loading_scripts.load import load_dataset

if TYPE_CHECKING:
    from qabench.retrieval.corpus import TextRows

# Names of the columns with document ids, queries, and query ids. The first that exists is used.
# ``IDS`` is copied from ``retrieval.corpus``, which is not imported for help texts.
IDS = ("id", "docno", "doc_id", "docid", "_id")
QUERIES = ("query", "question", "text")
QUERY_IDS = ("query_id", "qid", *IDS)
# Names of columns that have ids rather than texts: passage_id, pid, docNo.
LIKE_IDS = re.compile(r"(^|_|-|\b)([a-z]?id|ids|no|nr|num|number|key)$", re.IGNORECASE)
LIKE_IDS_IN_CAPITALS = re.compile(r"[a-z](Id|ID|No|Nr|Num|Number|Key)$")
# The file with the documents in a BEIR folder.
BEIR_CORPUS = "corpus.jsonl"


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents to index.

    Attributes:
        rows: the documents, with "text", the columns to filter by, and maybe "id".
        ids: "id", or None if the row numbers are the ids.
        filters: the columns to filter by.
        about: the source and its columns, which are saved with the index.
    """

    rows: list[Json]
    ids: str | None
    filters: list[str]
    about: Json


def read_documents(
    source: str,
    config: str | None,
    split: str | None,
    columns: Sequence[str],
    id_column: str | None,
    filters: Sequence[str],
    empty: str,
) -> Documents:
    """Read the documents of a source.

    Args:
        source: a file, a folder written by ``save_to_disk``, or the name of a dataset.
        config: the config of a dataset.
        split: the split of a dataset.
        columns: the columns with text.
        id_column: the column with the ids. None for the first of ``IDS``.
        filters: the columns to filter by.
        empty: what to do with rows without text: "skip" or "error".

    Raises:
        InputError: the source cannot be read, has no such column or no text, or an id is repeated.
    """
    rows = _rows(source, config, split, columns, id_column, filters)
    read = _rows_with_text(rows, source, columns, id_column, "--column", empty)
    if not read.id_column:
        unused = [name for name in read.rows[0].fields if name not in filters]
        _warn_of_ids(source, unused, columns, "--id-column")
    about = {"source": _identity(source, config, split), "columns": list(columns)}
    ids = "id" if read.id_column else None
    return Documents(_documents(read, filters), ids, list(filters), about)


def _identity(source: str, config: str | None, split: str | None) -> str:
    """Return the name of a source in a saved index: a real path, or a dataset, config and split."""
    if os.path.exists(source):
        # The same file is the same source from every working directory.
        source = os.path.realpath(source)
    return " ".join(filter(None, (source, config, split)))


def _rows(
    source: str,
    config: str | None,
    split: str | None,
    columns: Sequence[str],
    id_column: str | None,
    filters: Sequence[str],
) -> Iterator[SourceRow]:
    """Return the rows of a file, or of a dataset's split."""
    from qabench.retrieval.corpus import is_file, read_rows

    if is_file(source):
        if config or split:
            raise InputError("--config and --split are for datasets, not for files")
        return read_rows(source, columns)
    if os.path.isfile(os.path.join(source, BEIR_CORPUS)):
        raise InputError(
            f"{source} is a BEIR folder: name the file {os.path.join(source, BEIR_CORPUS)}, with "
            "--column title --column text"
        )
    dataset = _dataset(source, config, split)
    present = dataset.column_names
    # If no column has ids, selecting a column with text a second time changes nothing.
    id_name = id_column or _first_present(IDS, present) or columns[0]
    names = {*columns, id_name, *filters}
    if missing := names.difference(present):
        raise InputError(
            f"{source} has no column {min(missing)!r}; its columns are {', '.join(present)}"
        )
    if id_name not in IDS and id_column is None:
        unused = [name for name in present if name not in filters]
        _warn_of_ids(source, unused, columns, "--id-column")
    # Other columns may hold images or long lists, which take long to decode.
    rows = enumerate(dataset.select_columns(sorted(names)))
    return (SourceRow(fields, f"{source}, row {position}") for position, fields in rows)


def _rows_with_text(
    rows: Iterable[SourceRow],
    source: str,
    columns: Sequence[str],
    id_column: str | None,
    option: str,
    empty: str = "skip",
) -> TextRows:
    """Return the rows with text in the named columns, and print how many were skipped.

    Raises:
        InputError: see ``rows_with_text``, or an id is repeated.
    """
    from qabench.retrieval.corpus import rows_with_text

    advice = f"name one with {option}"
    read = rows_with_text(rows, source, columns, id_column, empty, advice)
    ids: set[str] = set()
    for row in read.rows:
        if row.id in ids:
            raise InputError(f"{row.where}: the id {row.id!r} is repeated")
        ids.add(row.id)
    if read.skipped:
        names = ", ".join(map(repr, columns))
        warn(
            f"rows without text in {names} are skipped: {len(read.skipped):,}, the first is "
            f"{read.skipped[0]}"
        )
    return read


def _documents(read: TextRows, filters: Sequence[str]) -> list[Json]:
    """Return the documents to index: "text", the columns to filter by, and "id" if there are ids.

    Without ids, a document's position is its row number, so skipped rows are kept, with no text.
    """
    from qabench.retrieval.bm25.rows import as_json

    documents: list[Json] = []
    skipped_row = dict.fromkeys([*filters, "text"], "")
    for row in read.rows:
        document: Json = {"text": row.text}
        if read.id_column:
            document["id"] = row.id
        else:
            # Rows without text were skipped between the last document and this one.
            documents += [skipped_row] * (row.position - len(documents))
        for name in filters:
            if name not in row.fields:
                raise InputError(
                    f"{row.where}: the field {name!r} is missing; --where or the saved index filters by it"
                )
            # Raises an error for a value that the index cannot store.
            as_json(row.fields[name], row.where)
            document[name] = row.fields[name]
        documents.append(document)
    return documents


def _dataset(source: str, config: str | None, split: str | None) -> Any:
    """Return a dataset's split, as a ``datasets.Dataset``."""
    import datasets

    from qabench.retrieval.corpus import is_saved

    datasets.disable_progress_bars()
    name = source.removeprefix("qabench/")
    is_unknown = not os.path.exists(source) and name not in benchmark_names()
    if is_unknown and difflib.get_close_matches(name, benchmark_names(), 1, cutoff=0.8):
        # Offline, asking the Hub takes half a minute, so misspelled benchmarks are not looked up
        # there.
        raise unknown_name("unknown dataset or file", source, benchmark_names())
    try:
        if is_saved(source):
            if config:
                raise InputError("--config is for datasets by name, not for folders")
            dataset: Any = datasets.load_from_disk(source)
            if split and not isinstance(dataset, dict):
                raise InputError(f"--split has no effect on {source}, which has no splits: omit it")
        elif name in benchmark_names():
            dataset = load_dataset(source, config, split=split)
        else:
            dataset = _from_hub(source, config, split)
    except QabenchError:
        # Some of these are ValueErrors as well, but already say what to do.
        raise
    except (OSError, ValueError, datasets.exceptions.DatasetGenerationError) as error:
        raise InputError(f"cannot read {source}: {error.__cause__ or error}") from None
    if not isinstance(dataset, dict):
        return dataset
    splits = dataset
    if split in splits:
        return splits[split]
    if split or len(splits) > 1:
        raise InputError(f"{source} has the splits {', '.join(splits)}: choose one with --split")
    return next(iter(splits.values()))


def _from_hub(source: str, config: str | None, split: str | None) -> Any:
    """Return a dataset from the Hub, or from the files in a folder."""
    import datasets

    with _offline_if_unreachable() as unreachable:
        try:
            return datasets.load_dataset(source, config, split=split)
        except ConnectionError:
            if not unreachable:
                raise
            raise InputError(
                f"cannot read {source}: {unreachable} cannot be reached, and the cache of the library "
                "datasets has no copy; if you meant a file, check its path"
            ) from None


@contextmanager
def _offline_if_unreachable() -> Iterator[str]:
    """Yield the Hub's host if its address cannot be resolved, and "" otherwise.

    If it cannot be resolved, ``datasets`` only looks in its cache within the block. Otherwise, it
    would retry each request for 24 seconds.
    """
    import datasets
    import huggingface_hub

    modules: tuple[Any, ...] = (datasets.config, huggingface_hub.constants)
    before = [module.HF_HUB_OFFLINE for module in modules]
    host = urlsplit(huggingface_hub.constants.ENDPOINT).hostname or ""
    unreachable = ""
    try:
        # With a proxy, the proxy resolves the address, so this machine may be unable to.
        if not urllib.request.getproxies():
            try:
                socket.getaddrinfo(host, 443)
            except OSError:
                unreachable = host
                for module in modules:
                    module.HF_HUB_OFFLINE = True
        yield unreachable
    finally:
        for module, value in zip(modules, before, strict=True):
            module.HF_HUB_OFFLINE = value


def read_queries(argument: str, column: str | None, id_column: str | None) -> dict[str, str]:
    """Return the queries by id: those of a file or a saved dataset, or one text with the id 1.

    Args:
        argument: a file, a folder written by ``save_to_disk``, or the text of a query.
        column: the column with the queries. None for the first of ``QUERIES``.
        id_column: the column with their ids. None for the first of ``QUERY_IDS``.

    Raises:
        InputError: the file cannot be read, or has no rows or no such column.
    """
    from qabench.retrieval.corpus import is_file, is_saved, read_rows, suffix_of, without_rows

    # A text with spaces that ends like a file's name is a query, unless the file exists.
    is_text = not os.path.exists(argument) and " " in argument
    if is_text or not (is_file(argument) or is_saved(argument)):
        for name, value in (("query-column", column), ("query-id-column", id_column)):
            if value:
                raise InputError(f"--{name} has no effect on a query that is a text: omit it")
        return {"1": argument}
    if is_saved(argument):
        saved = enumerate(_dataset(argument, None, None))
        rows = [SourceRow(fields, f"{argument}, row {position}") for position, fields in saved]
    else:
        rows = list(read_rows(argument, [column] if column else QUERIES))
    if not rows:
        raise without_rows(argument)
    fields = rows[0].fields
    names = [column] if column else QUERIES
    column = _first_present(names, fields)
    if column is None:
        # TREC and MS MARCO queries are in files without a header.
        is_table = suffix_of(argument) in (".csv", ".tsv")
        header = ", or add a line with the column names" if is_table else ""
        raise InputError(
            f"{argument} has no column {', '.join(names)}; its columns are {', '.join(fields) or 'none'}: "
            f"name one with --query-column{header}"
        )
    if id_column is None:
        id_column = _first_present(QUERY_IDS, fields)
    if id_column is None:
        _warn_of_ids(argument, fields, [column], "--query-id-column")
    read = _rows_with_text(rows, argument, [column], id_column, "--query-column")
    return {row.id: row.text for row in read.rows}


def _first_present(names: Iterable[str], columns: Collection[str]) -> str | None:
    """Return the first of the names that is a column, or None."""
    for name in names:
        if name in columns:
            return name
    return None


def _warn_of_ids(path: str, fields: Iterable[str], columns: Sequence[str], option: str) -> None:
    """Warn about columns that look like ids but are not used as ids.

    Args:
        path: the file.
        fields: its columns.
        columns: those with text.
        option: the option that names a column with ids.
    """
    names = []
    for name in fields:
        looks_like_ids = LIKE_IDS.search(name) or LIKE_IDS_IN_CAPITALS.search(name)
        if looks_like_ids and name not in columns:
            names.append(name)
    if names:
        warn(
            f"{path}: row numbers from 0 are used as ids, not {', '.join(names)}: name a column with {option}"
        )
