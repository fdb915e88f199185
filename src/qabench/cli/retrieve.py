"""``qabench retrieve``, BM25 over rows. ``wiki``, Wikipedia at the dataset's epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Exit, Option

from qabench.benchmarks import benchmark, benchmark_names
from qabench.cli.options import ConfigName, Format
from qabench.cli.output import hint, print_table, progress_bar, say, warn
from qabench.data.rows import Json, SourceRow
from qabench.errors import InputError, QabenchError
from qabench.io.files import check_writable, write_text
from qabench.io.tables import Table, one_line, write_document, write_line
from qabench.loading import load_dataset

if TYPE_CHECKING:
    from qabench.retrieval import BM25Index
    from qabench.retrieval.documents import Document

# columns of a file of queries. The first that exists is used
QUERIES = ("query", "question", "text")
QUERY_IDS = ("id", "query_id", "qid")
SHOWN = 80  # characters of a document
INDEX_FILE = "documents.bm25"
# of BM25Index, which is not imported for help
METHODS = ("bm25+", "okapi", "lucene", "bm25l", "atire", "robertson")


def retrieve(
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="A .csv, .tsv, .jsonl, .parquet or .txt file, or a dataset's name: one document per row.",
        ),
    ],
    queries: Annotated[
        str,
        Option(
            metavar="FILE|TEXT",
            help="One query, a .txt file with one per line, or a file like SOURCE with the queries in a column "
            f"{', '.join(QUERIES)}, and their ids in a column {', '.join(QUERY_IDS)}, if any.",
        ),
    ],
    column: Annotated[str, Option(help="The column with the text.")] = "text",
    id_column: Annotated[
        str | None,
        Option(help="The column with the documents' ids. Default: id, else the row's number from 0."),
    ] = None,
    k: Annotated[
        int, Option("-k", "--k", min=1, help="The maximum number of documents per query.")
    ] = 10,
    method: Annotated[str, Option(help=f"The BM25 variant: {', '.join(METHODS)}.")] = METHODS[0],
    k1: Annotated[float, Option(metavar="X", help="The saturation of repeated terms, 0 or more.")] = 1.5,
    b: Annotated[float, Option(metavar="X", help="The weight of document length, 0 to 1.")] = 0.75,
    delta: Annotated[
        float | None, Option(metavar="X", help="For bm25+ (default: 1) and bm25l (0.5).")
    ] = None,
    epsilon: Annotated[float, Option(metavar="X", help="For okapi.")] = 0.25,
    index_folder: Annotated[
        Path | None,
        Option(
            "--index",
            file_okay=False,
            help="Keep the index in this folder. The next time, only documents that changed are indexed.",
        ),
    ] = None,
    config: Annotated[str | None, Option(help="The config of a dataset.")] = None,
    split: Annotated[
        str | None, Option(help="The split of a dataset, needed if it has several.")
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Write a TREC run instead of printing.")
    ] = None,
    format: Format = "table",
) -> None:
    """Rank the rows of a file or dataset for queries, by BM25 with the scores of `BM25Index`.

    Rows without text are skipped. Documents that share no term with a query are not returned.
    """
    if output:
        check_writable(output)
    texts_by_query = _queries(queries)
    rows = _rows(source, config, split, column, id_column)
    documents = _documents(rows, source, column, id_column)
    options = {"method": method, "k1": k1, "b": b, "delta": delta, "epsilon": epsilon}
    index = _index([document.text for document in documents], options, index_folder)
    ranked: list[Json] = []
    batch = index.search_batch(texts_by_query.values(), k)
    for (name, query), hits in zip(texts_by_query.items(), batch, strict=True):
        terms = set(index.tokenizer(query))
        for rank, (position, score) in enumerate(hits, 1):
            document = documents[position]
            if not terms.isdisjoint(index.tokenizer(document.text)):
                hit = {"rank": rank, "id": document.id, "score": score, "text": document.text}
                ranked.append({"query": name, **hit})
    used = index.parameters.used()
    ranker = ", ".join(f"{name}={value}" for name, value in used.items())
    if output:
        write_text(output, _run(ranked, method))
        counts = f"{len(ranked):,} documents for {len(texts_by_query):,} queries"
        say(f"{output}: {counts}, ranked by {ranker}")
        return
    names = ["query", "rank", "id", "score", "text"][len(texts_by_query) == 1 :]
    cells = {"score": "{:.4f}".format, "text": lambda text: one_line(text)[:SHOWN]}
    lines = [[cells.get(name, str)(document[name]) for name in names] for document in ranked]
    table = Table(f"{len(documents):,} documents of {source}, ranked by {ranker}", names, lines)
    print_table(table, format, {"bm25": used, "queries": texts_by_query, "documents": ranked})


def _index(texts: list[str], options: dict[str, Any], folder: Path | None) -> BM25Index:
    """Return the index of texts: a new one, or the one in a folder, brought up to date."""
    from qabench.retrieval import BM25Index
    from qabench.retrieval.bm25.formulas import Parameters

    path = folder / INDEX_FILE if folder else None
    with progress_bar("Indexing", "documents") as show:
        if path is None or not path.exists():
            index = BM25Index(texts, progress=lambda done: show(done, len(texts)), **options)
            added = len(texts)
            removed = 0
        else:
            index = BM25Index.load(path)
            if index.parameters != Parameters.of(**options):
                raise InputError(
                    f"the index in {folder} has {index.parameters}: use these options, or another folder"
                )
            added, removed = index.update(texts, lambda done: show(done, 0))
    if path and (added or removed):
        index.save(path)
        hint(f"{path}: {added:,} added, {removed:,} removed")
    return index


def _run(ranked: list[Json], method: str) -> str:
    """Return ranked documents as a TREC run."""
    from qabench.retrieval.documents import run_lines

    rankings: dict[str, list[tuple[str, float]]] = {}
    for document in ranked:
        rankings.setdefault(document["query"], []).append((document["id"], document["score"]))
        for name in (document["query"], document["id"]):
            if len(name.split()) != 1:
                raise InputError(
                    f"the id {name!r} cannot be in a TREC run, whose columns are separated by spaces"
                )
    tag = method if method.startswith("bm25") else f"bm25-{method}"
    return "".join(run_lines(name, ranking, tag) for name, ranking in rankings.items())


def _rows(
    source: str, config: str | None, split: str | None, column: str, id_column: str | None
) -> Iterator[SourceRow]:
    """Return the rows of a file, or of a dataset's split."""
    from qabench.retrieval.corpus import READERS, read_rows

    if os.path.isfile(source) or Path(source).suffix.lower() in READERS:
        if config or split:
            raise InputError("--config and --split are for datasets, not for files")
        return read_rows(Path(source))
    dataset = _dataset(source, config, split)
    columns = dataset.column_names
    names = {column, id_column or ("id" if "id" in columns else column)}
    if missing := names.difference(columns):
        raise InputError(
            f"{source} has no column {missing.pop()!r}; its columns are {', '.join(columns)}"
        )
    rows = enumerate(dataset.select_columns(sorted(names)))
    return (SourceRow(fields, f"{source}, row {position}") for position, fields in rows)


def _documents(
    rows: Iterator[SourceRow], source: str, column: str, id_column: str | None
) -> list[Document]:
    """Return the documents in rows, and print how many rows were skipped."""
    from qabench.retrieval.corpus import read_documents

    documents, skipped = read_documents(rows, source, column, id_column)
    if skipped:
        warn(f"rows without text in {column!r} are skipped: {len(skipped):,}, the first is {skipped[0]}")
    ids = set()
    for document in documents:
        if document.id in ids:
            raise InputError(f"{source}: the id {document.id!r} is repeated")
        ids.add(document.id)
    return documents


def _dataset(source: str, config: str | None, split: str | None) -> Any:
    """Return a dataset's split, as a ``datasets.Dataset``."""
    import datasets

    datasets.disable_progress_bars()
    is_benchmark = source.removeprefix("qabench/") in benchmark_names()
    load = load_dataset if is_benchmark else datasets.load_dataset
    try:
        rows: Any = load(source, config, split=split)
    except QabenchError:
        raise
    except (OSError, ValueError, datasets.exceptions.DatasetGenerationError) as error:
        raise InputError(f"cannot read {source}: {error.__cause__ or error}") from None
    if isinstance(rows, dict) and len(rows) > 1:
        raise InputError(f"{source} has the splits {', '.join(rows)}: choose one with --split")
    return next(iter(rows.values())) if isinstance(rows, dict) else rows


def _queries(argument: str) -> dict[str, str]:
    """Return the queries by id: of a file, or one text."""
    from qabench.retrieval.corpus import READERS, read_rows

    path = Path(argument)
    is_name = path.suffix in READERS and " " not in argument
    if not is_name and not os.path.isfile(argument):
        return {"1": argument}
    rows = list(read_rows(path))
    columns = rows[0].fields if rows else {}
    column = next((name for name in QUERIES if name in columns), None)
    if column is None:
        raise InputError(
            f"{argument} has no column {', '.join(QUERIES)}; its columns are {', '.join(columns)}"
        )
    id_column = next((name for name in QUERY_IDS if name in columns), None)
    documents = _documents(iter(rows), argument, column, id_column)
    return {document.id: document.text for document in documents}


# --- Wikipedia

wiki_app = typer.Typer(
    help="Wikipedia at the dataset's epoch, and the cache of its pages.", rich_markup_mode=None
)

WikiPath = Annotated[str | None, Option(metavar="PATH", help="A ZIM file, instead of Wikipedia.")]


@wiki_app.command("prefetch")
def prefetch(
    name: Annotated[str, Argument(metavar="BENCHMARK", help="A benchmark with evidence pages.")],
    config: ConfigName = None,
) -> None:
    """Download all evidence pages of a benchmark to the cache. Continues an interrupted run.

    Exit code: 0 all pages are in the cache; 1 some are missing or failed (they are listed); 2 wrong
    usage.
    """
    from qabench.retrieval.wiki.mediawiki import MediaWiki
    from qabench.retrieval.wiki.prefetch import prefetch as get_pages

    evidences = benchmark(name).evidence_pages(config)
    if evidences is None:
        raise InputError(f"the questions of {name} have no Wikipedia pages; choose another one")
    wiki = MediaWiki()
    with progress_bar("Fetching", "pages") as progress:
        done = get_pages(list(evidences), wiki, progress)
    count = f"{done.cached + done.fetched} of {done.in_all} pages"
    write_line(f"{count} are in {wiki.cache.folder}: {done.fetched} fetched now")
    if done.failed:
        write_line(f"{len(done.failed):,} missing at the epoch, or failed:")
    for page, error in done.failed.items():
        write_line(f"  {page}: {getattr(error, 'reason', error)}")
    if done.not_tried:
        write_line(
            f"stopped after consecutive failures; {done.not_tried} pages not tried; run the command again"
        )
    if not done.complete:
        raise Exit(1)


@wiki_app.command("search")
def search(
    query: Annotated[str, Argument(metavar="QUERY", help="The search query.")],
    results: Annotated[
        int, Option("-k", "--results", min=1, max=500, help="The maximum number of pages.")
    ] = 10,
    wiki: WikiPath = None,
) -> None:
    """Search Wikipedia, a ZIM file, or the Kiwix book given by environment variables."""
    from qabench.retrieval.wiki.client import wikipedia

    for page in wikipedia(wiki).search(query, results):
        write_line(page.title if page.pageid is None else f"{page.title}\t{page.pageid}")


@wiki_app.command("page")
def page(
    title: Annotated[str, Argument(metavar="TITLE", help="The page's title.")], wiki: WikiPath = None
) -> None:
    """Print a page's Markdown at the epoch. Exit code 1 if the page did not exist then."""
    from qabench.retrieval.wiki.client import wikipedia

    write_document(wikipedia(wiki).content({"title": title}) + "\n")
