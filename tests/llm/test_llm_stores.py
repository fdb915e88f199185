"""The stores of model replies are listed by model, and cleared by model and age."""

from __future__ import annotations

from pathlib import Path

import pytest

from qabench.llm.cache import ReplyCache
from qabench.llm.exchange import ChatRequest, Reply
from qabench.llm.stores import FOLDER_VARIABLE, clear, stores

REPLY = Reply("C", "stop", None, "m-1", "fp", 3, 4)


def keep(model: str) -> None:
    request = ChatRequest(model, (("user", "u"),), {})
    cache = ReplyCache()
    cache.claim(request.key("http://a/v1"))
    cache.settle(request.key("http://a/v1"), request, REPLY)
    cache.close()


@pytest.fixture(autouse=True)
def runs(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "inspect"))
    folder = tmp_path / "inspect" / "generate" / "openai" / "m"
    folder.mkdir(parents=True)
    (folder / "reply").write_text("12345")
    return folder


def test_replies_of_judges_and_runs_are_listed() -> None:
    keep("m")
    keep("n")
    found = [(store.kind, store.model, store.replies) for store in stores()]
    assert found == [("judges", "m", 1), ("judges", "n", 1), ("runs", "openai/m", 1)]


def test_one_model_is_cleared() -> None:
    keep("m")
    keep("n")
    assert clear("m") == 2
    assert [store.model for store in stores()] == ["n"]


def test_recent_replies_are_kept() -> None:
    keep("m")
    assert clear(older_than=3600) == 0
    assert len(stores()) == 2
    assert clear() == 2
    assert stores() == []
