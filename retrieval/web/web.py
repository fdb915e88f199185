"""Evidence from the web: search for pages, fetch them, and read their text."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping, Sequence
from multiprocessing.pool import ThreadPool
from typing import Any

from qabench.errors import QabenchError
from qabench.io.http import HttpClient, Retry, read_json
from qabench.io.http_error import HttpError
from qabench.io.limits import Limits
from qabench.io.redaction import printable
from qabench.retrieval.web.fetch import PageFetcher, WebCache, WebPage
from qabench.retrieval.web.provider import SearchProvider

# Each host gets one request at a time, so this is also the maximum number of hosts asked at once.
PAGES_AT_ONCE = 8
RETRY = Retry(attempts=4, first_wait=1.0)


class SearchFailed(QabenchError):
    """A search API gave no usable response. The message never contains the API key."""


class Web:
    """Searches the web and fetches the pages found, with a cache on disk. It is thread-safe."""

    def __init__(
        self, provider: SearchProvider, cache: WebCache | None = None, retry: Retry = RETRY
    ) -> None:
        self.provider = provider
        self.cache = cache or WebCache()
        headers = {"Accept": "application/json"} | provider.headers
        self._client = HttpClient(Limits(seconds=60.0), retry=retry, headers=headers)
        self._fetcher = PageFetcher(self.cache, provider.pages)
        self.extractor = self._fetcher.extractor.name
        # ThreadPool has daemon threads, so a process can end while a server does not reply.
        self._threads = ThreadPool(PAGES_AT_ONCE)
        weakref.finalize(self, self._threads.terminate)

    def search(self, query: str) -> list[str]:
        """Return at most ``provider.pages.results`` addresses of pages for a query, best first.

        Raises:
            SearchFailed: the API refused or failed, or its response does not have the form that the
                provider describes. A failed search is not cached, and never counts as a search
                without results.
        """
        provider, count = self.provider, self.provider.pages.results
        key = json.dumps([*provider.template, count, provider.results, query])
        entry = self.cache.kept("searches", key, lambda: {"addresses": self._addresses(query)})
        addresses: list[str] = entry["addresses"]
        return addresses[:count]

    def read(self, addresses: Sequence[str]) -> list[WebPage]:
        """Return one result per address, in order."""
        # With the default chunk size, a thread would take several pages and read them in turn.
        return self._threads.map(self._fetcher.fetch, addresses, chunksize=1)

    def _addresses(self, query: str) -> list[str]:
        provider = self.provider
        params = provider.request(query)
        arguments = {"params": params or None}
        if provider.method == "POST":
            arguments = {"json": params}
        try:
            document = self._client.get(provider.url, read_json, **arguments)
            return addresses_of(document, provider)
        except HttpError as error:
            raise SearchFailed(
                f"the search with {provider.name} failed: {printable(error)}"
            ) from None


def addresses_of(document: Any, provider: SearchProvider) -> list[str]:
    """Return the addresses in a response.

    Raises:
        HttpError: the response does not have the form that the provider describes, or it has no
            results but lists failed engines.
    """
    results = _at(document, provider.results)
    if results is None and provider.results_may_be_absent:
        results = []
    addresses = _listed(results, provider.address)
    if addresses is None:
        raise HttpError(
            "invalid response",
            f"{provider.results!r} is not a list of results with strings {provider.address!r} in "
            f"{json.dumps(document)}",
        )
    failed = None
    if provider.failures:
        failed = _at(document, provider.failures)
    if failed and not addresses:
        raise HttpError("nothing was found", f"{provider.failures} are {json.dumps(failed)}")
    return addresses


def _listed(results: Any, path: str) -> list[str] | None:
    """Return the address of each result, or None if this is not a list of results with addresses."""
    if not isinstance(results, list):
        return None
    addresses = []
    for result in results:
        address = _at(result, path)
        if not isinstance(address, str):
            return None
        addresses.append(address)
    return addresses


def _at(document: Any, path: str) -> Any:
    """Return the value at a path such as "web.results", or None if it is absent."""
    for name in filter(None, path.split(".")):
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document
