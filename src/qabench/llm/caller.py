"""A model at an endpoint, with the limits and the prices of calls to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from qabench.data.rows import without_none
from qabench.errors import InputError, unknown_name
from qabench.llm.endpoint import (
    IN_PROCESS,
    Endpoint,
    inspect_endpoint,
    is_inspect_model,
    resolve_endpoint,
)

LEAST = {"concurrency": 1, "retries": 0, "timeout": 0.001, "max_calls": 0}


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens of prompts (``input``) and replies (``output``)."""

    input: float
    output: float

    def __post_init__(self) -> None:
        if not (self.input >= 0 and self.output >= 0):
            raise InputError(
                f"the prices per million tokens are {self.input} and {self.output}; allowed: 0 or more"
            )

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of a number of tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


@dataclass(frozen=True)
class Caller:
    """A model at an endpoint, and the limits of calls to it.

    Attributes:
        concurrency: the maximum number of calls in flight.
        retries: how often a call that fails for a transient reason is repeated.
        timeout: seconds for one call, from sending to the last byte. Infinite by default for models
            in this process.
        max_calls: the maximum number of calls of a client, including retries.
        model_args: arguments of the provider, if it is an Inspect AI model.
    """

    endpoint: Endpoint
    model: str
    concurrency: int = 20
    retries: int = 5
    timeout: float = 120.0
    max_calls: int | None = None
    prices: Prices | None = None
    model_args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise InputError(f"{name} is {value}; it must be at least {least}")


def caller_for(
    model: str, base_url: str | None = None, api_key: str | None = None, **limits: Any
) -> Caller:
    """Return the caller of a model at an endpoint (see ``resolve_endpoint``).

    A name such as "anthropic/NAME" without a base URL names an Inspect AI model. Limits and prices
    are fields of ``Caller``. None as a value means the default.

    Raises:
        InputError: no model is given, a limit is unknown or out of range, or the base URL is
            invalid.
    """
    names = list(Caller.__dataclass_fields__)[2:]
    for name in limits.keys() - set(names):
        raise unknown_name("unknown limit", name, names)
    if not model:
        raise InputError("no evaluator model was given: set model=...")
    if is_inspect_model(model, base_url):
        endpoint = inspect_endpoint(model, limits.get("model_args") or {})
        # A model in this process may be slow but is never unreachable, so its calls have no
        # timeout.
        if model.startswith(IN_PROCESS) and limits.get("timeout") is None:
            limits["timeout"] = inf
    else:
        if limits.get("model_args"):
            raise InputError(
                "model_args are for Inspect AI models, such as anthropic/NAME, without a base URL"
            )
        endpoint = resolve_endpoint(base_url, api_key)
    return Caller(endpoint, model, **without_none(limits))
