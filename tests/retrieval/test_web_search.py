"""Search providers: presets, TOML files, failures, and secrets that never appear."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from web_server import Reply, WebServer

from qabench.errors import InputError
from qabench.io.http import Retry
from qabench.retrieval.web.cache import WebCache
from qabench.retrieval.web.provider import PageLimits, load_provider
from qabench.retrieval.web.search import Searcher, SearchFailed

IMPATIENT = Retry(attempts=2, first_wait=0.01, longest_wait=0.02)
KEY = "k3y-that-nobody-may-see"


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer() as running:
        yield running


def toml(folder: Path, text: str) -> str:
    path = folder / "engine.toml"
    path.write_text(text)
    return str(path)


def searcher(search: str, folder: Path) -> Searcher:
    return Searcher(load_provider(search), WebCache(folder / "web"), IMPATIENT)


def test_searxng(server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_SEARXNG_URL", f"{server.url}/")
    server.found = lambda query: ["/a", "/b"] if "tides" in query else []
    one = searcher("searxng", tmp_path)
    assert one.search("tides & moon?") == [f"{server.url}/a", f"{server.url}/b"]
    assert server.requests == [("/search?q=tides+%26+moon%3F&format=json", server.requests[0][1])]
    assert one.search("tides & moon?") and len(server.requests) == 1  # from the cache
    assert one.search("nothing") == []
    server.engines = [["google", "CAPTCHA"]]
    with pytest.raises(SearchFailed, match="CAPTCHA"):
        one.search("nothing else")
    server.pages["/search"] = Reply(status=403)
    with pytest.raises(SearchFailed, match=r"settings\.yml"):
        one.search("not allowed")


def test_google(server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="export CUSTOM_SEARCH_"):
        load_provider("google")
    monkeypatch.setenv("CUSTOM_SEARCH_API_KEY", KEY)
    monkeypatch.setenv("CUSTOM_SEARCH_CX", "engine-id")
    google = load_provider("google")
    assert google.request("q?")[0] == {"key": KEY, "cx": "engine-id", "q": "q?", "num": "10"}
    assert KEY not in repr(google) and KEY not in google.key("q?")
    monkeypatch.setenv("QABENCH_SEARCH_VARIABLES", "CUSTOM_SEARCH_API_KEY,CUSTOM_SEARCH_CX")
    one = searcher(toml(tmp_path, f'preset = "google"\nurl = "{server.url}/customsearch/v1"'), tmp_path)
    assert one.provider.name == "google"
    found = {"items": [{"link": "https://example.org/", "title": "An example"}]}
    server.pages["/customsearch/v1"] = Reply(json.dumps(found).encode(), kind="application/json")
    assert one.search("a") == ["https://example.org/"]
    server.pages["/customsearch/v1"] = Reply(b'{"searchInformation": {"totalResults": "0"}}')
    assert one.search("b") == []
    server.pages["/customsearch/v1"] = Reply(status=429)
    with pytest.raises(SearchFailed) as caught:
        one.search("c")
    assert "429" in str(caught.value) and KEY not in str(caught.value)
    server.pages["/customsearch/v1"] = Reply(f"bad key {KEY}".encode())
    with pytest.raises(SearchFailed) as caught:
        one.search("d")
    assert "[redacted]" in str(caught.value) and KEY not in str(caught.value)
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*.gz"))


def test_any_json_api(server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE_TOKEN", KEY)
    monkeypatch.setenv("QABENCH_SEARCH_VARIABLES", "EXAMPLE_TOKEN")
    search = toml(
        tmp_path,
        f"""
url = "{server.url}/v2/find"
method = "POST"
results = "data.hits"
address = "page.href"
[params]
query = "site:org {{query}}"
size = 3
[headers]
Authorization = "Bearer ${{EXAMPLE_TOKEN}}"
[pages]
results = 2
delay = 0
private_addresses = true
""",
    )
    hits = [{"page": {"href": f"https://example.org/{n}"}} for n in range(3)]
    server.pages["/v2/find"] = Reply(json.dumps({"data": {"hits": hits}}).encode())
    one = searcher(search, tmp_path)
    assert one.provider.pages == PageLimits(results=2, delay=0.0, private_addresses=True)
    assert one.search("tides") == ["https://example.org/0", "https://example.org/1"]
    path, headers = server.requests[0]
    assert json.loads(path.partition(" ")[2]) == {"query": "site:org tides", "size": 3}
    assert headers["Authorization"] == f"Bearer {KEY}" and one.provider.name.startswith("engine@")
    for body in (b'{"data": {}}', b'{"data": {"hits": 3}}', b'{"data": {"hits": [{}]}}', b"<html>", b"[" * 10000):
        server.pages["/v2/find"] = Reply(body)
        with pytest.raises(SearchFailed):
            one.search("another form")
    server.pages["/v2/find"] = Reply(status=503)
    with pytest.raises(SearchFailed, match="503"):
        one.search("down")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'url' is missing"),
        ('url = "x"', "'results' is missing"),
        ('preset = "bing"', "allowed: google, searxng"),
        ('url = "ftp://x"\nresults = "r"\naddress = "a"', "http://"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\nkeys = "k"', "unknown setting 'keys'"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\nmethod = "PUT"', "allowed: GET, POST"),
        ('url = "https://x"\nresults = "r"\naddress = 3', "address is 3"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[headers]\nA = "${NOT_SET_KEY}"', "export NOT_SET_KEY="),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[pages]\ndelays = 3', "allowed: results, delay"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[pages]\ntimeout = 0', "at least 1"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[pages]\nresults = true', "number of at least 1"),
        ("url = ", "cannot be read"),
        ("preset = {}", "allowed: google, searxng"),
        ('url = "https//["\nresults = "r"\naddress = "a"', "http://"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[pages]\nresults = inf', "number of at least 1"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[params]\nq = 2026-01-31', "'q' must not be a date"),
    ],
)
def test_wrong_configurations(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says.replace("[", r"\[")):
        load_provider(toml(tmp_path, text))


def test_unknown_providers() -> None:
    with pytest.raises(InputError, match="google, searxng, or the path of a TOML file"):
        load_provider("gogle")
