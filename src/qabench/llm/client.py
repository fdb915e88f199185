"""Concurrent, cached chat client with retries and budgets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from qabench.errors import InputError, MissingExtra
from qabench.llm.budget import Meter, OverBudget, Plan, Prices, plan_of
from qabench.llm.cache import ReplyCache
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest, Outcome, Reply, read_reply
from qabench.llm.retry import Failure, RetryPolicy, failure_of
from qabench.llm.transport import limited_client
from qabench.llm.transport import max_reply_bytes as most_bytes

Progress = Callable[[int, int], None]
SECONDS_BETWEEN_LOOKS = 0.2


class ChatClient:
    """Sends requests to an endpoint concurrently, and stores every reply in a cache.

    Args:
        endpoint: see ``resolve_endpoint``.
        cache: the cache of replies; default: the user's, shared by all processes.
        concurrency: the maximum number of calls in flight.
        retry: how failed calls are retried; see ``RetryPolicy``. The retries of the openai package are disabled: they
            would not count toward ``max_calls``, and would not delay other calls when the server asks to wait.
        timeout: seconds for one call, from sending to the last byte.
        max_calls: the maximum number of calls; see ``Meter``.
        max_tokens: the maximum number of tokens; see ``Meter``.
        max_reply_bytes: the maximum size of a reply, checked while it is read; None for ``transport.max_reply_bytes``.

    Raises:
        InputError: an option is out of range.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        cache: ReplyCache | None = None,
        *,
        concurrency: int = 20,
        retry: RetryPolicy | None = None,
        timeout: float = 120.0,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_reply_bytes: int | None = None,
    ) -> None:
        if concurrency < 1 or not timeout > 0:
            raise InputError(f"concurrency is {concurrency} and timeout {timeout}; both must be above 0")
        self.endpoint = endpoint
        self.cache = cache or ReplyCache()
        self.concurrency = concurrency
        self.retry = retry or RetryPolicy()
        self.timeout = timeout
        self.meter = Meter(max_calls, max_tokens)
        self.max_reply_bytes = most_bytes() if max_reply_bytes is None else max_reply_bytes
        self.retried = 0
        self._fatal: str | None = None
        self._reached = False  # the server has answered a call, possibly with an error
        self._not_before = 0.0

    def plan(self, requests: Sequence[ChatRequest], prices: Prices | None = None) -> Plan:
        """The calls that ``complete`` would make, without making them."""
        by_key = {request.key(self.endpoint.base_url): request for request in requests}
        known = self.cache.find(by_key)
        self.cache.close()
        return plan_of([request for key, request in by_key.items() if key not in known], len(known), prices)

    async def complete(self, requests: Sequence[ChatRequest], progress: Progress | None = None) -> list[Outcome]:
        """One outcome per request, in order. Equal requests are sent once.

        If canceled, it stops the calls in flight; replies received so far are in the cache.

        Raises:
            MissingExtra: calls are needed and the openai package is not installed.
        """
        by_key = {request.key(self.endpoint.base_url): request for request in requests}
        try:
            done = {key: Outcome(reply, cached=True) for key, reply in self.cache.find(by_key).items()}
            if progress:
                progress(len(done), len(by_key))
            rest = {key: request for key, request in by_key.items() if key not in done}
            if rest and self.endpoint.why_unusable:
                done |= dict.fromkeys(rest, Outcome(reason=f"not sent: {self.endpoint.why_unusable}"))
            elif rest:
                await self._complete(rest, done, (lambda: progress(len(done), len(by_key))) if progress else None)
        finally:
            self.cache.close()
        return [done[request.key(self.endpoint.base_url)] for request in requests]

    async def _complete(
        self, rest: dict[bytes, ChatRequest], done: dict[bytes, Outcome], progress: Callable[[], None] | None
    ) -> None:
        slots = asyncio.Semaphore(self.concurrency)
        async with self._session() as session:

            async def work(key: bytes, request: ChatRequest) -> None:
                done[key] = await self._settled(session, slots, key, request)
                if progress:
                    progress()

            async with asyncio.TaskGroup() as group:
                for key, request in rest.items():
                    group.create_task(work(key, request))

    @contextlib.asynccontextmanager
    async def _session(self) -> AsyncIterator[Any]:
        """An openai client; the claims in the cache are renewed while it is open."""
        renewal = asyncio.create_task(self._renew_claims())
        try:
            async with _openai_client(self.endpoint, self.max_reply_bytes) as session:
                yield session
        finally:
            renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewal

    async def _renew_claims(self) -> None:
        while True:
            await asyncio.sleep(self.cache.lease / 3)
            self.cache.renew()

    async def _settled(self, session: Any, slots: asyncio.Semaphore, key: bytes, request: ChatRequest) -> Outcome:
        while True:
            async with slots:
                claimed = self.cache.claim(key)
                if isinstance(claimed, Reply):
                    return Outcome(claimed, cached=True)
                if claimed:
                    try:
                        return await self._ask(session, key, request)
                    finally:
                        self.cache.release(key)
            # Another process is sending the same request; its reply is used here too.
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    async def _ask(self, session: Any, key: bytes, request: ChatRequest) -> Outcome:
        reason, calls = "", 0
        while calls <= self.retry.retries:
            await self._wait_as_told()
            if refused := self._refused(request):
                return Outcome(reason=f"{refused}; before: {reason}" if reason else refused, calls=calls)
            result = await self._try(session, key, request)
            calls += 1
            if isinstance(result, Reply):
                return Outcome(result, calls=calls)
            reason = result.reason
            if self.endpoint.withheld and reason.startswith(("HTTP 401", "HTTP 403")):
                reason = f"{reason}; {self.endpoint.withheld}"
            if not await self._worth_another(result, calls):
                break
        return Outcome(reason=f"{reason} (after {calls} calls)" if calls > 1 else reason, calls=calls)

    def _refused(self, request: ChatRequest) -> str | None:
        """Why the next call must not be made; None if it may be made, in which case it is counted."""
        if self._fatal:
            return f"not sent: the endpoint refuses all calls ({self._fatal})"
        try:
            self.meter.start(request)
        except OverBudget as error:
            return f"not sent: {error}"
        return None

    async def _try(self, session: Any, key: bytes, request: ChatRequest) -> Reply | Failure:
        """Makes one call. Cannot be interrupted between receiving a reply and storing it."""
        reply, may_cost = None, True
        try:
            reply = self.cache.settle(key, request, await self._call(session, request))
            self._reached = True
            return reply
        except Exception as error:
            failure = failure_of(error, self.timeout)
            if failure is None:
                raise
            may_cost = failure.may_cost
            self._reached = self._reached or not failure.unreachable
            return failure
        finally:
            self.meter.end(request, reply, may_cost)

    async def _worth_another(self, failure: Failure, calls: int) -> bool:
        """Whether to call again after ``calls`` calls; if so, waits first."""
        if failure.fatal or (failure.unreachable and not self._reached):
            self._fatal = failure.reason
            return False
        wait = self.retry.delay(calls - 1) if failure.wait is None else failure.wait
        if not failure.retry or calls > self.retry.retries or wait > self.retry.longest_wait:
            return False
        if failure.wait is None:
            await asyncio.sleep(wait)
        else:
            self._not_before = max(self._not_before, asyncio.get_running_loop().time() + wait)
        self.retried += 1
        return True

    async def _wait_as_told(self) -> None:
        # A server's request to wait applies to all our calls, not only to the one that it answered.
        while (wait := self._not_before - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(wait)

    async def _call(self, session: Any, request: ChatRequest) -> Reply:
        # The package's timeout applies to each read: a server that sends single bytes would never exceed it.
        async with asyncio.timeout(self.timeout):
            response = await session.chat.completions.with_raw_response.create(**request.body(), timeout=self.timeout)
        return read_reply(response.text, self.max_reply_bytes)


def _openai_client(endpoint: Endpoint, most: int) -> Any:
    try:
        from openai import AsyncOpenAI
    except ImportError:
        raise MissingExtra("calls to language models need the openai package: pip install 'qabench[judge]'") from None
    # The package replaces None with OPENAI_... variables; "" prevents sending those to other servers.
    client = AsyncOpenAI(
        api_key=endpoint.api_key,
        admin_api_key="",
        organization="",
        project="",
        webhook_secret="",
        base_url=endpoint.base_url,
        max_retries=0,
        http_client=limited_client(most),
        default_headers={"Authorization": f"Bearer {endpoint.api_key}"},
    )
    client.organization = client.project = None
    return client
