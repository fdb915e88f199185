"""The cache of model replies is listed by model, and cleared by model and age."""

from __future__ import annotations

from pathlib import Path

import pytest

from qabench.llm.cache import ReplyCache
from qabench.llm.exchange import ChatRequest, Reply
from qabench.llm.stores import clear, replies_path, stored_replies

REPLY = Reply("C", "stop", None, "m-1", "fp", 3, 4)

pytestmark = pytest.mark.usefixtures("cache")


def keep(*models: str) -> None:
    cache = ReplyCache()
    for model in models:
        request = ChatRequest(model, (("user", "u"),), {})
        cache.claim(request.key("http://a/v1"))
        cache.settle(request.key("http://a/v1"), request, REPLY)
    cache.keep(b"of a run", '{"x": 1}', "openai/m")
    cache.close()


def test_replies_of_judges_and_runs_are_listed() -> None:
    assert stored_replies() == [] and clear() == 0
    keep("m", "n")
    assert [(one.model, one.replies) for one in stored_replies()] == [("m", 1), ("n", 1), ("openai/m", 1)]
    of_a_run = stored_replies()[-1]
    assert of_a_run.bytes == 8 and of_a_run.oldest == of_a_run.newest


def test_one_model_is_cleared_with_and_without_provider() -> None:
    keep("m", "a_m", "axm", "M")
    assert clear("m") == 2  # not "M", and "_" is not a wildcard
    assert clear("a_m") == 1
    assert {one.model for one in stored_replies()} == {"M", "axm"}


def test_recent_replies_are_kept() -> None:
    keep("m")
    assert clear(older_than=3600) == 0
    assert clear() == 2
    assert stored_replies() == []


def test_a_cache_cleared_during_a_run_goes_on(cache: Path) -> None:
    running = ReplyCache()
    running.keep(b"1", "{}", "m")
    assert clear() == 1 and replies_path().is_file()
    running.keep(b"2", "{}", "m")
    assert running.text(b"1") is None and running.text(b"2") == "{}"
    running.close()
