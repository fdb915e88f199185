"""``qabench wiki``: Wikipedia's pages at the dataset's epoch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.cli.options import ConfigName, JsonOnly
from qabench.cli.output import print_json, progress_bar
from qabench.errors import InputError
from qabench.io.tables import write_document, write_line

if TYPE_CHECKING:
    from qabench.retrieval.wiki.prefetch import Prefetched

wiki_app = typer.Typer(help="Wikipedia at the dataset's epoch, and the cache of its pages.", rich_markup_mode=None)

WikiPath = Annotated[str | None, typer.Option(metavar="PATH", help="A ZIM file, instead of Wikipedia.")]


@wiki_app.command("import-cache")
def import_cache(
    tarball: Annotated[Path, typer.Argument(metavar="TARBALL", help="A tarball of PAGEID-dated.md files.")],
    as_json: JsonOnly = False,
) -> None:
    """Import a tarball of pages, such as the FanOutQA authors', into the cache. Continues an interrupted import.

    Exit code: 0 all pages are in the cache; 1 some were rejected, or the tarball is damaged; 2 it is not a tarball.
    """
    from qabench.retrieval.wiki.cache import WikiCache
    from qabench.retrieval.wiki.tarball import import_cache as read_tarball

    cache = WikiCache()
    with progress_bar("Reading", "bytes") as progress:
        imported = read_tarball(tarball, cache, progress)
    if as_json:
        refused = [{"name": name, "reason": reason} for name, reason in imported.refused]
        print_json({"cache": str(cache.folder), **vars(imported), "refused": refused})
    else:
        write_line(f"{imported.written} pages written to {cache.folder}, {imported.present} already existed")
        if imported.blank or imported.ignored:
            write_line(f"skipped: {imported.blank} pages without text, {imported.ignored} other files and folders")
        print_list("refused", [f"{name}: {reason}" for name, reason in imported.refused])
    if imported.refused:
        raise typer.Exit(1)


@wiki_app.command("prefetch")
def prefetch(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="A benchmark with evidence pages.")],
    config: ConfigName = None,
    as_json: JsonOnly = False,
) -> None:
    """Download all evidence pages of a benchmark to the cache. Continues an interrupted run.

    Exit code: 0 all pages are in the cache; 1 some are missing or failed (they are listed); 2 wrong usage.
    """
    from qabench.retrieval.wiki.mediawiki import MediaWiki
    from qabench.retrieval.wiki.prefetch import prefetch as get_pages

    evidences = _evidences(benchmark, config)
    wiki = MediaWiki()
    with progress_bar("Fetching", "pages") as progress:
        done = get_pages(evidences, wiki, progress)
    if as_json:
        print_json(_document(done, wiki.cache.folder))
    else:
        count = f"{done.cached + done.fetched} of {done.in_all} pages"
        write_line(f"{count} are in {wiki.cache.folder}: {done.fetched} fetched now")
        print_list("missing at the epoch", [f"{error.page}: {error.reason}" for error in done.missing])
        print_list("failed", [f"{page}: {error}" for page, error in done.failed])
        if done.not_tried:
            write_line(f"stopped after consecutive failures; {done.not_tried} pages not tried; run the command again")
    if not done.complete:
        raise typer.Exit(1)


@wiki_app.command("search")
def search(
    query: Annotated[str, typer.Argument(help="The search query.")],
    results: Annotated[int, typer.Option("-k", "--results", min=1, max=500, help="The maximum number of pages.")] = 10,
    wiki: WikiPath = None,
    as_json: JsonOnly = False,
) -> None:
    """Search Wikipedia, a ZIM file, or the Kiwix book given by environment variables."""
    from qabench.retrieval.wiki.client import wikipedia

    pages = wikipedia(wiki).search(query, results)
    if as_json:
        print_json([{"title": page.title, "pageid": page.pageid, "url": page.url} for page in pages])
        return
    for page in pages:
        write_line(page.title if page.pageid is None else f"{page.title}\t{page.pageid}")


@wiki_app.command("page")
def page(
    title: Annotated[str, typer.Argument(help="The page's title.")],
    pageid: Annotated[int | None, typer.Option(min=1, help="The page's id, used instead of the title.")] = None,
    wiki: WikiPath = None,
) -> None:
    """Print a page's Markdown at the epoch. Exit code 1 if the page did not exist then."""
    from qabench.retrieval.wiki.client import wikipedia

    write_document(wikipedia(wiki).content({"title": title, "pageid": pageid}) + "\n")


def _evidences(name: str, config: str | None) -> list[dict[str, Any]]:
    """Return the evidence pages of a config's questions."""
    from qabench.benchmarks import Benchmark, benchmark, benchmark_names

    pages = benchmark(name).evidence_pages(config)
    if pages is None:
        names = [name for name in benchmark_names() if type(benchmark(name)).evidence_pages != Benchmark.evidence_pages]
        raise InputError(
            f"the questions of {benchmark(name).title} do not have Wikipedia pages; allowed: {', '.join(names)}"
        )
    return list(pages)


def _document(done: Prefetched, folder: Path) -> dict[str, Any]:
    def entry(page: Any, reason: str) -> dict[str, Any]:
        return {"title": page.title, "pageid": page.pageid, "revid": page.revid, "reason": reason}

    return {
        "cache": str(folder),
        "pages": done.in_all,
        "cached": done.cached,
        "fetched": done.fetched,
        "missing": [entry(error.page, error.reason) for error in done.missing],
        "failed": [entry(page, str(error)) for page, error in done.failed],
        "not_tried": done.not_tried,
    }


def print_list(what: str, lines: list[str]) -> None:
    """Print a heading and its lines, if there are any."""
    for line in [f"{len(lines):,} {what}:", *(f"  {line}" for line in lines)] if lines else []:
        write_line(line)
