"""Cost estimation and limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from qabench.errors import InputError
from qabench.llm.exchange import ChatRequest, Reply

BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
EXPECTED_REPLY_TOKENS = 300
ESTIMATE = (
    f"tokens are estimated: {BYTES_PER_TOKEN} bytes of UTF-8 per token of the prompt, and {EXPECTED_REPLY_TOKENS} "
    "tokens per reply (or the limit of the request if it is lower)"
)


class OverBudget(Exception):
    """A call was not made because it would exceed a limit."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, in any currency: of prompts (``input``) and of replies (``output``)."""

    input: float
    output: float

    def __post_init__(self) -> None:
        if not (self.input >= 0 and self.output >= 0):
            raise InputError(f"the prices per million tokens are {self.input} and {self.output}; allowed: 0 or more")

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of a number of tokens."""
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
        """The plan as JSON data, including how tokens were estimated."""
        return asdict(self) | {"estimate": ESTIMATE}


def plan_of(requests: Iterable[ChatRequest], cached: int, prices: Prices | None) -> Plan:
    """The plan for sending ``requests``, when ``cached`` others are in the cache."""
    sizes = [(prompt_tokens(request), reply_tokens(request)) for request in requests]
    prompts, replies = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
    return Plan(len(sizes), cached, prompts, replies, prices.cost(prompts, replies) if prices else None)


def prompt_tokens(request: ChatRequest) -> int:
    """The estimated number of tokens of a prompt. Real tokenizers need a download and differ by model."""
    sizes = [len(text.encode("utf-8", "replace")) for _, text in request.messages]
    return sum(-(-size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE for size in sizes)


def reply_tokens(request: ChatRequest) -> int:
    """The estimated number of tokens of a reply."""
    limits = [request.parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
    return min([EXPECTED_REPLY_TOKENS, *(limit for limit in limits if isinstance(limit, int))])


@dataclass(slots=True)
class Meter:
    """Counts calls and tokens, and rejects calls that would exceed the limits.

    A call in flight counts with its estimated tokens. A finished call counts with the tokens that the server reports,
    or with the estimate if it reports none. ``max_tokens`` can therefore be exceeded only by replies in flight that are
    longer than estimated. Failed calls count as calls.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reserved: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} is {value}; it must be at least 0")

    def start(self, request: ChatRequest) -> None:
        """Counts a call before it is made.

        Raises:
            OverBudget: the call would exceed a limit.
        """
        tokens = prompt_tokens(request) + reply_tokens(request)
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise OverBudget(f"the limit of {self.max_calls} calls (max_calls) was reached")
        spent = self.prompt_tokens + self.completion_tokens
        if self.max_tokens is not None and spent + self.reserved + tokens > self.max_tokens:
            raise OverBudget(
                f"the limit of {self.max_tokens} tokens (max_tokens) would be exceeded: {spent} are spent, "
                f"{self.reserved} in flight, and this call needs about {tokens}"
            )
        self.calls += 1
        self.reserved += tokens

    def end(self, request: ChatRequest, reply: Reply | None, may_cost: bool = True) -> None:
        """Counts the tokens of a finished call.

        Args:
            request: the request that was given to ``start``.
            reply: the reply; None if the call failed.
            may_cost: whether a failed call may have been billed; if so, it counts with its estimate.
        """
        prompt, completion = prompt_tokens(request), reply_tokens(request)
        self.reserved -= prompt + completion
        if reply or may_cost:
            given = (reply.prompt_tokens, reply.completion_tokens) if reply else (None, None)
            self.prompt_tokens += prompt if given[0] is None else given[0]
            self.completion_tokens += completion if given[1] is None else given[1]
