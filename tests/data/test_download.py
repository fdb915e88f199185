"""Downloads from a loopback server with the faults of real servers."""

import hashlib
import os
import pickle
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

import pytest
from loopback import Loopback

from qabench.data import download as download_module
from qabench.data import sources
from qabench.data.pinned import SourceFile
from qabench.errors import DigestMismatch, SourceError, SourceUnavailable
from qabench.io.http import Retry
from qabench.io.http_error import HttpError

CONTENT = random.Random(7).randbytes(300_000)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
SOURCE = SourceFile("felm", "owner/repo", COMMIT, "data/dev set.json", "MIT", sha256=SHA256, size=len(CONTENT))
UNSIZED = replace(SOURCE, size=None)

WAIT = Retry.wait
IN_A_PROCESS = f"""
from qabench.data.pinned import SourceFile
from qabench.data.sources import local_path
print(local_path(SourceFile("felm", "owner/repo", "{COMMIT}", "data/dev set.json", "MIT",
                            sha256="{SOURCE.sha256}", size={SOURCE.size})))
"""


@dataclass
class Fault:
    """A fault in the response to one request.

    ``status`` with ``headers``: that answer, with no content. ``drop_after``: the connection breaks
    after that many bytes. ``ignore_range``: all of the content, whatever the range. ``shift``: a
    range that begins so many bytes later than the asked one. ``content``: other content. ``chunk``
    and ``pause``: so many bytes at a time, with seconds between. ``no_length``: no Content-Length,
    the end of the connection ends the content.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop_after: int | None = None
    ignore_range: bool = False
    shift: int = 0
    content: bytes | None = None
    chunk: int = 1 << 16
    pause: float = 0.0
    no_length: bool = False


@dataclass
class Request:
    """A received request; ``sent`` is the number of content bytes sent."""

    path: str
    range: str | None
    user_agent: str | None
    status: int = 0
    sent: int = 0


class FaultServer(Loopback):
    """Serves ``files`` (path without leading slash -> content); each request takes the next of
    ``faults``, if any.

    ``always`` holds for each request once ``faults`` is used up.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.faults: deque[Fault] = deque()
        self.always = Fault()
        self.requests: list[Request] = []

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        fault = self.faults.popleft() if self.faults else self.always
        seen = Request(unquote(request.path[1:]), request.headers.get("Range"), request.headers.get("User-Agent"))
        self.requests.append(seen)
        _answer(request, self.files.get(seen.path), fault, seen)


def _answer(handler: BaseHTTPRequestHandler, content: bytes | None, fault: Fault, seen: Request) -> None:
    content = fault.content if fault.content is not None else content
    start = int(seen.range.removeprefix("bytes=").removesuffix("-")) if seen.range and not fault.ignore_range else None
    headers = dict(fault.headers)
    body = b""
    if fault.status is not None:
        seen.status = fault.status
    elif content is None:
        seen.status = 404
    elif start is not None and start >= len(content):
        seen.status = 416
    elif start is not None:
        start += fault.shift
        seen.status, body = 206, content[start:]
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
    else:
        seen.status, body = 200, content
    if not fault.no_length:
        headers["Content-Length"] = str(len(body))
    handler.send_response(seen.status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.close_connection = True
    for at in range(0, len(body[: fault.drop_after]), fault.chunk):
        piece = body[: fault.drop_after][at : at + fault.chunk]
        handler.wfile.write(piece)
        handler.wfile.flush()
        seen.sent += len(piece)
        time.sleep(fault.pause)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, which take no time here."""
    waits: list[float] = []

    def wait(retry: Retry, error: HttpError, failures: int) -> float:
        waits.append(WAIT(retry, error, failures))
        error.wait = None
        return 0.0

    monkeypatch.setattr(Retry, "wait", wait)
    return waits


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    for name in ("QABENCH_MIRROR", "QABENCH_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download_module, "RETRY", Retry(first_wait=0.001))
    with FaultServer() as running:
        running.files[str(SOURCE.mirror_path)] = CONTENT
        monkeypatch.setenv("QABENCH_SOURCE_URL", running.url + "/")
        yield running


def part_path() -> Path:
    path = sources.cache_path(SOURCE)
    return path.with_name(path.name + ".incomplete")


def leave_part(content: bytes) -> None:
    part_path().parent.mkdir(parents=True, exist_ok=True)
    part_path().write_bytes(content)


def assert_fetched(source: SourceFile = SOURCE) -> None:
    path = sources.local_path(source)
    assert path == sources.cache_path(source) and path.read_bytes() == CONTENT
    assert not part_path().exists()


def test_plain_download_then_cache(server: FaultServer) -> None:
    seen: list[tuple[int, int | None]] = []
    sources.local_path(SOURCE, progress=lambda source, done, total: seen.append((done, total)))
    assert_fetched()
    (request,) = server.requests
    assert (request.path, request.range) == ("owner/repo/data/dev set.json", None)
    assert request.user_agent is not None and request.user_agent.startswith("qabench/")
    assert seen[-1] == (len(CONTENT), len(CONTENT)) and seen == sorted(seen)


@pytest.mark.parametrize("source", [SOURCE, UNSIZED], ids=["sized", "unsized"])
def test_dropped_connection_is_resumed(server: FaultServer, source: SourceFile) -> None:
    server.faults.extend([Fault(drop_after=100_000), Fault(drop_after=100_000)])
    assert_fetched(source)
    assert server.requests[0].range is None
    assert sum(request.sent for request in server.requests) == len(CONTENT)
    assert {request.status for request in server.requests[1:]} == {206}


def test_drops_with_progress_do_not_count_as_attempts(server: FaultServer, waits: list[float]) -> None:
    server.faults.extend(Fault(drop_after=20_000) for _ in range(12))
    assert_fetched()


@pytest.mark.parametrize(
    ("part", "source", "faults", "requests"),
    [
        (b"", SOURCE, [Fault(drop_after=100_000, no_length=True)], [(None, 200), ("bytes=100000-", 206)]),
        (b"x" * 1000, SOURCE, [Fault(ignore_range=True)], [("bytes=1000-", 200)]),
        (CONTENT[:1000], SOURCE, [Fault(shift=5)], [("bytes=1000-", 206), (None, 200)]),
        (b"x" * 1000, SOURCE, [], [("bytes=1000-", 206), (None, 200)]),
        (CONTENT + b"more", UNSIZED, [], [("bytes=300004-", 416), (None, 200)]),
        (CONTENT, UNSIZED, [], [("bytes=300000-", 416)]),
        (CONTENT, SOURCE, [], []),
    ],
)
def test_a_part_is_resumed_or_started_over(
    server: FaultServer, part: bytes, source: SourceFile, faults: list[Fault], requests: list[tuple[str | None, int]]
) -> None:
    if part:
        leave_part(part)
    server.faults.extend(faults)
    assert_fetched(source)
    assert [(request.range, request.status) for request in server.requests] == requests


def test_429_waits_with_a_limit(server: FaultServer, waits: list[float]) -> None:
    later = formatdate(time.time() + 20, usegmt=True)
    server.faults.extend(Fault(status=429, headers={"Retry-After": value}) for value in ("7", later))
    assert_fetched()
    assert waits[0] == 7.0 and 15.0 < waits[1] <= 20.0
    server.faults.append(Fault(status=429, headers={"Retry-After": "99999"}))
    with pytest.raises(SourceUnavailable, match="retry after 99999 s"):
        sources.local_path(replace(SOURCE, path="other.json"))


def test_500_is_retried_with_growing_waits(server: FaultServer, waits: list[float]) -> None:
    server.faults.extend(Fault(status=status) for status in (500, 503, 502, 500))
    assert_fetched()
    assert len(waits) == 4 and all(0.0005 * 2**n <= wait <= 0.001 * 2**n for n, wait in enumerate(waits))


@pytest.mark.parametrize(("status", "tries"), [(403, 1), (404, 1), (503, 5)])
def test_only_transient_failures_are_retried(server: FaultServer, waits: list[float], status: int, tries: int) -> None:
    server.always = Fault(status=status)
    with pytest.raises(SourceUnavailable, match=f"status {status}[^\n]*\nIt is published at {server.url}"):
        sources.local_path(SOURCE)
    assert len(server.requests) == tries


def test_wrong_content_is_never_cached(server: FaultServer) -> None:
    server.always = Fault(content=b"x" * len(CONTENT))
    with pytest.raises(DigestMismatch, match="sha256 expected"):
        sources.local_path(SOURCE)
    assert len(server.requests) == 1
    assert not part_path().exists() and not sources.cache_path(SOURCE).exists()


def test_wrong_content_in_pieces_gets_one_fresh_attempt(server: FaultServer) -> None:
    server.always = Fault(content=b"x" * len(CONTENT), drop_after=100_000)
    with pytest.raises(DigestMismatch, match="sha256 expected"):
        sources.local_path(SOURCE)
    assert [request.range for request in server.requests].count(None) == 2


def test_too_long_content_is_cut_off(server: FaultServer) -> None:
    server.always = Fault(content=CONTENT + b"x" * 20_000_000)
    with pytest.raises(DigestMismatch, match=f"has more than the pinned {len(CONTENT)} bytes"):
        sources.local_path(SOURCE)
    time.sleep(0.05)
    assert server.requests[0].sent < 15_000_000
    assert not sources.cache_path(SOURCE).exists()


def test_large_files_are_limited_by_their_own_size(server: FaultServer) -> None:
    content = bytes(65 << 20)
    server.always = Fault(content=content)
    digest = hashlib.sha256(content).hexdigest()
    assert sources.local_path(replace(SOURCE, sha256=digest, size=len(content))).stat().st_size == len(content)


def test_an_unreachable_host(server: FaultServer, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_SOURCE_URL", "http://127.0.0.1:1")
    (result,) = sources.fetch([SOURCE])
    assert result.state == "missing" and "ConnectError" in result.detail and not waits


def test_damaged_cache_is_set_aside_and_replaced(server: FaultServer) -> None:
    path = sources.cache_path(SOURCE)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"damaged")
    assert_fetched()
    assert path.with_name(path.name + ".damaged").read_bytes() == b"damaged"


def test_offline_makes_no_requests(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SourceUnavailable) as caught:
        sources.local_path(SOURCE)
    assert not server.requests
    # worker processes pass it on
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full to play a full disk")
def test_full_disk(server: FaultServer) -> None:
    part_path().parent.mkdir(parents=True)
    part_path().symlink_to("/dev/full")
    with pytest.raises(SourceError, match=r"\.incomplete cannot be written: .*No space left.* Free some space"):
        sources.local_path(SOURCE)
    assert part_path().is_symlink() and not sources.cache_path(SOURCE).exists()


def test_unwritable_cache(server: FaultServer, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    with pytest.raises(SourceError, match=r"cannot be written.*QABENCH_CACHE"):
        sources.local_path(SOURCE)


@pytest.mark.slow
def test_killed_process_is_resumed(server: FaultServer) -> None:
    server.faults.append(Fault(chunk=10_000, pause=0.02))
    process = subprocess.Popen([sys.executable, "-c", IN_A_PROCESS], env=os.environ)
    deadline = time.monotonic() + 30
    while not (part_path().exists() and part_path().stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    there = part_path().stat().st_size
    assert 0 < there < len(CONTENT) and not sources.cache_path(SOURCE).exists()
    assert_fetched()
    assert (server.requests[-1].range, server.requests[-1].sent) == (f"bytes={there}-", len(CONTENT) - there)


@pytest.mark.slow
def test_two_processes_download_once(server: FaultServer) -> None:
    # half a second: the second process starts meanwhile
    server.always = Fault(chunk=30_000, pause=0.05)
    command = [sys.executable, "-c", IN_A_PROCESS]
    processes = [subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert printed == {str(sources.cache_path(SOURCE))}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(server.requests) == 1


def test_the_remains_of_a_killed_mirror_are_deleted(server: FaultServer, tmp_path: Path) -> None:
    target = tmp_path / SOURCE.mirror_path
    target.parent.mkdir(parents=True)
    old, new, foreign = (target.with_name(f".{name}") for name in (f"{target.name}.a1", f"{target.name}.b2", "x.json"))
    for path in (old, new, foreign):
        path.write_bytes(b"x")
    for path in (old, foreign):
        os.utime(path, (0, 0))
    assert [result.state for result in sources.fetch([SOURCE], mirror=tmp_path)] == ["ok"]
    assert not old.exists() and new.exists() and foreign.exists()
