"""Search in an index of OpenSearch or Elasticsearch, through their official Python clients."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.retrieval.bm25.index import checked_k, checked_queries
from qabench.retrieval.engines import Document, DocumentHits, document_of

USER, PASSWORD, API_KEY = "QABENCH_SEARCH_USER", "QABENCH_SEARCH_PASSWORD", "QABENCH_SEARCH_API_KEY"
CLIENTS = {"opensearch": ("opensearchpy", "OpenSearch"), "elasticsearch": ("elasticsearch", "Elasticsearch")}
PACKAGES = {"opensearchpy", "elasticsearch", "elastic_transport"}  # that raise the clients' errors
SAME_COPIES = "qabench"  # a fixed ``preference``: the same copies of the shards answer, with the same scores
NOT_FOUND, TOO_BUSY, REFUSED = 404, 429, (401, 403)
TEXT, ID = "text", "_id"  # the default fields of texts and ids
Result = TypeVar("Result")


class OpenSearchIndex:
    """An index of OpenSearch or Elasticsearch, searched by a ``match`` query on one field.

    The engine analyzes and ranks: BM25 with k1 1.2 and b 0.75 unless the index says otherwise. Equal scores are in the
    order in which the engine returns them.

    Args:
        es_client: an ``opensearchpy.OpenSearch`` or ``elasticsearch.Elasticsearch`` object.
        index: the name of the index, or an alias.
        text_field: the field that is searched, and is the text of a document.
        id_field: the field with a document's id; "_id" for the engine's own.
        where: what errors call the server.

    Raises:
        InputError: the index or the field does not exist, the server cannot be reached or refuses the user.
        QabenchError: the server failed, or is too busy.
    """

    def __init__(
        self, es_client: Any, index: str, text_field: str = TEXT, id_field: str = ID, *, where: str = "the server"
    ) -> None:
        self.client, self.index, self.where = es_client, index, where
        self.text_field, self.id_field = text_field, id_field
        known = self._call(es_client.field_caps, fields="*")["fields"]
        for name in (text_field, id_field):
            if name not in known and name != ID:
                allowed = ", ".join(sorted(one for one in known if not one.startswith("_"))) or "none"
                raise InputError(
                    f"the index {index!r} of {where} has no field {name!r}; its fields are {allowed}: name them with "
                    "?text=FIELD&id=FIELD after the index, or text_field= and id_field="
                )
        self._size = int(self._call(es_client.count)["count"])
        self.name = f"{index}@{self._size}"
        self.ranker = type(es_client).__name__.lower()

    def __len__(self) -> int:
        """The number of documents when the index was opened."""
        return self._size

    def search(self, query: str, k: int = 10, *, where: Mapping[str, Any] | None = None) -> DocumentHits:
        """The k best documents for a query, best first; none if no document contains a term of it.

        Args:
            query: the query.
            k: how many.
            where: field -> the allowed value, or a list of allowed values, such as ``{"chapter": 3}``. Strings are
                compared with fields of the type ``keyword``.

        Raises:
            InputError: the query is not a string, k is below 1, the index does not store the texts, or the server
                cannot be reached or refuses the user.
            QabenchError: the server failed, is too busy, or did not search all of the index.
        """
        checked_queries([query])
        body = {"query": self._query(query, where or {}), "size": min(checked_k(k), max(self._size, 1))}
        found = self._call(self.client.search, body=body, preference=SAME_COPIES)
        if found.get("timed_out") or (found.get("_shards") or {}).get("failed"):
            raise QabenchError(f"{self.where} did not search all of the index {self.index!r}: {found.get('_shards')}")
        hits = found["hits"]["hits"]
        return DocumentHits([self._document(hit) for hit in hits], [float(hit["_score"]) for hit in hits])

    def search_batch(
        self, queries: Iterable[str], k: int = 10, *, where: Mapping[str, Any] | None = None
    ) -> list[DocumentHits]:
        """``search`` for each query."""
        return [self.search(query, k, where=where) for query in checked_queries(queries)]

    def _query(self, query: str, where: Mapping[str, Any]) -> dict[str, Any]:
        match = {"match": {self.text_field: query}}
        allowed = {field: value if isinstance(value, list) else [value] for field, value in where.items()}
        filters = [{"terms": {field: values}} for field, values in allowed.items()]
        return {"bool": {"must": match, "filter": filters}} if filters else match

    def _document(self, hit: Mapping[str, Any]) -> Document:
        fields = hit.get("_source") or {}
        id = hit["_id"] if self.id_field == ID else fields.get(self.id_field)
        found = document_of(fields, str(id), (self.text_field,))
        if found is None or id is None:
            missing = self.text_field if found is None else self.id_field
            raise InputError(
                f"the document {hit['_id']!r} of the index {self.index!r} has no {missing!r} in _source; the index "
                "must store _source, and the field must not be inside of an object"
            )
        return found

    def _call(self, call: Callable[..., Result], **arguments: Any) -> Result:
        try:
            return call(index=self.index, **arguments)
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in PACKAGES:
                raise
            raise self._error(error) from error

    def _error(self, error: Exception) -> QabenchError:
        """What an error of a client means, in one sentence."""
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            cause = str(error).rpartition("caused by: ")[2]  # the rest repeats it
            return InputError(f"{self.where} cannot be reached: {cause}; check its address, and that it runs")
        if status in REFUSED:
            return InputError(
                f"{self.where} refuses the user (status {status}): export {USER} and {PASSWORD}, or {API_KEY}, of a "
                f"user who may read the index {self.index!r}"
            )
        if status == NOT_FOUND:
            return InputError(f"{self.where} has no index {self.index!r}; list its indexes with GET /_cat/indices")
        if status == TOO_BUSY:
            return QabenchError(f"{self.where} is too busy (status {status}); repeat the search later")
        return QabenchError(f"{self.where} failed with status {status}: {error}")


def open_opensearch(address: str) -> OpenSearchIndex:
    """The index at an address, with the client opensearch-py.

    Args:
        address: URL/INDEX, such as "https://localhost:9200/sphere". "?text=NAME" and "&id=NAME" name the fields of
            texts and ids, by default "text" and "_id". QABENCH_SEARCH_USER and QABENCH_SEARCH_PASSWORD identify the
            user; for Elasticsearch, QABENCH_SEARCH_API_KEY does as well.

    Raises:
        InputError: see ``OpenSearchIndex``; or the address is not of this form, or contains a password.
        MissingExtra: the extra ``opensearch`` is not installed.
    """
    return _open("opensearch", address)


def open_elasticsearch(address: str) -> OpenSearchIndex:
    """The index at an address, with the client elasticsearch; see ``open_opensearch``.

    Raises:
        InputError: see ``open_opensearch``.
        MissingExtra: the extra ``elasticsearch`` is not installed.
    """
    return _open("elasticsearch", address)


def _open(engine: str, address: str) -> OpenSearchIndex:
    parts = urlsplit(address)
    path, _, index = parts.path.rpartition("/")
    options = dict(parse_qsl(parts.query))
    if parts.scheme not in ("http", "https") or not parts.hostname or not index or options.keys() - {"text", "id"}:
        raise InputError(
            f"the address is {address!r:.200}; it must be URL/INDEX or URL/INDEX?text=FIELD&id=FIELD, such as "
            f"{engine}:https://localhost:9200/sphere"
        )
    if parts.username or parts.password:
        raise InputError(f"put the user in {USER} and {PASSWORD}, or {API_KEY}: addresses are written to logs")
    module, name = CLIENTS[engine]
    try:
        client_class = getattr(importlib.import_module(module), name)
    except ImportError:
        raise MissingExtra(f"{name} indexes need the package {engine}: pip install 'qabench[{engine}]'") from None
    server = f"{parts.scheme}://{parts.netloc}{path}"
    client = client_class([server], **_login(engine))
    where = f"{name} at {server}"
    return OpenSearchIndex(client, index, options.get("text", TEXT), options.get("id", ID), where=where)


def _login(engine: str) -> dict[str, Any]:
    """The client's arguments that identify the user."""
    elastic = engine == "elasticsearch"
    if elastic and (key := os.environ.get(API_KEY)):
        return {"api_key": key}
    if user := os.environ.get(USER):
        return {"basic_auth" if elastic else "http_auth": (user, os.environ.get(PASSWORD, ""))}
    return {}
