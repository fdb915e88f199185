"""Requests to chat models and their replies, independent of the transport."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from qabench.io.limits import MAX_REPLY_CHARACTERS, TooLarge, json_of

SURROGATE = re.compile("[\ud800-\udfff]")


class UnreadableReply(Exception):
    """A response with status 200 that is not a chat completion; a ``too_large`` one is not worth another call."""

    def __init__(self, message: str, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a chat model.

    Attributes:
        model: the model's name at the endpoint.
        messages: (role, text) in order.
        parameters: other fields of the request's body, such as temperature and seed.
        sample: 0 for the first reply to this question, 1 for the second, and so on; each is cached separately.
        namespace: cached replies of other namespaces are not used (FanOutQA's ``llm_cache_key``: a name for the system
            under test).
    """

    model: str
    messages: tuple[tuple[str, str], ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sample: int = 0
    namespace: str = ""

    def key(self, base_url: str) -> bytes:
        """Return a digest of everything that the reply depends on, including the namespace."""
        parts = [base_url, self.model, self.messages, dict(self.parameters), self.sample, self.namespace]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("ascii")).digest()

    def body(self) -> dict[str, Any]:
        """Return the arguments of ``chat.completions.create``."""
        # Generated text can contain lone surrogates, which UTF-8 cannot encode.
        messages = [{"role": role, "content": SURROGATE.sub("\ufffd", text)} for role, text in self.messages]
        return {"model": self.model, "messages": messages, **self.parameters}


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply.

    Attributes:
        text: the message; "" if there is none.
        finish_reason: why it ended: "stop"; "length" if it was truncated; "content_filter".
        refusal: the text of the refusal if the server marks one.
        model: the model that the server reports.
        fingerprint: its ``system_fingerprint``.
        prompt_tokens: as counted by the server; None if it does not report them.
        completion_tokens: as ``prompt_tokens``.
    """

    text: str
    finish_reason: str | None = None
    refusal: str | None = None
    model: str | None = None
    fingerprint: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a request: a reply, or the reason why it is missing.

    Attributes:
        cached: whether the reply was in the cache; it cost nothing.
    """

    reply: Reply | None = None
    reason: str | None = None
    cached: bool = False


def read_reply(body: str, longest: int = MAX_REPLY_CHARACTERS) -> Reply:
    """Return the reply in the body of a response.

    The ``openai`` package accepts any JSON as a completion and any other body as a string, so the format is checked
    here.

    Raises:
        UnreadableReply: the body is not JSON, or not a chat completion; the message says which.
    """
    try:
        document = json_of(body, longest)
    except TooLarge as error:
        raise UnreadableReply(f"the reply is too large: {error}", too_large=True) from None
    except ValueError:
        raise UnreadableReply(f"the reply is not JSON: {body!r:.80}") from None
    if not isinstance(document, dict):
        raise UnreadableReply(f"the reply is a JSON {type(document).__name__}, not an object")
    if document.get("error"):  # some gateways report a provider's failure with status 200
        raise UnreadableReply(f"the reply is an error: {document['error']!r:.200}")
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise UnreadableReply(f"the reply has no choices[0].message: {body!r:.120}")
    usage = document.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Reply(
        text=_content(message.get("content")),
        finish_reason=_text(choice, "finish_reason"),
        refusal=_text(message, "refusal"),
        model=_text(document, "model"),
        fingerprint=_text(document, "system_fingerprint"),
        prompt_tokens=_count(counts, "prompt_tokens"),
        completion_tokens=_count(counts, "completion_tokens"),
    )


def _content(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # some servers return parts
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        if all(isinstance(part, str) for part in parts):
            return "".join(map(str, parts))
    raise UnreadableReply(f"the reply's content is {content!r:.80}; expected a string")


def _text(fields: Any, name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
