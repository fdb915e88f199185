"""Requests to chat models and their replies. The size of a reply is limited while it is read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from qabench.data.rows import Json
from qabench.evaluation.scoring import Messages
from qabench.io.addresses import origin
from qabench.io.http_error import MADE_HERE, HttpError, message_in, text_of
from qabench.io.limits import MAX_REPLY_CHARACTERS, TooLarge, json_of
from qabench.io.redaction import quoted, redacted
from qabench.llm.call_gate import gate_of_run

# JSON in UTF-8 cannot have lone surrogates, and servers reject them.
SURROGATE = re.compile("[\ud800-\udfff]")
TOO_LONG = "the prompt is longer than the model's context"
MAX_REPLY_BYTES = MAX_REPLY_CHARACTERS
# No call has this many tokens, so a server that reports more is not believed.
MAX_TOKENS = 10**9
# The status of a gateway that could not get a reply. Such calls are repeated.
BAD_GATEWAY = 502


class UnreadableReply(HttpError):
    """A response with status 200 that is not a chat completion."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model: its messages, as (role, text) in order, and further parameters.

    A parameter is any other field of the request, such as the temperature.
    """

    model: str
    messages: Messages
    parameters: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = ""

    def key(self, base_url: str) -> bytes:
        """Return a digest of everything that the reply depends on, including the namespace."""
        # The 0 stands for the number of the reply in older versions, so that their replies are
        # still found.
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
    """The text of a model's reply, or "", and what the server reports about it.

    A field is None if the server does not report it.
    """

    text: str
    # "stop", "length" if the reply was truncated, "content_filter", or None if unknown.
    finish_reason: str | None = None
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
    """A reply, or the reason why it is missing. A ``cached`` reply cost nothing."""

    reply: Reply | None = None
    reason: str | None = None
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """The text of a reply, or the reason why it is missing.

    Attributes:
        text: the text, or None.
        reason: why there is no text, or None.
        cut_off: whether the reply reached the limit of tokens.
    """

    text: str | None = None
    reason: str | None = None
    cut_off: bool = False

    @classmethod
    def of(cls, text: str, refusal: str | None = None, *, cut_off: bool = False) -> Answered:
        """Return the text of a reply, or why there is none: a refusal or an empty reply."""
        if refusal is not None:
            shown = quoted(refusal or text or "content filter", 120)
            return cls(reason=f"refused: {shown}")
        if not text.strip():
            return cls(reason="the reply is empty" + " (it was cut off)" * cut_off, cut_off=cut_off)
        return cls(text, cut_off=cut_off)


def answered(outcome: ChatOutcome) -> Answered:
    """Return the text of an outcome, or why it is missing: a failure, a refusal or an empty reply."""
    reply = outcome.reply
    if reply is None:
        return Answered(reason=outcome.reason or "no reply")
    refusal = reply.refusal or ("" if reply.finish_reason == "content_filter" else None)
    return Answered.of(reply.text, refusal, cut_off=reply.finish_reason == "length")


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
    if error := document.get("error"):
        # Some gateways report a provider's failure with status 200.
        raise UnreadableReply(f"the reply is an error: {quoted(error, 200)}", transient=True)
    try:
        choice = document["choices"][0]
        message = choice["message"]
        content = message.get("content") or ""
        if isinstance(content, list):
            # Some servers return a list of parts instead of a text.
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


def readable_completion(document: Json, asked_model: object) -> Json:
    """Return a chat completion in a form that every client reads.

    A reply that was paid for is not lost because of its other fields: some servers leave out the
    model or report an impossible usage. Some return the text in parts.

    Args:
        document: the body of a response with status 200.
        asked_model: the model in the request.

    Raises:
        UnreadableReply: it is an error of a gateway, or not a chat completion.
    """
    choices = document.get("choices")
    error = document.get("error")
    if error and not choices:
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else BAD_GATEWAY
        reason = f"the reply is an error: {quoted(message_in(document) or error, 200)}"
        raise UnreadableReply(reason, transient=True, status=status)
    readable = []
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        if isinstance(content, list):
            parts = [part for part in content if isinstance(part, dict)]
            content = "".join(str(part.get("text") or "") for part in parts)
        if content is None or isinstance(content, str):
            readable.append({**choice, "message": {**message, "content": content}})
    if not readable or len(readable) < len(choices or ()):
        shown = quoted(json.dumps(document), 120)
        raise UnreadableReply(f"the reply is not a chat completion: {shown}")
    document = {**document, "choices": readable}
    if not isinstance(document.get("model"), str):
        document["model"] = str(asked_model or "unknown")
    usage = document.pop("usage", None)
    if isinstance(usage, dict):
        prompt, reply = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if prompt is not None and reply is not None:
            total = _count(usage.get("total_tokens"))
            document["usage"] = {
                **usage,
                "total_tokens": prompt + reply if total is None else total,
            }
    return document


def _asked_model(request: Any) -> object:
    with suppress(ValueError, AttributeError):
        return json.loads(request.content).get("model")
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None


@contextmanager
def limited_replies() -> Iterator[None]:
    """Limit the replies that Inspect's providers receive, and let only Inspect repeat calls.

    This replaces ``AsyncClient.send`` for the whole process. An option for each provider's client
    would not be enough: not every provider has one, those that have one also create clients without
    it, and Inspect would write the option to the log.

    A reply that is too large or not JSON becomes a response with an error status, because clients
    repeat a call that ends with an exception. Only a client that streams the reply gets an
    exception.
    """
    from openai import AsyncOpenAI

    # The openai package repeats calls by default, in addition to Inspect.
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


# The request extension with the origin of the address that was called before any redirect.
FIRST_ORIGIN = "qabench_first_origin"
# The request extension that says that the gate has counted a call, because ``send`` can be replaced
# twice.
COUNTED = "qabench_counted"


async def _refuse_redirect(request: Any) -> None:
    """Raise HttpError for a redirect to another host, or from https to http.

    The client would repeat the prompt at the new address, with every header except Authorization,
    and some servers expect their keys in other headers.
    """
    url = str(request.url)
    scheme, host, _ = origin(url)
    # A request and its redirects share their extensions.
    first_scheme, first_host, _ = request.extensions.setdefault(FIRST_ORIGIN, origin(url))
    if (first_scheme, scheme) == ("https", "http"):
        raise HttpError("redirect from https to http", f"{url}, which is not allowed")
    if host != first_host:
        raise HttpError("redirect to another host", f"{url}, which is not allowed")


def _limited(
    unlimited: Callable[..., Awaitable[Any]], package: Any
) -> Callable[..., Awaitable[Any]]:
    """Return ``AsyncClient.send`` of a package with the limits of ``limited_replies``."""
    from qabench.io.transport import MAX_REDIRECTS, make_safe

    async def send(client: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        # A call to a model first waits for the gate. Then ``send`` is called again with the request
        # marked as counted, and skips this branch.
        gate = gate_of_run()
        if gate and request.method == "POST" and not request.extensions.get(COUNTED):
            request.extensions = {**request.extensions, COUNTED: True}
            async with gate.call():
                response = await send(client, request, stream=stream, **options)
                if response.is_success:
                    gate.note_reply()
                return response
        client.max_redirects = min(client.max_redirects, MAX_REDIRECTS)
        if request.method == "POST":
            # An earlier attempt may have left its origin.
            request.extensions.pop(FIRST_ORIGIN, None)
            hooks = client.event_hooks
            if _refuse_redirect not in hooks["request"]:
                client.event_hooks = {**hooks, "request": [*hooks["request"], _refuse_redirect]}
        try:
            response = await unlimited(client, request, stream=True, **options)
        except (package.TooManyRedirects, HttpError) as error:
            # Inspect would repeat the request after an exception, but not after a status of 400.
            is_ours = isinstance(error, HttpError)
            message = str(error) if is_ours else f"too many redirects: more than {MAX_REDIRECTS}"
            body = json.dumps({"error": {"message": message}}).encode()
            return package.Response(
                400, content=body, request=request, extensions={MADE_HERE: True}
            )
        make_safe(response, MAX_REPLY_BYTES)
        if stream:
            return response
        try:
            await response.aread()
            document = None
            if response.is_success and request.url.path.endswith("/completions"):
                document = read_document(text_of(response))
            if document is not None and request.url.path.endswith("/chat/completions"):
                readable = readable_completion(document, _asked_model(request))
                if readable != document:
                    return package.Response(
                        response.status_code, content=json.dumps(readable).encode(), request=request
                    )
            if response.is_success:
                return response
            # Inspect writes the body of a failure to the log, so secrets are removed from it.
            status, headers, extensions = response.status_code, response.headers, {}
            headers.pop("content-encoding", None)
            body = redacted(text_of(response)).encode(response.encoding or "utf-8", "replace")
        except HttpError as error:
            status = error.status or (400 if isinstance(error, UnreadableReply) else 413)
            headers, extensions = None, {MADE_HERE: True}
            body = json.dumps({"error": {"message": str(error)}}).encode()
        finally:
            await response.aclose()
        return package.Response(
            status, headers=headers, content=body, request=request, extensions=extensions
        )

    return send


def too_long(output: Any) -> bool:
    """Tell whether an Inspect AI output is a server's error about a prompt that is too long.

    Inspect returns the text of the error as a reply that stopped at the length limit. A real reply
    reports its usage of tokens.
    """
    return bool(output.choices) and output.stop_reason == "model_length" and output.usage is None
