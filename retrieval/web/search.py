"""Asks a search API for addresses of pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from qabench.errors import QabenchError
from qabench.io.http import HttpClient, HttpError, Response, Retry
from qabench.io.limits import json_of
from qabench.io.tables import printable
from qabench.retrieval.web.cache import WebCache
from qabench.retrieval.web.provider import SearchProvider

RETRY = Retry(attempts=4, first_wait=1.0)


class SearchFailed(QabenchError):
    """A search API gave no usable response; the message never contains its key."""


class Searcher:
    """Searches with a provider; results are kept in the cache for good. Safe for several threads."""

    def __init__(self, provider: SearchProvider, cache: WebCache, retry: Retry = RETRY) -> None:
        self.provider = provider
        self.cache = cache
        headers = {"Accept": "application/json"} | provider.request("")[1]
        self._client = HttpClient(retry=retry, seconds=60.0, headers=headers)

    def search(self, query: str) -> list[str]:
        """Return the addresses of the pages found for a query, best first; at most ``provider.pages.results``.

        Raises:
            SearchFailed: the API refused or failed, or its response has another form than the provider describes. A
                failed search is never kept, and never counts as "nothing found".
        """
        key = self.provider.key(query)
        if (entry := self.cache.get("searches", key)) is None:
            entry = {"addresses": self._addresses(query)}
            self.cache.put("searches", key, entry)
        addresses: list[str] = entry["addresses"]
        return addresses[: self.provider.pages.results]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _addresses(self, query: str) -> list[str]:
        provider = self.provider
        params = provider.request(query)[0]
        body = {"json": params} if provider.method == "POST" else {"params": params}
        try:
            return addresses_of(self._client.get(provider.endpoint, read=_json, **body), provider)
        except (HttpError, SearchFailed) as error:
            refused = isinstance(error, HttpError) and error.status is not None and not error.transient
            hint = f" ({provider.hint})" if provider.hint and refused else ""
            # The queries of URLs, which may contain keys, are not printable.
            message = f"the search with {provider.name} failed: {printable(error)}{hint}"
            raise SearchFailed(provider.redacted(message)) from None


def addresses_of(document: Any, provider: SearchProvider) -> list[str]:
    """Return the addresses in a response. Raises SearchFailed if it has another form than the provider describes."""
    results = _at(document, provider.results)
    if results is None and not provider.results_may_be_absent:
        raise SearchFailed(f"the response has no {provider.results!r}; it begins with {json.dumps(document)[:200]}")
    if not isinstance(results, list | None):
        raise SearchFailed(f"{provider.results!r} in the response is not a list: {json.dumps(results)[:200]}")
    addresses = [_at(result, provider.address) for result in results or []]
    if wrong := [address for address in addresses if not isinstance(address, str)]:
        raise SearchFailed(f"a result's {provider.address!r} is {wrong[0]!r:.80}; it must be a string")
    failed = _at(document, provider.failures) if provider.failures else None
    if not addresses and failed:
        raise SearchFailed(f"nothing was found, and {provider.failures} are {json.dumps(failed)[:200]}")
    return [address for address in addresses if isinstance(address, str)]


def _at(document: Any, path: str) -> Any:
    """Return the value at a path such as "web.results"; None if it is absent."""
    for name in filter(None, path.split(".")):
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def _json(response: Response) -> Any:
    try:
        return json_of(response.content)
    except ValueError:
        raise SearchFailed(f"the response is not JSON; it begins with {response.text[:100]!r}") from None
