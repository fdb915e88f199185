"""Search, pages and their text together."""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from typing import Any

from qabench.data.rows import Json
from qabench.errors import QabenchError
from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import HttpError
from qabench.io.limits import Limits, json_of
from qabench.io.tables import printable
from qabench.retrieval.web.extract import Extractor
from qabench.retrieval.web.fetch import READ, FetchedPage, PageFetcher, WebCache
from qabench.retrieval.web.provider import SearchProvider

NO_TEXT = "no text"
UNREADABLE = "unreadable"  # extraction takes too long
RETRY = Retry(attempts=4, first_wait=1.0)


class SearchFailed(QabenchError):
    """A search API gave no usable response.

    The message never contains its key.
    """


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page's text, or why there is none.

    See ``FetchedPage`` for outcome and detail.
    """

    url: str
    outcome: str
    text: str = ""
    detail: str = ""


class Web:
    """Pages of the web for queries, with a cache of searches, pages and texts.

    Safe for several threads.
    """

    def __init__(
        self, provider: SearchProvider, cache: WebCache | None = None, retry: Retry = RETRY
    ) -> None:
        self._extractor = Extractor()
        self.extractor = self._extractor.name
        self.provider = provider
        self.cache = cache or WebCache()
        headers = {"Accept": "application/json"} | provider.request("")[1]
        self._client = HttpClient(Limits(seconds=60.0), retry=retry, headers=headers)
        self._fetcher = PageFetcher(self.cache, provider.pages)
        # daemons: no run waits for a silent server
        self._threads = ThreadPool(provider.pages.at_once)
        weakref.finalize(self, self._threads.terminate)

    def search(self, query: str) -> list[str]:
        """Return the addresses of the pages found for a query, best first.

        At most ``provider.pages.results``.

        Raises:
            SearchFailed: the API refused or failed, or its response has another form than the
                provider describes. A failed search is never kept, and never counts as "nothing
                found".
        """
        key = self.provider.key(query)
        entry = self.cache.kept("searches", key, lambda: {"addresses": self._addresses(query)})
        addresses: list[str] = entry["addresses"]
        return addresses[: self.provider.pages.results]

    def read(self, urls: Sequence[str]) -> list[WebPage]:
        """Return one result per URL, in order."""
        return self._threads.map(self._read, urls, chunksize=1)

    def _read(self, url: str) -> WebPage:
        fetched = self._fetcher.fetch(url)
        if fetched.outcome != READ:
            return WebPage(url, fetched.outcome, detail=fetched.detail)
        text = self._text(fetched)
        if text is None:
            return WebPage(url, UNREADABLE, detail="no text within the time limit")
        return WebPage(url, READ if text.strip() else NO_TEXT, text)

    def _text(self, fetched: FetchedPage) -> str | None:
        """Return the page's text, None if it is unreadable.

        Cached, because extraction can take seconds.
        """
        key = f"{self.extractor} {fetched.charset} {hashlib.sha256(fetched.html).hexdigest()}"

        def extracted() -> Json:
            return {"text": self._extractor.text(fetched.html, fetched.charset)}

        text: str | None = self.cache.kept("texts", key, extracted)["text"]
        return text

    def _addresses(self, query: str) -> list[str]:
        provider = self.provider
        params = provider.request(query)[0]
        body = {"json": params} if provider.method == "POST" else {"params": params or None}
        try:
            return addresses_of(self._client.get(provider.endpoint, _json, **body), provider)
        except HttpError as error:
            refused = error.status is not None and not error.transient
            hint = f" ({provider.hint})" if provider.hint and refused else ""
            raise SearchFailed(
                f"the search with {provider.name} failed: {printable(error)}{hint}"
            ) from None


def addresses_of(document: Any, provider: SearchProvider) -> list[str]:
    """Return the addresses in a response.

    Raises HttpError if it has another form than the provider describes.
    """
    results = _at(document, provider.results)
    if results is None and provider.results_may_be_absent:
        results = []
    addresses: list[Any] = (
        [_at(result, provider.address) for result in results]
        if isinstance(results, list)
        else [None]
    )
    if not all(isinstance(address, str) for address in addresses):
        raise HttpError(
            "invalid response",
            f"{provider.results!r} is not a list of results with strings {provider.address!r} in "
            f"{json.dumps(document)}",
        )
    failed = _at(document, provider.failures) if provider.failures else None
    if failed and not addresses:
        raise HttpError("nothing was found", f"{provider.failures} are {json.dumps(failed)}")
    return addresses


def _at(document: Any, path: str) -> Any:
    """Return the value at a path such as "web.results", or None if it is absent."""
    for name in filter(None, path.split(".")):
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def _json(response: Any) -> Any:
    try:
        return json_of(response.content)
    except ValueError:
        raise HttpError("not JSON", response.text) from None
