"""``qabench retrieve``, BM25 over rows. ``wiki``, Wikipedia at the dataset's epoch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Exit, Option

from qabench.benchmarks import benchmark, benchmark_names
from qabench.cli.options import ConfigName, Format
from qabench.cli.output import hint, json_text, print_table, progress_bar, say, warn
from qabench.data.rows import Json, SourceRow
from qabench.errors import InputError, QabenchError
from qabench.io.files import check_writable, write_text
from qabench.io.tables import Table, one_line, write_document, write_line
from qabench.loading import load_dataset

if TYPE_CHECKING:
    from qabench.retrieval import BM25Index
    from qabench.retrieval.documents import Document

# Columns with ids of documents and of queries, and with the text of queries. The first that exists is used
IDS = ("id", "docno", "doc_id", "docid", "_id")
QUERIES = ("query", "question", "text")
QUERY_IDS = ("query_id", "qid", *IDS)
LISTED_QUERIES = 5  # without a hit. The others are counted
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
    column: Annotated[
        list[str] | None,
        Option(help="A column with text. Several are joined by a newline. Default: text."),
    ] = None,
    id_column: Annotated[
        str | None,
        Option(
            help=f"The column with the documents' ids. Default: the first of {', '.join(IDS)}, else the row's number "
            "from 0."
        ),
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
    epsilon: Annotated[float | None, Option(metavar="X", help="For okapi (default: 0.25).")] = None,
    stem: Annotated[
        str | None,
        Option(metavar="LANGUAGE", help="Stem words by PyStemmer: english, german, hindi, ..."),
    ] = None,
    stop_words: Annotated[
        str | None, Option(metavar="LANGUAGE", help="Omit the function words of: english.")
    ] = None,
    index_folder: Annotated[
        Path | None,
        Option(
            "--index",
            file_okay=False,
            help="Keep the index in this folder. The next time, only documents that changed are indexed.",
        ),
    ] = None,
    replace: Annotated[
        bool,
        Option(
            "--replace",
            help="Let --index replace an index of another source, version, columns or options, or lose most documents.",
        ),
    ] = False,
    config: Annotated[str | None, Option(help="The config of a dataset.")] = None,
    split: Annotated[
        str | None, Option(help="The split of a dataset, needed if it has several.")
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "--output", "-o", help="Write a file instead of printing: a TREC run, or what --format says."
        ),
    ] = None,
    format: Format = "table",
) -> None:
    """Rank the rows of a file or dataset for queries, by BM25 with the scores of `BM25Index`.

    Rows without text are skipped. Documents that share no term with a query are not returned.
    """
    from qabench.retrieval import Words
    from qabench.retrieval.bm25.formulas import Parameters

    if output:
        check_writable(output)
    columns = column or ["text"]
    options: dict[str, Any] = {"method": method, "k1": k1, "b": b, "delta": delta}
    if epsilon is not None:
        options["epsilon"] = epsilon
    used = Parameters.of(**options).used()
    for name, value in (("delta", delta), ("epsilon", epsilon)):
        if value is not None and name not in used:
            raise InputError(f"--{name} has no effect on --method {method}: omit it")
    if replace and not index_folder:
        raise InputError("--replace has no effect without --index: omit it")
    tokenizer = Words(stop_words, stem)
    is_run = output is not None and format == "table"
    texts_by_query = _queries(queries)
    rows = _rows(source, config, split, columns, id_column)
    documents = _documents(rows, source, columns, id_column)
    if is_run:
        _check_run_ids(texts_by_query)
        _check_run_ids(document.id for document in documents)
    about = {"source": _identity(source, config, split), "columns": columns}
    texts = [document.text for document in documents]
    index = _index(texts, options | {"tokenizer": tokenizer}, index_folder, about, replace)
    ranked: list[Json] = []
    batch = index.search_batch(texts_by_query.values(), k)
    for (name, query), hits in zip(texts_by_query.items(), batch, strict=True):
        terms = set(index.tokenizer(query))
        for rank, (position, score) in enumerate(hits, 1):
            document = documents[position]
            if not terms.isdisjoint(index.tokenizer(document.text)):
                hit = {"rank": rank, "id": document.id, "score": score, "text": document.text}
                ranked.append({"query": name, **hit})
    with_hits = {document["query"] for document in ranked}
    without_hits = [name for name in texts_by_query if name not in with_hits]
    if without_hits:
        examples = ", ".join(without_hits[:LISTED_QUERIES])
        warn(f"queries without a term in any document: {len(without_hits):,}, the first are {examples}")
    ranker = ", ".join(f"{name}={value}" for name, value in used.items())
    title = f"{counted(len(documents), 'document')} of {source}, ranked by {ranker}"
    table = _hits_table(title, ranked, len(texts_by_query), complete=format != "table")
    result = {"bm25": used, "queries": texts_by_query, "documents": ranked}
    if output:
        if is_run:
            text = _run(ranked, method)
        elif format == "json":
            text = json_text(result)
        else:
            text = table.formatted(format)
        write_text(output, text)
        of_queries = "1 query" if len(texts_by_query) == 1 else f"{len(texts_by_query):,} queries"
        say(f"{output}: {counted(len(ranked), 'document')} for {of_queries}, ranked by {ranker}")
        return
    print_table(table, format, result)


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, such as "1 document" or "1,200 documents"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _hits_table(title: str, ranked: list[Json], queries: int, complete: bool) -> Table:
    """Return ranked documents as a table.

    Args:
        title: what the table shows.
        ranked: the documents.
        queries: the number of queries. If there is one, its id is left out.
        complete: whether programs read the table. Else, scores are rounded, and texts are cut.
    """
    names = ["query", "rank", "id", "score", "text"][queries == 1 :]
    rows = []
    for document in ranked:
        cells = (
            document
            if complete
            else document
            | {
                "rank": str(document["rank"]),
                "score": f"{document['score']:.4f}",
                "text": one_line(document["text"])[:SHOWN],
            }
        )
        rows.append([cells[name] for name in names])
    return Table(title, names, rows)


def _identity(source: str, config: str | None, split: str | None) -> str:
    """Return the name of a source in a saved index: the path of a file, or the dataset with config and split."""
    if os.path.isfile(source):
        return os.path.realpath(source)
    return " ".join(part for part in (source, config, split) if part)


def _option_text(parameters: dict[str, Any], tokenizer: Any) -> str:
    """Return the options of the command that give an index these parameters."""
    text = " ".join(f"--{name} {value}" for name, value in parameters.items())
    if getattr(tokenizer, "stop_words", None):
        text += " --stop-words english"
    if stemmer := getattr(tokenizer, "stemmer", None):
        text += f" --stem {stemmer}"
    return text


def _index(
    texts: list[str], options: dict[str, Any], folder: Path | None, about: Json, replace: bool
) -> BM25Index:
    """Return the index of texts: a new one, or the one in a folder, brought up to date.

    Args:
        texts: the documents.
        options: of ``BM25Index``.
        folder: where the index is kept, if it is.
        about: the source and its columns, which are saved with the index.
        replace: whether the index may be replaced by one of other documents or options.

    Raises:
        InputError: the index in the folder is damaged or of another version or source, has other columns or
            options, or would lose more than half of its documents.
    """
    from qabench.retrieval import BM25Index
    from qabench.retrieval.bm25.formulas import Parameters
    from qabench.retrieval.bm25.tokenizers import name_of

    path = folder / INDEX_FILE if folder else None
    with progress_bar("Indexing", "documents") as show:
        try:
            kept = BM25Index.load(path) if path and path.exists() else None
        except InputError as error:  # damaged, or of another version
            if not replace:
                raise InputError(f"{error} (--replace writes a new one)") from None
            kept = None
        tokenizer = options["tokenizer"]
        settings = {name: value for name, value in options.items() if name != "tokenizer"}
        parameters = Parameters.of(**settings)
        changed = False
        if kept is not None:
            kept_options = _option_text(kept.parameters.used(), kept.tokenizer)
            changed = kept.parameters != parameters or name_of(kept.tokenizer) != name_of(tokenizer)
            if changed and not replace:
                raise InputError(
                    f"the index in {folder} was built with {kept_options}: use these options, another "
                    "--index, or --replace to build it again"
                )
            if not changed and not replace:
                _check_replacement(kept, texts, about, folder)
        if kept is None or changed:
            index = BM25Index(texts, progress=lambda done: show(done, len(texts)), **options)
            added = len(texts)
            removed = 0
        else:
            index = kept
            added, removed = index.update(texts, lambda done: show(done, 0))
    if path and (added or removed or index.about != about):
        index.about = about
        index.save(path)
        hint(f"{path}: {added:,} added, {removed:,} removed")
    return index


def _check_replacement(kept: BM25Index, texts: list[str], about: Json, folder: Path | None) -> None:
    """Raise InputError if an index is about to be replaced by one of other documents."""
    added, removed = kept.changes(texts)
    yes = "use another --index, or --replace to replace it"
    if not (added or removed):
        return
    for name in ("source", "columns"):
        before = kept.about.get(name)
        if before is not None and before != about[name]:
            raise InputError(
                f"the index in {folder} is of the {name} {_listed(before)}, not {_listed(about[name])}: {yes}"
            )
    if removed * 2 > len(kept):
        raise InputError(
            f"{removed:,} of the {counted(len(kept), 'document')} in the index in {folder} would be removed: {yes}"
        )


def _listed(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _check_run_ids(ids: Iterable[str]) -> None:
    """Raise InputError if an id cannot be in a TREC run."""
    for id in ids:
        if len(id.split()) != 1:
            raise InputError(
                f"the id {id!r} cannot be in a TREC run, whose columns are separated by spaces: "
                "choose another --id-column, or a --format for -o"
            )


def _run(ranked: list[Json], method: str) -> str:
    """Return ranked documents as a TREC run."""
    from qabench.retrieval.documents import run_lines

    rankings: dict[str, list[tuple[str, float]]] = {}
    for document in ranked:
        rankings.setdefault(document["query"], []).append((document["id"], document["score"]))
    tag = method if method.startswith("bm25") else f"bm25-{method}"
    return "".join(run_lines(name, ranking, tag) for name, ranking in rankings.items())


def _rows(
    source: str, config: str | None, split: str | None, columns: list[str], id_column: str | None
) -> Iterator[SourceRow]:
    """Return the rows of a file, or of a dataset's split."""
    from qabench.retrieval.corpus import READERS, read_rows

    if os.path.isfile(source) or Path(source).suffix.lower() in READERS:
        if config or split:
            raise InputError("--config and --split are for datasets, not for files")
        return read_rows(Path(source))
    dataset = _dataset(source, config, split)
    present = dataset.column_names
    id_name = id_column or next((name for name in IDS if name in present), columns[0])
    names = {*columns, id_name}
    if missing := names.difference(present):
        raise InputError(
            f"{source} has no column {missing.pop()!r}; its columns are {', '.join(present)}"
        )
    rows = enumerate(dataset.select_columns(sorted(names)))
    return (SourceRow(fields, f"{source}, row {position}") for position, fields in rows)


def _documents(
    rows: Iterator[SourceRow], source: str, columns: list[str], id_column: str | None
) -> list[Document]:
    """Return the documents in rows, and print how many rows were skipped."""
    from qabench.retrieval.corpus import read_documents

    documents, skipped = read_documents(rows, source, columns, id_column)
    if skipped:
        names = ", ".join(map(repr, columns))
        warn(f"rows without text in {names} are skipped: {len(skipped):,}, the first is {skipped[0]}")
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
    id_like = [name for name in columns if "id" in name.lower() and name != column]
    if id_column is None and id_like:
        warn(
            f"{argument}: ids are the numbers of rows from 0, not {', '.join(id_like)}; "
            f"a column with ids is named {', '.join(QUERY_IDS)}"
        )
    documents = _documents(iter(rows), argument, [column], id_column)
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
