"""``qabench wiki``: Wikipedia as of the dataset's date, and the cache of its pages."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Exit, Option

from qabench.benchmarks import Benchmark, benchmark, benchmark_names
from qabench.cli.options import ConfigName
from qabench.cli.output import progress_bar, warn
from qabench.errors import InputError
from qabench.io.redaction import write_document, write_line

wiki_app = typer.Typer(
    help="Wikipedia as of the dataset's date, and the cache of its pages.", rich_markup_mode=None
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
        with_pages = []
        for other in benchmark_names():
            # A benchmark whose questions have pages overrides the method.
            if type(benchmark(other)).evidence_pages is not Benchmark.evidence_pages:
                with_pages.append(other)
        raise InputError(
            f"the questions of {name} have no Wikipedia pages; allowed: {', '.join(with_pages)}"
        )
    wiki = MediaWiki()
    with progress_bar("Fetching", "pages") as progress:
        done = get_pages(list(evidences), wiki, progress)
    count = f"{done.cached + done.fetched} of {done.in_all} pages"
    write_line(f"{count} are in {wiki.cache.folder}: {done.fetched} fetched now")
    if done.failed:
        write_line(f"{len(done.failed):,} missing on the dataset's date, or failed:")
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

    pages = wikipedia(wiki).search(query, results)
    if not pages:
        warn(f"no page was found for {query!r}")
    # Pages of a ZIM file or of Kiwix have no page id.
    for page in pages:
        write_line(page.title if page.pageid is None else f"{page.title}\t{page.pageid}")


@wiki_app.command("page")
def page(
    title: Annotated[str, Argument(metavar="TITLE", help="The page's title.")],
    wiki: WikiPath = None,
) -> None:
    """Print a page's Markdown as of the dataset's date. Exit code 1 if it did not exist then."""
    from qabench.retrieval.wiki.client import wikipedia

    write_document(wikipedia(wiki).content({"title": title}) + "\n")
