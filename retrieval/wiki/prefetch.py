"""Downloads many pages into the cache: a few at a time, resumable, with a list of the failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import PageMissing, PageUnreadable, WikiError, WikiPage

# After this many failures in a row, the network or the server is probably down, so the download stops.
FAILURES_IN_A_ROW = 5


@dataclass
class Prefetched:
    """The result of ``prefetch``. ``in_all`` counts distinct pages; ``not_tried`` is above 0 if it stopped early."""

    in_all: int = 0
    cached: int = 0
    fetched: int = 0
    missing: list[PageMissing] = field(default_factory=list)
    failed: list[tuple[WikiPage, WikiError]] = field(default_factory=list)

    @property
    def not_tried(self) -> int:
        return self.in_all - self.cached - self.fetched - len(self.missing) - len(self.failed)

    @property
    def complete(self) -> bool:
        """Return whether all pages are in the cache."""
        return self.cached + self.fetched == self.in_all


def prefetch(
    evidences: Iterable[Any], wiki: MediaWiki | None = None, progress: Callable[[int, int], None] | None = None
) -> Prefetched:
    """Download pages into the cache, ``wiki.client.in_flight`` at once.

    Pages in the cache are not requested again, so a second call continues an interrupted one. A page that was missing
    or failed is requested again.

    Args:
        evidences: as for ``wiki_content``; duplicates are ignored.
        wiki: by default Wikipedia with the default cache.
        progress: called after each page with the number of pages processed and of all pages.

    Raises:
        QabenchError: a page cannot be written to the cache (such as a full disk); the pages before it are kept.
    """
    wiki = wiki or MediaWiki()
    wiki.cache.sweep()
    distinct: dict[int | str, WikiPage] = {}
    for page in map(WikiPage.of, evidences):
        distinct.setdefault(page.key, page)
    pages = list(distinct.values())
    done = Prefetched(in_all=len(pages))
    missing = [page for page in pages if wiki.cached(page) is None]
    done.cached = len(pages) - len(missing)
    _Fetching(wiki, done, progress).run(missing)
    return done


class _Fetching:
    def __init__(self, wiki: MediaWiki, done: Prefetched, progress: Callable[[int, int], None] | None) -> None:
        self.wiki = wiki
        self.done = done
        self.progress = progress
        self.failures = 0

    def run(self, pages: list[WikiPage]) -> None:
        """Fetch pages until all are done, too many failed in a row, or one cannot be written."""
        left = iter(pages)
        running: dict[Future[None], WikiPage] = {}
        self._tell()
        with ThreadPoolExecutor(self.wiki.client.in_flight, thread_name_prefix="wikipedia") as threads:
            try:
                while True:
                    room = self.wiki.client.in_flight - len(running) if self.failures < FAILURES_IN_A_ROW else 0
                    for page in islice(left, room):
                        running[threads.submit(self._one, page)] = page
                    if not running:
                        break
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        self._count(running.pop(future), future)
            except BaseException:
                self.wiki.client.close()  # ends the waits between attempts
                raise

    def _one(self, page: WikiPage) -> None:
        pageid, text = self.wiki.fetch(page)
        self.wiki.keep(page, pageid, text)

    def _count(self, page: WikiPage, future: Future[None]) -> None:
        try:
            future.result()
            self.done.fetched += 1
            self.failures = 0
        except PageMissing as error:
            self.done.missing.append(error)
            self.failures = 0
        except PageUnreadable as error:  # not a sign that the server is down
            self.done.failed.append((page, error))
        except WikiError as error:
            self.done.failed.append((page, error))
            self.failures += 1
        self._tell()

    def _tell(self) -> None:
        if self.progress:
            self.progress(self.done.in_all - self.done.not_tried, self.done.in_all)
