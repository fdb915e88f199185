"""What LLM-driven evaluators share: a model with its limits, how a reply becomes text or a reason, and what it took."""

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
from qabench.llm.retry import RetryPolicy

RESERVED = {"model", "messages", "stream", "n"}  # a request's own; not among its parameters


@dataclass(frozen=True)
class Caller:
    """A model at an endpoint, and the limits of calls to it; see ``ChatClient`` for these."""

    endpoint: Endpoint
    model: str
    concurrency: int = 20
    retries: int = 5
    timeout: float = 120.0
    max_calls: int | None = None
    max_tokens: int | None = None
    prices: Prices | None = None

    def client(self, cache: ReplyCache | None = None) -> ChatClient:
        """A client with these limits."""
        return ChatClient(
            self.endpoint,
            cache,
            concurrency=self.concurrency,
            retry=RetryPolicy(self.retries),
            timeout=self.timeout,
            max_calls=self.max_calls,
            max_tokens=self.max_tokens,
        )


def caller_for(model: str, base_url: str | None = None, api_key: str | None = None, **limits: Any) -> Caller:
    """The caller of a model.

    Args:
        model: its name at the endpoint.
        base_url, api_key: see ``qabench.llm.endpoint.resolve_endpoint``.
        **limits: the other fields of ``Caller``; None as a value leaves one at its default.

    Raises:
        InputError: no model, a limit that is unknown or out of range, or a base URL that cannot be used.
    """
    if unknown := set(limits) - set(Caller.__dataclass_fields__):
        allowed = ", ".join(list(Caller.__dataclass_fields__)[2:])
        raise InputError(f"unknown limits {', '.join(sorted(unknown))}; allowed: {allowed}")
    if not model:
        raise InputError("name the model that is to evaluate")
    given = {name: value for name, value in limits.items() if value is not None}
    caller = Caller(resolve_endpoint(base_url, api_key), model, **given)
    caller.client()  # refuses what is out of range before any work is done
    return caller


def merged(defaults: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """A request's parameters: the defaults with the user's; None as a value takes one out.

    Raises:
        InputError: one that is the request's own, or no JSON.
    """
    chosen = {name: value for name, value in {**defaults, **(parameters or {})}.items() if value is not None}
    if reserved := RESERVED & set(chosen):
        raise InputError(f"parameters must not hold {', '.join(sorted(reserved))}")
    try:
        json.dumps(chosen)
    except (TypeError, ValueError) as error:
        raise InputError(f"parameters must be JSON data: {error}") from None
    return chosen


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply's text, or why there is none; ``cut_off`` where the model ran into its limit of tokens."""

    text: str | None = None
    reason: str | None = None
    cut_off: bool = False


def answered(outcome: Outcome) -> Answered:
    """What became of a request: a refusal or an empty reply is a reason, too."""
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
    """What a run took.

    Attributes:
        calls: HTTP calls made, retries among them. cached: replies that were known before.
        prompt_tokens, completion_tokens: of the calls made. cost: by the prices given; None without.
    """

    calls: int
    retried: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON data, without a cost that is not known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def usage_of(caller: Caller, client: ChatClient, outcomes: Sequence[Outcome]) -> Usage:
    """What the client's calls for these outcomes took."""
    meter = client.meter
    return Usage(
        meter.calls,
        client.retried,
        sum(outcome.cached for outcome in outcomes),
        meter.prompt_tokens,
        meter.completion_tokens,
        caller.prices.cost(meter.prompt_tokens, meter.completion_tokens) if caller.prices else None,
    )


def models_of(outcomes: Sequence[Outcome]) -> list[str]:
    """The models that the server says it ran, with their fingerprints."""
    replies = [outcome.reply for outcome in outcomes if outcome.reply and outcome.reply.model]
    return sorted({" ".join(filter(None, (reply.model, reply.fingerprint))) for reply in replies})
