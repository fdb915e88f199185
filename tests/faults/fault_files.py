"""Damaged caches and logs of runs: no score or text may change."""

import functools
import random
import tempfile
from pathlib import Path
from typing import Any

from fault_harness import Campaign, damaged

from qabench.benchmarks.fanoutqa.normalizer import NormalizedTextCache
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.llm.cache import ReplyCache
from qabench.llm.exchange import ChatRequest, Reply

FORMS = {f"Text {i} {'x' * (i * 37 % 300)}": f"form {i} {'y' * (i * 31 % 300)}" for i in range(250)}
REQUESTS = [ChatRequest("m", (("user", str(i)),)) for i in range(120)]
URL = "http://a/v1"
REPLIES = {request.key(URL): Reply(f"reply {i} {'z' * (i * 29 % 700)}") for i, request in enumerate(REQUESTS)}


@functools.cache
def text_cache_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "normalized.sqlite"
        NormalizedTextCache(path).put("key", FORMS)
        return path.read_bytes()


@functools.cache
def reply_cache_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        cache = ReplyCache(Path(folder) / "replies.sqlite")
        for request, (key, reply) in zip(REQUESTS, REPLIES.items(), strict=True):
            cache.store(key, request, reply)
        cache.close()
        return cache.path.read_bytes()


def damaged_text_cache(chance: random.Random, folder: Path) -> str:
    path = folder / "normalized.sqlite"
    path.write_bytes(damaged(text_cache_file(), chance))
    cache = NormalizedTextCache(path)
    found = cache.get("key", FORMS)
    if wrong := [text for text, form in found.items() if form != FORMS[text]]:
        raise AssertionError(f"{len(wrong)} wrong forms")
    cache.put("key", {text: form for text, form in FORMS.items() if text not in found})
    if any(form != FORMS[text] for text, form in NormalizedTextCache(path).get("key", FORMS).items()):
        raise AssertionError("a wrong form after storing")
    return _observed(len(found) == len(FORMS), cache.damaged, cache.usable)


def damaged_reply_cache(chance: random.Random, folder: Path) -> str:
    path = folder / "replies.sqlite"
    path.write_bytes(damaged(reply_cache_file(), chance))
    cache = ReplyCache(path)
    found = cache.find(REPLIES)
    for request, (key, reply) in zip(REQUESTS, REPLIES.items(), strict=True):
        if found.get(key, reply) != reply:
            raise AssertionError("another request's or a changed reply")
        stored = cache.store(key, request, reply)
        if stored != reply:
            raise AssertionError(f"{stored!r:.60} after storing {reply!r:.60}")
    cache.close()
    return _observed(len(found) == len(REPLIES), cache.damaged, cache.usable)


def _observed(complete: bool, damaged_entries: int, usable: bool) -> str:
    if not usable:
        return "file set aside with a warning"
    if damaged_entries:
        return "damaged entries ignored with a warning"
    return "equal" if complete else "entries missing"


@functools.cache
def log_file() -> tuple[bytes, Any]:
    """The log of a run on the sample, and what is read from it."""
    from inspect_ai import eval as inspect_eval
    from scripted_model import scripted

    from qabench.runs.log import read_run

    with tempfile.TemporaryDirectory() as folder:
        model = scripted(lambda messages: "Mars, 1998 and Lima", name="damage")
        options: dict[str, Any] = {"log_dir": folder, "display": "none", "limit": 6}
        inspect_eval("qabench/fanoutqa_closed_book", model, task_args={"config": "sample"}, **options)
        (path,) = Path(folder).glob("*.eval")
        return path.read_bytes(), content(read_run(path))


def content(evaluation: Evaluation) -> Any:
    return [evaluation.signatures, evaluation.model, evaluation.created, evaluation.expected, evaluation.records]


def damaged_log(chance: random.Random, folder: Path) -> str:
    from qabench.runs.log import read_run

    whole, expected = log_file()
    path = folder / "run.eval"
    path.write_bytes(damaged(whole, chance))
    try:
        found = content(read_run(path))
    except InputError:
        return "InputError"
    if found != expected:
        raise AssertionError("another text, score or count")
    return "equal"


CAMPAIGNS = [
    Campaign("text-cache", "right form or none", damaged_text_cache),
    Campaign("reply-cache", "right reply or none", damaged_reply_cache),
    Campaign("log", "same evaluation or InputError", damaged_log),
]
