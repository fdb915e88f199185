"""Download many pages into the cache, a few at a time. An interrupted download can be continued."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from typing import Any

from qabench.evaluation.scoring import Progress
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import PageMissing, PageUnreadable, WikiError, WikiPage

# The download stops after this many failures in a row: the network or server is probably down.
FAILURES_IN_A_ROW = 5


@dataclass
class Prefetched:
    """The result of ``prefetch``. ``in_all`` counts distinct pages."""

    in_all: int
    cached: int
    fetched: int = 0
    failed: dict[WikiPage, WikiError] = field(default_factory=dict)

    @property
    def not_tried(self) -> int:
        return self.in_all - self.cached - self.fetched - len(self.failed)

    @property
    def complete(self) -> bool:
        """Return whether all pages are in the cache."""
        return self.cached + self.fetched == self.in_all


def prefetch(
    evidences: Iterable[Any], wiki: MediaWiki | None = None, progress: Progress | None = None
) -> Prefetched:
    """Download pages into the cache, ``wiki.client.in_flight`` at once.

    Pages in the cache are not requested again, so a second call continues an interrupted one. A
    page that was missing or failed is requested again.
    """
    wiki = wiki or MediaWiki()
    distinct: dict[int | str, WikiPage] = {}
    for page in map(WikiPage.of, evidences):
        distinct.setdefault(page.key, page)
    missing = [page for page in distinct.values() if wiki.cached(page) is None]
    done = Prefetched(len(distinct), len(distinct) - len(missing))
    progress = progress or (lambda done, in_all: None)
    progress(done.cached, done.in_all)

    def fetch(page: WikiPage) -> tuple[WikiPage, WikiError | None]:
        try:
            wiki.keep(page, *wiki.fetch(page))
        except WikiError as error:
            return page, error
        return page, None

    in_a_row = 0
    try:
        # The threads are daemons, so an interrupted process does not wait for them.
        with ThreadPool(wiki.client.in_flight) as threads:
            for page, error in threads.imap_unordered(fetch, missing):
                if error is None:
                    done.fetched += 1
                else:
                    done.failed[page] = error
                # An unreadable page does not show whether the server works, so it leaves the count
                # as it is.
                if not isinstance(error, PageUnreadable):
                    is_down = error is not None and not isinstance(error, PageMissing)
                    in_a_row = in_a_row + 1 if is_down else 0
                progress(done.in_all - done.not_tried, done.in_all)
                if in_a_row == FAILURES_IN_A_ROW:
                    break
    except BaseException:
        # Closing the client ends the waits between attempts.
        wiki.client.close()
        raise
    return done
