"""Requests to chat models and their replies, with a limit of the size of replies, applied while they are read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from qabench.data.rows import Json
from qabench.evaluation.scoring import Messages
from qabench.io.addresses import origin
from qabench.io.http_error import HttpError, text_of
from qabench.io.limits import MAX_REPLY_CHARACTERS, TooLarge, json_of
from qabench.io.tables import quoted, redacted

SURROGATE = re.compile("[\ud800-\udfff]")
TOO_LONG = "the prompt is longer than the model's context"
MAX_REPLY_BYTES = MAX_REPLY_CHARACTERS
MAX_TOKENS = 10**9  # of one call. A server that reports more reports nothing


class UnreadableReply(HttpError):
    """A response with status 200 that is not a chat completion."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a chat model: (role, text) in order, and other fields of the request such as temperature.

    Attributes:
        namespace: cached replies of other namespaces are not used (FanOutQA's ``llm_cache_key``: a
            name for the system under test).
    """

    model: str
    messages: Messages
    parameters: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = ""

    def key(self, base_url: str) -> bytes:
        """Return a digest of everything that the reply depends on, including the namespace."""
        # 0 was the number of the reply, in replies of older versions
        parts = [base_url, self.model, self.messages, dict(self.parameters), 0, self.namespace]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("ascii")).digest()

    def body(self) -> Json:
        """Return the arguments of ``chat.completions.create``."""
        # Generated text can contain lone surrogates, which UTF-8 cannot encode.
        messages = [
            {"role": role, "content": SURROGATE.sub("\ufffd", text)} for role, text in self.messages
        ]
        return {"model": self.model, "messages": messages, **self.parameters}


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply ("" if there is none), and what the server reports about it, else None."""

    text: str
    finish_reason: str | None = None  # "stop". "length" if it was truncated. "content_filter"
    refusal: str | None = None
    model: str | None = None
    fingerprint: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    @property
    def is_empty(self) -> bool:
        """Tell whether the reply has no text, and is not a refusal."""
        refused = self.refusal is not None or self.finish_reason == "content_filter"
        return not self.text.strip() and not refused


@dataclass(frozen=True, slots=True)
class ChatOutcome:
    """A reply, or the reason why it is missing.

    A ``cached`` reply cost nothing.
    """

    reply: Reply | None = None
    reason: str | None = None
    cached: bool = False


def read_document(body: str) -> Json:
    """Return the JSON object in the body of a response, or raise UnreadableReply."""
    try:
        document = json_of(body, MAX_REPLY_CHARACTERS)
    except TooLarge as error:
        raise UnreadableReply(f"the reply is too large: {error}") from None
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UnreadableReply(f"the reply is not a JSON object: {quoted(body, 80)}", transient=True)
    return document


def read_reply(body: str) -> Reply:
    """Return the reply in the body of a response, or raise UnreadableReply."""
    document = read_document(body)
    if error := document.get("error"):  # some gateways report a provider's failure with status 200
        raise UnreadableReply(f"the reply is an error: {quoted(error, 200)}", transient=True)
    try:
        choice = document["choices"][0]
        message = choice["message"]
        content = message.get("content") or ""
        if isinstance(content, list):  # some servers return parts
            parts = [part for part in content if isinstance(part, dict)]
            content = "".join(part["text"] for part in parts if part.get("type") == "text")
    except (AttributeError, LookupError, TypeError, ValueError):
        content = None
    if not isinstance(content, str):
        shown = quoted(body, 120)
        raise UnreadableReply(f"the reply is not a chat completion: {shown}", transient=True)
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Reply(
        content,
        finish_reason=_text(choice.get("finish_reason")),
        refusal=_text(message.get("refusal")),
        model=_text(document.get("model")),
        fingerprint=_text(document.get("system_fingerprint")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None


@contextmanager
def limited_replies() -> Iterator[None]:
    """Limit the replies to the clients of Inspect's providers, and let only Inspect repeat calls.

    This replaces a method for the whole process, because not every provider has an option for its
    client, those that have one make new clients without it, and Inspect would write the option to
    the log. A reply that is too large, or that is not JSON, becomes a response with an error,
    because clients repeat a call that ends with an exception. If the client reads it piece by
    piece, it ends with an exception. The openai package would repeat calls, too, next to Inspect.
    """
    from openai import AsyncOpenAI

    defaults: Any = AsyncOpenAI.__init__.__kwdefaults__
    with ExitStack() as stack:
        stack.callback(defaults.update, max_retries=defaults["max_retries"])
        defaults["max_retries"] = 0
        for name in ("httpx", "httpx2"):
            with suppress(ImportError):
                package = import_module(name)
                client = package.AsyncClient
                stack.callback(setattr, client, "send", client.send)
                client.send = _limited(client.send, package)
        yield


class CallGate:
    """Counts calls before they are sent, and keeps back those beyond a limit.

    A call beyond the limit waits until it is cancelled.

    Attributes:
        most: the number of calls that may be sent.
        sent: the number of calls so far.
        in_flight: those without a reply so far.
        waiting: the number of calls that are kept back.
        on_refused: called when a call is kept back.
    """

    def __init__(self, most: int, on_refused: Callable[[], None]) -> None:
        self.most, self.on_refused = most, on_refused
        self.sent = self.in_flight = self.waiting = 0

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Reserve a call, and release it when it has ended."""
        # No other task runs between the comparison and the count.
        if self.sent >= self.most:
            import anyio

            self.waiting += 1
            self.on_refused()
            await anyio.sleep_forever()
        self.sent += 1
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1


_GATES: list[CallGate] = []  # of the run in progress
FIRST_ORIGIN = "qabench_first_origin"  # an extension of requests
COUNTED = "qabench_counted"  # an extension of requests: the clients can be limited twice


@contextmanager
def gated_calls(gate: CallGate | None) -> Iterator[None]:
    """Count the calls of clients that ``limited_replies`` limits, with a gate."""
    _GATES[:] = [gate] if gate else []
    try:
        yield
    finally:
        _GATES.clear()


async def _refuse_redirect(request: Any) -> None:
    """Raise HttpError for a redirect to another host, or from https to http.

    Clients would send the prompt there, and keys in other headers than Authorization.
    """
    url = str(request.url)
    scheme, host, _ = origin(url)
    # A request and its redirects share their extensions.
    first_scheme, first_host, _ = request.extensions.setdefault(FIRST_ORIGIN, origin(url))
    if (first_scheme, scheme) == ("https", "http"):
        raise HttpError("redirect from https to http", f"{url}, which is not allowed")
    if host != first_host:
        raise HttpError("redirect to another host", f"{url}, which is not allowed")


def _limited(unlimited: Callable[..., Awaitable[Any]], package: Any) -> Callable[..., Awaitable[Any]]:
    from qabench.io.transport import MAX_REDIRECTS, make_safe

    async def send(client: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        if _GATES and request.method == "POST" and not request.extensions.get(COUNTED):
            request.extensions = {**request.extensions, COUNTED: True}
            async with _GATES[0].call():
                return await send(client, request, stream=stream, **options)
        client.max_redirects = min(client.max_redirects, MAX_REDIRECTS)
        if request.method == "POST":
            request.extensions.pop(FIRST_ORIGIN, None)  # of an earlier attempt
            hooks = client.event_hooks
            if _refuse_redirect not in hooks["request"]:
                client.event_hooks = {**hooks, "request": [*hooks["request"], _refuse_redirect]}
        try:
            response = await unlimited(client, request, stream=True, **options)
        except (package.TooManyRedirects, HttpError) as error:  # Inspect would repeat it
            is_ours = isinstance(error, HttpError)
            message = str(error) if is_ours else f"too many redirects: more than {MAX_REDIRECTS}"
            body = json.dumps({"error": {"message": message}}).encode()
            return package.Response(400, content=body, request=request)
        make_safe(response, MAX_REPLY_BYTES)
        if stream:
            return response
        try:
            await response.aread()
            if response.is_success and request.url.path.endswith("/completions"):
                read_document(text_of(response))
            if response.is_success:
                return response
            # Inspect writes what a server says about a failure to the log.
            status, headers = response.status_code, response.headers
            headers.pop("content-encoding", None)
            body = redacted(text_of(response)).encode(response.encoding or "utf-8", "replace")
        except HttpError as error:
            status, headers = 400 if isinstance(error, UnreadableReply) else 413, {}
            body = json.dumps({"error": {"message": str(error)}}).encode()
        finally:
            await response.aclose()
        return package.Response(status, headers=headers, content=body, request=request)

    return send


def too_long(output: Any) -> bool:
    """Tell whether an output of Inspect AI is a server's error about a prompt that is too long, not a reply.

    Inspect returns the text of the error as a reply that stopped at the length. A real reply has
    used tokens.
    """
    return bool(output.choices) and output.stop_reason == "model_length" and output.usage is None
