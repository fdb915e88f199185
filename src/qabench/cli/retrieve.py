"""``qabench retrieve``: BM25 over the rows of files and datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from qabench.cli.options import Format, output_folder
from qabench.cli.output import json_text, print_table, say, warn
from qabench.cli.retrieve_index import (
    INDEX_FILE,
    METHODS,
    conditions_by_column,
    counted,
    filter_of,
    index_of,
    open_index,
    saved_index,
    settings_of,
)
from qabench.cli.retrieve_sources import IDS, QUERIES, QUERY_IDS, read_documents, read_queries
from qabench.data.rows import Json
from qabench.errors import InputError, unknown_name
from qabench.io.escaping import one_line
from qabench.io.files import check_writable, write_text
from qabench.io.tables import Table

if TYPE_CHECKING:
    from qabench.retrieval import BM25Index, Hits

# The maximum number of queries that a warning about queries without a hit names.
MAX_QUERIES_LISTED = 5
# The number of characters of a document that a table shows.
CHARACTERS_SHOWN = 80
EMPTY = ("skip", "error")
STDIN = "-"


def retrieve(
    queries: Annotated[
        str,
        Option(
            metavar="FILE|TEXT",
            help="One query, a .txt file with one per line, or a file like SOURCE. Its queries are in the first of the "
            f"columns {', '.join(QUERIES)} that exists, and their ids, if any, in the first of {', '.join(QUERY_IDS)}.",
        ),
    ],
    source: Annotated[
        str | None,
        Argument(
            metavar="SOURCE",
            show_default=False,
            help="A .csv, .tsv, .jsonl, .json, .parquet or .txt file (also .gz), - (standard input), a folder written "
            "by save_to_disk, or a dataset's name. Each row is a document. Omit it to search the index in --index.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        Option(help="A column with text. Several are joined by a newline. Default: text."),
    ] = None,
    id_column: Annotated[
        str | None,
        Option(
            help=f"The column with the documents' ids. Default: the first of {', '.join(IDS)} that exists, else the "
            "row's number from 0."
        ),
    ] = None,
    query_column: Annotated[
        str | None, Option(help="The column with the queries, if it has another name.")
    ] = None,
    query_id_column: Annotated[
        str | None, Option(help="The column with the queries' ids, if it has another name.")
    ] = None,
    where: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMN=VALUE",
            help="Return only documents with this value. For several values of a column, any may match.",
        ),
    ] = None,
    k: Annotated[
        int, Option("-k", "--k", min=1, help="The maximum number of documents per query.")
    ] = 10,
    method: Annotated[
        str | None, Option(help=f"The BM25 variant: {', '.join(METHODS)}. Default: {METHODS[0]}.")
    ] = None,
    k1: Annotated[
        float | None,
        Option(metavar="X", help="The saturation of repeated terms, 0 or more. Default: 1.5."),
    ] = None,
    b: Annotated[
        float | None,
        Option(metavar="X", help="The weight of document length, 0 to 1. Default: 0.75."),
    ] = None,
    delta: Annotated[
        float | None,
        Option(metavar="X", help="For bm25+ (default: 1), bm25l and bm25l-paper (0.5)."),
    ] = None,
    epsilon: Annotated[float | None, Option(metavar="X", help="For okapi (default: 0.25).")] = None,
    tokenizer: Annotated[
        str | None,
        Option(
            help="words-1, or words-2 for all scripts: Hindi, Chinese, Japanese, Thai and others. "
            "Default: words-1."
        ),
    ] = None,
    stem: Annotated[
        str | None,
        Option(metavar="LANGUAGE", help="Stem words with PyStemmer: english, german, hindi, ..."),
    ] = None,
    stop_words: Annotated[
        str | None,
        Option(
            metavar="LANGUAGE",
            help="Omit the function words of a language: english, german, hindi, ...",
        ),
    ] = None,
    empty: Annotated[
        str | None,
        Option(metavar="skip|error", help="What to do with rows without text. Default: skip."),
    ] = None,
    index_folder: Annotated[
        Path | None,
        Option(
            "--index",
            file_okay=False,
            callback=output_folder,
            help="Keep the index in this folder. The next time, only documents that changed are indexed.",
        ),
    ] = None,
    replace: Annotated[
        bool,
        Option(
            "--replace",
            help="Allow replacing the index in --index by one with another source, version, columns or options, or "
            "without most of its documents.",
        ),
    ] = False,
    config: Annotated[str | None, Option(help="The config of a dataset.")] = None,
    split: Annotated[
        str | None, Option(help="The split of a dataset, needed if it has several.")
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            "--run",
            help="Write a file instead of printing: a TREC run, or what --format says.",
        ),
    ] = None,
    format: Format = "table",
) -> None:
    """Rank the rows of a file or dataset for queries, by BM25 with the scores of `BM25Index`.

    Rows without text are skipped. Documents that share no term with a query are not returned.
    A saved index stores its options, so they need not be repeated.
    """
    options = {"method": method, "k1": k1, "b": b, "delta": delta, "epsilon": epsilon}
    word_options = {"tokenizer": tokenizer, "stem": stem, "stop_words": stop_words}

    # Find what is wrong before documents are read.
    if output:
        check_writable(output, [source, queries])
    if source is None:
        # Options that decide how documents are indexed have no effect on an index that exists.
        building_options: Json = {"column": column, "id_column": id_column} | options | word_options
        building_options |= {"empty": empty, "replace": replace or None}
        building_options |= {"config": config, "split": split}
        _check_source_is_not_needed(building_options, index_folder)
    if replace and not index_folder:
        raise InputError("--replace has no effect without --index: omit it")
    if source == queries == STDIN:
        raise InputError("SOURCE and --queries cannot both be standard input")
    if empty is not None and empty not in EMPTY:
        raise unknown_name("unknown --empty", empty, EMPTY)
    conditions = conditions_by_column(where or [])
    # For an omitted option, the value in the saved index is used, unless the index is replaced.
    path = index_folder / INDEX_FILE if index_folder else None
    saved = None if source is None else saved_index(path, replace)
    same_options = None if replace else saved
    parameters, used_tokenizer = settings_of(options, word_options, same_options)
    queries_by_id = read_queries(queries, query_column, query_id_column)
    is_run = output is not None and format == "table"
    if is_run:
        _check_run_ids(queries_by_id, "--query-id-column")

    # Open the index, or build it.
    texts: list[str] | None = None
    if source is None:
        index = open_index(path)
        name = index.about.get("source", str(index_folder))
        if is_run:
            _check_run_ids(index.ids or (), "--id-column")
    else:
        name = source
        columns = column or ["text"]
        filters = list(conditions)
        if same_options:
            columns = column or same_options.about.get("columns") or columns
            filters = list(same_options.filters)
        documents = read_documents(
            source, config, split, columns, id_column, filters, empty or "skip"
        )
        texts = [row["text"] for row in documents.rows]
        if is_run and documents.ids:
            ids = [row["id"] for row in documents.rows]
            _check_run_ids(ids, "--id-column")
        index = index_of(documents, parameters, used_tokenizer, saved, path, replace)

    allowed = filter_of(index, conditions, index_folder)
    batch = index.search_batch(queries_by_id.values(), k, where=allowed, matching_only=True)
    _warn_of_queries_without_hits(queries_by_id, batch, index, conditions)
    ranked = _ranked(queries_by_id, batch, texts)

    # Print the documents, or write them.
    used = index.parameters.used()
    ranker = ", ".join(f"{name}={value}" for name, value in used.items())
    of_source = "standard input" if name == STDIN else name
    title = f"{counted(len(index), 'document')} of {of_source}, ranked by {ranker}"
    with_texts = texts is not None
    table = _hits_table(title, ranked, len(queries_by_id), with_texts, format != "table")
    result = {"bm25": used, "queries": queries_by_id, "documents": ranked}
    if not output:
        print_table(table, format, result)
        return
    # Without --format, a file is a TREC run, which evaluation tools read.
    if is_run:
        text = _run(ranked, index.parameters.method)
    elif format == "json":
        text = json_text(result)
    else:
        text = table.formatted(format)
    write_text(output, text)
    sizes = f"{counted(len(ranked), 'document')} for {counted(len(queries_by_id), 'query')}"
    say(f"{output}: {sizes}, ranked by {ranker}")


def _check_source_is_not_needed(options: Mapping[str, Any], index_folder: Path | None) -> None:
    """Raise InputError if there is no index, or for an option that only matters with a source."""
    if index_folder is None:
        raise InputError("name a SOURCE, or the folder of an index (--index DIR)")
    for name, value in options.items():
        if value is not None and value != []:
            option = name.replace("_", "-")
            raise InputError(f"--{option} has no effect without SOURCE: omit it")


def _check_run_ids(ids: Iterable[str], option: str) -> None:
    """Raise InputError if an id cannot be in a TREC run."""
    for id in ids:
        if id.split() != [id]:
            raise InputError(
                f"the id {id!r} cannot be in a TREC run, whose columns are separated by spaces: "
                f"choose another {option}, or a --format for -o"
            )


def _warn_of_queries_without_hits(
    queries: Mapping[str, str],
    batch: Sequence[Hits],
    index: BM25Index,
    conditions: Mapping[str, list[str]],
) -> None:
    """Name the queries for which no document was found, and say how to find some."""
    from qabench.retrieval import Words
    from qabench.retrieval.bm25.scripts import is_special, normalized

    without_hits = [id for id, hits in zip(queries, batch, strict=True) if not hits]
    if not without_hits:
        return
    examples = ", ".join(without_hits[:MAX_QUERIES_LISTED])
    if len(without_hits) > MAX_QUERIES_LISTED:
        examples += f" and {len(without_hits) - MAX_QUERIES_LISTED:,} more"
    if conditions:
        names = ", ".join(conditions)
        problem = f"queries without a hit among the documents with this {names}"
    else:
        problem = "queries without a term in any document"
    advice = ""
    tokenizer = index.tokenizer
    if isinstance(tokenizer, Words) and tokenizer.version == 1:
        # The tokenizer words-1 does not handle combining marks, nor scripts without spaces.
        needs_other_tokenizer = any(is_special(normalized(queries[id])) for id in without_hits)
        if needs_other_tokenizer:
            advice = ". For their scripts, index the documents with --tokenizer words-2"
    warn(f"{problem} ({len(without_hits):,} of {len(queries):,}): {examples}{advice}")


def _ranked(
    queries: Iterable[str], batch: Sequence[Hits], texts: Sequence[str] | None
) -> list[Json]:
    """Return the ranked documents of all queries as dicts, with their texts if these are known."""
    ranked: list[Json] = []
    for query, hits in zip(queries, batch, strict=True):
        documents = zip(hits.ids, hits.positions, hits.scores, strict=True)
        for rank, (id, position, score) in enumerate(documents, 1):
            document = {"query": query, "rank": rank, "id": id, "score": score}
            if texts is not None:
                document["text"] = texts[position]
            ranked.append(document)
    return ranked


def _hits_table(
    title: str, ranked: list[Json], queries: int, with_texts: bool, complete: bool
) -> Table:
    """Return ranked documents as a table.

    Args:
        title: what the table shows.
        ranked: the documents.
        queries: the number of queries. If there is one, its id is left out.
        with_texts: whether the documents have texts.
        complete: whether the table is for programs. Otherwise scores are rounded, and texts are
            cut.
    """
    names = ["rank", "id", "score"]
    if queries != 1:
        names.insert(0, "query")
    if with_texts:
        names.append("text")
    rows = []
    for document in ranked:
        cells = document
        if not complete:
            cells = document | {
                "rank": str(document["rank"]),
                "score": f"{document['score']:.4f}",
                "text": one_line(document.get("text", ""))[:CHARACTERS_SHOWN],
            }
        rows.append([cells[name] for name in names])
    return Table(title, names, rows)


def _run(ranked: list[Json], method: str) -> str:
    """Return ranked documents as a TREC run."""
    from qabench.retrieval.documents import run_lines

    rankings: dict[str, list[tuple[str, float]]] = {}
    for document in ranked:
        rankings.setdefault(document["query"], []).append((document["id"], document["score"]))
    # The last column of a TREC run names the system.
    tag = method if method.startswith("bm25") else f"bm25-{method}"
    return "".join(run_lines(name, ranking, tag) for name, ranking in rankings.items())
