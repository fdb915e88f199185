"""A Wikipedia page as FanOutQA identifies it, and the errors of reading pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from qabench.errors import InputError, QabenchError
from qabench.io.http import Retry

# The maximum number of results of MediaWiki's search.
MOST_RESULTS = 500
# Larger ids are not MediaWiki's. All numbers of 18 digits fit in 64 bits.
LARGEST_ID = 10**18 - 1
RETRY = Retry(attempts=6, first_wait=1.0, longest_wait=120.0)

EPOCH = "2023-11-20T00:00:00Z"
"""The dataset's epoch: the newest revision of a page at or before this time is used."""


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A Wikipedia page. ``pageid`` and ``revid`` are None if they are unknown.

    A page without an id is looked up by its title. ``revid`` is the page's revision at the epoch.
    ``url`` is the URL of the page, or its path on a Kiwix server or in a ZIM file.
    """

    title: str
    pageid: int | None = None
    revid: int | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("pageid", self.pageid), ("revid", self.revid)):
            if value is not None and valid_id(value) is None:
                raise InputError(
                    f"the {name} of the page {self.title!r:.80} is {value!r:.80}, not a positive number"
                )

    @classmethod
    def of(cls, evidence: Any) -> WikiPage:
        """Return the page of a row of ``necessary_evidence``, or of an object with the same fields.

        An id that is not a positive number counts as unknown. Such ids are "###TBD###" in the
        dataset's corrections, and 0 in the official package's results from Kiwix.
        """
        if isinstance(evidence, cls):
            return evidence
        keys = ("title", "pageid", "url")
        if isinstance(evidence, Mapping):
            title, pageid, url = (evidence.get(key) for key in keys)
        else:
            title, pageid, url = (getattr(evidence, key, None) for key in keys)
        # A cell without a value is None, or NaN in a pandas frame.
        if not isinstance(title, str):
            title = ""
        if not isinstance(url, str):
            url = None
        if not title.strip() and valid_id(pageid) is None:
            raise InputError(
                f"{evidence!r:.200} does not identify a page: a title or a positive page id is required"
            )
        return cls(title, valid_id(pageid), _revision(evidence), url)

    @property
    def key(self) -> int | str:
        """Return the id of the page, or its title if the id is unknown."""
        return self.title if self.pageid is None else self.pageid

    def __str__(self) -> str:
        id = "unknown" if self.pageid is None else self.pageid
        return f"{self.title!r} (page id {id})"


def address_of(url: str) -> str:
    """Return a URL's host, port and path, for signatures: no user, password or query."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] + parts.path


def check_search(query: str, results: int) -> None:
    """Raise InputError for a query or a number of results that ``wiki_search`` does not allow."""
    if not query.strip() or not 1 <= results <= MOST_RESULTS:
        raise InputError(
            f"query {query!r}, results {results}: the query must not be empty, results from 1 to {MOST_RESULTS}"
        )


def valid_id(value: Any) -> int | None:
    """Return the value if it is a valid id of a page or a revision, else None."""
    # ``isinstance(value, int)`` would accept True.
    return value if type(value) is int and 0 < value <= LARGEST_ID else None


def _revision(evidence: Any) -> int | None:
    # In search results of the official package, revid is a property that sends a request, so only
    # plain attributes are read.
    fields = evidence if isinstance(evidence, Mapping) else getattr(evidence, "__dict__", {})
    return valid_id(fields.get("revid"))


class WikiError(QabenchError):
    """A page or search results are not available, for example because a server refused."""


class PageUnreadable(WikiError):
    """A page's HTML cannot be converted to Markdown."""


class PageMissing(WikiError):
    """A page did not exist at the epoch, is blank, or is not in the Kiwix book or ZIM file.

    Attributes:
        page: the page.
        reason: why it is missing.
    """

    def __init__(self, page: WikiPage, reason: str) -> None:
        super().__init__(page, reason)
        self.page = page
        self.reason = reason

    def __str__(self) -> str:
        return f"no text for the Wikipedia page {self.page}: {self.reason}"
