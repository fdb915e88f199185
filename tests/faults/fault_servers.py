"""Hostile servers: the right content or one error, within the limits of time and size."""

import gzip
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest import mock

from fault_harness import Campaign
from loopback import RESET, Bytes, RawServer
from openai_server import completion

from qabench.errors import QabenchError
from qabench.io.http import HttpClient, Retry
from qabench.io.limits import Limits
from qabench.io.redaction import printable
from qabench.llm import client as llm_client
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Caller
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest
from qabench.llm.routing import client_for
from qabench.retrieval.wiki.cache import WikiCache
from qabench.retrieval.wiki.mediawiki import MediaWiki

KEY = "sk-hostile-0123456789"
LIMIT = 1 << 20  # bytes of a reply or page
MOST_TAKEN = 16 * LIMIT  # in two tries, each with up to 7 MiB in the buffers of the system
TIMEOUT = 1.5  # seconds of a call to a hostile server
MOST_SECONDS = 60.0  # of a case, on a machine that is busy with other work
CHAT = json.dumps(completion("the reply")).encode()
llm_client.FIRST_WAIT = 0.01
PAGE = json.dumps({"parse": {"text": "<p>The text.</p>", "title": "T", "pageid": 1, "revid": 1001}}).encode()
ROW = {"title": "T", "pageid": 1, "revid": 1001, "url": ""}
QUICK = Retry(attempts=2, first_wait=0.005, longest_wait=0.5)


def head(status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close"]
    lines += [] if "Content_type" in headers else ["Content-Type: application/json"]
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

    def slow_headers(_: bytes) -> Bytes:
        yield b"HTTP/1.1 200 OK\r\n"
        for number in range(100):
            yield b"X-%d: y\r\n" % number
            yield TIMEOUT / 20

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
        "endless headers": endless(b"a", b"HTTP/1.1 200 OK\r\nX: "),
        "gzip bomb": just(head(length=len(bomb), Content_Encoding="gzip"), bomb),
        "wrong coding": just(head(length=len(good), Content_Encoding="gzip"), good),
        "too long a length": just(head(length=len(good) + 100), good),
        "odd length": just(head(length=None, Content_Length=chance.choice(("-1", "x", "9" * 30))), good),
        "malformed status": just(chance.choice((b"HTTP/9.9 abc\r\n\r\n", b"\r\n\r\n", junk + b"\r\n\r\n"))),
        "malformed body": just(head(length=len(junk)), junk),
        "malformed chunks": just(head(Transfer_Encoding="chunked"), b"zz\r\n" + good),
        "deep body": just(head(length=30_000), b'{"a":' * 6000),
        "control characters": just(head("418 \x1b[31m\x07", 5), b"\x1b]0;x"),
        "redirect elsewhere": redirect("http://127.0.0.2:9/x"),
        "redirect to a file": redirect("file:///etc/passwd"),
        "key in the error": echo,
        "malformed redirect": redirect("http://[::1"),
        "no content": just(head("204 No Content")),
        "odd charset": just(head("400 Bad", 2, Content_type="text/html; charset=idna") + b"\xe4x"),
        "slow headers": slow_headers,
        "reset": just(RESET),
        "reset in the reply": just(head(length=len(good)), good[:cut], RESET),
        "good": just(head(length=len(good)), good),
    }


@contextmanager
def hostile(chance: random.Random, good: bytes) -> Iterator[tuple[str, RawServer]]:
    found = behaviors(chance, good)
    name = chance.choice(list(found))
    server = RawServer(found[name])
    begin = time.monotonic()
    variables = {"FANOUTQA_OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1,127.0.0.2"}
    variables |= {"QABENCH_OFFLINE": "0", "HF_HUB_OFFLINE": "0"}
    try:
        limited = mock.patch.object(llm_client, "MAX_REPLY_BYTES", LIMIT)
        with limited, mock.patch.dict(os.environ, variables):
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


def hostile_chat(chance: random.Random, folder: Path) -> str:
    with hostile(chance, CHAT) as (name, server):
        cache = ReplyCache(folder / "replies.sqlite")
        client = client_for(Caller(Endpoint(f"{server.url}/v1", KEY), "m", retries=1, timeout=TIMEOUT), cache)
        (outcome,) = client.complete([ChatRequest("m", (("user", "q"),))])
        if outcome.reply is None:
            check_message(name, outcome.reason or "")
            return "one reason"
        if name != "good" or outcome.reply.text != "the reply":
            raise AssertionError(f"{name}: {outcome.reply!r:.100}")
        return "right reply"


def hostile_wiki(chance: random.Random, folder: Path) -> str:
    client = HttpClient(Limits(LIMIT, TIMEOUT), retry=QUICK)
    with hostile(chance, PAGE) as (name, server), closing(client):
        wiki = MediaWiki(f"{server.url}/w/api.php", cache=WikiCache(folder / "pages", []), client=client)
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


CAMPAIGNS = [
    Campaign("hostile-chat", "right reply or one reason", hostile_chat, 12),
    Campaign("hostile-wiki", "right page or one error, nothing cached", hostile_wiki, 12),
]
