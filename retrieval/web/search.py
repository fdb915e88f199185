"""Asks a search API for addresses of pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qabench.errors import QabenchError
from qabench.retrieval.web.cache import WebCache
from qabench.retrieval.web.provider import SearchProvider
from qabench.retrieval.wiki.http import Answer, PoliteClient, Refused
from qabench.retrieval.wiki.page import WikiError
from qabench.sources.download import Retry

if TYPE_CHECKING:
    import httpx2

RETRY = Retry(attempts=4, first_wait=1.0, longest_wait=60.0, connect_timeout=10.0, read_timeout=30.0)


class SearchFailed(QabenchError):
    """A search API gave no usable response; the message never contains its key."""


class _Client(PoliteClient):
    """A client that sends parameters as the provider wants them."""

    def __init__(self, provider: SearchProvider, retry: Retry) -> None:
        super().__init__(retry=retry, headers={"Accept": "application/json"} | provider.request("")[1])
        self.method = provider.method

    def _request(self, client: httpx2.Client, url: str, params: Mapping[str, Any]) -> httpx2.Request:
        if self.method == "POST":
            return client.build_request("POST", url, json=dict(params))
        return super()._request(client, url, params)


class Searcher:
    """Searches with a provider; results are kept in the cache for good. Safe for several threads."""

    def __init__(self, provider: SearchProvider, cache: WebCache, retry: Retry = RETRY) -> None:
        self.provider = provider
        self.cache = cache
        self._client = _Client(provider, retry)

    def search(self, query: str) -> list[str]:
        """The addresses of the pages found for a query, best first; at most ``provider.pages.results``.

        Raises:
            SearchFailed: the API refused or failed, or its response has another form than the provider describes. A
                failed search is never kept, and never counts as "nothing found".
        """
        key = self.provider.key(query)
        if (known := self.cache.get("searches", key)) is None:
            known = {"addresses": self._asked(query)}
            self.cache.put("searches", key, known)
        addresses: list[str] = known["addresses"]
        return addresses[: self.provider.pages.results]

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _asked(self, query: str) -> list[str]:
        provider = self.provider
        try:
            document = self._client.get(provider.endpoint, provider.request(query)[0], _json)
            return addresses_of(document, provider)
        except (WikiError, SearchFailed) as error:
            hint = f" ({provider.hint})" if provider.hint and isinstance(error, Refused) else ""
            reason = _without_query(str(error))
            raise SearchFailed(provider.redacted(f"the search with {provider.name} failed: {reason}{hint}")) from None


def addresses_of(document: Any, provider: SearchProvider) -> list[str]:
    """The addresses in a response. Raises SearchFailed if it has another form than the provider describes."""
    found = _at(document, provider.results)
    if found is None and not provider.results_may_be_absent:
        raise SearchFailed(f"the response has no {provider.results!r}; it begins with {json.dumps(document)[:200]}")
    if not isinstance(found, list | None):
        raise SearchFailed(f"{provider.results!r} in the response is not a list: {json.dumps(found)[:200]}")
    addresses = [_at(one, provider.address) for one in found or []]
    if wrong := [one for one in addresses if not isinstance(one, str)]:
        raise SearchFailed(f"a result's {provider.address!r} is {wrong[0]!r:.80}; it must be a string")
    failed = _at(document, provider.failures) if provider.failures else None
    if not addresses and failed:
        raise SearchFailed(f"nothing was found, and {provider.failures} are {json.dumps(failed)[:200]}")
    return [one for one in addresses if isinstance(one, str)]


def _at(document: Any, path: str) -> Any:
    """The value at a path such as "web.results"; None if it is absent."""
    for name in filter(None, path.split(".")):
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def _json(answer: Answer) -> Any:
    try:
        return json.loads(answer.text)
    except (ValueError, RecursionError):
        raise SearchFailed(f"the response is not JSON; it begins with {answer.text[:100]!r}") from None


def _without_query(text: str) -> str:
    """A message of the HTTP client without the queries of URLs, which may contain keys."""
    from qabench.io.terminal import printable

    return printable(text)
