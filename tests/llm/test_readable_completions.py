"""A reply that was paid for is not lost because of what is beside its text."""

from typing import Any

import pytest
from openai_server import completion

from qabench.llm.exchange import BAD_GATEWAY, MAX_TOKENS, UnreadableReply, readable_completion

pytestmark = pytest.mark.quick


def changed(**fields: Any) -> dict[str, Any]:
    document = completion("Mars") | fields
    return {name: value for name, value in document.items() if value is not ...}


def test_a_good_reply_stays_as_it_is() -> None:
    assert readable_completion(completion("Mars"), "m") == completion("Mars")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (changed(model=...), changed(model="asked")),
        (changed(model=None), changed(model="asked")),
        (changed(usage=...), changed(usage=...)),
        (changed(usage="x"), changed(usage=...)),
        (changed(usage={"prompt_tokens": "x", "completion_tokens": 1}), changed(usage=...)),
        (changed(usage={"prompt_tokens": -5, "completion_tokens": 1, "total_tokens": -4}), changed(usage=...)),
        (changed(usage={"prompt_tokens": MAX_TOKENS + 1, "completion_tokens": 1}), changed(usage=...)),
        (
            changed(usage={"prompt_tokens": 100, "completion_tokens": 10}),
            changed(usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}),
        ),
        (completion([{"type": "text", "text": "Ma"}, {"type": "text", "text": "rs"}]), completion("Mars")),  # type: ignore[arg-type]
    ],
)
def test_what_is_beside_the_text_is_made_readable(document: Any, expected: Any) -> None:
    assert readable_completion(document, "asked") == expected


@pytest.mark.parametrize("choices", [None, [], [7], [{}], [{"message": {"content": 7}}], {"message": {}}, ...])
def test_what_is_not_a_completion_is_named(choices: Any) -> None:
    with pytest.raises(UnreadableReply, match="the reply is not a chat completion"):
        readable_completion(changed(choices=choices), "m")


@pytest.mark.parametrize(("code", "status"), [(429, 429), (401, 401), ("x", BAD_GATEWAY), (None, BAD_GATEWAY)])
def test_an_error_of_a_gateway_is_one(code: Any, status: int) -> None:
    with pytest.raises(UnreadableReply, match="the reply is an error: 'overloaded'") as raised:
        readable_completion({"error": {"message": "overloaded", "code": code}}, "m")
    assert raised.value.status == status and raised.value.transient
