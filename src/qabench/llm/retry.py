"""Which failures are worth another call, and how long to wait before it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from qabench.errors import InputError
from qabench.http import retry_after
from qabench.llm.exchange import UnreadableReply

# 408 request timeout, 409 lock timeout, 425 too early, 429 too many requests; and every 5xx.
RETRIED = {408, 409, 425, 429}
# A wrong key, an empty account, an unknown model: every further call would fail in the same way.
FATAL = {401, 402, 404}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after how long a failed call is made again.

    Attributes:
        retries: further calls after the first one.
        base: seconds before the first of them, doubled for each further one, up to ``cap``; less a random part, so
            that calls which failed together do not come back together.
        longest_wait: a server that asks (Retry-After) for a longer wait than so many seconds is not waited for.
    """

    retries: int = 5
    base: float = 0.5
    cap: float = 30.0
    longest_wait: float = 300.0

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise InputError(f"retries is {self.retries}; it must be 0 or more")

    def delay(self, retry: int) -> float:
        """Seconds before the retry of that number, from 0, where the server does not say."""
        return min(self.cap, self.base * 2.0 ** min(retry, 30)) * random.uniform(0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call failed and what follows.

    Attributes:
        retry: another call may go well. fatal: no call to this endpoint will.
        wait: seconds that the server asked to wait; None where it did not.
        may_cost: the model may have run all the same, and be paid for.
    """

    reason: str
    retry: bool
    fatal: bool = False
    wait: float | None = None
    may_cost: bool = False


def failure_of(error: Exception, timeout: float) -> Failure | None:
    """What an error of a call means; None for one that is no failure of a call, but of this program."""
    import openai

    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Failure(f"no reply within {timeout:g} s", retry=True, may_cost=True)
    if isinstance(error, UnreadableReply):
        return Failure(str(error), retry=True, may_cost=True)
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error.status_code, error.code, error.message, error.response.headers)
    if isinstance(error, openai.APIConnectionError):
        never_sent = "Connect" in type(error.__cause__).__name__
        return Failure(f"the connection failed: {error.__cause__ or error!r}", retry=True, may_cost=not never_sent)
    if isinstance(error, openai.OpenAIError):
        return Failure(f"{type(error).__name__}: {error}", retry=False)
    return None


def _status_failure(status: int, code: str | None, message: str, headers: Mapping[str, str]) -> Failure:
    reason = f"HTTP {status}: {message:.300}"
    # OpenAI says 429 to an empty account too; waiting does not fill it.
    if status in FATAL or code == "insufficient_quota":
        return Failure(reason, retry=False, fatal=True)
    return Failure(
        reason,
        retry=status in RETRIED or status >= 500,
        wait=retry_after(headers.get("retry-after"), headers.get("retry-after-ms")),
    )
