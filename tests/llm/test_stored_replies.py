"""Stored replies by model, and ``qabench cache clear``, which shows what it deletes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from qabench.cli import app
from qabench.errors import InputError
from qabench.llm.cache import ReplyCache
from qabench.llm.exchange import ChatRequest, Reply
from qabench.llm.stored_replies import select, stored_replies

REQUEST = ChatRequest("m", (("system", "s"), ("user", "u")), {"temperature": 0, "seed": 1})
KEY = REQUEST.key("http://a/v1")
REPLY = Reply("C", "stop", None, "m-1", "fp", 3, 4)


def store(*models: str) -> None:
    cache = ReplyCache()
    for model in models:
        request = ChatRequest(model, (("user", "u"),), {})
        cache.store(request.key("http://a/v1"), request, REPLY)
    cache.close()


def test_stored_replies_are_listed_and_cleared(cache: Path) -> None:
    assert stored_replies() == [] and select().delete() == 0
    store("m", "openai/m", "a_m", "axm", "M")
    one_of_each = [(model, 1) for model in ("M", "a_m", "axm", "m", "openai/m")]
    assert [(row.model, row.replies) for row in stored_replies()] == one_of_each
    assert all(row.bytes > 8 for row in stored_replies())
    assert select().delete() == 5 and stored_replies() == []


def test_clear_shows_what_goes_and_asks(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def store() -> None:
        replies = ReplyCache()
        replies.store(KEY, REQUEST, Reply("yes", prompt_tokens=1200, completion_tokens=3))
        replies.close()

    def run(*options: str, typed: str = "") -> Result:
        return CliRunner().invoke(app, ["cache", "clear", *options], input=typed)

    store()
    nobody = run("--json")
    assert isinstance(nobody.exception, InputError) and nobody.stdout == "" and stored_replies()
    assert "m: 1 replies" in nobody.stderr and "1,200 prompt and 3 reply tokens" in nobody.stderr
    assert run("--yes", "--json").stdout == '{\n "deleted": 1\n}\n' and stored_replies() == []
    assert run().stdout == "deleted replies: 0\n"  # nothing to ask about
    store()
    monkeypatch.setattr("qabench.cli.machine._can_ask", lambda: True)
    assert run(typed="n\n").exit_code == 1 and stored_replies()
    assert run(typed="y\n").stdout.endswith("deleted replies: 1\n") and stored_replies() == []
