"""A page of Wikipedia as FanOutQA names it, and what can be wrong with getting it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from qabench.errors import InputError, QabenchError

EPOCH = "2023-11-20T00:00:00Z"
"""The dataset's epoch: of each page, its newest revision at or before this moment is the page."""


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page. ``pageid`` and ``revid`` are None where they are not known: it is then looked up by its title.

    ``revid`` is the page's revision at the epoch. ``url`` is where people read it, or its place on a Kiwix server.
    """

    title: str
    pageid: int | None = None
    revid: int | None = None
    url: str | None = None

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
        if not title.strip() and _number(pageid) is None:
            raise InputError(f"{evidence!r:.200} names no page: it needs a title or a page id (a positive number)")
        return cls(title, _number(pageid), _revision(evidence), url if isinstance(url, str) else None)

    @property
    def key(self) -> int | str:
        """What tells it from other pages: its id, else its title."""
        return self.title if self.pageid is None else self.pageid

    def __str__(self) -> str:
        return f"{self.title!r} (page id {'unknown' if self.pageid is None else self.pageid})"


def wikipedia_url(title: str) -> str:
    """Where people read a page of the English Wikipedia."""
    return f"https://en.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}"


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _revision(evidence: Any) -> int | None:
    # Of the official package's search results this is a property that asks Wikipedia: it is read from the data only.
    fields = evidence if isinstance(evidence, Mapping) else getattr(evidence, "__dict__", {})
    return _number(fields.get("revid"))


class WikiError(QabenchError):
    """A page or a search could not be had: no network, a server that refuses or answers nonsense."""


class PageMissing(WikiError):
    """The page was not there at the epoch (or is not in the Kiwix book). ``page`` says which, ``reason`` why."""

    def __init__(self, page: WikiPage, reason: str) -> None:
        super().__init__(page, reason)
        self.page = page
        self.reason = reason

    def __str__(self) -> str:
        return f"no text for the Wikipedia page {self.page}: {self.reason}"
