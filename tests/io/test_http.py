"""The HTTP client against servers that answer slowly, endlessly or incompletely."""

import contextlib
import gzip
import socket
import threading
from collections.abc import Callable
from contextlib import closing

import pytest
from loopback import Bytes, RawServer

from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import HttpError
from qabench.io.limits import Limits
from qabench.io.transport import MAX_REDIRECTS, _Deadline

ONCE = Retry(attempts=1)
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
GZIPPED = HEAD + b"Content-Encoding: gzip\r\n\r\n"


def drip(data: bytes, first: bytes = b"") -> Callable[[bytes], Bytes]:
    def parts(_: bytes) -> Bytes:
        yield first
        while True:
            for byte in data:
                yield bytes([byte])
                yield 0.02

    return parts


@pytest.mark.parametrize(
    "parts",
    [
        drip(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(1000))),
        drip(b"HTTP/1.1 100 Continue\r\n\r\n"),
        drip(b"x", HEAD + b"\r\n"),
    ],
    ids=["headers", "100 Continue", "body"],
)
def test_one_deadline_from_the_connection_to_the_last_byte(parts: Callable[[bytes], Bytes]) -> None:
    server = RawServer(parts)
    outcome: list[HttpError] = []

    def ask() -> None:
        try:
            HttpClient(Limits(seconds=1.0), retry=ONCE).get(server.url)
        except HttpError as error:
            outcome.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(30)
    server.close()
    assert not thread.is_alive() and outcome[0].reason == "timeout"


def answer(body: bytes) -> bytes:
    server = RawServer(lambda _: iter([GZIPPED + body]))
    try:
        return HttpClient(Limits(1 << 20), retry=ONCE).get(server.url).content
    finally:
        server.close()


def test_gzip_bodies_are_read_to_their_end() -> None:
    first, second = gzip.compress(b"first" * 1000), gzip.compress(b"second" * 1000)
    assert answer(first + second) == b"first" * 1000 + b"second" * 1000 and answer(b"") == b""
    for damaged in (first[: len(first) // 2], first[:-1], first + second[:-4], first + b"tail", b"plain"):
        with pytest.raises(HttpError, match=r"incomplete|not valid gzip"):
            answer(damaged)
    with pytest.raises(HttpError, match="too large"):
        answer(gzip.compress(b"\0" * (8 << 20)))


def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = RawServer(lambda _: iter([HEAD + b"\r\nof the proxy"]))
    direct = RawServer(lambda _: iter([HEAD + b"\r\ndirect"]))
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert HttpClient(retry=ONCE).get("http://host.invalid/page").text == "of the proxy"
    assert HttpClient(retry=ONCE).get(direct.url).text == "direct"
    drips = RawServer(drip(b"x", HEAD + b"\r\n"))
    monkeypatch.setenv("http_proxy", drips.url)
    with pytest.raises(HttpError, match=r"timeout: ReadTimeout: no complete answer within \d\.\d s"):
        HttpClient(Limits(seconds=0.5), retry=ONCE).get("http://host.invalid/page")


def test_a_redirect_loop_is_requested_once() -> None:
    paths: list[bytes] = []

    def answer(request: bytes) -> Bytes:
        paths.append(request.split(b" ")[1])
        yield b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /loop\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    with closing(RawServer(answer)) as server, pytest.raises(HttpError, match="redirect loop") as raised:
        HttpClient(retry=Retry(attempts=3, first_wait=0.01)).get(f"{server.url}/start")
    assert paths == [b"/start", b"/loop"] and not raised.value.transient


def test_nothing_is_sent_without_encryption() -> None:
    """Neither after a failed handshake nor in another attempt."""
    received: list[bytes] = []

    def answer(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                connection, _ = listener.accept()
                with connection:
                    received.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/secret?key=k"
        with pytest.raises(HttpError, match=r"connection failed: ConnectError: .*SSL"):
            HttpClient(Limits(seconds=20), retry=Retry(attempts=2, first_wait=0.01)).get(url)
    assert received and not any(b"secret" in data for data in received)


def test_redirects_are_counted_and_stay_encrypted() -> None:
    deadline = _Deadline(Limits(redirects="any"), ("https", "a.org", 443))
    for number in range(MAX_REDIRECTS + 1):
        deadline.redirect(f"https://a.org/{number}")
    with pytest.raises(HttpError, match="too many redirects: more than 5"):
        deadline.redirect("https://a.org/more")
    upgraded = _Deadline(Limits(redirects="any"), ("http", "a.org", 80))
    upgraded.redirect("http://a.org/")
    upgraded.redirect("https://a.org/")
    with pytest.raises(HttpError, match=r"redirect from https to http: http://b.org/, which is not allowed"):
        upgraded.redirect("http://b.org/")
