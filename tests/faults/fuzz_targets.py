"""Every reader and parser of text from outside, with the errors that it may raise and a few good
inputs.

A target takes bytes. It raises AssertionError for a wrong result, and nothing else than the errors
it documents.
"""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx2

from qabench.benchmarks.expertqa.claims import cut_sources, sentences
from qabench.benchmarks.expertqa.prompts import split_answer
from qabench.benchmarks.fanoutqa.judge import official_score, read_judgment
from qabench.benchmarks.fanoutqa.normalizer import after_lemmas, before_lemmas
from qabench.benchmarks.fastbook.runs import parse_corpus, parse_run_with_texts
from qabench.benchmarks.felm.scores import read_claims
from qabench.benchmarks.felm.scores import read_reply as read_felm_reply
from qabench.cli.run import parse_limit, parse_pairs
from qabench.data.answers import dumps, loads, text_of
from qabench.data.predictions import parse_predictions
from qabench.errors import QabenchError
from qabench.evaluation.signature import parse as parse_signature
from qabench.io.http_error import retry_after
from qabench.io.limits import json_of, toml_of, yaml_of
from qabench.io.redaction import printable
from qabench.llm.endpoint import clean_url
from qabench.llm.exchange import UnreadableReply
from qabench.llm.exchange import read_reply as read_chat_reply
from qabench.loading_scripts.fastbook.chunks import cut_spans
from qabench.retrieval.bm25.tokenizers import words
from qabench.retrieval.wiki.chunk import chunk_text
from qabench.retrieval.wiki.kiwix import _read_feed
from qabench.retrieval.wiki.markdown import to_markdown
from qabench.retrieval.wiki.mediawiki import _read_answer
from qabench.retrieval.wiki.page import WikiPage


@dataclass(frozen=True)
class Target:
    """A function of bytes, the errors that it may raise, good inputs, and its share of all inputs."""

    call: Callable[[bytes], object]
    allowed: tuple[type[Exception], ...]
    seeds: Sequence[bytes]
    share: int = 10


def _text(data: bytes) -> str:
    """Any string: other bytes than UTF-8 become lone surrogates, as JSON can contain them."""
    return data.decode("utf-8", "surrogateescape")


def _answer(data: bytes) -> httpx2.Response:
    return httpx2.Response(200, content=data)


def _loads(data: bytes) -> None:
    value = loads(_text(data))
    try:
        written = dumps(value)
    except QabenchError:
        return
    if repr(loads(written)) != repr(value):
        raise AssertionError("another value after writing and reading")
    text_of(value)


def _judgment(data: bytes) -> None:
    reply = _text(data)
    found = read_judgment(reply, "stop")
    if reply.strip() and found.score != official_score(reply):
        raise AssertionError("not the official score")


def _felm(data: bytes) -> None:
    for reply_format in ("answer", "vicuna"):
        try:
            found = read_felm_reply(_text(data), 7, reply_format)
        except QabenchError:
            return
        if len(found.official) != 7:
            raise AssertionError("not one verdict per segment")


def _chunks(data: bytes) -> None:
    text = _text(data)
    for chunk in chunk_text(text, 64):
        if len(chunk) > 64 and " " in chunk.strip():
            raise AssertionError("a chunk is too long")
    for start, end in cut_spans(text, 20, 0):
        if not 0 <= start < end <= len(text):
            raise AssertionError("a span outside the text")


def _printable(data: bytes) -> None:
    if any((ord(one) < 32 and one not in "\n\t") or 0xD800 <= ord(one) < 0xE000 for one in printable(_text(data))):
        raise AssertionError("a control character is printed")


def _page(data: bytes) -> None:
    value = json_of(data)
    with contextlib.suppress(QabenchError):
        WikiPage.of(value)


def _utf8(function: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: function(_text(data))


ANSWER = json.dumps({"a": [1, "x é", None], "b": {"c": 0.5, "d": True}}).encode()
CHAT = json.dumps({"choices": [{"message": {"content": "C"}, "finish_reason": "stop"}], "usage": {}}).encode()
WIKI = json.dumps({"query": {"pages": [{"pageid": 1, "title": "A", "revisions": [{"revid": 2}]}]}}).encode()
FEED = b"<rss><channel><item><title>T</title><link>/content/b/T</link></item></channel></rss>"
PROSE = b"Dr. A (e.g. B) says so. [1] It is 1,234.5 m? Yes!\n\n- one\n- two\nSources:\n[1] https://a.b/c?d=e"
HTML = b'<div><h2>T</h2><p>a <a href="x">b</a></p><table><tr><td colspan="2">c</td></tr></table><ul><li>d</ul></div>'
LINES = b'{"id": "a", "answer": [1, "x"]}\n{"id": "b", "answer": {"k": 2.5}}\n'
RUN = b"q1 Q0 1-0 1 0.5 tag\nq1 Q0 1-1 2 0.25 tag\n"
TEXTS = {"1-0": "a", "1-1": "b"}
OWN = (QabenchError,)

TARGETS: dict[str, Target] = {
    "json": Target(json_of, (ValueError,), [ANSWER]),
    "yaml": Target(_utf8(yaml_of), (ValueError,), [b"a: [1, &x 2, *x]\nb: {c: d}\n- e"], 1),
    "toml": Target(_utf8(toml_of), (ValueError,), [b'a = "x"\n[b]\nc = [1, 2.5]\n'], 3),
    "answers": Target(_loads, OWN, [ANSWER, b'"x"', b"[[1], {}]"]),
    "chat-reply": Target(_utf8(read_chat_reply), (UnreadableReply,), [CHAT]),
    "judge-reply": Target(_judgment, OWN, [b"They agree.\nC", b"(B", b"The same"]),
    "felm-reply": Target(_felm, OWN, [b"Answer: 1, 3", b"ALL_CORRECT", rb"ALL\_CORRECT", b"segment 2 and 4"]),
    "felm-claims": Target(lambda data: read_claims(_text(data), 5), OWN, [b"claim 1. The sky is blue. (segment 1)"]),
    "predictions": Target(lambda data: parse_predictions(data, "f"), OWN, [LINES, b"[%b]" % LINES.split(b"\n")[0]], 3),
    "trec-run": Target(lambda data: parse_run_with_texts(data, "f", TEXTS), OWN, [RUN], 5),
    "trec-corpus": Target(lambda data: parse_corpus(data, "f"), OWN, [b'{"docno": "1-0", "text": "a"}\n'], 5),
    "wiki-answer": Target(lambda data: _read_answer(_answer(data)), OWN, [WIKI], 5),
    "wiki-feed": Target(lambda data: _read_feed(_answer(data)), OWN, [FEED], 3),
    "wiki-page": Target(_page, (ValueError,), [b'{"title": "A", "pageid": 5, "revid": null, "url": ""}']),
    "markdown": Target(_utf8(to_markdown), OWN, [HTML], 1),
    "expertqa-answer": Target(_utf8(split_answer), OWN, [PROSE], 5),
    "expertqa-sentences": Target(_utf8(sentences), OWN, [PROSE], 5),
    "expertqa-sources": Target(lambda data: cut_sources(_text(data)), OWN, [PROSE], 5),
    "chunks": Target(_chunks, OWN, [PROSE], 3),
    "words": Target(_utf8(words), OWN, [PROSE]),
    "normalize": Target(lambda data: after_lemmas(before_lemmas(_text(data))), OWN, [PROSE, "sÃ©e ½".encode()], 2),
    "printable": Target(_printable, OWN, [b"\x1b[31m https://a/b?api-key=x \xc2\x9b"], 5),
    "url": Target(_utf8(clean_url), OWN, [b"http://localhost:8000/v1/", b"hf", b"https://a.b/c?d=e"], 5),
    "retry-after": Target(
        lambda data: retry_after({"retry-after": _text(data)}), (), [b"12", b"Wed, 21 Oct 2015 07:28:00 GMT"]
    ),
    "limit": Target(_utf8(parse_limit), OWN, [b"5", b"3-9"]),
    "option": Target(lambda data: parse_pairs("-T", [_text(data)]), OWN, [b"a=1", b"b={x: [1]}"], 1),
    "signature": Target(_utf8(parse_signature), (ValueError,), [b"acc|config:dev|n:3"]),
}


def check(target: Target, data: bytes) -> None:
    """Runs one input. Raises whatever the target is not allowed to raise."""
    with contextlib.suppress(target.allowed):
        target.call(data)
