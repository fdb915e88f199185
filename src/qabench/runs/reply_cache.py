"""Runs keep replies in the cache of judges, in place of Inspect AI's, whose entries expire after a week by default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from qabench.llm.cache import ReplyCache

COUNTS = "replies"  # in the metadata of a sample: {"all": number of replies, "cached": those from the cache}
NAMESPACE = "runs"
FUNCTIONS = ("cache_fetch", "cache_store")  # of Inspect's module; it has no public way to replace them


@contextmanager
def one_reply_cache() -> Iterator[None]:
    """Makes Inspect's calls that may be cached use ``ReplyCache``, and counts replies in the metadata of samples.

    The key of a reply is Inspect's: a digest of the model, the server, the messages, tools, options and the epoch.
    """
    from inspect_ai.model import _model

    cache = ReplyCache()
    before = {name: getattr(_model, name) for name in FUNCTIONS}
    for name, function in zip(FUNCTIONS, (_fetching(cache), _storing(cache)), strict=True):
        setattr(_model, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(_model, name, function)
        cache.close()


def _fetching(cache: ReplyCache) -> Any:
    from inspect_ai.model import ModelOutput

    def cache_fetch(entry: Any) -> ModelOutput | None:
        text = cache.text(_key(entry))
        if text is None:
            return None
        _count("cached")
        return ModelOutput.model_validate(json.loads(text))  # pydantic's own parser rejects lone surrogates

    return cache_fetch


def _storing(cache: ReplyCache) -> Any:
    def cache_store(entry: Any, output: Any) -> bool:
        _count()
        # A refusal is not kept, as in Inspect: tasks ask again after one.
        if output.error or any(choice.stop_reason == "content_filter" for choice in output.choices):
            return False
        text = json.dumps(output.model_dump(mode="json", exclude_none=True))
        cache.keep(_key(entry), text, entry.model, NAMESPACE)
        return True

    return cache_store


def _key(entry: Any) -> bytes:
    from inspect_ai.model._cache import _cache_key

    if entry.policy.expiry is not None:  # Inspect's default, which replaces None when a log is resumed
        entry.policy = entry.policy.model_copy(update={"expiry": None})
        entry.key = _cache_key(entry)
    return f"{NAMESPACE}/{entry.model}/{entry.key}".encode()


def _count(*kinds: str) -> None:
    from inspect_ai.solver._task_state import sample_state

    state = sample_state()
    if state is not None:
        counts = state.metadata.setdefault(COUNTS, {"all": 0, "cached": 0})
        for kind in ("all", *kinds):
            counts[kind] += 1
