"""Downloads many pages into the cache: a few at a time, resumable, with a list of the failures."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

from qabench.evaluation.scoring import Progress
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import PageMissing, PageUnreadable, WikiError, WikiPage

# After this many failures in a row, the network or the server is probably down, so the download
# stops.
FAILURES_IN_A_ROW = 5


@dataclass
class Prefetched:
    """The result of ``prefetch``.

    ``in_all`` counts distinct pages. ``not_tried`` is above 0 if it stopped early.
    """

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
    evidences: Iterable[Any],
    wiki: MediaWiki | None = None,
    progress: Progress | None = None,
) -> Prefetched:
    """Download pages into the cache, ``wiki.client.in_flight`` at once.

    Pages in the cache are not requested again, so a second call continues an interrupted one. A
    page that was missing or failed is requested again.
    """
    wiki = wiki or MediaWiki()
    wiki.cache.sweep()
    distinct: dict[int | str, WikiPage] = {}
    for page in map(WikiPage.of, evidences):
        distinct.setdefault(page.key, page)
    missing = [page for page in distinct.values() if wiki.cached(page) is None]
    done = Prefetched(in_all=len(distinct), cached=len(distinct) - len(missing))
    progress = progress or (lambda done, in_all: None)
    progress(done.cached, done.in_all)

    def fetch(page: WikiPage) -> None:
        wiki.keep(page, *wiki.fetch(page))

    failures = 0
    with ThreadPoolExecutor(wiki.client.in_flight, thread_name_prefix="wikipedia") as threads:
        pages = {threads.submit(fetch, page): page for page in missing}
        try:
            for future in as_completed(pages):
                failed = _count(done, pages[future], future)
                failures = failures if failed is None else (failures + 1) * failed
                progress(done.in_all - done.not_tried, done.in_all)
                if failures == FAILURES_IN_A_ROW:
                    break
        except BaseException:
            wiki.client.close()  # ends the waits between attempts
            raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
    return done


def _count(done: Prefetched, page: WikiPage, future: Future[None]) -> bool | None:
    """Count a page, and return whether the server failed, or None for a page that says nothing about the server."""
    try:
        future.result()
        done.fetched += 1
    except PageMissing as error:
        done.missing.append(error)
    except WikiError as error:
        done.failed.append((page, error))
        return None if isinstance(error, PageUnreadable) else True
    return False
