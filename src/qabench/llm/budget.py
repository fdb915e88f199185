"""Estimates of the cost of calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from qabench.errors import InputError
from qabench.llm.exchange import ChatRequest

BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
EXPECTED_REPLY_TOKENS = 300
ESTIMATE = (
    f"tokens are estimated: {BYTES_PER_TOKEN} bytes of UTF-8 per token of the prompt, and {EXPECTED_REPLY_TOKENS} "
    "tokens per reply (or the limit of the request if it is lower)"
)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, in any currency: of prompts (``input``) and of replies (``output``)."""

    input: float
    output: float

    def __post_init__(self) -> None:
        if not (self.input >= 0 and self.output >= 0):
            raise InputError(f"the prices per million tokens are {self.input} and {self.output}; allowed: 0 or more")

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of a number of tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls that a run would make. Tokens are estimates (see ``ESTIMATE``).

    Attributes:
        calls: the number of requests that would be sent.
        cached: the number of requests whose replies are in the cache.
        prompt_tokens: estimated tokens of the prompts to be sent.
        completion_tokens: estimated tokens of their replies.
        cost: the estimated cost; None without prices.
    """

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON data, including how tokens were estimated."""
        return asdict(self) | {"estimate": ESTIMATE}


def plan_of(requests: Iterable[ChatRequest], cached: int, prices: Prices | None) -> Plan:
    """Return the plan for sending ``requests``, when ``cached`` others are in the cache."""
    sizes = [(prompt_tokens(request), reply_tokens(request)) for request in requests]
    prompts, replies = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
    return Plan(len(sizes), cached, prompts, replies, prices.cost(prompts, replies) if prices else None)


def prompt_tokens(request: ChatRequest) -> int:
    """Return the estimated number of tokens of a prompt. Real tokenizers need a download and differ by model."""
    sizes = [len(text.encode("utf-8", "replace")) for _, text in request.messages]
    return sum(-(-size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE for size in sizes)


def reply_tokens(request: ChatRequest) -> int:
    """Return the estimated number of tokens of a reply."""
    limits = [request.parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
    return min([EXPECTED_REPLY_TOKENS, *(limit for limit in limits if isinstance(limit, int))])
