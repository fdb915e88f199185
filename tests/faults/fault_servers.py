"""Hostile servers and lost connections: the right content or one error, within the limits of time and size."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

from fault_harness import Campaign
from fault_kills import COMMIT
from loopback import RESET, Bytes, RawServer
from openai_server import completion

from qabench.data import download as download_module
from qabench.data.pinned import SourceFile
from qabench.data.sources import local_path
from qabench.errors import QabenchError
from qabench.io.http import HttpClient, Retry
from qabench.io.tables import printable
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Caller, run_sync
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest
from qabench.retrieval.wiki.cache import WikiCache
from qabench.retrieval.wiki.mediawiki import MediaWiki

KEY = "sk-hostile-0123456789"
LIMIT = 1 << 20  # bytes of a reply or page
MOST_TAKEN = 16 * LIMIT  # in two tries, each with up to 7 MiB in the buffers of the system
TIMEOUT = 1.5  # seconds of a call to a hostile server
PATIENCE = 20.0  # seconds of a call where the network is lost: a loaded machine is no fault
MOST_SECONDS = 60.0  # of a case, on a machine that is busy with other work


def head(status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close", "Content-Type: application/json"]
    lines += [] if length is None else [f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


def behaviors(chance: random.Random, good: bytes) -> dict[str, Callable[[bytes], Bytes]]:
    """Hostile answers by name. ``good`` is the body of a right answer."""
    bomb = gzip.compress(b" " * (40 * LIMIT))
    cut = chance.randrange(len(good))
    junk = chance.randbytes(chance.choice((1, 50, 5000)))

    def endless(piece: bytes, begin: bytes) -> Callable[[bytes], Bytes]:
        def script(_: bytes) -> Bytes:
            yield begin
            for _ in range(2000):
                yield piece * 65536

        return script

    def drip(_: bytes) -> Bytes:
        yield head(length=len(good))
        size = -(-len(good) // 15)
        for i in range(0, len(good), size):
            yield good[i : i + size]
            yield TIMEOUT / 4

    def echo(request: bytes) -> Bytes:
        body = json.dumps({"error": {"message": request.decode("latin-1")}}).encode()
        yield head(f"400 {KEY}", len(body), X_Key=KEY) + body

    def redirect(target: str) -> Callable[[bytes], Bytes]:
        return lambda _: iter([head("302 Found", 0, Location=target)])

    def just(*pieces: bytes | float) -> Callable[[bytes], Bytes]:
        return lambda _: iter(pieces)

    return {
        "slow": drip,
        "silent": just(3.0),
        "endless body": endless(b" ", head()),
        "endless body with a length": endless(b" ", head(length=1 << 40)),
        "endless headers": endless(b"a", b"HTTP/1.1 200 OK\r\nX: "),
        "endless status line": endless(b"a", b"HTTP/1.1 200 "),
        "gzip bomb": just(head(length=len(bomb), Content_Encoding="gzip"), bomb),
        "gzip bomb as an error": just(head("500 Oops", len(bomb), Content_Encoding="gzip"), bomb),
        "wrong coding": just(head(length=len(good), Content_Encoding="gzip"), good),
        "too long a length": just(head(length=len(good) + 100), good),
        "too short a length": just(head(length=cut), good),
        "odd length": just(head(length=None, Content_Length=chance.choice(("-1", "x", "9" * 30))), good),
        "malformed status": just(chance.choice((b"HTTP/9.9 abc\r\n\r\n", b"\r\n\r\n", junk + b"\r\n\r\n"))),
        "malformed body": just(head(length=len(junk)), junk),
        "malformed chunks": just(head(Transfer_Encoding="chunked"), b"zz\r\n" + good),
        "deep body": just(head(length=30_000), b'{"a":' * 6000),
        "control characters": just(head("418 \x1b[31m\x07", 5), b"\x1b]0;x"),
        "redirect elsewhere": redirect("http://127.0.0.2:9/x"),
        "redirect to itself": redirect("/again"),
        "redirect to a file": redirect("file:///etc/passwd"),
        "key in the error": echo,
        "reset": just(RESET),
        "reset in the reply": just(head(length=len(good)), good[:cut], RESET),
        "end in the reply": just(head(length=len(good)), good[:cut]),
        "good": just(head(length=len(good)), good),
    }


@contextmanager
def hostile(chance: random.Random, good: bytes) -> Iterator[tuple[str, RawServer]]:
    found = behaviors(chance, good)
    name = chance.choice(list(found))
    server = RawServer(found[name])
    begin = time.monotonic()
    variables = {"FANOUTQA_OPENAI_API_KEY": KEY, "QABENCH_MAX_REPLY_MB": "1", "NO_PROXY": "127.0.0.1,127.0.0.2"}
    try:
        with mock.patch.dict(os.environ, variables):
            yield name, server
    finally:
        server.close()
    if time.monotonic() - begin > MOST_SECONDS:
        raise AssertionError(f"{name}: {time.monotonic() - begin:.0f} s")
    if server.taken > MOST_TAKEN:
        raise AssertionError(f"{name}: {server.taken >> 20} MiB were read")


def check_message(name: str, message: str) -> None:
    shown = printable(message)
    if KEY in shown or any(ord(character) < 32 and character not in "\n\t" for character in shown):
        raise AssertionError(f"{name}: {shown[:200]!r}")


CHAT = json.dumps(completion("the reply")).encode()
with suppress(ImportError):
    import openai._base_client  # before the first case, so that its time does not count

    openai._base_client.INITIAL_RETRY_DELAY = 0.01


def hostile_chat(chance: random.Random, folder: Path) -> str:
    with hostile(chance, CHAT) as (name, server):
        outcome = ask(server, folder, 1)
        if outcome.reply is None:
            check_message(name, outcome.reason or "")
            return "one reason"
        if name != "good" or outcome.reply.text != "the reply":
            raise AssertionError(f"{name}: {outcome.reply!r:.100}")
        return "right reply"


def ask(server: RawServer, folder: Path, retries: int, timeout: float = TIMEOUT):  # type: ignore[no-untyped-def]
    cache = ReplyCache(folder / "replies.sqlite")
    endpoint = Endpoint(f"{server.url}/v1", KEY)
    client = Caller(endpoint, "m", retries=retries, timeout=timeout).client(cache)
    return run_sync(client.complete([ChatRequest("m", (("user", "q"),))]))[0]


PAGE = json.dumps({"parse": {"text": "<p>The text.</p>", "title": "T", "pageid": 1, "revid": 1001}}).encode()
ROW = {"title": "T", "pageid": 1, "revid": 1001, "url": ""}
PATIENT = Retry(attempts=9, first_wait=0.005, longest_wait=0.5)
QUICK = Retry(attempts=2, first_wait=0.005, longest_wait=0.5)


@contextmanager
def wiki_at(server: RawServer, folder: Path, retry: Retry, timeout: float = TIMEOUT) -> Iterator[MediaWiki]:
    client = HttpClient(retry=retry, seconds=timeout, max_bytes=LIMIT)
    api = f"{server.url}/w/api.php"
    variables = {"QABENCH_OFFLINE": "0", "HF_HUB_OFFLINE": "0"}
    with mock.patch.dict(os.environ, variables):
        wiki = MediaWiki(api, cache=WikiCache(folder / "pages", []), client=client)
        try:
            yield wiki
        finally:
            client.close()


def hostile_wiki(chance: random.Random, folder: Path) -> str:
    with hostile(chance, PAGE) as (name, server), wiki_at(server, folder, QUICK) as wiki:
        try:
            text = wiki.content(ROW)
        except QabenchError as error:
            check_message(name, str(error))
            if list((folder / "pages").glob("*.md")):
                raise AssertionError(f"{name}: something is cached") from None
            return "one error"
        if text.strip() != "The text.":
            raise AssertionError(f"{name}: {text!r:.100}")
        return "right page"


CONTENT = random.Random(3).randbytes(50_000)
SOURCE = SourceFile(
    "felm", "owner/repo", COMMIT, "data/x.json", "MIT", sha256=hashlib.sha256(CONTENT).hexdigest(), size=len(CONTENT)
)


@contextmanager
def downloads(server: RawServer, folder: Path, attempts: int, timeout: float = TIMEOUT) -> Iterator[None]:
    variables = {"QABENCH_SOURCE_URL": server.url, "QABENCH_CACHE": str(folder / "cache")}
    variables |= {"QABENCH_OFFLINE": "0", "HF_HUB_OFFLINE": "0", "QABENCH_MIRROR": ""}
    retry = Retry(attempts=attempts, first_wait=0.005, longest_wait=0.05)
    with (
        mock.patch.dict(os.environ, variables),
        mock.patch.object(download_module, "RETRY", retry),
        mock.patch.object(download_module, "READ_SECONDS", timeout),
    ):
        yield


def hostile_download(chance: random.Random, folder: Path) -> str:
    with hostile(chance, CONTENT) as (name, server), downloads(server, folder, 2):
        try:
            path = local_path(SOURCE)
        except QabenchError as error:
            check_message(name, str(error))
            if any(path.name == "x.json" for path in folder.rglob("*") if path.is_file()):
                raise AssertionError(f"{name}: an unverified file has its final name") from None
            return "one error"
        if path.read_bytes() != CONTENT:
            raise AssertionError(f"{name}: wrong content")
        return "right file"


def flaky(chance: random.Random, good: bytes, losses: int) -> Callable[[bytes], Bytes]:
    """Loses the connection at a random byte, so many times; then all is well. Ranges are served."""
    left = [losses]

    def script(request: bytes) -> Bytes:
        start = 0
        for line in request.lower().split(b"\r\n"):
            if line.startswith(b"range: bytes="):
                start = int(line.removeprefix(b"range: bytes=").rstrip(b"-"))
        body = good[start:]
        more = {"Content_Range": f"bytes {start}-{len(good) - 1}/{len(good)}"} if start else {}
        answer = head("206 Partial Content" if start else "200 OK", len(body), **more) + body
        if left[0] > 0:
            left[0] -= 1
            yield answer[: chance.randrange(len(answer))]
            yield chance.choice((RESET, 0.0, 0.05))
            return
        yield answer

    return script


def lost_network(chance: random.Random, folder: Path) -> str:
    """The network is lost in the middle of replies, up to four times in a row, and comes back."""
    kind, losses = chance.choice(("chat", "wiki", "download")), chance.randint(1, 4)
    good = {"chat": CHAT, "wiki": PAGE, "download": CONTENT}[kind]
    server = RawServer(flaky(chance, good, losses))
    try:
        with mock.patch.dict(os.environ, {"NO_PROXY": "127.0.0.1"}):
            if kind == "chat":
                reply = ask(server, folder, 5, PATIENCE).reply
                right = reply is not None and reply.text == "the reply"
            elif kind == "wiki":
                with wiki_at(server, folder, PATIENT, PATIENCE) as wiki:
                    right = wiki.content(ROW).strip() == "The text."
            else:
                with downloads(server, folder, 6, PATIENCE):
                    right = local_path(SOURCE).read_bytes() == CONTENT
    finally:
        server.close()
    if not right or server.requests != losses + 1:
        raise AssertionError(f"{kind}: {server.requests} requests after {losses} losses")
    return f"right {kind}"


CAMPAIGNS = [
    Campaign("hostile-chat", "hostile server of a model", "right reply or one reason", hostile_chat, 6),
    Campaign("hostile-wiki", "hostile wiki", "right page or one error, nothing cached", hostile_wiki, 6),
    Campaign("hostile-download", "hostile server of files", "verified file or one error", hostile_download, 6),
    Campaign(
        "network-loss", "connection lost 1-4 times in a reply", "right content, no request too many", lost_network, 10
    ),
]
