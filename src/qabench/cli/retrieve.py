"""``qabench retrieve``, BM25 over rows.

``index``, for Lucene indexes. ``wiki``, Wikipedia at the dataset's epoch.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Exit, Option

from qabench.benchmarks import Benchmark, benchmark, benchmark_names
from qabench.cli.options import ConfigName, Format, JsonOnly, completing
from qabench.cli.output import hint, print_json, print_table, progress_bar, say, warn
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.io.files import check_writable, write_text
from qabench.io.tables import Table, one_line, write_document, write_line
from qabench.loading import load_dataset

if TYPE_CHECKING:
    from qabench.retrieval import BM25Index
    from qabench.retrieval.corpus_file import Documents

# columns of a file of queries. The first that exists is used
QUERIES = ("query", "question", "text")
QUERY_IDS = ("id", "query_id", "qid")
SHOWN = 80  # characters of a document
INDEX_FILE = "documents.bm25"
# of BM25Index, which is not imported for help
METHODS = ("bm25+", "okapi", "lucene", "bm25l", "atire", "robertson")

TextColumn = Annotated[str, Option("--column", help="The column with the text.")]
IdColumn = Annotated[
    str | None,
    Option(
        "--id-column",
        help="The column with the documents' ids. Default: id, else the row's number from 0.",
    ),
]
Strict = Annotated[
    bool, Option("--strict", help="Stop at a row without text, instead of skipping it.")
]


def retrieve(
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="A .csv, .tsv, .jsonl or .parquet file, or a dataset's name: one document per row.",
        ),
    ],
    queries: Annotated[
        str,
        Option(
            metavar="FILE|TEXT",
            help="One query; or a .txt file with one per line; or a file like SOURCE with the queries in a column "
            f"{', '.join(QUERIES)}, and their ids in a column {', '.join(QUERY_IDS)}, if any.",
        ),
    ],
    column: TextColumn = "text",
    id_column: IdColumn = None,
    k: Annotated[
        int, Option("-k", "--k", min=1, help="The maximum number of documents per query.")
    ] = 10,
    everything: Annotated[
        bool,
        Option("--all", help="Also return documents that share no term with the query, up to k."),
    ] = False,
    method: Annotated[
        str,
        Option(
            help=f"The BM25 variant: {', '.join(METHODS)}.",
            autocompletion=completing(METHODS),
        ),
    ] = METHODS[0],
    k1: Annotated[
        float,
        Option(metavar="X", help="The saturation of repeated terms, 0 or more."),
    ] = 1.5,
    b: Annotated[float, Option(metavar="X", help="The weight of document length, 0 to 1.")] = 0.75,
    delta: Annotated[
        float | None,
        Option(metavar="X", help="For bm25+ (default: 1) and bm25l (0.5)."),
    ] = None,
    epsilon: Annotated[float | None, Option(metavar="X", help="For okapi (default: 0.25).")] = None,
    index_folder: Annotated[
        Path | None,
        Option(
            "--index",
            file_okay=False,
            help="Keep the index in this folder. The next time, only documents that changed are indexed.",
        ),
    ] = None,
    strict: Strict = False,
    config: Annotated[str | None, Option(help="The config of a dataset.")] = None,
    split: Annotated[
        str | None,
        Option(help="The split of a dataset; needed if it has several."),
    ] = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Write a TREC run instead of printing."),
    ] = None,
    format: Format = "table",
) -> None:
    """Rank the rows of a file or dataset for queries, by BM25 with the scores of `BM25Index`.

    Rows without text are skipped. Documents that share no term with a query are not returned.
    """
    if output:
        check_writable(output)
    options = _bm25_options(method, k1, b, delta, epsilon)
    texts_by_id = _queries(queries)
    documents = _documents(source, column, id_column, strict, config, split)
    ids, texts = _collected(documents)
    index = _index(texts, options, index_folder)
    ranked: list[Json] = []
    for (name, query), hits in zip(
        texts_by_id.items(), index.search_batch(texts_by_id.values(), k), strict=True
    ):
        terms = set(index.tokenizer(query))
        for rank, (position, score) in enumerate(hits, 1):
            text = texts[position]
            if everything or not terms.isdisjoint(index.tokenizer(text)):
                ranked.append(
                    {"query": name, "rank": rank, "id": ids[position], "score": score, "text": text}
                )
    if unmatched := len(texts_by_id) - len({document["query"] for document in ranked}):
        hint(
            f"queries that share no term with a document: {unmatched}; --all returns documents anyway"
        )
    used = index.parameters.used()
    ranker = ", ".join(
        [method, *(f"{name}={value}" for name, value in used.items() if name != "method")]
    )
    if output:
        tag = method if method.startswith("bm25") else f"bm25-{method}"
        write_text(output, _run(ranked, tag))
        say(
            f"{output}: {len(ranked):,} documents for {len(texts_by_id):,} queries, ranked by {ranker}"
        )
    else:
        names = ["query", "rank", "id", "score", "text"][len(texts_by_id) == 1 :]
        cells = {"score": "{:.4f}".format, "text": lambda text: one_line(text)[:SHOWN]}
        lines = [[cells.get(name, str)(document[name]) for name in names] for document in ranked]
        table = Table(f"{len(texts):,} documents of {source}, ranked by {ranker}", names, lines)
        print_table(table, format, {"bm25": used, "queries": texts_by_id, "documents": ranked})


def _index(texts: list[str], options: dict[str, Any], folder: Path | None) -> BM25Index:
    """Return the index of texts: a new one, or the one in a folder, brought up to date."""
    from qabench.retrieval import BM25Index
    from qabench.retrieval.bm25.formulas import Parameters

    path = folder / INDEX_FILE if folder else None
    with progress_bar("Indexing", "documents") as show:
        if path is None or not path.exists():
            index = BM25Index(texts, progress=lambda done: show(done, len(texts)), **options)
            added, removed = len(texts), 0
        else:
            index = BM25Index.load(path)
            if index.parameters != Parameters.of(**options):
                before = ", ".join(
                    f"{name}={value}" for name, value in index.parameters.used().items()
                )
                raise InputError(
                    f"the index in {folder} has {before}: use these options, or another folder"
                )
            added, removed = index.update(texts, lambda done: show(done, 0))
    if path and (added or removed):
        index.save(path)
        hint(f"{path}: {len(index):,} documents, {added:,} added, {removed:,} removed")
    return index


def _bm25_options(
    method: str, k1: float, b: float, delta: float | None, epsilon: float | None
) -> dict[str, Any]:
    """Return the options of ``BM25Index``.

    Raises InputError for one that the method does not use.
    """
    if delta is not None and method not in ("bm25+", "bm25l"):
        raise InputError(f"--delta is for the methods bm25+ and bm25l, not for {method}")
    if epsilon is not None and method != "okapi":
        raise InputError(f"--epsilon is for the method okapi, not for {method}")
    options = {"method": method, "k1": k1, "b": b, "delta": delta}
    return options if epsilon is None else {**options, "epsilon": epsilon}


def _run(ranked: list[Json], tag: str) -> str:
    """Return ranked documents as a TREC run."""
    from qabench.retrieval.documents import run_lines

    for name in (document[field] for document in ranked for field in ("query", "id")):
        if len(name.split()) != 1:
            raise InputError(
                f"the id {name!r} cannot be in a TREC run, whose columns are separated by spaces"
            )
    groups = itertools.groupby(ranked, key=lambda document: document["query"])
    return "".join(
        run_lines(name, [(document["id"], document["score"]) for document in group], tag)
        for name, group in groups
    )


def _documents(
    source: str,
    column: str,
    id_column: str | None,
    strict: bool,
    config: str | None,
    split: str | None,
) -> Documents:
    """Return the documents of a file, or of a dataset's split."""
    from qabench.retrieval.corpus_file import ROW_SUFFIXES, Documents, number_rows, read_rows

    if os.path.isfile(source) or Path(source).suffix.lower() in ROW_SUFFIXES:
        if config or split:
            raise InputError("--config and --split are for datasets, not for files")
        if not os.path.isfile(source):
            raise InputError(f"file not found: {source}")
        return Documents(read_rows(Path(source)), source, column, id_column, strict)
    rows = _dataset(source, config, split)
    for name in (column, id_column):
        if name is not None and name not in rows.column_names:
            raise InputError(
                f"{source} has no column {name!r}; its columns are {', '.join(rows.column_names)}"
            )
    used = {column, id_column or "id", "title", "url"}.intersection(rows.column_names)
    return Documents(
        number_rows(rows.select_columns(sorted(used))), source, column, id_column, strict
    )


def _collected(documents: Documents) -> tuple[list[str], list[str]]:
    """Return the ids and the texts of documents, and print how many rows were skipped."""
    ids: list[str] = []
    texts: list[str] = []
    for id, text, _ in documents:
        ids.append(id)
        texts.append(text)
    if documents.skipped:
        warn(documents.note())
    if repeated := [name for name, count in Counter(ids).most_common(1) if count > 1]:
        raise InputError(
            f"{documents.source}: the id {repeated[0]!r} is repeated in the column {documents.id_column or 'id'!r}"
        )
    return ids, texts


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
    from qabench.retrieval.corpus_file import ROW_SUFFIXES, Documents, read_rows

    path = Path(argument)
    if not path.is_file() and (
        path.suffix not in (".txt", *ROW_SUFFIXES) or len(argument.split()) > 1
    ):
        return {"1": argument}
    if not path.is_file():
        raise InputError(f"file not found: {argument}")
    if path.suffix == ".txt":
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        return {str(number): line for number, line in enumerate(lines, 1) if line.strip()}
    rows = list(read_rows(path))
    columns = list(rows[0].fields) if rows else []
    column = next((name for name in QUERIES if name in columns), None)
    if column is None:
        raise InputError(
            f"{argument} has no column {', '.join(QUERIES)}; its columns are {', '.join(columns)}"
        )
    id_column = next((name for name in QUERY_IDS if name in columns), None)
    ids, texts = _collected(Documents(rows, argument, column, id_column))
    return dict(zip(ids, texts, strict=True))


def index(
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="A .csv, .tsv, .jsonl or .parquet file, or with --split a dataset on the Hub: one document per row. "
            "Or a .zim file: the passages of its pages.",
        ),
    ],
    output: Annotated[Path, Option(file_okay=False, help="The folder to write.")],
    column: TextColumn = "text",
    id_column: IdColumn = None,
    strict: Strict = False,
    split: Annotated[
        str | None,
        Option(help="The split of a dataset, such as train."),
    ] = None,
    config: Annotated[str | None, Option(help="The config of a dataset.")] = None,
) -> None:
    """Build a Lucene index of a corpus with Anserini, for `--retriever lucene:DIR`.

    Exit code: 0 all documents are indexed; 1 some pages of a ZIM file could not be read, the others
    are indexed; 2 wrong usage.
    """
    from qabench.retrieval.lucene_build import build_lucene, lucene_documents, zim_documents

    unreadable: list[tuple[str, str]] = []
    rows: Documents | None = None
    if split is None and config is not None:
        raise InputError("--config is for a dataset; give --split as well")
    if split is None and not Path(source).exists():
        raise InputError(
            f"file not found: {source}; to index a dataset on the Hub, add --split NAME"
        )
    if split is None and source.endswith(".zim"):
        documents = zim_documents(Path(source), unreadable)
    else:
        rows = _documents(source, column, id_column, strict, config, split)
        documents = lucene_documents(rows)
    with progress_bar("Reading", "documents") as show:
        size = build_lucene(documents, output, lambda done: show(done, 0))
    if rows is not None and rows.skipped:
        warn(rows.note())
    write_line(f"{output}: {size:,} documents; search it with --retriever lucene:{output}")
    if unreadable:
        print_list("pages could not be read", [f"{path}: {reason}" for path, reason in unreadable])
        raise Exit(1)


# --- Wikipedia

wiki_app = typer.Typer(
    help="Wikipedia at the dataset's epoch, and the cache of its pages.", rich_markup_mode=None
)

WikiPath = Annotated[str | None, Option(metavar="PATH", help="A ZIM file, instead of Wikipedia.")]


@wiki_app.command("import-cache")
def import_cache(
    tarball: Annotated[
        Path, Argument(metavar="TARBALL", help="A tarball of PAGEID-dated.md files.")
    ],
) -> None:
    """Import a tarball of pages, such as the FanOutQA authors', into the cache. Continues an interrupted import.

    Exit code: 0 all pages are in the cache; 1 some were rejected, or the tarball is damaged; 2 it
    is not a tarball.
    """
    from qabench.retrieval.wiki.cache import WikiCache
    from qabench.retrieval.wiki.tarball import import_cache as read_tarball

    cache = WikiCache()
    with progress_bar("Reading", "bytes") as progress:
        imported = read_tarball(tarball, cache, progress)
    write_line(
        f"{imported.written} pages written to {cache.folder}, {imported.present} already existed"
    )
    if imported.blank or imported.ignored:
        write_line(
            f"skipped: {imported.blank} pages without text, {imported.ignored} other files and folders"
        )
    print_list("refused", [f"{name}: {reason}" for name, reason in imported.refused])
    if not imported.verified:
        hint(
            f"{tarball} has no checksums, so damaged text of a page is not noticed; a .tar.gz has them"
        )
    if imported.refused:
        raise Exit(1)


@wiki_app.command("prefetch")
def prefetch(
    benchmark: Annotated[
        str, Argument(metavar="BENCHMARK", help="A benchmark with evidence pages.")
    ],
    config: ConfigName = None,
) -> None:
    """Download all evidence pages of a benchmark to the cache. Continues an interrupted run.

    Exit code: 0 all pages are in the cache; 1 some are missing or failed (they are listed); 2 wrong
    usage.
    """
    from qabench.retrieval.wiki.mediawiki import MediaWiki
    from qabench.retrieval.wiki.prefetch import prefetch as get_pages

    evidences = _evidences(benchmark, config)
    wiki = MediaWiki()
    with progress_bar("Fetching", "pages") as progress:
        done = get_pages(evidences, wiki, progress)
    count = f"{done.cached + done.fetched} of {done.in_all} pages"
    write_line(f"{count} are in {wiki.cache.folder}: {done.fetched} fetched now")
    print_list("missing at the epoch", [f"{error.page}: {error.reason}" for error in done.missing])
    print_list("failed", [f"{page}: {error}" for page, error in done.failed])
    if done.not_tried:
        write_line(
            f"stopped after consecutive failures; {done.not_tried} pages not tried; run the command again"
        )
    if not done.complete:
        raise Exit(1)


@wiki_app.command("search")
def search(
    query: Annotated[str, Argument(help="The search query.")],
    results: Annotated[
        int, Option("-k", "--results", min=1, max=500, help="The maximum number of pages.")
    ] = 10,
    wiki: WikiPath = None,
    as_json: JsonOnly = False,
) -> None:
    """Search Wikipedia, a ZIM file, or the Kiwix book given by environment variables."""
    from qabench.retrieval.wiki.client import wikipedia

    pages = wikipedia(wiki).search(query, results)
    if as_json:
        print_json(
            [{"title": page.title, "pageid": page.pageid, "url": page.url} for page in pages]
        )
        return
    for page in pages:
        write_line(page.title if page.pageid is None else f"{page.title}\t{page.pageid}")


@wiki_app.command("page")
def page(
    title: Annotated[str, Argument(help="The page's title.")],
    pageid: Annotated[
        int | None, Option(min=1, help="The page's id, used instead of the title.")
    ] = None,
    wiki: WikiPath = None,
) -> None:
    """Print a page's Markdown at the epoch. Exit code 1 if the page did not exist then."""
    from qabench.retrieval.wiki.client import wikipedia

    write_document(wikipedia(wiki).content({"title": title, "pageid": pageid}) + "\n")


def _evidences(name: str, config: str | None) -> list[Json]:
    """Return the evidence pages of a config's questions."""
    pages = benchmark(name).evidence_pages(config)
    if pages is None:
        names = [
            name
            for name in benchmark_names()
            if type(benchmark(name)).evidence_pages != Benchmark.evidence_pages
        ]
        raise InputError(
            f"the questions of {benchmark(name).title} do not have Wikipedia pages; allowed: {', '.join(names)}"
        )
    return list(pages)


def print_list(what: str, lines: list[str]) -> None:
    """Print a heading and its lines, if there are any."""
    for line in [f"{len(lines):,} {what}:", *(f"  {line}" for line in lines)] if lines else []:
        write_line(line)
