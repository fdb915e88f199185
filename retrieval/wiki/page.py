"""A page of Wikipedia as FanOutQA names it, and what can be wrong with getting it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from qabench.errors import InputError, QabenchError

LARGEST_ID = 10**18 - 1

EPOCH = "2023-11-20T00:00:00Z"
"""The dataset's epoch: of each page, its newest revision at or before this moment is the page."""


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page. ``pageid`` and ``revid`` are None where they are not known: it is then looked up by its title.

    ``revid`` is the page's revision at the epoch. ``url`` is where people read it, or its path on a Kiwix server.

    Raises:
        InputError: an id that is not a positive number. (An id becomes a part of a file's name.)
    """

    title: str
    pageid: int | None = None
    revid: int | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("pageid", self.pageid), ("revid", self.revid)):
            if value is not None and valid_id(value) is None:
                raise InputError(f"the {name} of the page {self.title!r:.80} is {value!r:.80}, not a positive number")

    @classmethod
    def of(cls, evidence: Any) -> WikiPage:
        """The page that a row of ``necessary_evidence``, or an object with its fields, names.

        An id that is not a positive number ("###TBD###" in the source's corrections, 0 in its Kiwix results) is
        unknown.

        Raises:
            InputError: it has neither a page id nor a title.
        """
        if isinstance(evidence, cls):
            return evidence
        keys = ("title", "pageid", "url")
        if isinstance(evidence, Mapping):
            title, pageid, url = (evidence.get(key) for key in keys)
        else:
            title, pageid, url = (getattr(evidence, key, None) for key in keys)
        title = title if isinstance(title, str) else ""
        if not title.strip() and valid_id(pageid) is None:
            raise InputError(f"{evidence!r:.200} names no page: it needs a title or a page id (a positive number)")
        return cls(title, valid_id(pageid), _revision(evidence), url if isinstance(url, str) else None)

    @property
    def key(self) -> int | str:
        """What tells it from other pages: its id, else its title."""
        return self.title if self.pageid is None else self.pageid

    def __str__(self) -> str:
        return f"{self.title!r} (page id {'unknown' if self.pageid is None else self.pageid})"


def wikipedia_url(title: str) -> str:
    """Where people read a page of the English Wikipedia."""
    return f"https://en.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}"


def valid_id(value: Any) -> int | None:
    """The value if it can be the id of a page or a revision, else None."""
    return value if type(value) is int and 0 < value <= LARGEST_ID else None


def _revision(evidence: Any) -> int | None:
    # Of the official package's search results this is a property that asks Wikipedia: it is read from the data only.
    fields = evidence if isinstance(evidence, Mapping) else getattr(evidence, "__dict__", {})
    return valid_id(fields.get("revid"))


class WikiError(QabenchError):
    """A page or the results of a search are not available: no network, or a server that refuses or answers nonsense."""


class PageUnreadable(WikiError):
    """A page's HTML cannot be converted to Markdown."""


class PageMissing(WikiError):
    """The page was not there at the epoch (or is not in the Kiwix book). ``page`` says which, ``reason`` why."""

    def __init__(self, page: WikiPage, reason: str) -> None:
        super().__init__(page, reason)
        self.page = page
        self.reason = reason

    def __str__(self) -> str:
        return f"no text for the Wikipedia page {self.page}: {self.reason}"
