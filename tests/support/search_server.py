"""A loopback server that answers as OpenSearch and Elasticsearch document it, for the tests of
their clients.

Fields, status codes and errors follow https://docs.opensearch.org and
https://www.elastic.co/docs/api (root, count, field capabilities, search). Nothing here was recorded
from a real server. Scores are Lucene's BM25 with k1 1.2 and b 0.75, the engines' defaults, over
lower-case words.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from loopback import Loopback

from qabench.retrieval import BM25Index

SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
ELASTIC_TYPE = "application/vnd.elasticsearch+json;compatible-with=9"
Reply = tuple[int, Any]


class SearchServer(Loopback):
    """One index, "passages", of documents {"_id", fields...}; ``status`` makes every answer an
    error.

    Attributes:
        url: the address.
        calls: (method, path with query, body) of each request.
        logins: the values of the header Authorization; None: a request without it.
        login: (user, password) that is required; None: everybody may read.
        fields: replaces some fields of the response to a search.
        replacement: replaces every response, as JSON or bytes; the server itself: none.
    """

    protocol = "HTTP/1.1"

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self.documents = documents
        self.calls: list[tuple[str, str, Any]] = []
        self.logins: set[str | None] = set()
        self.login: tuple[str, str] | None = None
        self.status = 200
        self.fields: dict[str, Any] = {}
        self.replacement: Any = self
        self._ranked = BM25Index([row["text"] for row in documents], method="lucene", k1=1.2, b=0.75)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        size = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(size)) if size else None
        self.calls.append((request.command, request.path, body))
        login = request.headers.get("Authorization")
        self.logins.add(login)
        elastic = "elasticsearch" in request.headers.get("Accept", "")
        expected = self.login and f"Basic {base64.b64encode(':'.join(self.login).encode()).decode()}"
        if expected and login != expected:
            status, document = 401, _error(401, "security_exception", "missing authentication credentials")
        else:
            status, document = self.reply(urlsplit(request.path).path, body)
            document = document if self.replacement is self else self.replacement
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        request.send_response(status)
        request.send_header("Content-Type", ELASTIC_TYPE if elastic else "application/json; charset=UTF-8")
        request.send_header("Content-Length", str(len(data)))
        if elastic:
            request.send_header("X-Elastic-Product", "Elasticsearch")
        request.end_headers()
        request.wfile.write(data)

    def reply(self, path: str, body: Any) -> Reply:
        """The status and the JSON document for a request."""
        index, _, api = path.strip("/").partition("/")
        if self.status != 200:
            return self.status, _error(self.status, "rejected_execution_exception", "rejected execution")
        if not index:
            return 200, {"version": {"distribution": "opensearch", "number": "3.0.0"}}
        if index != "passages":
            return 404, _error(404, "index_not_found_exception", f"no such index [{index}]")
        if api == "_count":
            return 200, {"count": len(self.documents), "_shards": SHARDS}
        if api == "_field_caps":
            names = {name for row in self.documents for name in row}
            caps = {name: {"text": {"type": "text", "searchable": True, "aggregatable": False}} for name in names}
            return 200, {"indices": ["passages"], "fields": caps}
        return 200, self._found(body) | self.fields

    def _found(self, body: Mapping[str, Any]) -> dict[str, Any]:
        asked = body["query"].get("bool") or {"must": body["query"], "filter": []}
        allowed = [pair for terms in asked["filter"] for pair in terms["terms"].items()]
        found = self._ranked.search(asked["must"]["match"]["text"], k=len(self.documents))
        hits = []
        for document, score in ((self.documents[position], score) for position, score in found if score):
            if all(document.get(name) in values for name, values in allowed):
                source = {name: value for name, value in document.items() if name != "_id"}
                hits.append({"_id": document["_id"], "_score": score, "_source": source})
        return {"timed_out": False, "_shards": SHARDS, "hits": {"hits": hits[: body["size"]]}}


def _error(status: int, type: str, reason: str) -> dict[str, Any]:
    cause = {"type": type, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}
