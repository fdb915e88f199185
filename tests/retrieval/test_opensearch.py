"""Search in OpenSearch and Elasticsearch, with their official clients, against a loopback server."""

import base64
import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from search_server import SearchServer

from qabench.benchmarks.expertqa.answers import Options, answering
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.retrieval import OpenSearchIndex, open_engine
from qabench.retrieval.opensearch import API_KEY, CLIENTS, PASSWORD, SERVER, USER, open_server

PASSAGES = [
    {"_id": "a", "text": "The planets orbit the sun", "url": "https://e.org/a", "number": 7},
    {"_id": "b", "text": "The moon orbits the earth and the moon is round", "title": "Moon", "number": 8},
    {"_id": "c", "text": "Apples grow on trees", "number": 9},
]
# instead of each part of a reply
ODD = [None, True, -1, 10**400, float("nan"), "x", [], [[]], {}, {"a": 1}]
HIT = {"_id": "a", "_score": 1.0, "_source": {"text": "x", "url": "u"}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchServer]:
    for name in (USER, PASSWORD, API_KEY):
        monkeypatch.delenv(name, raising=False)
    with SearchServer(PASSAGES) as server:
        yield server


@pytest.fixture(params=CLIENTS)
def engine(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(CLIENTS[request.param][0], reason=f"needs the extra {request.param}")
    return str(request.param)


def client_of(engine: str, url: str) -> Any:
    module, name = CLIENTS[engine]
    return getattr(importlib.import_module(module), name)([url], max_retries=0)


def test_hits_have_texts_sources_and_scores(server: SearchServer, engine: str) -> None:
    index = OpenSearchIndex(client_of(engine, server.url), "passages")
    hits = index.search("the moon", k=2)
    assert (len(index), hits.ids, hits.scores == sorted(hits.scores, reverse=True)) == (3, ["b", "a"], True)
    found = [(PASSAGES[1]["text"], "Moon"), (PASSAGES[0]["text"], "https://e.org/a")]
    assert [(one.text, one.source) for one in hits.documents] == found
    method, path, body = server.calls[-1]
    assert method == "POST" and path == "/passages/_search?preference=qabench"
    assert body == {"query": {"match": {"text": "the moon"}}, "size": 2}
    assert (index.search("apples", k=5).ids, index.search("zzz").ids) == (["c"], [])
    assert next(iter(hits)) == ("b", hits.scores[0]) and "b" in str(hits)


def test_filters_and_large_k(server: SearchServer, engine: str) -> None:
    index = OpenSearchIndex(client_of(engine, server.url), "passages")
    all_hits = index.search("the moon", k=10**6)
    assert (all_hits.ids, server.calls[-1][2]["size"]) == (["b", "a"], 3)
    assert list(index.search("the moon", where={"number": [7, 9]})) == [("a", all_hits.scores[1])]
    assert server.calls[-1][2]["query"]["bool"]["filter"] == [{"terms": {"number": [7, 9]}}]
    assert index.search("the moon", where={"number": 7, "title": "Moon"}).ids == []


def test_the_user_names_the_fields(server: SearchServer, engine: str) -> None:
    assert open_engine(f"{engine}:{server.url}/passages?text=text&id=number").search("apples").ids == ["9"]


@pytest.mark.parametrize(
    ("address", "says"),
    [("{url}/pasages", "has no index 'pasages'; list its indexes"),
     ("{url}/passages?text=body", "no field 'body'; its fields are number, text, title, url: name them"),
     ("{url}/passages?size=3", "must be URL/INDEX"),
     ("localhost:9200/passages", "must be URL/INDEX"),
     ("http://me:secret@localhost:9200/passages", f"put the user in {USER}"),
     ("http://127.0.0.1:9/passages", "at http://127.0.0.1:9 cannot be reached")],
)  # fmt: skip
def test_errors_of_addresses(server: SearchServer, engine: str, address: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        open_engine(f"{engine}:{address.format(url=server.url)}")
    assert "secret" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_user_is_sent_and_refused(server: SearchServer, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server.login = ("reader", "s3cret")
    with pytest.raises(InputError, match=rf"refuses the user \(status 401\): export {USER}"):
        open_engine(f"{engine}:{server.url}/passages")
    monkeypatch.setenv(USER, "reader")
    monkeypatch.setenv(PASSWORD, "s3cret")
    assert open_engine(f"{engine}:{server.url}/passages").search("sun").ids == ["a"]


def test_a_login_is_for_one_address(server: SearchServer, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USER, "reader")
    monkeypatch.setenv(PASSWORD, "s3cret")
    for address in (server.url.replace("http:", "https:"), "http://127.0.0.1:9", ""):
        monkeypatch.setenv(SERVER, address)
        open_server(engine, f"{server.url}/passages", named_by_user=False)
    assert server.logins == {None}
    monkeypatch.setenv(SERVER, f"{server.url}/")
    open_server(engine, f"{server.url}/passages", named_by_user=False)
    assert len(server.logins) == 2


def test_an_echoed_login_is_not_shown(server: SearchServer, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USER, "reader")
    monkeypatch.setenv(PASSWORD, "s3cret")
    index = open_engine(f"{engine}:{server.url}/passages")
    pair = base64.b64encode(b"reader:s3cret").decode()
    for before in range(150, 200):
        server.status = 500
        server.replacement = {"error": {"type": "x", "reason": "." * before + f"Basic {pair}"}, "status": 500}
        with pytest.raises(QabenchError, match="status 500") as caught:
            index.search("sun")
        assert pair[:8] not in str(caught.value)


@pytest.mark.parametrize(("status", "says"), [(429, "status 429"), (500, "status 500"), (403, "refuses")])
def test_a_failed_search_is_an_error(server: SearchServer, engine: str, status: int, says: str) -> None:
    index = OpenSearchIndex(client_of(engine, server.url), "passages")
    server.status = status
    with pytest.raises(QabenchError, match=says):
        index.search("sun")


@pytest.mark.parametrize(
    ("fields", "says"),
    [({"timed_out": True}, "did not search all"),
     ({"_shards": {"total": 2, "successful": 1, "failed": 1}}, "did not search all"),
     ({"hits": {"hits": [{"_id": "a", "_score": 1.0}]}}, "document 'a' of the index 'passages' has no 'text' in")],
)  # fmt: skip
def test_an_incomplete_reply_is_an_error(server: SearchServer, engine: str, fields: dict[str, Any], says: str) -> None:
    index = OpenSearchIndex(client_of(engine, server.url), "passages")
    server.fields = fields
    with pytest.raises(QabenchError, match=says):
        index.search("sun")


def replies() -> Iterator[Any]:
    """Yield replies to a search in which one part is replaced, left out, or nested too deeply."""
    yield from (ODD, "x", 7, None, [HIT])
    for value in ODD:
        for name in ("timed_out", "_shards", "hits"):
            yield {"hits": {"hits": [HIT]}, name: value}
        yield {"hits": {"hits": value}}
        yield {"hits": {"hits": [HIT, value]}}
        for name in HIT:
            yield {"hits": {"hits": [HIT | {name: value}]}}
            yield {"hits": {"hits": [{field: HIT[field] for field in HIT if field != name}]}}
        for name in ("text", "url"):
            yield {"hits": {"hits": [HIT | {"_source": HIT["_source"] | {name: value}}]}}  # type: ignore[operator]
    yield {"hits": {"hits": [HIT] * 3}}


def test_hostile_replies_are_one_error(server: SearchServer, engine: str) -> None:
    index = OpenSearchIndex(client_of(engine, server.url), "passages")
    for status in (200, 400, 404, 500):
        server.status = status
        for server.replacement in [*replies(), b"[" * 100_000, b'{"hits":' * 100_000, b"", b"\xff", b"{", b"NaN"]:
            try:
                hits = index.search("sun", k=2)
            except QabenchError as error:
                assert len(str(error)) < 600
                continue
            assert status == 200 and len(hits) <= 2
            assert all(isinstance(part, str) for hit in hits.documents for part in (hit.id, hit.text, hit.source))
            assert all(isinstance(score, float) and score == score for score in hits.scores)
    server.status = 200
    for server.replacement in [*ODD, {"fields": 7}, {"count": "x"}, {"count": 2.5}, {"fields": {"text": 1}}, b"["]:
        with pytest.raises(QabenchError, match=r"malformed reply|cannot be reached|has no field"):
            OpenSearchIndex(client_of(engine, server.url), "passages")


def test_a_missing_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CLIENTS, "opensearch", ("no_such_client", "OpenSearch"))
    with pytest.raises(MissingExtra, match=r"pip install 'qabench\[opensearch\]'"):
        open_engine("opensearch:http://localhost:9200/passages")


@pytest.mark.parametrize("retriever", ["", "lucene", "lucene:", "bm25:x", "es:http://localhost/x"])
def test_unknown_retrievers_list_the_forms(retriever: str) -> None:
    with pytest.raises(InputError, match=r"allowed: lucene:DIR, opensearch:URL/INDEX, elasticsearch:URL/INDEX$"):
        open_engine(retriever)


def test_expertqa_reads_passages_of_an_engine(server: SearchServer, engine: str) -> None:
    retriever = f"{engine}:{server.url}/passages"
    how = answering("retrieve-read", "qabench", options=Options(retriever=retriever, k=1))
    read = how.to_read({"question": "What orbits the earth like the moon?"})
    assert [(one.id, one.source) for one in read.passages] == [("b", "Moon")]
    assert {"corpus": "passages@3", "passages": 3, "ranker": engine, "k": 1}.items() <= how.fields().items()
    with pytest.raises(InputError, match="have no effect with -T retriever"):
        answering("post-hoc", "qabench", options=Options(retriever=retriever, corpus="x.jsonl"))
