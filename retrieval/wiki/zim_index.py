"""A BM25 index of all passages of a ZIM file, and Wikipedia searched with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.retrieval.bm25.corpus_parts import CorpusParts
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.plan import read_plan
from qabench.retrieval.bm25.sharded import ShardedIndex
from qabench.retrieval.bm25.sharded_build import build
from qabench.retrieval.bm25.tokenizers import words
from qabench.retrieval.wiki.page import WikiPage
from qabench.retrieval.wiki.zim import ZimFile
from qabench.retrieval.wiki.zim_parts import FOLDER, FORMAT, PASSAGE, PLAN, Parsed, Parsing, parse_zim

PASSAGES_PER_PAGE = 10  # searched for each page wanted: a page often has several of the best passages


def index_zim(
    zim: Path,
    folder: Path,
    *,
    passage: int = PASSAGE,
    parameters: Parameters | None = None,
    dtype: str = "float64",
    memory: int = 1 << 30,
    workers: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Parsed:
    """Parses the pages of a ZIM file, splits them as FanOutQA does, and indexes the passages in a folder.

    A stopped build continues when it is called again: pages part by part, the index shard by shard.

    Args:
        zim: the file.
        folder: the folder to write.
        passage: the maximum number of characters of a passage; see ``chunk_text``.
        parameters: of BM25; by default those of FanOutQA's retriever (bm25+, k1 1.5, b 0.75).
        dtype: see ``BM25Index``.
        memory: bytes for indexing in all processes together; parsing needs about 200 MB per process.
        workers: processes; None for one per processor.
        progress: called with the step ("parse", "count", "weigh"), the parts or shards done, and the number of all.

    Returns:
        The counts of all entries of the file, including the names of pages that could not be read.

    Raises:
        InputError: not a ZIM file, no page with text, or another index in the folder.
        MissingExtra: libzim or markdownify is not installed.
        QabenchError: a file cannot be written.
    """
    job = Parsing(zim, folder / FOLDER, passage)
    counts = parse_zim(job, workers, progress)
    if not counts.passages:
        raise InputError(f"{zim} has no page with text: {counts.entries} entries, {len(counts.bad)} unreadable pages")
    corpus = CorpusParts.open(job.folder, "text")
    chosen = parameters or Parameters.of("bm25+", 1.5, 0.75, None, 0.25)
    build(corpus, folder, chosen, words, dtype, memory, workers, progress)
    return counts


class IndexedZim:
    """A ZIM file as a Wikipedia that is searched by BM25 over its passages.

    Args:
        folder: written by ``qabench wiki index``. The ZIM file must be where it was then, or in this folder, or next to
            it.

    Raises:
        InputError: the folder or the ZIM file is missing or does not belong to the other.
        MissingExtra: libzim is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        plan = read_plan(self.folder / FOLDER / PLAN, FORMAT)
        if plan is None:
            raise InputError(f"{self.folder} is not an index of `qabench wiki index`: it has no {FOLDER}/{PLAN}")
        self.index = ShardedIndex(self.folder)
        self.file = ZimFile(_zim_of(self.folder, plan))
        if self.file.uuid != plan.get("uuid"):
            raise InputError(f"{self.file.path} is not the file that {self.folder} was built from: its id differs")

    @property
    def name(self) -> str:
        """The file and the formula of the search, for signatures."""
        return f"{self.file.name}, {self.index.parameters.method}"

    def lookup(self, title: str) -> WikiPage | list[str]:
        """The page with this title; see ``Wikipedia.lookup``."""
        return self.file.lookup(title)

    def content(self, evidence: Any) -> str:
        """A page's Markdown; see ``wiki_content``."""
        return self.file.content(evidence)

    def search(self, query: str, results: int = 10) -> list[WikiPage]:
        """The pages with the best passages, in the order of their best one; see ``wiki_search``."""
        pages: dict[str, WikiPage] = {}
        for row in self._rows(query, results * PASSAGES_PER_PAGE, ["title", "path"]):
            pages.setdefault(row["path"], WikiPage(row["title"], url=row["path"]))
        return list(pages.values())[:results]

    def passages(self, query: str, results: int = 10) -> list[tuple[str, str]]:
        """The best passages of all pages, each the page's title and the text; [] if no term of the query occurs."""
        return [(row["title"], row["text"]) for row in self._rows(query, results, ["title", "text"])]

    def _rows(self, query: str, k: int, columns: list[str]) -> list[dict[str, Any]]:
        if not query.strip() or k < 1:
            raise InputError(f"query {query!r}: the query must not be empty, and the number of results at least 1")
        if not self.index.knows(query):
            return []
        return self.index.rows(self.index.search(query, k).positions, columns)


def _zim_of(folder: Path, plan: dict[str, Any]) -> Path:
    built = Path(str(plan.get("zim")))
    places = [built, folder / built.name, folder.absolute().parent / built.name]
    for place in places:
        if place.is_file():
            return place
    raise InputError(f"the ZIM file of {folder} is not there: {built}; put it into this folder or next to it")
