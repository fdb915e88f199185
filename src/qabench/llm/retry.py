"""Which failed calls are retried, and how long to wait before each retry."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from qabench.errors import InputError
from qabench.io.http import retry_after
from qabench.llm.exchange import UnreadableReply
from qabench.llm.reasons import FATAL, reason_of

# 408 request timeout, 409 lock timeout, 425 too early, 429 too many requests; and every 5xx.
RETRIED = {408, 409, 425, 429}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after what delay a failed call is retried.

    Attributes:
        retries: the maximum number of retries.
        base: seconds before the first retry, doubled for each further one, up to ``cap``; a random part is subtracted,
            so that calls that failed together are not retried together.
        longest_wait: if the server asks (Retry-After) to wait longer than this many seconds, the call fails.
    """

    retries: int = 5
    base: float = 0.5
    cap: float = 30.0
    longest_wait: float = 300.0

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise InputError(f"retries is {self.retries}; it must be at least 0")

    def delay(self, retry: int) -> float:
        """Seconds before a retry, numbered from 0, if the server does not specify them."""
        return min(self.cap, self.base * 2.0 ** min(retry, 30)) * random.uniform(0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call failed, and what to do next.

    Attributes:
        retry: whether another call may succeed.
        fatal: whether every call to this endpoint will fail.
        unreachable: whether there is no server at the address; a server that has answered before may come back.
        wait: seconds that the server asked to wait; None if it did not.
        may_cost: whether the call may be billed nevertheless, because the model may have run.
    """

    reason: str
    retry: bool
    fatal: bool = False
    unreachable: bool = False
    wait: float | None = None
    may_cost: bool = False


def failure_of(error: Exception, timeout: float) -> Failure | None:
    """The failure that an exception means; None if it is an error in this program instead of the call."""
    import openai

    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Failure(f"no reply within {timeout:g} s", retry=True, may_cost=True)
    if isinstance(error, UnreadableReply):
        return Failure(str(error), retry=True, may_cost=True)
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error.status_code, error.code, error.message, error.response.headers)
    if isinstance(error, openai.APIConnectionError):
        if isinstance(error.__cause__, UnreadableReply):
            return Failure(str(error.__cause__), retry=True, may_cost=True)
        never_sent = "Connect" in type(error.__cause__).__name__
        why = reason_of(error)
        return Failure(why.text, retry=True, unreachable=why.permanent, may_cost=not never_sent)
    if isinstance(error, openai.OpenAIError):
        return Failure(f"{type(error).__name__}: {error}", retry=False)
    return None


def _status_failure(status: int, code: str | None, message: str, headers: Mapping[str, str]) -> Failure:
    reason = f"HTTP {status}: {message:.300}"
    # OpenAI returns 429 also if the account has no credit; waiting does not help then.
    if status in FATAL or code == "insufficient_quota":
        return Failure(reason, retry=False, fatal=True)
    return Failure(
        reason,
        retry=status in RETRIED or status >= 500,
        wait=retry_after(headers.get("retry-after"), headers.get("retry-after-ms")),
    )
