"""Shared by LLM-based evaluators: a model with limits, reading replies, and usage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qabench.errors import InputError
from qabench.llm.budget import Prices
from qabench.llm.cache import ReplyCache
from qabench.llm.client import ChatClient
from qabench.llm.endpoint import Endpoint, resolve_endpoint
from qabench.llm.exchange import Outcome

RESERVED = {"model", "messages", "stream", "n"}  # set by the client; not allowed as parameters


@dataclass(frozen=True)
class Caller:
    """A model at an endpoint, and the limits of calls to it; see ``ChatClient`` for these."""

    endpoint: Endpoint
    model: str
    concurrency: int = 20
    retries: int = 5
    timeout: float = 120.0
    max_calls: int | None = None
    prices: Prices | None = None
    max_reply_bytes: int | None = None

    def client(self, cache: ReplyCache | None = None) -> ChatClient:
        """Return a client with these limits."""
        return ChatClient(
            self.endpoint,
            cache,
            concurrency=self.concurrency,
            retries=self.retries,
            timeout=self.timeout,
            max_calls=self.max_calls,
            max_bytes=self.max_reply_bytes,
        )


def caller_for(model: str, base_url: str | None = None, api_key: str | None = None, **limits: Any) -> Caller:
    """Return the caller of a model.

    Args:
        model: the model's name at the endpoint.
        base_url: see ``qabench.llm.endpoint.resolve_endpoint``.
        api_key: see ``qabench.llm.endpoint.resolve_endpoint``.
        **limits: the other fields of ``Caller``; None means the default.

    Raises:
        InputError: no model is given, a limit is unknown or out of range, or the base URL is invalid.
    """
    if unknown := set(limits) - set(Caller.__dataclass_fields__):
        allowed = ", ".join(list(Caller.__dataclass_fields__)[2:])
        raise InputError(f"unknown limits {', '.join(sorted(unknown))}; allowed: {allowed}")
    if not model:
        raise InputError("no evaluator model was given: set model=...")
    options = {name: value for name, value in limits.items() if value is not None}
    caller = Caller(resolve_endpoint(base_url, api_key), model, **options)
    caller.client()  # checks the limits before any work is done
    return caller


def merged(defaults: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parameters of a request: the defaults, updated with the user's. None as a value removes a parameter.

    Raises:
        InputError: a parameter is reserved for the client, or is not JSON data.
    """
    chosen = {name: value for name, value in {**defaults, **(parameters or {})}.items() if value is not None}
    if reserved := RESERVED & set(chosen):
        raise InputError(f"parameters must not contain {', '.join(sorted(reserved))}")
    try:
        json.dumps(chosen)
    except (TypeError, ValueError) as error:
        raise InputError(f"parameters must be JSON data: {error}") from None
    return chosen


@dataclass(frozen=True, slots=True)
class Answered:
    """The text of a reply, or the reason why it is missing; ``cut_off`` if the reply reached the token limit."""

    text: str | None = None
    reason: str | None = None
    cut_off: bool = False


def answered(outcome: Outcome) -> Answered:
    """Return the text of an outcome, or the reason why it is missing. Refusals and empty replies count as missing."""
    reply = outcome.reply
    if reply is None:
        return Answered(reason=outcome.reason or "no reply")
    if reply.refusal or reply.finish_reason == "content_filter":
        return Answered(reason=f"refused: {reply.refusal or reply.text or 'content filter'!r:.120}")
    cut_off = reply.finish_reason == "length"
    if not reply.text.strip():
        return Answered(reason="the reply is empty" + " (it was cut off)" * cut_off, cut_off=cut_off)
    return Answered(reply.text, cut_off=cut_off)


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls, tokens and cost of a run.

    Attributes:
        calls: the number of HTTP calls made, including retries.
        cached: the number of replies that were taken from the cache.
        prompt_tokens: tokens of the prompts of the calls made.
        completion_tokens: tokens of their replies.
        cost: the cost at the given prices; None without prices.
    """

    calls: int
    retried: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return the usage as JSON data; without ``cost`` if it is unknown."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def usage_of(caller: Caller, client: ChatClient, outcomes: Sequence[Outcome]) -> Usage:
    """Return the usage of the client's calls for these outcomes."""
    prompt, completion = client.prompt_tokens, client.completion_tokens
    cost = caller.prices.cost(prompt, completion) if caller.prices else None
    cached = sum(outcome.cached for outcome in outcomes)
    return Usage(client.calls, client.retried, cached, prompt, completion, cost)


def models_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the models that the server reports, with their fingerprints."""
    replies = [outcome.reply for outcome in outcomes if outcome.reply and outcome.reply.model]
    return sorted({" ".join(filter(None, (reply.model, reply.fingerprint))) for reply in replies})
