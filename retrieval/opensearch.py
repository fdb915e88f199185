"""Search an OpenSearch or Elasticsearch index through the official Python clients."""

from __future__ import annotations

import base64
import importlib
import math
import os
from collections.abc import Callable, Mapping
from operator import index as index_of
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from qabench.data.arguments import checked_k, checked_string
from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.addresses import origin
from qabench.io.http_error import MAX_CHARACTERS_SHOWN
from qabench.io.redaction import keep_secret, printable, quoted
from qabench.retrieval.documents import Document, DocumentHits, document_of

USER, PASSWORD, API_KEY = "QABENCH_SEARCH_USER", "QABENCH_SEARCH_PASSWORD", "QABENCH_SEARCH_API_KEY"
# The server at this address gets the user's credentials, even if its address comes from a log and
# not from the user.
SERVER = "QABENCH_SEARCH_URL"
CLIENTS = {
    "opensearch": ("opensearchpy", "OpenSearch"),
    "elasticsearch": ("elasticsearch", "Elasticsearch"),
}
# The packages whose exceptions the clients raise.
PACKAGES = {"opensearchpy", "elasticsearch", "elastic_transport"}
# With a fixed ``preference``, the same copies of the shards answer, so scores are reproducible.
SAME_COPIES = "qabench"
NOT_FOUND, REFUSED = 404, (401, 403)
# The default fields with the texts and the ids.
TEXT, ID = "text", "_id"


class OpenSearchIndex:
    """An OpenSearch or Elasticsearch index, searched by a ``match`` query on one field.

    The engine analyzes the query and ranks the documents by BM25, with k1 1.2 and b 0.75 unless the
    index says otherwise. Documents with equal scores are in the order of the engine's reply. Every
    reply is checked before it is used (see ``_call`` and ``_hits``).

    Args:
        es_client: an ``opensearchpy.OpenSearch`` or ``elasticsearch.Elasticsearch`` object.
        index: the name of the index, or an alias.
        text_field: the field with a document's text, which is searched.
        id_field: the field with a document's id. "_id" is the engine's own id.
        where: the name of the server in errors.

    Raises:
        InputError: an argument has a wrong type, the index or the field does not exist, or the
            server cannot be reached or refuses the user.
        QabenchError: the server failed, is too busy, or sent a malformed reply.
    """

    def __init__(
        self,
        es_client: Any,
        index: str,
        text_field: str = TEXT,
        id_field: str = ID,
        *,
        where: str = "the server",
    ) -> None:
        if not hasattr(es_client, "field_caps"):
            raise InputError(
                f"es_client is {es_client!r:.60}; expected a client of opensearchpy or elasticsearch. For the "
                "address of an index: open_engine('opensearch:URL/INDEX')"
            )
        for name, value in {"index": index, "text_field": text_field, "id_field": id_field}.items():
            checked_string(value, name)
        self.client, self.index, self.where = es_client, index, where
        self.text_field, self.id_field = text_field, id_field
        fields = self._call(es_client.field_caps, lambda reply: sorted(reply["fields"]), fields="*")
        for name in (text_field, id_field):
            if name in (*fields, ID):
                continue
            allowed = ", ".join(field for field in fields if not field.startswith("_")) or "none"
            raise InputError(
                f"the index {index!r} of {where} has no field {name!r}; its fields are "
                f"{printable(allowed, MAX_CHARACTERS_SHOWN)}: "
                "name them with ?text=FIELD&id=FIELD after the index, or text_field= and id_field="
            )
        self._size: int = self._call(
            es_client.count, lambda reply: max(0, index_of(reply["count"]))
        )
        self.name = f"{index}@{self._size}"
        self.ranker = type(es_client).__name__.lower()

    def __len__(self) -> int:
        """Return the number of documents when the index was opened."""
        return self._size

    def search(
        self, query: str, k: int = 10, *, where: Mapping[str, Any] | None = None
    ) -> DocumentHits:
        """Return the k best documents that contain a term of the query, best first.

        Args:
            query: the query.
            k: the number of documents.
            where: field -> the allowed value, or a list of allowed values, such as ``{"chapter":
                3}``. Strings are compared with fields of the type ``keyword``.

        Raises:
            InputError: the query is not a string, k is below 1, the index does not store the texts,
                or the server cannot be reached or refuses the user.
            QabenchError: the server failed, is too busy, did not search all of the index, or sent a
                malformed reply.
        """
        checked_string(query, "the query")
        size = min(checked_k(k), max(self._size, 1))
        body = {"query": self._query(query, where or {}), "size": size}
        hits: DocumentHits = self._call(
            self.client.search,
            lambda reply: self._hits(reply, size),
            body=body,
            preference=SAME_COPIES,
        )
        return hits

    def _query(self, query: str, where: Mapping[str, Any]) -> Json:
        match = {"match": {self.text_field: query}}
        if not where:
            return match
        filters = []
        for field, value in where.items():
            allowed = value if isinstance(value, list) else [value]
            filters.append({"terms": {field: allowed}})
        # Unlike "must", a "filter" does not change scores.
        return {"bool": {"must": match, "filter": filters}}

    def _document(self, hit: Mapping[str, Any]) -> Document:
        fields = hit.get("_source") or {}
        id = hit[ID] if self.id_field == ID else fields.get(self.id_field)
        has_id = isinstance(id, str | int)
        document = None
        missing = self.id_field
        if has_id:
            document = document_of(fields, str(id), (self.text_field,))
            missing = self.text_field
        if document is None:
            shown = quoted(hit[ID], MAX_CHARACTERS_SHOWN)
            raise InputError(
                f"the document {shown} of the index {self.index!r} has no {missing!r} in _source. The index must "
                "store _source, and the field must not be inside of an object"
            )
        return document

    def _hits(self, reply: Any, size: int) -> DocumentHits:
        """Return at most ``size`` hits of a search, each with id, text and a finite score."""
        # If time runs out or a shard fails, the reply has only some of the hits, but status 200.
        if reply.get("timed_out") or (reply.get("_shards") or {}).get("failed"):
            shown = quoted(
                {name: reply.get(name) for name in ("timed_out", "_shards")}, MAX_CHARACTERS_SHOWN
            )
            raise QabenchError(
                f"{self.where} did not search all of the index {self.index!r}: {shown}"
            )
        hits = reply["hits"]["hits"]
        scores = [float(hit["_score"]) for hit in hits]
        if not isinstance(hits, list) or len(hits) > size or not all(map(math.isfinite, scores)):
            raise ValueError(f"expected a list of at most {size} hits with finite scores")
        return DocumentHits([self._document(hit) for hit in hits], scores)

    def _call(self, call: Callable[..., Any], read: Callable[[Any], Any], **arguments: Any) -> Any:
        """Return what ``read`` returns for the server's reply.

        Raises:
            QabenchError: the request failed, or the reply is malformed.
        """
        try:
            reply = call(index=self.index, **arguments)
            # The elasticsearch client wraps the JSON object of the reply.
            return read(getattr(reply, "body", reply))
        except QabenchError:
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] in PACKAGES:
                raise self._error(error) from None
            # Other exceptions come from replies that are not JSON, are nested too deeply, or have
            # another shape.
            detail = printable(f"{type(error).__name__}: {error}", MAX_CHARACTERS_SHOWN)
            raise QabenchError(
                f"{self.where} sent a malformed reply ({detail}): is it a search server?"
            ) from None

    def _error(self, error: Exception) -> QabenchError:
        """Return the error to raise for a client's error."""
        status = getattr(error, "status_code", None)
        try:
            text = str(error)
        except Exception:
            # ``str`` of the error quotes parts of the reply, and may fail for a malformed reply.
            text = type(error).__name__
        if not isinstance(status, int):
            # The message contains the whole chain of causes. Only the last one is informative.
            last_cause = text.rpartition("caused by: ")[2]
            cause = printable(last_cause, MAX_CHARACTERS_SHOWN)
            return InputError(
                f"{self.where} cannot be reached: {cause}; check its address, and that it runs"
            )
        if status in REFUSED:
            return InputError(
                f"{self.where} refuses the user (status {status}): export {USER} and {PASSWORD}, or {API_KEY}, of a "
                f"user who may read the index {self.index!r}; with `inspect eval`, also {SERVER}, the server's address"
            )
        if status == NOT_FOUND:
            return InputError(
                f"{self.where} has no index {self.index!r}; list its indexes with GET /_cat/indices"
            )
        return QabenchError(
            f"{self.where} failed with status {status}: {printable(text, MAX_CHARACTERS_SHOWN)}"
        )


def open_server(engine: str, address: str, *, named_by_user: bool = True) -> OpenSearchIndex:
    """Open the index at URL/INDEX, such as "https://localhost:9200/sphere".

    "?text=NAME" and "&id=NAME" name the fields of texts and ids, by default "text" and "_id". The
    user's credentials are sent if the user gave the address in this call (``named_by_user``), or if
    QABENCH_SEARCH_URL has the same scheme, host and port.
    """
    parts = urlsplit(address)
    path, _, index = parts.path.rpartition("/")
    options = dict(parse_qsl(parts.query))
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not index
        or options.keys() - {"text", "id"}
    ):
        raise InputError(
            f"the address is {address!r:.200}; it must be URL/INDEX or URL/INDEX?text=FIELD&id=FIELD, such as "
            f"{engine}:https://localhost:9200/sphere"
        )
    if parts.username or parts.password:
        raise InputError(
            f"put the user in {USER} and {PASSWORD}, or {API_KEY}: addresses are written to logs"
        )
    module, name = CLIENTS[engine]
    try:
        client_class = getattr(importlib.import_module(module), name)
    except ImportError:
        raise MissingExtra(
            f"{name} indexes need the package {engine}: pip install 'qabench[{engine}]'"
        ) from None
    server = f"{parts.scheme}://{parts.netloc}{path}"
    # If a log names the server, and not the user, the server does not get the user's password.
    keys: Json = {}
    if named_by_user or origin(server) == origin(os.environ.get(SERVER, "")):
        keys = _login(engine)
    client = client_class([server], **keys)
    where = f"{name} at {server}"
    return OpenSearchIndex(
        client, index, options.get("text", TEXT), options.get("id", ID), where=where
    )


def _login(engine: str) -> Json:
    """Return the client's arguments with the user's credentials. Empty if there are none."""
    elastic = engine == "elasticsearch"
    if elastic and (key := os.environ.get(API_KEY)):
        return {"api_key": key}
    if user := os.environ.get(USER):
        login = user, os.environ.get(PASSWORD, "")
        keep_secret(base64.b64encode(":".join(login).encode()).decode())
        # The two clients name the same argument differently.
        argument = "basic_auth" if elastic else "http_auth"
        return {argument: login}
    return {}
