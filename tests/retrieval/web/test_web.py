"""The web: search providers, and pages that are fetched politely, within limits, from public
addresses, and once.
"""

import gzip
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from web_server import Reply, WebServer, page

from qabench.errors import InputError
from qabench.io import addresses, http
from qabench.io.addresses import is_public
from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import HttpError
from qabench.retrieval.web import extract, fetch, provider
from qabench.retrieval.web.extract import main_text
from qabench.retrieval.web.fetch import PageFetcher, WebCache
from qabench.retrieval.web.provider import PageLimits, load_provider
from qabench.retrieval.web.web import SearchFailed, Web

IMPATIENT = Retry(attempts=2, first_wait=0.01, longest_wait=0.02)
KEY = "k3y-that-nobody-may-see"
LIMITS = PageLimits(delay=0.0, timeout=10.0, private_addresses=True)
PUBLIC = ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"]
PRIVATE = [
    "100.64.0.1", "192.168.1.1", "224.0.0.1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
    "2002:7f00:1::", "fec0::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::1", "192.0.0.8", "192.88.99.1",
]  # fmt: skip
SLOW = b"<p " + b" ".join(b"a%d=1" % n for n in range(130_000)) + b">text</p>"  # minutes


class InProcess:
    """Reads pages without the worker process, which would outlive the fetcher of each test."""

    name = "in process"

    def text(self, html: bytes, charset: str | None) -> str:
        return main_text(html, charset)


@pytest.fixture(autouse=True)
def _without_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "Extractor", InProcess)


@pytest.fixture
def fetcher(tmp_path: Path) -> PageFetcher:
    return PageFetcher(WebCache(tmp_path / "web"), LIMITS)


def outcome(fetcher: PageFetcher, url: str) -> tuple[str, str]:
    found = fetcher.fetch(url)
    # the pages of these tests are short
    return found.outcome.replace("no text", "read"), found.detail


def test_pages_and_robots(web: WebServer, fetcher: PageFetcher) -> None:
    web.pages["/robots.txt"] = Reply(b"User-agent: *\nDisallow: /private*\nAllow: /private/but-not-this$")
    for path in ("/a", "/private/x", "/private/but-not-this"):
        web.pages[path] = page("Tides", "The Moon pulls the sea.")
    found = fetcher.fetch(f"{web.url}/a")
    assert found.outcome == "read" and "pulls the sea" in found.text
    assert outcome(fetcher, f"{web.url}/private/x")[0] == "robots.txt"
    assert outcome(fetcher, f"{web.url}/private/but-not-this")[0] == "read"
    assert outcome(fetcher, f"{web.url}/robots.txt")[0] == "read"  # a search can find it
    assert web.paths() == ["/robots.txt", "/a", "/private/but-not-this", "/robots.txt"]
    agent = web.requests[1][1]["User-Agent"]
    assert agent.startswith("qabench/") and "https://" in agent


@pytest.mark.parametrize(("status", "expected"), [(404, "read"), (403, "read"), (500, "robots.txt")])
def test_a_host_without_rules(status: int, expected: str, web: WebServer, fetcher: PageFetcher) -> None:
    web.pages |= {"/robots.txt": Reply(status=status), "/a": page("Tides", "The sea.")}
    assert outcome(fetcher, f"{web.url}/a")[0] == expected


def test_crawl_delay(web: WebServer, fetcher: PageFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [0.0]
    monkeypatch.setattr(HttpClient, "_sleep", lambda self, seconds: waits.append(seconds))
    monkeypatch.setattr(http.time, "monotonic", lambda: sum(waits))
    web.pages |= {"/robots.txt": Reply(b"User-agent: qabench\nCrawl-delay: 3"), "/a": page("A"), "/b": page("B")}
    for path in ("/a", "/b"):
        fetcher.fetch(web.url + path)
    assert max(waits) > 2.5
    web.pages["/robots.txt"] = Reply(b"User-agent: *\nCrawl-delay: 600")
    assert "600 s" in outcome(fetcher, web.url.replace("127.0.0.1", "localhost") + "/c")[1]


def test_failures_are_outcomes(web: WebServer, fetcher: PageFetcher) -> None:
    replies = {
        "status 410": Reply(status=410),
        "not HTML": Reply(b"%PDF-1.7", kind="application/pdf"),
        "too large": Reply(b"x" * (fetch.MAX_BYTES + 1)),
        "unknown encoding": Reply(b"...", headers={"Content-Encoding": "br"}),
        "too many redirects": Reply(status=302, headers={"Location": "/page"}),
        "invalid URL": Reply(status=302, headers={"Location": "file:///etc/passwd"}),
    }
    for number, (expected, reply) in enumerate(replies.items()):
        web.pages["/page"] = reply
        assert outcome(fetcher, f"{web.url}/page?{number}")[0] == expected
    assert outcome(fetcher, f"{web.url}/nothing")[0] == "status 404"
    packed = {"Content-Encoding": "gzip"}
    web.pages["/bomb"] = Reply(gzip.compress(b"\0" * (64 << 20)), headers=packed)
    assert outcome(fetcher, f"{web.url}/bomb")[0] == "too large"
    web.pages["/packed"] = Reply(gzip.compress(b"<p>packed</p>"), headers=packed)
    assert outcome(fetcher, f"{web.url}/packed")[0] == "read"
    for url in ("ftp://example.org/", "http://", "http://[::1", "http://me:secret@127.0.0.1/", "no url", ""):
        assert outcome(fetcher, url)[0] == "invalid URL", url
    assert outcome(fetcher, "http://127.0.0.1:1/")[0] == "connection failed"


def test_slow_pages(web: WebServer, tmp_path: Path) -> None:
    release = threading.Event()
    impatient = PageFetcher(WebCache(tmp_path), replace(LIMITS, timeout=0.3))
    web.pages["/silent"] = Reply(parts=[release.wait])
    drips = [part for _ in range(40) for part in (b"<p>drip</p>", lambda: release.wait(0.05))]
    web.pages["/drip"] = Reply(parts=drips)
    assert outcome(impatient, f"{web.url}/silent")[0] == "timeout"
    assert outcome(impatient, f"{web.url}/drip")[0] == "timeout"
    release.set()


def test_private_addresses_are_blocked(web: WebServer, tmp_path: Path, fetcher: PageFetcher) -> None:
    # also if private ones are allowed
    for host in ("169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]"):
        assert outcome(fetcher, f"http://{host}/")[0] == "blocked address"
    fetcher = PageFetcher(WebCache(tmp_path), replace(LIMITS, private_addresses=False))
    for host in ("127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "[::ffff:10.0.0.1]", "0.0.0.0"):
        assert outcome(fetcher, f"http://{host}/")[0] == "blocked address", host
    assert web.requests == []


def test_redirects_to_private_addresses(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "is_public", lambda address: address == "127.0.0.1")
    fetcher = PageFetcher(WebCache(tmp_path), replace(LIMITS, private_addresses=False))
    inner = web.url.replace("127.0.0.1", "127.0.0.2")
    web.pages |= {
        "/open": page("Open", "Open."),
        "/to-inner": Reply(status=302, headers={"Location": f"{inner}/secret"}),
        "/to-metadata": Reply(status=301, headers={"Location": "http://169.254.169.254/latest/meta-data"}),
    }
    assert outcome(fetcher, f"{web.url}/open")[0] == "read"
    assert outcome(fetcher, f"{web.url}/to-inner") == ("blocked address", "127.0.0.2 has the address 127.0.0.2")
    assert outcome(fetcher, f"{web.url}/to-metadata")[0] == "blocked address" and "/secret" not in web.paths()


def test_the_checked_address_is_used(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int, *_: object, **__: object) -> list[object]:
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(addresses.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(addresses, "is_public", lambda address: True)
    web.pages["/a"] = page("A", "A.")
    fetcher = PageFetcher(WebCache(tmp_path), replace(LIMITS, private_addresses=False))
    url = web.url.replace("127.0.0.1", "pages.example.org")
    assert outcome(fetcher, f"{url}/a")[0] == "read"
    # Every answer is checked, and the connection itself resolves an IP address, which nobody can
    # change.
    assert asked.count("127.0.0.1") == 2 and set(asked) == {"127.0.0.1", "pages.example.org"}
    assert web.requests[-1][1]["Host"] == url.removeprefix("http://")


@pytest.mark.parametrize("address", [*PUBLIC, *PRIVATE])
def test_public_addresses(address: str) -> None:
    assert is_public(address) is (address in PUBLIC)


def test_nothing_is_fetched_twice(web: WebServer, tmp_path: Path) -> None:
    web.pages |= {"/a": page("A", "Text."), "/paper": Reply(b"%PDF", kind="application/pdf")}
    urls = [f"{web.url}{path}" for path in ("/a", "/paper", "/nothing")]
    first, second = (PageFetcher(WebCache(tmp_path), LIMITS) for _ in range(2))
    expected = [first.fetch(url) for url in urls]
    asked = len(web.requests)
    assert [second.fetch(url) for url in urls] == expected and len(web.requests) == asked
    for path in tmp_path.rglob("*.json.gz"):
        path.write_bytes(path.read_bytes()[:20])  # damaged files are fetched again
    assert [second.fetch(url) for url in urls] == expected and len(web.requests) == 2 * asked


def test_passing_failures_are_retried(web: WebServer, fetcher: PageFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    web.pages["/busy"] = Reply(status=503, headers={"Retry-After": "0.01"})
    assert outcome(fetcher, f"{web.url}/busy")[0] == "status 503"
    assert web.paths().count("/busy") == 2  # repeated once
    web.pages["/busy"] = page("Busy", "Not any more.")
    assert outcome(fetcher, f"{web.url}/busy")[0] == "status 503"
    monkeypatch.setattr(fetch, "DAY", -1.0)
    assert outcome(fetcher, f"{web.url}/busy")[0] == "read"


def test_main_text() -> None:
    html = page("Tides", "The Moon pulls the sea. " * 5, "Twice a day the water rises.").body
    text = main_text(html, "utf-8")
    assert "Moon pulls" in text and "water rises" in text and "newsletters" not in text
    assert "Größe" in main_text(html.replace(b"Twice", "Größe".encode("latin-1")), "iso-8859-1")
    for charset in ("undefined", "idna", "punycode", "no-such-charset", "base64", "utf-8\0"):
        assert "Moon pulls" in main_text(html, charset)
    for damaged in (b"", b"\0\xff\xfe", b"<" * 5000, b"<div>" * 20000, b"plain"):
        assert isinstance(main_text(damaged, "no-such-charset"), str)


def test_a_page_that_takes_too_long_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = extract.Extractor()
    with monkeypatch.context() as patch:
        patch.setattr(extract, "SECONDS", 1.0)
        with pytest.raises(HttpError, match="unreadable: no text: the page took longer than 1 s, or crashed"):
            reader.text(SLOW)
    assert "Moon pulls" in str(reader.text(page("Tides", "The Moon pulls the sea. " * 5).body))
    worker = reader._worker
    reader._end()
    assert worker is not None and worker.poll() is not None


def toml(folder: Path, text: str) -> str:
    path = folder / "engine.toml"
    path.write_text(text)
    return str(path)


def searcher(search: str, folder: Path) -> Web:
    return Web(load_provider(search), WebCache(folder / "web"), IMPATIENT)


def test_searxng(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_SEARXNG_URL", f"{web.url}/")
    web.found = lambda query: ["/a", "/b"] if "tides" in query else []
    search_engine = searcher("searxng", tmp_path)
    assert search_engine.search("tides & moon?") == [f"{web.url}/a", f"{web.url}/b"]
    assert web.requests == [("/search?q=tides+%26+moon%3F&format=json", web.requests[0][1])]
    assert search_engine.search("tides & moon?") and len(web.requests) == 1  # from the cache
    assert search_engine.search("nothing") == []
    web.engines = [["google", "CAPTCHA"]]
    with pytest.raises(SearchFailed, match="CAPTCHA"):
        search_engine.search("nothing else")
    web.pages["/search"] = Reply(status=403)
    with pytest.raises(SearchFailed, match="status 403"):
        search_engine.search("not allowed")


def test_google(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="export CUSTOM_SEARCH_"):
        load_provider("google")
    monkeypatch.setenv("CUSTOM_SEARCH_API_KEY", KEY)
    monkeypatch.setenv("CUSTOM_SEARCH_CX", "engine-id")
    google = load_provider("google")
    assert google.request('q?"') == {"key": KEY, "cx": "engine-id", "q": 'q?"', "num": "10"}
    assert KEY not in repr(google)
    monkeypatch.setitem(provider.PRESETS["google"], "url", f"{web.url}/customsearch/v1")  # type: ignore[arg-type]
    search_engine = searcher("google", tmp_path)
    assert search_engine.provider.name == "google"
    found = {"items": [{"link": "https://example.org/", "title": "An example"}]}
    web.pages["/customsearch/v1"] = Reply(json.dumps(found).encode(), kind="application/json")
    assert search_engine.search("a") == ["https://example.org/"]
    web.pages["/customsearch/v1"] = Reply(f"bad key {KEY}".encode())
    with pytest.raises(SearchFailed) as caught:
        search_engine.search("d")
    assert "[redacted]" in str(caught.value) and KEY not in str(caught.value)
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*.gz"))


def test_a_key_may_end_in_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOM_SEARCH_API_KEY", "key/")
    monkeypatch.setenv("CUSTOM_SEARCH_CX", "engine-id")
    assert load_provider("google").request("moon")["key"] == "key/"


def test_any_json_api(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE_TOKEN", KEY)
    monkeypatch.setenv("QABENCH_SEARCH_VARIABLES", "EXAMPLE_TOKEN")
    search = toml(
        tmp_path,
        f"""
url = "{web.url}/v2/find"
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
    web.pages["/v2/find"] = Reply(json.dumps({"data": {"hits": hits}}).encode())
    search_engine = searcher(search, tmp_path)
    assert search_engine.provider.pages == PageLimits(results=2, delay=0.0, private_addresses=True)
    assert search_engine.search("tides") == ["https://example.org/0", "https://example.org/1"]
    key = '["POST", "%s", {"query": "site:org {query}", "size": 3}, 2, "data.hits", "tides"]'
    # also by older versions
    assert search_engine.cache.get("searches", key % search_engine.provider.url)
    path, headers = web.requests[0]
    assert json.loads(path.partition(" ")[2]) == {"query": "site:org tides", "size": 3}
    assert headers["Authorization"] == f"Bearer {KEY}" and search_engine.provider.name.startswith("engine@")
    for body in (b'{"data": {}}', b'{"data": {"hits": 3}}', b'{"data": {"hits": [{}]}}', b"<html>", b"[" * 10000):
        web.pages["/v2/find"] = Reply(body)
        with pytest.raises(SearchFailed):
            search_engine.search("another form")
    web.pages["/v2/find"] = Reply(status=503)
    with pytest.raises(SearchFailed, match="503"):
        search_engine.search("down")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "url: Field required; allowed settings: url, results,"),
        ('url = "ftp://x"\nresults = "r"\naddress = "a"', "url: String should match"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\nkeys = "k"', "keys: Unexpected keyword"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\nmethod = "PUT"', "method: .*'GET' or 'POST'"),
        ('url = "https://x"\nresults = "r"\naddress = 3', "address: Input should be a valid string"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[headers]\nA = "${NOT_SET_KEY}"', "export NOT_SET_KEY="),
        (
            'url = "https://x"\nresults = "r"\naddress = "a"\n[pages]\ndelays = 3',
            "pages.delays: .*; allowed settings: results,",
        ),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[pages]\ntimeout = 0', "pages.timeout: .*greater than 0"),
        ("url = ", "cannot be read"),
        ('url = "https://x"\nresults = "r"\naddress = 2026-01-01', "cannot be read: .*date"),
        ('url = "https://x"\nresults = "r"\naddress = "a"\n[pages]\nresults = inf', "pages.results: .*finite"),
    ],
)
def test_wrong_configurations(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says.replace("[", r"\[")):
        load_provider(toml(tmp_path, text))
    with pytest.raises(InputError, match="google, searxng, or the path of a TOML file"):
        load_provider("gogle")
